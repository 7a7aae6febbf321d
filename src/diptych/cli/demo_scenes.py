"""Generated scenes as a collection."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from diptych.cli.demo_collection import DemoCollection
from diptych.cli.files import writing
from diptych.cli.stages import Stages
from diptych.collection import Record
from diptych.data import Pairs, cache_folder
from diptych.data.datasets.scenes import write_folder
from diptych.data.datasets.scenes.folder import CAPTIONS_FILE
from diptych.encoders import ColourEdgeHistograms, TfidfTopics
from diptych.models import CCA
from diptych.retriever import Retriever

_N_SCENES = 512
_SIZE = 256


def scenes() -> DemoCollection:
    """Return generated scenes with a retriever that learns from their captions."""
    return DemoCollection(
        name="scenes",
        title="Generated scenes",
        examples=("a house in the snow", "a red car", "car - red"),
        root=_folder(),
        make_records=_records,
        make_retriever=_retriever,
    )


def _folder() -> Path:
    return cache_folder() / "demo" / "scenes-pictures"


def _records(stages: Stages) -> list[Record]:
    folder = _folder()
    content = _painted(folder)
    if content is None:
        with stages.count("paint", f"painting {_N_SCENES:,} scenes") as advance, writing(folder):
            write_folder(folder, _N_SCENES, size=_SIZE, progress=advance)
        content = _painted(folder) or {"pictures": []}
    entries: list[Mapping[str, Any]] = content["pictures"]
    return [Record(folder / entry["file"], entry["captions"], [entry["label"]], _facts(entry)) for entry in entries]


def _painted(folder: Path) -> Mapping[str, Any] | None:
    """Return what the listing of a whole folder of scenes says, None where it has to be painted."""
    try:
        content = json.loads((folder / CAPTIONS_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) and content.get("size") == _SIZE else None


def _facts(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return what can be filtered by."""
    things = entry["objects"]
    return {"background": entry["background"], "colour": things[0]["colour"], "things": len(things)}


def _retriever(records: Sequence[Record], stages: Stages) -> Retriever:
    pairs = Pairs(
        [record.path for record in records],
        [caption for record in records for caption in record.captions or ()],
        owners=[row for row, record in enumerate(records) for _ in record.captions or ()],
    )
    # Colours and outlines say all there is to say about scenes; a network for photographs would say less.
    retriever = Retriever(
        image_encoder=ColourEdgeHistograms(size=64),
        text_encoder=TfidfTopics(n_components=256),
        model=CCA(n_components=48),
        name="scenes",
    )
    with stages.run("learn", f"learning from {pairs.n_texts:,} captions"):
        return retriever.fit(pairs, baseline=None)
