"""The pictures of a folder that a caption file describes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from diptych.data.pairs import Pairs
from diptych.errors import InvalidInputError, counted

MetadataValue = str | int | float | bool


@dataclass(frozen=True, slots=True)
class CaptionedPicture:
    """A picture file with its captions, its labels and whatever else a caption file says about it.

    Metadata are plain values, strings, numbers and booleans; what was a list or an object is kept as JSON text.

    >>> from pathlib import Path
    >>> from diptych.data import CaptionedPicture
    >>> CaptionedPicture(Path("1.jpg"), ("a boat",), labels=("boat",), metadata={"year": 2010}).metadata["year"]
    2010
    """

    path: Path
    captions: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    metadata: Mapping[str, MetadataValue] = field(default_factory=dict)


@dataclass(frozen=True, eq=False, repr=False)
class CaptionedPictures(Mapping[Path, CaptionedPicture]):
    """Picture files of ``folder`` by path, in the order of their paths, as :func:`read_captions` returns them.

    ``missing`` lists the files that are named but not in the folder, ``ambiguous`` those that several pictures could
    be, each once and as written, and ``unreadable`` the sidecars that were passed over; ``n_empty_captions`` counts the
    captions that held nothing and were dropped, and ``notes`` says in words what else a reader should know.

    >>> from pathlib import Path
    >>> from diptych.data import CaptionedPicture, CaptionedPictures
    >>> boat = CaptionedPicture(Path("1.jpg"), ("a boat", "a ship"), labels=("boat",))
    >>> pictures = CaptionedPictures(Path("."), {boat.path: boat}, missing=("2.jpg",))
    >>> pictures
    <CaptionedPictures: 1 picture, 2 captions, 1 with labels, 1 file not found>
    >>> pictures.pairs().texts
    ('a boat', 'a ship')
    """

    folder: Path
    pictures: Mapping[Path, CaptionedPicture]
    missing: tuple[str, ...] = ()
    ambiguous: tuple[str, ...] = ()
    n_empty_captions: int = 0
    notes: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()

    def __getitem__(self, path: Path) -> CaptionedPicture:
        return self.pictures[path]

    def __iter__(self) -> Iterator[Path]:
        return iter(self.pictures)

    def __len__(self) -> int:
        return len(self.pictures)

    @property
    def n_captions(self) -> int:
        """The number of captions of all pictures."""
        return sum(len(picture.captions) for picture in self.pictures.values())

    @property
    def n_labelled(self) -> int:
        """The number of pictures with at least one label."""
        return sum(bool(picture.labels) for picture in self.pictures.values())

    def pairs(self) -> Pairs:
        """Return the pictures that have captions as pairs, ready for encoders and models.

        Labels come along when every such picture has at least one: one class each if no picture has more, otherwise an
        indicator of all classes. The ids are the paths below the folder.
        """
        captioned = [picture for picture in self.pictures.values() if picture.captions]
        if not captioned:
            raise InvalidInputError(f"no picture in {self.folder} has a caption, so there are no pairs to learn from")
        labels, names = _labels([picture.labels for picture in captioned])
        return Pairs(
            [picture.path for picture in captioned],
            [caption for picture in captioned for caption in picture.captions],
            labels=labels,
            ids=[_below(picture.path, self.folder) for picture in captioned],
            class_names=names,
            owners=[row for row, picture in enumerate(captioned) for _ in picture.captions],
        )

    def describe(self) -> str:
        """Return the counts in one line."""
        parts = [counted(len(self), "picture"), counted(self.n_captions, "caption")]
        further = {
            f"{self.n_labelled:,} with labels": self.n_labelled,
            f"{counted(len(self.missing), 'file')} not found": self.missing,
            f"{counted(len(self.ambiguous), 'file')} with several candidates": self.ambiguous,
            f"{counted(len(self.unreadable), 'sidecar')} passed over": self.unreadable,
            f"{counted(self.n_empty_captions, 'empty caption')} dropped": self.n_empty_captions,
        }
        return ", ".join([*parts, *(words for words, found in further.items() if found)])

    def __repr__(self) -> str:
        return f"<CaptionedPictures: {self.describe()}>"


def _below(path: Path, folder: Path) -> str:
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else path.as_posix()


def _labels(listed: list[tuple[str, ...]]) -> tuple[np.ndarray | None, tuple[str, ...]]:
    if not all(listed):
        return None, ()
    names = tuple(sorted({label for labels in listed for label in labels}))
    if max(map(len, listed)) == 1:
        return np.array([labels[0] for labels in listed]), names
    columns = {name: column for column, name in enumerate(names)}
    indicator = np.zeros((len(listed), len(names)), dtype=np.uint8)
    for row, labels in enumerate(listed):
        indicator[row, [columns[label] for label in labels]] = 1
    return indicator, names
