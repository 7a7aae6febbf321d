"""The photographs that come with Diptych: free ones, gathered from packages, with captions of our own and credits."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import NamedTuple

PHOTOGRAPHS_FOLDER = Path(__file__).with_name("photographs")
_LISTING = "photographs.tsv"


class SamplePhotograph(NamedTuple):
    """A photograph with what it shows, who took it, under which licence, and where it comes from.

    ``package`` is the package that it was taken from, ``source`` the page or file that this package names for it.
    """

    path: Path
    captions: tuple[str, ...]
    author: str
    licence: str
    package: str
    source: str


def sample_photographs() -> list[SamplePhotograph]:
    """Return the photographs of the package, by name.

    They are in the public domain or licensed CC0 or CC-BY; each was scaled down to at most 480 pixels. ``CREDITS.md``
    beside them lists them for people.

    >>> from diptych.data.sample_photographs import sample_photographs
    >>> cat = next(photo for photo in sample_photographs() if photo.path.name == "cat.jpg")
    >>> cat.captions[0], cat.author, cat.licence
    ('the face of a tabby cat', 'Stefan van der Walt', 'CC0-1.0')
    """
    with (PHOTOGRAPHS_FOLDER / _LISTING).open(encoding="utf-8", newline="") as file:
        return [
            SamplePhotograph(
                PHOTOGRAPHS_FOLDER / row["file"],
                tuple(caption for caption in (row["caption"], row["other_caption"]) if caption),
                row["author"],
                row["licence"],
                row["package"],
                row["source"],
            )
            for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        ]
