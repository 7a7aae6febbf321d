"""What a collection has to learn from."""

from __future__ import annotations

from collections.abc import Callable

from diptych.collection.collection import Collection
from diptych.collection.item import Item
from diptych.data import CaptionedPicture, CaptionedPictures, Pairs
from diptych.errors import InvalidInputError

Note = Callable[[str], None]


def training_pairs(collection: Collection, note: Note) -> Pairs:
    """Return the collection's pictures with their captions, or with their labels as words where there are none.

    ``note`` is told what the person who asked should know.
    """
    items = [item for item in collection if item.path is not None]
    chosen = [item for item in items if item.captions]
    if not chosen:
        chosen = [item for item in items if item.labels]
        if chosen:
            note("there are no captions, so the labels are the words to learn from")
    if not chosen:
        raise InvalidInputError(
            "the collection has neither captions nor labels to learn from; add some with: "
            "diptych index FOLDER --captions FILE"
        )
    pictures = [_captioned(collection, item) for item in chosen]
    there = {picture.path: picture for picture in pictures if picture.path.is_file()}
    if len(there) < len(pictures):
        note(f"{len(pictures) - len(there):,} pictures are no longer there and are left out")
    return CaptionedPictures(collection.root, there).pairs()


def _captioned(collection: Collection, item: Item) -> CaptionedPicture:
    return CaptionedPicture(collection.root / (item.path or ""), item.captions or item.labels, item.labels)
