"""Learning a retriever from a collection."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from diptych.cli.model_building import build_model
from diptych.cli.stages import Stages
from diptych.collection import Collection, Item
from diptych.data import CaptionedPicture, CaptionedPictures, Pairs, read_captions
from diptych.errors import InvalidInputError
from diptych.retriever import Retriever


def training_pairs(collection: Collection, captions: str | None, stages: Stages) -> Pairs:
    """Return the collection's pictures with their captions, those of a caption file, or their labels as words."""
    if captions is not None:
        source = collection.root if captions == "sidecar" else Path(captions).expanduser()
        described = read_captions(source, collection.root)
        stages.note(f"captions: {described.describe()}")
        return described.pairs()
    items = [item for item in collection if item.path is not None]
    chosen = [item for item in items if item.captions]
    if not chosen:
        chosen = [item for item in items if item.labels]
        if chosen:
            stages.note("there are no captions, so the labels are the words to learn from")
    if not chosen:
        raise InvalidInputError(
            "the collection has neither captions nor labels to learn from; add some with: "
            "diptych index FOLDER --captions FILE"
        )
    pictures = [_captioned(collection, item) for item in chosen]
    there = {picture.path: picture for picture in pictures if picture.path.is_file()}
    if len(there) < len(pictures):
        stages.note(f"{len(pictures) - len(there):,} pictures are no longer there and are left out")
    return CaptionedPictures(collection.root, there).pairs()


def _captioned(collection: Collection, item: Item) -> CaptionedPicture:
    return CaptionedPicture(collection.root / (item.path or ""), item.captions or item.labels, item.labels)


class Training:
    """Learns a retriever with the encoders that a collection uses, and puts it in the place of the present one."""

    def __init__(
        self, collection: Collection, stages: Stages, *, method: str | None, parameters: Mapping[str, Any]
    ) -> None:
        present = collection.retriever
        if not isinstance(present, Retriever):
            raise InvalidInputError(f"a collection with a {type(present).__name__} cannot be trained from here")
        if method is None and parameters:
            raise InvalidInputError("--param belongs to a method; name it with --method")
        self._collection = collection
        self._stages = stages
        self._present = present
        self._new = Retriever(
            image_encoder=present.image_encoder_,
            text_encoder=present.text_encoder_,
            model=None if method is None else build_model(method, parameters),
            name="trained" if method is None else f"trained {method}",
            cache=present.cache,
        )

    def learn(self, pairs: Pairs, *, held_out: float, seed: int, force: bool) -> Retriever:
        """Return what was learned, or the present retriever where that is better, with the comparison of both."""
        with self._stages.run("learn", f"learning from {pairs.n_images:,} pictures and {pairs.n_texts:,} texts"):
            return self._new.fit(pairs, baseline=self._present, held_out=held_out, seed=seed, force=force)

    def install(self, retriever: Retriever) -> None:
        """Make it the retriever of the collection; points come from stored features where the encoders are the same."""
        with self._stages.count("reencode", "giving every item its new point") as advance:
            self._collection.set_retriever(retriever, progress=lambda step: advance(step.done, step.total))
