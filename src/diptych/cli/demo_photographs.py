"""Photographs of a data set as a collection."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from diptych.cli.choices import DemoData
from diptych.cli.demo_collection import DemoCollection
from diptych.cli.stages import Stages
from diptych.collection import Record
from diptych.data import Dataset, Pairs, find_dataset
from diptych.retriever import Retriever

_NAMES = {DemoData.FLICKR8K: "flickr8k", DemoData.PASCAL: "pascal_sentence"}
_EXAMPLES = {
    DemoData.FLICKR8K: ("a dog running through water", "children on a swing", "2:dog + snow - person"),
    DemoData.PASCAL: ("an aeroplane in the sky", "a cat on a sofa", "2:horse + grass - person"),
}


def dataset_of(data: DemoData) -> Dataset:
    """Return the data set that the photographs come from."""
    return find_dataset(_NAMES[data])


def photographs(data: DemoData, *, everything: bool) -> DemoCollection:
    """Return photographs with the default retriever; of a large set those of its test part, or everything."""
    has_parts = data is DemoData.FLICKR8K and not everything
    return DemoCollection(
        name=_NAMES[data],
        title={DemoData.FLICKR8K: "Flickr8k", DemoData.PASCAL: "Pascal Sentence"}[data]
        + (", the photographs of the test part" if has_parts else ""),
        examples=_EXAMPLES[data],
        root=dataset_of(data).folder(),
        make_records=lambda _: list(_records(data, only_test=has_parts)),
        make_retriever=lambda _, stages: _retriever(stages),
    )


def _retriever(stages: Stages) -> Retriever:
    with stages.run("retriever", "preparing the retriever"):
        return Retriever.default()


def _records(data: DemoData, *, only_test: bool) -> Iterator[Record]:
    splits = dataset_of(data).load()
    for pairs in [splits.test] if only_test else splits.parts.values():
        captions = _captions(pairs)
        for row, path in enumerate(pairs.images):
            yield Record(path, captions[row], None if pairs.labels is None else [str(pairs.labels[row])])


def _captions(pairs: Pairs) -> list[list[str]]:
    captions: list[list[str]] = [[] for _ in range(pairs.n_images)]
    for owner, text in zip(pairs.owners.tolist(), cast(Sequence[str], pairs.texts), strict=True):
        captions[owner].append(text)
    return captions
