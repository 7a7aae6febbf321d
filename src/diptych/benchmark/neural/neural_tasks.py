"""The data that ranking methods and networks are compared on."""

from __future__ import annotations

from diptych.benchmark.neural.neural_task import NeuralTask
from diptych.encoders import EfficientNetLite, SentenceEncoder
from diptych.errors import UnknownNameError

_NETWORKS = "Features: EfficientNet-Lite2 and MiniLM, rows of unit length; MNiL reads the captions' words."
_CAPTIONS = "Relevant: the query's own photo, or its five captions."

_TASKS = (
    NeuralTask(
        name="wikipedia",
        title="Wikipedia, 2,173 training and 693 test pairs, 10 classes",
        dataset="wikipedia",
        texts="none",
        notes=("Features: 128 SIFT words, rows of unit length, and 10 LDA topics as supplied; there are no words.",),
    ),
    NeuralTask(
        name="pascal",
        title="Pascal Sentence, 700 training and 300 test photos with five captions, 20 classes",
        dataset="pascal_sentence",
        image_encoder=EfficientNetLite(),
        text_encoder=SentenceEncoder(),
        notes=(_NETWORKS, "Every caption is a text of its own: 3,500 to learn from, 1,498 to ask and to find."),
    ),
    NeuralTask(
        name="flickr8k",
        title="Flickr8k, 6,000 training and 1,000 test photos with five captions",
        dataset="flickr8k",
        image_encoder=EfficientNetLite(),
        text_encoder=SentenceEncoder(),
        has_classes=False,
        notes=(_NETWORKS, _CAPTIONS),
    ),
    NeuralTask(
        name="flickr30k",
        title="Flickr30K, 29,783 training and 1,000 test photos with five captions",
        dataset="flickr30k",
        options={"split": "entities"},
        image_encoder=EfficientNetLite(),
        text_encoder=SentenceEncoder(),
        has_classes=False,
        same_data=True,
        notes=(_NETWORKS, _CAPTIONS, "The split of Flickr30k Entities; the paper draws ten splits of these sizes."),
    ),
    NeuralTask(
        name="coco",
        title="COCO val2017, 4,000 training and 1,000 test photos with five captions, 80 classes",
        dataset="coco",
        image_encoder=EfficientNetLite(),
        text_encoder=SentenceEncoder(),
        notes=(_NETWORKS, "Relevant: what shares a class. The paper learns from 82,081 photos of 2014."),
    ),
)


def neural_task_names() -> tuple[str, ...]:
    """Return the names of the data sets of this comparison.

    >>> from diptych.benchmark.neural import neural_task_names
    >>> neural_task_names()
    ('wikipedia', 'pascal', 'flickr8k', 'flickr30k', 'coco')
    """
    return tuple(task.name for task in _TASKS)


def find_neural_task(name: str) -> NeuralTask:
    """Return the task called ``name``; a typo gets a suggestion.

    >>> from diptych.benchmark.neural import find_neural_task
    >>> [measure.label for measure in find_neural_task("flickr8k").measures]
    ['R@1', 'R@5', 'R@10']
    """
    for task in _TASKS:
        if task.name == name:
            return task
    raise UnknownNameError("data set of the comparison of networks", name, neural_task_names())
