"""Which pictures the demonstration shows."""

from __future__ import annotations

from diptych.cli.choices import DemoData
from diptych.cli.collection_place import is_collection
from diptych.cli.demo_collection import DemoCollection
from diptych.cli.demo_photographs import dataset_of, photographs
from diptych.cli.demo_scenes import scenes
from diptych.cli.stages import Stages
from diptych.errors import MissingDataError, MissingPackageError
from diptych.retriever import Retriever


def choose_demo(data: DemoData, stages: Stages, *, everything: bool) -> DemoCollection:
    """Return what was asked for; ``auto`` is the best that this machine can show."""
    if data is DemoData.SCENES:
        return scenes()
    if data is not DemoData.AUTO:
        dataset = dataset_of(data)
        if not dataset.is_available:
            raise MissingDataError(f"{dataset.name} is not on this machine; see: diptych datasets {dataset.name}")
        return photographs(data, everything=everything)
    for kind in (DemoData.FLICKR8K, DemoData.PASCAL):
        if dataset_of(kind).is_available:
            chosen = photographs(kind, everything=everything)
            return chosen if _can_encode(chosen, stages) else scenes()
    stages.note("there are no photographs on this machine (see: diptych datasets), so the pictures are generated")
    return scenes()


def _can_encode(chosen: DemoCollection, stages: Stages) -> bool:
    if is_collection(chosen.folder):
        return True
    try:
        Retriever.default()
    except MissingPackageError as error:
        stages.note(f"photographs: {error}; until then the pictures are generated")
        return False
    return True
