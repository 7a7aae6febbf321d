"""Which side asks and which is found; without arrays, so that the command line knows them at once."""

from __future__ import annotations

from typing import Literal, get_args

Direction = Literal["image_query", "text_query"]
DIRECTIONS: tuple[Direction, Direction] = ("image_query", "text_query")
DIRECTION_NAMES: dict[Direction, str] = {"image_query": "image query", "text_query": "text query"}
# What is asked with, and what is found.
SearchDirection = Literal["text_to_image", "image_to_text", "image_to_image", "text_to_text"]
SEARCH_DIRECTIONS: tuple[SearchDirection, ...] = get_args(SearchDirection)


def opposite(way: Direction) -> Direction:
    """Return the direction in which the answers of this one would ask.

    >>> from diptych.space import opposite
    >>> opposite("image_query")
    'text_query'
    """
    return "text_query" if way == "image_query" else "image_query"
