"""From pictures and texts to features and points, here or on a cluster, and into the tables.

New files and re-encoding go the same way, batch by batch, and contents are named by their hashes all along::

    with store.reading() as db:
        task = task_of(db, sources, pictures, texts).with_files(files)
    for asker, made in encoded(workers, [(asker, task), ...], sources):
        store.write(lambda db: put_encoded(db, made, sources, content_ids(...)))

``sources`` are the models that want points, each with its loaded retriever. What ``made.failures`` names has no points.
"""

from __future__ import annotations

import os
import textwrap
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from diptych.arrays import AnyArray
from diptych.cluster import Workers
from diptych.collection.indexing.file_facts import CANNOT_OPEN, file_status
from diptych.collection.retriever_protocol import SIDES, RetrieverProtocol, Side
from diptych.collection.store.dialect import Connection
from diptych.collection.store.items import known_contents
from diptych.collection.store.models import Model, check_same_points
from diptych.collection.store.points import (
    create_point_tables,
    encoder_id,
    known_encoder,
    point_form,
    point_table,
    put_features,
    put_points,
    read_features,
)
from diptych.collection.store.scoring import Scoring
from diptych.errors import InvalidInputError

if TYPE_CHECKING:
    from diptych.encoders.image.image_encoder import ConvolutionalEncoder
    from diptych.encoders.image.reading_once import Square

StatedFile = tuple[Path, os.stat_result]
Source = tuple[Model, RetrieverProtocol]
Rows = Mapping[str, AnyArray]
"""A row for each content, by hash."""
EncoderSide = tuple[str, Side]
"""The fingerprint of an encoder, and the side it encodes."""
ModelSide = tuple[int, Side]

# What networks take at once by default, so that they see the same batches.
TEXTS_AT_ONCE = 1024
CHANGED = "it changed while it was read; index again"


@dataclass(frozen=True)
class EncodingTask:
    """Pictures and texts to encode, and the contents that lack points of some models.

    ``to_encode`` has what each encoder must look at, ``features`` what is stored of it already, ``lacking`` the
    contents that want points of a model. Each file comes with its status from before it was hashed: what is read from
    one replaced since is not kept.
    """

    texts: Mapping[str, str]
    to_encode: Mapping[EncoderSide, Sequence[str]]
    features: Mapping[EncoderSide, Rows]
    lacking: Mapping[ModelSide, Sequence[str]]
    files: Mapping[str, StatedFile] = field(default_factory=dict)

    @property
    def pictures(self) -> list[str]:
        """The pictures whose files are to be read."""
        keys = (key for (_, side), keys in self.to_encode.items() if side == "image" for key in keys)
        return list(dict.fromkeys(keys))

    def with_files(self, files: Mapping[str, StatedFile]) -> EncodingTask:
        """Return the task with the files of its pictures; without a file, a picture is left out."""
        return replace(self, files={key: files[key] for key in self.pictures if key in files})


@dataclass(frozen=True)
class Encoded:
    """What became of a task: new features, points as the tables store them, and why contents have none."""

    features: Mapping[EncoderSide, Rows] = field(default_factory=dict)
    points: Mapping[ModelSide, Rows] = field(default_factory=dict)
    failures: Mapping[str, str] = field(default_factory=dict)


def task_of(
    db: Connection, sources: Sequence[Source], pictures: Iterable[str], texts: Mapping[str, str]
) -> EncodingTask:
    """Return what is to be encoded of pictures and texts by hash."""
    to_encode: dict[EncoderSide, Sequence[str]] = {}
    features: dict[EncoderSide, Rows] = {}
    lacking: dict[ModelSide, Sequence[str]] = {}
    contents: dict[Side, Sequence[str]] = {"image": list(pictures), "text": list(texts)}
    for side in SIDES:
        ids = known_contents(db, contents[side])
        for model, _ in sources:
            there = _with_points(db, model, side, list(ids.values()))
            wanted = [key for key in contents[side] if ids.get(key) not in there]
            encoder = model.encoder(side), side
            known = features.get(encoder, {})
            stored = stored_features(db, encoder, {key: ids[key] for key in wanted if key in ids and key not in known})
            features[encoder] = {**known, **stored}
            fresh = (key for key in wanted if key not in features[encoder])
            to_encode[encoder] = list(dict.fromkeys([*to_encode.get(encoder, ()), *fresh]))
            lacking[model.id, side] = wanted
    return EncodingTask(texts, to_encode, features, lacking)


