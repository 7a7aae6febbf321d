"""What a paper observed, checked against records in which it holds, and in which it does not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from diptych.benchmark.reporting import build_report, check_observations, find_experiments, group_records
from diptych.benchmark.reporting.observations import measure_drops
from diptych.benchmark.results import Record
from diptych.space import DIRECTIONS


def test_experiments_pair_seen_with_unseen(records: list[Record]) -> None:
    experiments = find_experiments(group_records(records))
    assert [one.title for one in experiments] == ["Wikipedia"]
    assert "random" not in {seen.name for seen, _ in experiments[0].method_pairs}
    assert find_experiments(group_records([one for one in records if one.setting == "seen"])) == ()


def observed(records: list[Record]) -> dict[str, str]:
    found = check_observations(group_records(records))
    return {f"{one.claim[:5]} {one.where}": one.verdict for one in found}


def test_observations_that_were_built_in_are_confirmed(records: list[Record]) -> None:
    assert observed(records) == {
        "Every Wikipedia": "confirmed",
        "The t Wikipedia": "confirmed",
        "CMC a Wikipedia, seen classes": "confirmed",
        "CMC a Wikipedia, unseen classes": "confirmed",
    }


def swapped(record: Record) -> Record:
    """Return the record as if its queries had been asked under the other setting."""
    other = "unseen" if record.setting == "seen" else "seen"
    return replace(record, setting=other, task=f"extendable-wikipedia-{other}")


def test_observations_that_do_not_hold_are_not_confirmed(records: list[Record]) -> None:
    """With the settings swapped nothing falls, and the trivial solution is the one that wins."""
    found = observed([swapped(record) for record in records])
    assert found["Every Wikipedia"] == found["The t Wikipedia"] == "not confirmed"


def test_one_method_that_does_not_fall_is_enough_to_refute(records: list[Record]) -> None:
    odd = [swapped(record) if record.method == "cfa" else record for record in records]
    assert observed(odd)["Every Wikipedia"] == "not confirmed"
    claim = check_observations(group_records(odd))[0]
    assert claim.p_value is not None
    assert claim.p_value > 0.9
    assert "5 of 6 methods" in claim.evidence


def test_chance_is_taken_off_before_settings_are_compared(records: list[Record]) -> None:
    """A method whose MAP falls by as much as chance does has not lost anything."""
    raised = [
        replace(one, chance={name: dict.fromkeys(DIRECTIONS, 0.75) for name in one.chance})
        if one.setting == "seen"
        else one
        for one in records
    ]
    assert observed(raised)["Every Wikipedia"] == "not confirmed"
    before, after = (find_experiments(group_records(found))[0] for found in (records, raised))
    assert before.by_query is not None
    assert after.by_query is not None
    # Chance was 0.2 for pictures and 0.22 for texts, and every query here is asked both ways.
    np.testing.assert_allclose(before.by_query[0] - after.by_query[0], 0.75 - 0.21)
    np.testing.assert_array_equal(before.by_query[1], after.by_query[1])
    for one, other in zip(measure_drops(before), measure_drops(after), strict=True):
        assert one.loss == other.loss
        assert one.loss_above_chance == pytest.approx(one.loss)
        assert other.loss_above_chance == pytest.approx(one.loss - (0.75 - 0.21))


def test_a_preference_of_one_measure_alone_is_no_inversion(records: list[Record]) -> None:
    """Every method has the same values of AP in another order, so that only rank 1 prefers anything."""
    generator = np.random.default_rng(0)
    shuffled = []
    for one in records:
        values = {way: (generator.permutation(24) / 100).tolist() for way in DIRECTIONS}
        tilted = {way: float(np.mean(values[way])) - 1e-6 * one.measures["CMC@1"][way] for way in DIRECTIONS}
        measures = {**one.measures, "AP()": tilted}
        shuffled.append(replace(one, measures=measures, per_query={**one.per_query, "AP()": values}))
    claims = [one for one in check_observations(group_records(shuffled)) if one.claim.startswith("CMC")]
    assert [one.verdict for one in claims] == ["not confirmed"] * 2
    assert all("methods is −0." in one.evidence or "methods is −1." in one.evidence for one in claims)


def test_orders_that_agree_are_not_said_to_differ(records: list[Record]) -> None:
    same = [
        replace(
            one,
            measures={**one.measures, "CMC@1": one.measures["AP()"]},
            per_query={**one.per_query, "CMC@1": one.per_query["AP()"]},
        )
        for one in records
    ]
    claims = [one for one in check_observations(group_records(same)) if one.claim.startswith("CMC")]
    assert [one.verdict for one in claims] == ["not confirmed"] * 2
    assert all("is 1.00; 0 of" in one.evidence for one in claims)


def test_what_cannot_be_tested_says_so(records: list[Record]) -> None:
    bare = [replace(one, per_query={}) for one in records if one.fold == 0]
    found = check_observations(group_records(bare))
    assert {one.verdict for one in found if one.claim.startswith("CMC")} == {"not testable"}
    # One fold gives p = 1/2 at best, so nothing can be confirmed.
    assert all(one.verdict != "confirmed" for one in found)
    assert build_report(bare).as_html()
