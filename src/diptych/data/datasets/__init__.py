"""Data sets by name: one file per data set; a new one is imported here and added to the tuple."""

from __future__ import annotations

from typing import Any

from diptych.data.dataset import Dataset, DatasetSplits
from diptych.data.datasets.captioned_photographs import FLICKR8K, FLICKR30K, PASCAL_SENTENCE
from diptych.data.datasets.coco import COCO, COCO_2014, COCO_PAIRS
from diptych.data.datasets.nus_wide import NUS_WIDE
from diptych.data.datasets.scenes.scene import SCENES
from diptych.data.datasets.web_clicks import CLICKTURE, MIRFLICKR
from diptych.data.datasets.wikipedia import TVGRAZ, WIKIPEDIA
from diptych.errors import UnknownNameError

DATASETS: tuple[Dataset, ...] = (
    WIKIPEDIA,
    PASCAL_SENTENCE,
    TVGRAZ,
    NUS_WIDE,
    MIRFLICKR,
    FLICKR8K,
    FLICKR30K,
    COCO,
    COCO_2014,
    COCO_PAIRS,
    CLICKTURE,
    SCENES,
)


def dataset_names() -> tuple[str, ...]:
    """Return the names :func:`load_dataset` knows.

    >>> from diptych.data import dataset_names
    >>> "scenes" in dataset_names()
    True
    """
    return tuple(dataset.name for dataset in DATASETS)


def find_dataset(name: str) -> Dataset:
    """Return the declaration of one data set, or an error that suggests close names."""
    for dataset in DATASETS:
        if dataset.name == name:
            return dataset
    raise UnknownNameError("data set", name, dataset_names())


def describe_datasets() -> tuple[Dataset, ...]:
    """Return every declaration, in the order they are shown to a reader.

    >>> from diptych.data import describe_datasets
    >>> [dataset.name for dataset in describe_datasets() if not dataset.files]
    ['scenes']
    """
    return DATASETS


def load_dataset(name: str, **options: Any) -> DatasetSplits:
    """Load a data set by name, with its own options.

    Data on disk is looked for in ``$DIPTYCH_DATA/<name>``; what is missing, and where to get it, is said in the error.

    >>> from diptych.data import load_dataset
    >>> load_dataset("scenes", n_train=6, n_test=3, size=32).train.n_texts
    30
    >>> load_dataset("wikipedai")
    Traceback (most recent call last):
    diptych.errors.UnknownNameError: unknown data set 'wikipedai'; did you mean 'wikipedia'? Known: \
clickture, coco, coco_2014, coco_pairs, flickr30k, flickr8k, mirflickr, nus_wide, pascal_sentence, scenes, tvgraz, \
wikipedia
    """
    return find_dataset(name).load(**options)
