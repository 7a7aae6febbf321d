"""The studies there are."""

from __future__ import annotations

from diptych.benchmark.pairwise import PAIRWISE
from diptych.benchmark.study import Study
from diptych.errors import UnknownNameError

_STUDIES = {
    "pairwise": Study("pairwise", "Menon et al. 2015, Tables 1 to 3, and subspace methods", PAIRWISE),
}


def study_names() -> tuple[str, ...]:
    """Return the names of all studies.

    >>> from diptych.benchmark import study_names
    >>> study_names()
    ('pairwise',)
    """
    return tuple(_STUDIES)


def find_study(name: str) -> Study:
    """Return the study called ``name``; a typo gets a suggestion.

    >>> from diptych.benchmark import find_study
    >>> [task.name for task in find_study("pairwise").tasks]
    ['pairwise-wikipedia', 'pairwise-pascal', 'pairwise-tvgraz']
    """
    if name not in _STUDIES:
        raise UnknownNameError("study", name, _STUDIES)
    return _STUDIES[name]
