"""What a person can do with an answer, and what of it speaks for the answer."""

from __future__ import annotations

from typing import Literal, get_args

ClickKind = Literal["open", "original", "more_like", "less_like"]
VoteChoice = Literal["left", "right", "both", "neither"]

CLICK_KINDS: tuple[ClickKind, ...] = get_args(ClickKind)
VOTE_CHOICES: tuple[VoteChoice, ...] = get_args(VoteChoice)

# Asking for less of something is recorded, but it is no sign that the answer was wanted.
AGAINST: ClickKind = "less_like"
