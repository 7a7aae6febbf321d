"""What counts as the same: ties may swap and last digits differ, as they do between processors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from tests.golden.library import Found, Reply

PROBABILITY_TOLERANCE = 0.005
SCORE_TOLERANCE = 0.002


def differences(recorded: Reply, found: Reply) -> list[str]:
    """Return what differs between two replies, a line each; nothing where they are the same."""
    if near_cutoff(recorded):
        found = replace(found, no_good_match=recorded.no_good_match)
    lines = [
        f"{name}: recorded {before!r}, now {now!r}"
        for name in ("error", "mode", "no_good_match", "considered")
        if (before := getattr(recorded, name)) != (now := getattr(found, name))
    ]
    if abs(recorded.cutoff - found.cutoff) > PROBABILITY_TOLERANCE:
        lines.append(f"cutoff: recorded {recorded.cutoff}, now {found.cutoff}")
    if [*recorded.notes] != [*found.notes]:
        lines.append(f"notes: recorded {recorded.notes}, now {found.notes}")
    return lines + _answer_differences(recorded, found)


def near_cutoff(reply: Reply) -> bool:
    """Return True if a last digit decides whether there is a good match."""
    return any(abs(answer.probability - reply.cutoff) < PROBABILITY_TOLERANCE for answer in reply.answers[:1])


def _answer_differences(recorded: Reply, found: Reply) -> list[str]:
    before, now = ({answer.id: answer for answer in reply.answers} for reply in (recorded, found))
    # A joined ranking goes by ranks, where a tie of one part moves an answer by a place.
    is_joined = recorded.mode == "both"
    lines = [f"{len(before)} answers recorded, now {len(now)}"] if len(before) != len(now) else []
    lines += [
        f"{id}: recorded {_shown(before.get(id))}, now {_shown(now.get(id))}"
        for id in sorted(before.keys() | now.keys())
        if not _is_same(before.get(id), now.get(id), recorded.answers or found.answers)
    ]
    order = [id for id in before if id in now]
    places = {id: place for place, id in enumerate(now)}
    lines += [
        f"{first} came before {second}"
        for (at, first), (at_second, second) in combinations(enumerate(order), 2)
        if places[first] > places[second]
        and abs(before[first].score - before[second].score) >= SCORE_TOLERANCE
        and not (is_joined and at_second - at == 1)
    ]
    return lines


def _is_same(before: Found | None, now: Found | None, answers: Sequence[Found]) -> bool:
    if before is None or now is None:
        # Another of equal score may take the last place.
        one = before or now
        return one is not None and abs(one.score - answers[-1].score) < SCORE_TOLERANCE
    return (
        before.place == now.place
        and abs(before.probability - now.probability) <= PROBABILITY_TOLERANCE
        and abs(before.score - now.score) <= SCORE_TOLERANCE
    )


def _shown(answer: Found | None) -> str:
    if answer is None:
        return "not among them"
    return " ".join(filter(None, (f"{answer.probability:.4f} ({answer.score:.4f})", answer.place)))