def has_all_points(
    db: Connection, made: Encoded, sources: Sequence[Source], contents: Mapping[Side, Iterable[str]]
) -> bool:
    """Return True if contents have the points that were not made: others may have removed what shared them."""
    for side in SIDES:
        for model, _ in sources:
            encoded = made.points.get((model.id, side), {})
            keys = set(contents.get(side, ())) - encoded.keys() - made.failures.keys()
            ids = list(known_contents(db, list(keys)).values())
            if len(_with_points(db, model, side, ids)) < len(keys):
                return False
    return True


def stored_features(db: Connection, encoder: EncoderSide, ids: Mapping[str, int]) -> Rows:
    """Return the stored features of contents, those that there are."""
    number = known_encoder(db, *encoder) if ids else None
    if number is None:
        return {}
    keys = {content: key for key, content in ids.items()}
    contents, rows = read_features(db, number, list(ids.values()))
    return {keys[content]: row for content, row in zip(contents.tolist(), rows, strict=True)}


def _with_points(db: Connection, model: Model, side: Side, ids: Sequence[int]) -> set[int]:
    if not ids or not point_form(db, model.id)[0]:
        # The tables are made with the first points.
        return set()
    condition, values = db.among("content", ids)
    return set(db.ids(f"SELECT content FROM {point_table(model.id, side)} WHERE {condition}", values).tolist())


def put_encoded(db: Connection, made: Encoded, sources: Sequence[Source], ids: Mapping[str, int]) -> None:
    """Store features and points of those contents that have ids; models that were removed meanwhile get none."""
    for (fingerprint, side), features in made.features.items():
        if kept := {ids[key]: row for key, row in features.items() if key in ids}:
            rows = np.stack(list(kept.values()))
            put_features(db, encoder_id(db, fingerprint, side, rows.shape[1]), list(kept), rows)
    for model, _ in sources:
        for side in SIDES:
            kept = {ids[key]: row for key, row in made.points.get((model.id, side), {}).items() if key in ids}
            width = db.value("SELECT width FROM model WHERE id = ?", (model.id,)) if kept else None
            if width is None:
                continue
            rows = np.stack(list(kept.values()))
            if width == 0:
                create_point_tables(db, model.id, rows.shape[1], "bits" if rows.dtype == np.uint8 else "f16")
            put_points(db, model.id, side, list(kept), rows)


# Encoding

Asker = TypeVar("Asker")


def encoded(
    workers: Workers, tasks: Iterable[tuple[Asker, EncodingTask]], sources: Sequence[Source]
) -> Iterator[tuple[Asker, Encoded]]:
    """Yield what becomes of tasks, in their order, each with whatever it came with."""
    begun: deque[tuple[Asker, EncodingTask]] = deque()

    def starting() -> Iterator[EncodingTask]:
        for asker, task in tasks:
            begun.append((asker, task))
            yield task

    for made in workers.map(encode, starting(), list(sources)):
        asker, task = begun.popleft()
        for key, reason in made.failures.items():
            if key in task.files:
                check_opened(workers, task.files[key][0], reason)
        yield asker, made


def check_opened(workers: Workers, path: Path, reason: str) -> None:
    """Raise when a file that a worker cannot open can be opened here."""
    if workers.elsewhere and reason.startswith(CANNOT_OPEN) and os.access(path, os.R_OK):
        raise InvalidInputError(
            f"a worker cannot open {path}, which is here ({reason}); let the workers see the pictures under the same "
            "names, on a drive they share, and index again"
        )


def encode(task: EncodingTask, sources: Sequence[Source]) -> Encoded:
    """Make features, once for models that share an encoder, and points.

    What one encoder cannot read has none of the others.
    """
    features: dict[EncoderSide, Rows] = {}
    points: dict[ModelSide, Rows] = {}
    failures: dict[str, str] = {}
    for model, retriever in sources:
        check_same_points(retriever, model)
        for side in SIDES:
            encoder = model.encoder(side), side
            keys = [key for key in task.to_encode.get(encoder, ()) if key not in failures]
            if encoder in features or not keys:
                continue
            if side == "text":
                features[encoder], refused = _text_features(retriever, {key: task.texts[key] for key in keys})
            else:
                files = {key: task.files[key] for key in keys if key in task.files}
                features[encoder], refused = _picture_features(retriever, files)
            failures |= refused
    for model, retriever in sources:
        for side in SIDES:
            encoder = model.encoder(side), side
            rows = {**task.features.get(encoder, {}), **features.get(encoder, {})}
            wanted = [key for key in task.lacking.get((model.id, side), ()) if key in rows]
            if wanted:
                points[model.id, side], refused = _points(retriever, side, {key: rows[key] for key in wanted})
                failures |= refused
    return Encoded({encoder: rows for encoder, rows in features.items() if rows}, points, failures)


