"""The data that codes are compared on."""

from __future__ import annotations

from diptych.benchmark.hashing.hashing_task import HashingTask
from diptych.encoders import EfficientNetLite, SentenceEncoder
from diptych.errors import UnknownNameError

_NETWORKS = "Features: EfficientNet-Lite2 and MiniLM, rows of unit length."

_TASKS = (
    HashingTask(
        name="wikipedia",
        title="Wikipedia, half of 10 classes learned",
        dataset="wikipedia",
        texts="none",
        notes=("Features: 128 SIFT words, rows of unit length, and 10 LDA topics as supplied.",),
    ),
    HashingTask(
        name="pascal",
        title="Pascal Sentence, half of 20 classes learned",
        dataset="pascal_sentence",
        options={"captions": "join"},
        image_encoder=EfficientNetLite(),
        text_encoder=SentenceEncoder(),
        notes=(_NETWORKS,),
    ),
    HashingTask(
        name="flickr8k",
        title="Flickr8k, photos and their captions",
        dataset="flickr8k",
        image_encoder=EfficientNetLite(),
        text_encoder=SentenceEncoder(),
        has_classes=False,
        cmc_rank=10,
        notes=(
            _NETWORKS,
            "No classes: methods that learn from pairs alone; relevant is the query's own photo, or its five captions.",
        ),
    ),
)


def hashing_task_names() -> tuple[str, ...]:
    """Return the names of the data that codes are compared on.

    >>> from diptych.benchmark.hashing import hashing_task_names
    >>> hashing_task_names()
    ('wikipedia', 'pascal', 'flickr8k')
    """
    return tuple(task.name for task in _TASKS)


def find_hashing_task(name: str) -> HashingTask:
    """Return the task called ``name``; a typo gets a suggestion.

    >>> from diptych.benchmark.hashing import find_hashing_task
    >>> find_hashing_task("flickr8k").settings
    ('captions',)
    """
    for task in _TASKS:
        if task.name == name:
            return task
    raise UnknownNameError("data set of the hashing benchmark", name, hashing_task_names())
