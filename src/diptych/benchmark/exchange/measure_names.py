"""Measures by the names that other tools give them."""

from __future__ import annotations

import re
from collections.abc import Callable

from diptych.benchmark.exchange.linear_ndcg import LinearNDCG
from diptych.benchmark.exchange.reciprocal_rank import RR
from diptych.errors import InvalidInputError, UnknownNameError
from diptych.metrics import AP, CMC, NDCG, Measure, Precision, Recall

_NEEDS_CUTOFF: dict[str, Callable[[int], Measure]] = {"P": Precision, "R": Recall, "Success": CMC}
_MAY_HAVE_CUTOFF: dict[str, Callable[[int | None], Measure]] = {
    "AP": AP,
    "nDCG": LinearNDCG,
    "nDCG-exp": lambda cutoff: NDCG(cutoff, "ideal"),
}
_WHOLE: dict[str, Callable[[], Measure]] = {"RR": RR}
_FORM = re.compile(r"(?P<name>[A-Za-z-]+)(?:@(?P<cutoff>[0-9]+))?")

MEASURE_NAMES = ("AP", "AP@k", "P@k", "R@k", "RR", "nDCG", "nDCG@k", "nDCG-exp", "nDCG-exp@k", "Success@k")
"""What `find_measure` understands, k being a number."""


def find_measure(name: str) -> Measure:
    """Return the measure that ir_measures calls ``name``: AP, P@10, R@10, RR, nDCG@10, Success@5 and the like.

    AP@k divides by all relevant items, as trec_eval's ``map_cut``; ``nDCG`` has the grade for a gain, ``nDCG-exp``
    2^grade − 1; ``Success@k`` asks whether any of the first k is relevant.

    >>> from diptych.benchmark.exchange import find_measure
    >>> find_measure("P@10"), find_measure("nDCG@5")
    (Precision(cutoff=10), LinearNDCG(cutoff=5))
    """
    form = _FORM.fullmatch(name)
    known = {one.lower(): one for one in (*_NEEDS_CUTOFF, *_MAY_HAVE_CUTOFF, *_WHOLE)}
    kind = known.get(form["name"].lower()) if form else None
    if form is None or kind is None:
        raise UnknownNameError("measure", name, MEASURE_NAMES)
    cutoff = int(form["cutoff"]) if form["cutoff"] else None
    if kind in _WHOLE and cutoff is None:
        return _WHOLE[kind]()
    if kind in _MAY_HAVE_CUTOFF:
        return _MAY_HAVE_CUTOFF[kind](cutoff)
    if kind in _NEEDS_CUTOFF and cutoff is not None:
        return _NEEDS_CUTOFF[kind](cutoff)
    fix = f"leave the cutoff out: {kind}" if kind in _WHOLE else f"add one, such as {kind}@10"
    raise InvalidInputError(f"the measure {name!r} {'has no' if kind in _WHOLE else 'needs a'} cutoff; {fix}")