def _picture_features(
    retriever: RetrieverProtocol, files: Mapping[str, StatedFile]
) -> tuple[dict[str, AnyArray], dict[str, str]]:
    """Return features of pictures, and the reasons of those that cannot be read or have changed since."""
    failures = {key: problem for key, file in files.items() if (problem := _change(*file))}
    keys = [key for key in files if key not in failures]
    found: dict[int, AnyArray] = {}
    for batch in retriever.stream_image_features([files[key][0] for key in keys]) if keys else ():
        failures |= {keys[row]: reason for row, reason in batch.failures.items()}
        for row, features in zip(batch.rows, batch.features, strict=True):
            if problem := _change(*files[keys[row]]):
                failures[keys[row]] = problem
            else:
                found[row] = features
    # A cache gives first what it knows, and the order of rows must not depend on it.
    return {keys[row]: found[row] for row in sorted(found)}, failures


def _change(path: Path, hashed: os.stat_result) -> str:
    """Return why a file is no longer the one that was hashed; empty where it is."""
    try:
        now = file_status(path)
    except InvalidInputError as reason:
        return str(reason)
    return "" if (now.st_size, now.st_mtime_ns) == (hashed.st_size, hashed.st_mtime_ns) else CHANGED


def _text_features(
    retriever: RetrieverProtocol, texts: Mapping[str, str]
) -> tuple[dict[str, AnyArray], dict[str, str]]:
    """Return the features of texts, and the reasons of those that the encoder refuses."""
    features: dict[str, AnyArray] = {}
    failures: dict[str, str] = {}
    keys = list(texts)
    # One bad text must not cost the others, so what cannot be encoded together is encoded one by one.
    parts = [keys[start : start + TEXTS_AT_ONCE] for start in range(0, len(keys), TEXTS_AT_ONCE)]
    while parts:
        part = parts.pop(0)
        try:
            rows = retriever.text_features([texts[key] for key in part])
            features |= dict(zip(part, rows, strict=True))
        except (ValueError, ArithmeticError) as reason:
            if len(part) == 1:
                shown = textwrap.shorten(texts[part[0]], 60)
                failures[part[0]] = f"the caption {shown!r} cannot be encoded ({reason})"
            else:
                parts[:0] = [[key] for key in part]
    return features, failures


def _points(retriever: RetrieverProtocol, side: Side, features: Rows) -> tuple[Rows, dict[str, str]]:
    """Return the points of features, and the reasons of those that cannot be stored."""
    try:
        rows = stored_points(retriever, side, np.stack(list(features.values())))
        return dict(zip(features, rows, strict=True)), {}
    except InvalidInputError as reason:
        if len(features) == 1:
            return {}, dict.fromkeys(features, str(reason))
    # One bad point must not cost the others.
    each = [_points(retriever, side, {key: row}) for key, row in features.items()]
    points = {key: row for stored, _ in each for key, row in stored.items()}
    return points, {key: reason for _, refused in each for key, reason in refused.items()}


# Limits that overlap leave behind the one that ends last.
_limiting = threading.Lock()


def stored_points(retriever: RetrieverProtocol, side: Side, features: AnyArray) -> AnyArray:
    """Return the points of features as the tables store them; raise where one is beyond the range of their numbers."""
    to_points = retriever.images_to_points if side == "image" else retriever.texts_to_points
    # The last bits of a product may depend on how many cores share it.
    with _limiting, threadpool_limits(limits=1):
        points = np.asarray(to_points(np.asarray(features, dtype=np.float32)))
    return Scoring(retriever.space, "text_query" if side == "image" else "image_query").stored(points)


def squares_of(sources: Iterable[Source]) -> tuple[Square, ...]:
    """Return what all networks look at; nothing where an encoder reads pictures in its own way."""
    from diptych.encoders.image.image_encoder import ConvolutionalEncoder

    encoders = [getattr(retriever, "image_encoder_", None) for _, retriever in sources]
    parts = [part for encoder in encoders for part in (encoder.sources if encoder is not None else [None])]
    networks: list[ConvolutionalEncoder] = [part for part in parts if isinstance(part, ConvolutionalEncoder)]
    return tuple(dict.fromkeys(network.square for network in networks)) if len(networks) == len(parts) else ()
