"""Learning a retriever from the captions and labels of a collection."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from diptych.collection.collection import Collection
from diptych.collection.learning.promotion import base_name
from diptych.data import CaptionedPicture, CaptionedPictures, Pairs
from diptych.errors import InvalidInputError

if TYPE_CHECKING:
    from diptych.encoders import Encoder
    from diptych.encoders.feature_cache import Progress
    from diptych.models import CrossModalModel
    from diptych.retriever import Retriever


def training_pairs(collection: Collection, note: Callable[[str], None]) -> Pairs:
    """Return the collection's pictures with their captions, or with their labels as words where there are none.

    ``note`` is told what the person who asked should know.
    """
    items = [item for item in collection if item.path is not None]
    captioned, labelled = [item for item in items if item.captions], [item for item in items if item.labels]
    chosen = captioned or labelled
    if chosen and not captioned:
        note("there are no captions, so the labels are the words to learn from")
    if not chosen:
        raise InvalidInputError(
            "the collection has neither captions nor labels to learn from; add some with: "
            "diptych index FOLDER --captions FILE"
        )
    pictures = [
        CaptionedPicture(collection.root / (item.path or ""), item.captions or item.labels, item.labels)
        for item in chosen
    ]
    there = {picture.path: picture for picture in pictures if picture.path.is_file()}
    if len(there) < len(pictures):
        note(f"{len(pictures) - len(there):,} pictures are no longer there and are left out")
    return CaptionedPictures(collection.root, there).pairs()


class Training:
    """Learns a retriever with the encoders that a collection uses.

    A method of pictures and texts themselves (`MNiL`) brings its own; after it, others start from the default ones.

    Parameters
    ----------
    collection :
        The collection; its present retriever is what the new one has to beat, and gives the encoders; if it was learned
        from clicks, the one beneath it does.
    method, parameters :
        The model to learn; without a method the best of a few is chosen.
    """

    def __init__(self, collection: Collection, *, method: str | None, parameters: Mapping[str, Any]) -> None:
        from diptych.models.registry import build_model
        from diptych.retriever import Retriever

        present = collection.retriever
        if not isinstance(present, Retriever):
            raise InvalidInputError(f"a collection with a {type(present).__name__} cannot be trained from here")
        if method is None and parameters:
            raise InvalidInputError("parameters belong to a method; name the method as well")
        model = None if method is None else build_model(method, parameters, among=("features", "items"))
        self._present = present
        # What was learned from clicks reads words through the log, which is nothing to learn captions with.
        base = collection.retriever_named(base_name(collection))
        self._new = Retriever(
            **_encoders(base if isinstance(base, Retriever) else present, model),
            model=model,
            name="trained" if method is None else f"trained {method}",
            cache=present.cache,
        )

    def learn(
        self,
        pairs: Pairs,
        *,
        held_out: float,
        seed: int,
        force: bool,
        progress: Progress | None = None,
        epochs: Callable[[Any], None] | None = None,
    ) -> Retriever:
        """Return what was learned, or the present retriever where that is better, with the comparison of both.

        ``epochs`` is called with the record of each epoch of a method of pictures and texts themselves.
        """
        return self._new.fit(
            pairs, baseline=self._present, held_out=held_out, seed=seed, force=force, progress=progress, epochs=epochs
        )


def _encoders(present: Retriever, model: CrossModalModel | None) -> dict[str, Encoder]:
    """Return the encoders to learn with; what is left out is the default retriever's."""
    from diptych.models.item_model import ItemModel
    from diptych.retriever import ImageTower

    if isinstance(present.image_encoder_, ImageTower):
        # The points of a trained network are no features to learn from, and would be saved a second time.
        return {}
    if not isinstance(model, ItemModel):
        return {"image_encoder": present.image_encoder_, "text_encoder": present.text_encoder_}
    return {} if model.takes_pictures else {"image_encoder": present.image_encoder_}
