"""Who learns, asks and is searched on each fold of a task, as files for other tools, with their digests."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from diptych.atomic_files import atomic_write
from diptych.benchmark.task import Task
from diptych.data import Pairs
from diptych.protocols import Fold, Retrieval

DIGESTS = "SHA256SUMS"


def export_splits(
    tasks: Iterable[Task], folder: str | PathLike[str], *, features: bool = False, folds: int | None = None
) -> list[Path]:
    """Write ``<task>/<fold>.json`` for every fold, or the first ``folds``, and return the files.

    A file has the classes of both halves, the names of the pictures and texts that are learned from, ask and are
    searched, and those of each hold-out that parameters are chosen on. ``features`` adds ``<fold>.npz``, the rows that
    methods read. ``SHA256SUMS`` has the digest of every file, as ``sha256sum --check`` reads it.

    >>> import tempfile
    >>> from diptych.benchmark import declared_tasks
    >>> from diptych.benchmark.exchange import export_splits
    >>> tasks = [task for task in declared_tasks() if task.name == "extendable-scenes-unseen"]
    >>> [path.name for path in export_splits(tasks, tempfile.mkdtemp(), folds=2)]
    ['0.json', '1.json', 'SHA256SUMS']
    """
    place, written, digests = Path(folder), [], []
    for task in tasks:
        splits = task.load() if features else task.labelled_items()
        for number in range(min(folds or task.protocol.n_folds, task.protocol.n_folds)):
            fold = task.fold(splits, number) if features else task.protocol.fold(splits, number)
            contents = {"json": (json.dumps(describe_fold(task, fold), indent=1) + "\n").encode()}
            if features:
                contents["npz"] = _arrays(fold)
            for suffix, content in contents.items():
                path = place / task.name / f"{number}.{suffix}"
                path.parent.mkdir(parents=True, exist_ok=True)
                with atomic_write(path) as draft:
                    draft.write_bytes(content)
                digests.append(f"{hashlib.sha256(content).hexdigest()}  {path.relative_to(place)}\n")
                written.append(path)
    with atomic_write(place / DIGESTS) as draft:
        draft.write_text("".join(digests), encoding="utf-8")
    return [*written, place / DIGESTS]


def describe_fold(task: Task, fold: Fold) -> dict[str, Any]:
    """Return a fold as plain values: classes, and the names of all items by what they do."""
    train = fold.training.pairs
    hold_outs = [] if train is None else [_hold_out(*split) for split in fold.training.hold_outs.splits(train)]
    return {
        "task": task.name,
        "dataset": task.dataset,
        "options": dict(task.options),
        "protocol": repr(task.protocol),
        "features": task.features.label,
        "fold": fold.number,
        "train_classes": list(fold.train_classes),
        "test_classes": list(fold.test_classes),
        "train": None if train is None else _names(train),
        "queries": _names(fold.retrieval.queries),
        "gallery": _names(fold.retrieval.gallery),
        "hold_outs": hold_outs,
    }


def _hold_out(train: Pairs, held_out: Pairs | Retrieval) -> dict[str, Any]:
    asked = held_out if isinstance(held_out, Retrieval) else Retrieval(held_out, held_out)
    parts = {"train": train, "queries": asked.queries, "gallery": asked.gallery}
    return {name: pairs.ids.tolist() for name, pairs in parts.items()}


def _names(pairs: Pairs) -> dict[str, Any]:
    labels = None if pairs.labels is None or pairs.is_multi_label else pairs.image_classes().tolist()
    return {"images": pairs.ids.tolist(), "texts": pairs.text_ids.tolist(), "classes": labels}


def _arrays(fold: Fold) -> bytes:
    parts: Mapping[str, Pairs | None] = {
        "train": fold.training.pairs,
        "queries": fold.retrieval.queries,
        "gallery": fold.retrieval.gallery,
    }
    arrays: dict[str, Any] = {}
    for name, pairs in parts.items():
        if pairs is not None:
            arrays |= {f"{name}_images": pairs.images, f"{name}_texts": pairs.texts, f"{name}_owners": pairs.owners}
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()
