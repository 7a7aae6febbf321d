"""The names of the thousand ImageNet labels."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import NamedTuple


class ImageNetLabel(NamedTuple):
    """One label: the WordNet synset and its words, the most usual first."""

    synset: str
    lemmas: tuple[str, ...]


@cache
def imagenet_labels() -> tuple[ImageNetLabel, ...]:
    """Return the 1,000 labels of ILSVRC 2012 in the order of the columns of :class:`ImageNetLabels`.

    Reference: Russakovsky et al., "ImageNet large scale visual recognition challenge", IJCV 2015; the words are those
    of WordNet 3.0.

    >>> from diptych.encoders import imagenet_labels
    >>> imagenet_labels()[207]
    ImageNetLabel(synset='n02099601', lemmas=('golden retriever',))
    """
    text = files("diptych.encoders.image").joinpath("imagenet_labels.tsv").read_text(encoding="utf-8")
    lines = [line.split("\t") for line in text.splitlines() if not line.startswith("#")]
    return tuple(ImageNetLabel(synset, tuple(lemmas.split(", "))) for synset, lemmas in lines)
