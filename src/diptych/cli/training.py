"""Learning a retriever from a collection, with what the terminal shows of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from diptych.cli.stages import Stages
from diptych.collection import Collection
from diptych.collection.learning import Training, learning_history, training_pairs
from diptych.data import Pairs, read_captions
from diptych.errors import InvalidInputError
from diptych.retriever import Retriever


def pairs_to_learn(collection: Collection, captions: str | None, stages: Stages) -> Pairs:
    """Return the collection's pictures with their captions, those of a caption file, or their labels as words."""
    if captions is None:
        return training_pairs(collection, stages.note)
    source = collection.root if captions == "sidecar" else Path(captions).expanduser()
    described = read_captions(source, collection.root)
    stages.note(f"captions: {described.describe()}")
    return described.pairs()


class ShownTraining:
    """Learns a retriever with the encoders that a collection uses, and puts it in the place of the present one."""

    def __init__(
        self, collection: Collection, stages: Stages, *, method: str | None, parameters: Mapping[str, Any]
    ) -> None:
        if method is None and parameters:
            raise InvalidInputError("--param belongs to a method; name it with --method")
        self._collection = collection
        self._stages = stages
        self._training = Training(collection, method=method, parameters=parameters)

    def learn(self, pairs: Pairs, *, held_out: float, seed: int, force: bool) -> Retriever:
        """Return what was learned, or the present retriever where that is better, with the comparison of both."""
        with self._stages.run("learn", f"learning from {pairs.n_images:,} pictures and {pairs.n_texts:,} texts"):
            return self._training.learn(
                pairs, held_out=held_out, seed=seed, force=force, epochs=lambda record: self._stages.note(str(record))
            )

    def install(self, retriever: Retriever) -> None:
        """Make it the retriever of the collection; points come from stored features where the encoders are the same."""
        with self._stages.count("reencode", "giving every item its new point") as advance:
            self._collection.set_retriever(
                retriever,
                # Learning from clicks leads back to it.
                keep=_is_led_back_to(self._collection),
                progress=lambda step: advance(step.done, step.total),
            )


def _is_led_back_to(collection: Collection) -> bool:
    now = collection.retriever.fingerprint
    return any(now in (each.before_fingerprint, each.after_fingerprint) for each in learning_history(collection))
