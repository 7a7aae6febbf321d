"""The benchmarks there are."""

from __future__ import annotations

from diptych.benchmark.entries import Scalings, menon_references, method_entries
from diptych.benchmark.entry import Reference
from diptych.benchmark.pairwise import PAIRWISE
from diptych.benchmark.task import Task
from diptych.errors import UnknownNameError
from diptych.models import KCCA

# Both sides raw, both ℓ2 (the two choices of Menon et al.), or both square-rooted, which suits histograms.
_HISTOGRAM_SCALINGS = (("none", "none"), ("l2", "l2"), ("hellinger", "hellinger"))
# Menon et al. try one to nine components on ten topics; a hundred topics have room for more.
_ENCODED_COMPONENTS = (5, 10, 20, 40)
_ENCODED_SCALINGS = (("l2", "l2"), ("hellinger", "l2"))


_COSTA_PEREIRA = {
    "KCCA": Reference("004", "Table IX", "Wikipedia", "CM", same_features=False),
    "SCM on KCCA": Reference("004", "Table IX", "Wikipedia", "SCM", same_features=False),
}


def _wikipedia(name: str, title: str, scalings: Scalings) -> Task:
    return Task(
        name=name,
        title=f"Wikipedia, 2,173 training and 693 test pairs, SIFT histograms and LDA topics, {title}",
        dataset="wikipedia",
        entries=method_entries(
            scalings,
            range(1, 10),
            (3, 5, 7, 9),
            menon_references("Table 1", "Wikipedia", same_features=True) | _COSTA_PEREIRA,
            KCCA(solver="nystrom", rank=500),
        ),
        published_distances=True,
    )


WIKIPEDIA = _wikipedia("wikipedia", "raw, ℓ2 or square-rooted", _HISTOGRAM_SCALINGS)
WIKIPEDIA_PLAIN = _wikipedia("wikipedia-plain", "raw or ℓ2", _HISTOGRAM_SCALINGS[:2])

PASCAL = Task(
    name="pascal",
    title="Pascal Sentence, 700 training and 300 test pairs, colour and edge histograms and TF-IDF topics",
    dataset="pascal_sentence",
    options={"captions": "join"},
    entries=method_entries(
        _ENCODED_SCALINGS,
        _ENCODED_COMPONENTS,
        _ENCODED_COMPONENTS,
        menon_references("Table 2", "Pascal", same_features=False),
        KCCA(solver="nystrom", rank=300),
    ),
)

SCENES = Task(
    name="scenes",
    title="Generated scenes, 600 training and 300 test pictures, colour and edge histograms and TF-IDF topics",
    dataset="scenes",
    options={"n_train": 600, "n_test": 300, "size": 64, "captions": "join"},
    entries=method_entries(
        _ENCODED_SCALINGS, _ENCODED_COMPONENTS, _ENCODED_COMPONENTS, {}, KCCA(solver="nystrom", rank=200)
    ),
)

_TASKS = {task.name: task for task in (WIKIPEDIA, WIKIPEDIA_PLAIN, PASCAL, SCENES, *PAIRWISE)}


def task_names() -> tuple[str, ...]:
    """Return the names of all benchmarks.

    >>> from diptych.benchmark import task_names
    >>> task_names()[:4]
    ('wikipedia', 'wikipedia-plain', 'pascal', 'scenes')
    """
    return tuple(_TASKS)


def find_task(name: str) -> Task:
    """Return the benchmark called ``name``; a typo gets a suggestion.

    >>> from diptych.benchmark import find_task
    >>> find_task("wikipedia").protocol
    HoldOut(repeats=5, share=0.25, seed=0)
    """
    if name not in _TASKS:
        raise UnknownNameError("benchmark", name, _TASKS)
    return _TASKS[name]
