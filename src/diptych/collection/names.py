"""Names that people give: of retrievers, albums and saved searches."""

from __future__ import annotations

from collections.abc import Collection

LONGEST_NAME = 80


def unique_name(name: str, taken: Collection[str]) -> str:
    """Return the name fit for addresses and lists, with a number where it is taken.

    >>> unique_name("trained", ["trained", "trained 2"]), unique_name("my/model", [])
    ('trained 3', 'my model')
    """
    letters = (letter if letter.isprintable() and letter != "/" else " " for letter in name)
    plain = " ".join("".join(letters).split())[:LONGEST_NAME].strip() or "retriever"
    free, number = plain, 1
    while free in taken:
        number += 1
        free = f"{plain} {number}"
    return free
