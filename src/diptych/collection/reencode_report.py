"""What a change of retriever did."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class ReencodeReport:
    """How many pictures and captions got points of the new retriever.

    ``read_again`` counts the pictures that had to be read, because another image encoder asks for other features;
    ``failures`` gives the reason for each path that could not be. Those items stay, without being found by pictures.
    """

    pictures: int = 0
    captions: int = 0
    read_again: int = 0
    failures: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
