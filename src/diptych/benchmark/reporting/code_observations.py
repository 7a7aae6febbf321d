"""What Liu et al. observed of hash codes (section III-F): their length, CMC beside MAP, and how far methods differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from diptych.arrays import FloatArray
from diptych.benchmark.reporting.observations import Observation, format_signed, not_testable
from diptych.benchmark.reporting.results import (
    AVERAGE_PRECISION,
    RANK_ONE,
    Experiment,
    MethodResults,
    TaskResults,
    find_experiments,
    query_shares,
)
from diptych.benchmark.reporting.significance import LEVEL, each_larger_than_zero, holm, larger_than_zero

LONGER_CLAIM = "Longer codes are better for most methods"
CORRELATION_CLAIM = "Codes of correlation methods lose MAP and win CMC with their length"
EQUAL_MAP_CLAIM = "CMC tells methods of equal MAP apart"
SHRINKING_CLAIM = "Methods differ less on unseen classes"
CORRELATION_CODES = ("scm-orth", "cvh", "imh")
SHORT, LONG = 8, 32
EQUAL_MAP = 0.005
"""Methods whose MAP differs by no more are taken for equal."""


def _by_length(task: TaskResults) -> dict[str, tuple[MethodResults, MethodResults]]:
    """Return the shortest and the longest codes of every method that was run on all folds."""
    found = {method.name: method for method in task.complete if method.n_bits in (SHORT, LONG)}
    stems = [name.removesuffix(f"-{SHORT}") for name in found if name.endswith(f"-{SHORT}")]
    return {stem: (found[f"{stem}-{SHORT}"], found[f"{stem}-{LONG}"]) for stem in stems if f"{stem}-{LONG}" in found}


def _gains(pair: tuple[MethodResults, MethodResults], measure: str) -> FloatArray:
    short, long = pair
    return long.per_fold(measure) - short.per_fold(measure)


def longer_codes(task: TaskResults) -> Observation:
    """Test whether 32 bits are better than 8 for most methods, by MAP and by the rank-1 accuracy; over methods."""
    pairs = _by_length(task)
    if len(pairs) < 3 or not task.all_have_measure(RANK_ONE):
        return not_testable(LONGER_CLAIM, task.title, "It takes three methods with codes of 8 and of 32 bits.")
    gains = {measure: [float(_gains(pair, measure).mean()) for pair in pairs.values()] for measure in _MEASURES}
    better = {measure: sum(gain > 0 for gain in values) for measure, values in gains.items()}
    p_value = max(larger_than_zero(values) for values in gains.values())
    most = all(2 * count > len(pairs) for count in better.values())
    return Observation(
        LONGER_CLAIM,
        task.title,
        "confirmed" if most and p_value <= LEVEL else "not confirmed",
        p_value,
        f"With {LONG} bits {better[AVERAGE_PRECISION]} of {len(pairs)} methods have a higher MAP than with {SHORT}, "
        f"{better[RANK_ONE]} a higher rank-1 accuracy.",
        ("method", "gain in MAP", "gain at rank 1"),
        tuple((stem, *(format_signed(gains[one][row]) for one in _MEASURES)) for row, stem in enumerate(pairs)),
        tested="both mean gains over methods",
    )


def correlation_codes(task: TaskResults) -> Observation:
    """Test whether codes made by correlation lose MAP and win rank-1 accuracy from 8 to 32 bits; over folds."""
    pairs = {stem: pair for stem, pair in _by_length(task).items() if stem in CORRELATION_CODES}
    if len(pairs) < len(CORRELATION_CODES) or not task.all_have_measure(RANK_ONE):
        return not_testable(CORRELATION_CLAIM, task.title, f"It takes {', '.join(CORRELATION_CODES)} on all folds.")
    changes = {stem: (_gains(pair, AVERAGE_PRECISION), _gains(pair, RANK_ONE)) for stem, pair in pairs.items()}
    p_value = max(max(larger_than_zero(-lost), larger_than_zero(won)) for lost, won in changes.values())
    moved = "; ".join(
        f"{stem} {format_signed(float(lost.mean()))} in MAP, {format_signed(float(won.mean()))} at rank 1"
        for stem, (lost, won) in changes.items()
    )
    holds = all(lost.mean() < 0 < won.mean() for lost, won in changes.values())
    return Observation(
        CORRELATION_CLAIM,
        task.title,
        "confirmed" if holds and p_value <= LEVEL else "not confirmed",
        p_value,
        f"From {SHORT} to {LONG} bits: {moved}.",
        tested="each loss and each gain over folds",
    )


def equal_map(task: TaskResults) -> Observation:
    """Test whether methods of equal MAP differ in rank-1 accuracy, among codes of one length; over queries, Holm."""
    methods = [method for method in task.comparable_methods(RANK_ONE) if method.n_bits is not None]
    pairs = [
        (one, other)
        for one, other in combinations(range(len(methods)), 2)
        if methods[one].n_bits == methods[other].n_bits
        and abs(methods[one].mean() - methods[other].mean()) <= EQUAL_MAP
    ]
    shares = query_shares(methods, RANK_ONE)
    if shares is None or not pairs:
        why = f"No two codes of one length lie within {EQUAL_MAP} in MAP and keep {RANK_ONE} for every query."
        return not_testable(EQUAL_MAP_CLAIM, task.title, why)
    first, second = np.array(pairs).T
    differences = shares[:, first] - shares[:, second]
    # Two-sided: the sign of each difference is that of its sum.
    p_values = holm(np.minimum(1, 2 * each_larger_than_zero(differences * np.sign(differences.sum(axis=0)))))
    gaps = np.abs(differences.sum(axis=0))
    apart = int((p_values <= LEVEL).sum())
    return Observation(
        EQUAL_MAP_CLAIM,
        task.title,
        "confirmed" if apart else "not confirmed",
        float(p_values.min()),
        f"{len(pairs)} pairs of codes of one length lie within {EQUAL_MAP} in MAP; {apart} of them differ at rank 1 "
        f"significantly (Holm), by up to {max(gaps):.3f}.",
        tested="at least one pair",
    )


def shrinking_differences(experiment: Experiment, *, codes: bool) -> Observation:
    """Test whether the spread of methods, their deviation above chance, is smaller on unseen classes; over folds."""
    where = f"{experiment.title}, {'codes' if codes else 'real-valued methods'}"
    pairs = [pair for pair in experiment.method_pairs if (pair[0].n_bits is not None) == codes]
    if len(pairs) < 3 or not all(RANK_ONE in method.records[0].measures for pair in pairs for method in pair):
        return not_testable(SHRINKING_CLAIM, where, "It takes three methods on all folds of both settings.")
    spreads = {measure: [_spread([pair[side] for pair in pairs], measure) for side in (0, 1)] for measure in _MEASURES}
    p_value = max(larger_than_zero(seen - unseen) for seen, unseen in spreads.values())
    said = "; ".join(
        f"{name}: {seen.mean():.3f} on seen and {unseen.mean():.3f} on unseen classes"
        for name, (seen, unseen) in zip(("MAP", "rank 1"), spreads.values(), strict=True)
    )
    return Observation(
        SHRINKING_CLAIM,
        where,
        "confirmed" if p_value <= LEVEL else "not confirmed",
        p_value,
        f"Deviation over {len(pairs)} methods, above chance. {said}.",
        tested="both spreads over folds",
    )


def _spread(methods: Sequence[MethodResults], measure: str) -> FloatArray:
    """Return for every fold the sample deviation, over methods, of what they have above chance."""
    above = np.stack([method.per_fold(measure) - method.chance_per_fold(measure) for method in methods])
    return np.asarray(above.std(axis=0, ddof=1))


_MEASURES = (AVERAGE_PRECISION, RANK_ONE)


def check_code_observations(tasks: Sequence[TaskResults]) -> tuple[Observation, ...]:
    """Test the observations on codes wherever there are results of seen and unseen classes."""
    return tuple(_checked(tasks))


def _checked(tasks: Sequence[TaskResults]) -> Iterator[Observation]:
    compared = [task for task in tasks if task.setting in ("seen", "unseen") and _by_length(task)]
    yield from map(longer_codes, compared)
    yield from map(correlation_codes, compared)
    yield from map(equal_map, compared)
    for experiment in find_experiments(compared):
        yield shrinking_differences(experiment, codes=True)
        yield shrinking_differences(experiment, codes=False)
