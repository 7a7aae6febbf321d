"""The tasks of the five papers, and those of aligning two towers with few captions, each in a module of its own."""

from __future__ import annotations

from functools import cache

from diptych.benchmark.task import Task
from diptych.errors import UnknownNameError

SHORT = {
    "000": "Liu et al.",
    "001": "Menon et al.",
    "002": "Zhang et al.",
    "003": "Dong et al.",
    "004": "Costa Pereira et al.",
}
"""What texts call the papers, by their number in ``published.csv``."""
CITATIONS = {
    "000": "Liu et al., “A new evaluation protocol and benchmarking results for extendable cross-media retrieval”",
    "001": "Menon et al., “Cross-modal retrieval: a pairwise classification approach”, SDM 2015",
    "002": "Zhang et al., “Multi-networks joint learning for large-scale cross-modal retrieval”, ACM Multimedia 2017",
    "003": "Dong et al., “Cross-media similarity evaluation for web image retrieval in the wild”, IEEE Transactions on "
    "Multimedia 2018",
    "004": "Costa Pereira et al., “On the role of correlation and abstraction in cross-modal multimedia retrieval”, "
    "TPAMI 2014",
}
"""Their full references."""


@cache
def _tasks_by_paper() -> dict[str, tuple[Task, ...]]:
    from diptych.benchmark.papers.alignment import ALIGNMENT
    from diptych.benchmark.papers.liu import LIU
    from diptych.benchmark.papers.liu_settings import PUBLISHED_SETTINGS
    from diptych.benchmark.papers.menon import MENON
    from diptych.benchmark.papers.pereira import PEREIRA
    from diptych.benchmark.papers.pereira_settings import PEREIRA_SETTINGS
    from diptych.benchmark.papers.zhang import ZHANG
    from diptych.benchmark.papers.zhang_settings import ZHANG_SETTINGS

    return {
        "000": (*LIU, *PUBLISHED_SETTINGS),
        "001": MENON,
        "002": (*ZHANG, *ZHANG_SETTINGS),
        "004": (*PEREIRA, *PEREIRA_SETTINGS),
        "alignment": ALIGNMENT,
    }


def declared_tasks() -> tuple[Task, ...]:
    """Return every task of ``diptych bench run``."""
    return tuple(task for tasks in _tasks_by_paper().values() for task in tasks)


def tasks_of_paper(paper: str) -> tuple[Task, ...]:
    """Return the tasks of a paper by its number, or of ``alignment``."""
    known = _tasks_by_paper()
    if paper not in known:
        raise UnknownNameError("paper with tasks", paper, known)
    return known[paper]
