"""The choice of captions that every captioned data set offers."""

from __future__ import annotations

from typing import Any

from diptych.data.pairs import Pairs
from diptych.errors import InvalidInputError

CAPTIONS_HELP = (
    "'all' captions as separate texts, 'join' them into one document per image, or the number of one, counted from 0"
)


def choose_captions(pairs: Pairs, captions: Any) -> Pairs:
    """Keep all captions, one document of all captions, or the k-th caption of each image.

    >>> from diptych.data.captions import choose_captions
    >>> from diptych.data import Pairs
    >>> pairs = Pairs(["1.jpg"], ["a cat", "a pet"], owners=[0, 0])
    >>> choose_captions(pairs, "join").texts, choose_captions(pairs, 1).texts
    (('a cat a pet',), ('a pet',))
    """
    if captions == "all":
        return pairs
    if captions == "join":
        return pairs.one_text_per_image("join")
    if isinstance(captions, int) and not isinstance(captions, bool):
        return pairs.one_text_per_image(captions)
    raise InvalidInputError(f"captions must be 'all', 'join' or the position of one caption, got {captions!r}")
