"""From pictures and texts to features and points, here or on a cluster, and into the tables.

New files and re-encoding go the same way, batch by batch, and contents are named by their hashes all along::

    with store.reading() as db:
        task = task_of(db, sources, files, texts, given)
    for asker, made in encoded(workers, [(asker, task), ...], sources):
        store.write(lambda db: put_encoded(db, made, sources, content_ids(...)))

``sources`` are the models that want points, each with its loaded retriever. What ``made.failures`` names has no points;
it has to be remembered for a whole run where ``given`` is used, since each content is given to workers once.
"""

from __future__ import annotations

import os
import textwrap
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from diptych.arrays import AnyArray
from diptych.cluster import Workers
from diptych.collection.indexing.file_facts import file_status
from diptych.collection.retriever_protocol import SIDES, RetrieverProtocol, Side
from diptych.collection.store.dialect import Connection
from diptych.collection.store.items import known_contents
from diptych.collection.store.models import Model, check_same_points
from diptych.collection.store.points import (
    create_point_tables,
    encoder_id,
    known_encoder,
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
Rows = tuple[list[str], AnyArray]
EncoderSide = tuple[str, Side]
"""The fingerprint of an encoder, and the side it encodes."""
ModelSide = tuple[int, Side]

# What networks take at once by default, so that they see the same batches.
PICTURES_PER_PART = 8
TEXTS_AT_ONCE = 1024


@dataclass(frozen=True)
class EncodingTask:
    """Pictures and texts to encode, and the contents that lack points of some models.

    Each picture comes with its file's status before it was hashed: what is read from one replaced since is not kept.
    ``to_encode`` has what each encoder must look at, ``features`` what is stored of it already, ``lacking`` the
    contents that want points of a model.
    """

    files: Mapping[str, StatedFile] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    to_encode: Mapping[EncoderSide, Sequence[str]] = field(default_factory=dict)
    features: Mapping[EncoderSide, Rows] = field(default_factory=dict)
    lacking: Mapping[ModelSide, Sequence[str]] = field(default_factory=dict)

    def divided(self) -> list[EncodingTask]:
        """Return all texts, since how they are encoded depends on those beside them, and a few pictures at a time."""
        keys = list(self.files)
        parts = [keys[start : start + PICTURES_PER_PART] for start in range(0, len(keys), PICTURES_PER_PART)]
        few = [EncodingTask({key: self.files[key] for key in part}, {}, self._encoding(part)) for part in parts]
        if self.texts or not few:
            few.insert(0, EncodingTask({}, self.texts, self._encoding(self.texts)))
        return few

    def _encoding(self, keys: Iterable[str]) -> dict[EncoderSide, Sequence[str]]:
        among = set(keys)
        return {encoder: [key for key in wanted if key in among] for encoder, wanted in self.to_encode.items()}


@dataclass(frozen=True)
class Encoded:
    """What became of a task: new features and points by hash, and why contents have none.

    Points are as the tables store them. ``unopened`` are files that were not there.
    """

    features: Mapping[EncoderSide, Rows] = field(default_factory=dict)
    points: Mapping[ModelSide, Rows] = field(default_factory=dict)
    failures: Mapping[str, str] = field(default_factory=dict)
    unopened: frozenset[str] = frozenset()


def task_of(
    db: Connection,
    sources: Sequence[Source],
    files: Mapping[str, StatedFile],
    texts: Mapping[str, str],
    given: Set[str] = frozenset(),
) -> EncodingTask:
    """Return what is to be encoded of files and texts by hash; what is ``given`` is left to the tasks before."""
    to_encode: dict[EncoderSide, Sequence[str]] = {}
    features: dict[EncoderSide, Rows] = {}
    lacking: dict[ModelSide, Sequence[str]] = {}
    contents: dict[Side, Iterable[str]] = {"image": files, "text": texts}
    for side in SIDES:
        keys = [key for key in contents[side] if key not in given]
        ids = known_contents(db, keys)
        for model, _ in sources:
            there = _with_points_of(db, model, side, list(ids.values()))
            wanted = [key for key in keys if ids.get(key) not in there]
            lacking[model.id, side] = wanted
            encoder = model.encoder(side), side
            stored, rows = features.get(encoder, ([], np.zeros((0, 0), dtype=np.float32)))
            dealt_with = {*stored, *to_encode.get(encoder, ())}
            fresh = [key for key in wanted if key not in dealt_with]
            found, found_rows = stored_features(db, encoder, {key: ids[key] for key in fresh if key in ids})
            if found:
                features[encoder] = ([*stored, *found], np.concatenate([rows, found_rows]) if stored else found_rows)
            dealt_with.update(found)
            left = [key for key in fresh if key not in dealt_with]
            to_encode[encoder] = [*to_encode.get(encoder, ()), *left]
    needed = {key for keys in to_encode.values() for key in keys}
    return EncodingTask(
        {key: file for key, file in files.items() if key in needed},
        {key: text for key, text in texts.items() if key in needed},
        to_encode,
        features,
        lacking,
    )


def stored_features(db: Connection, encoder: EncoderSide, ids: Mapping[str, int]) -> Rows:
    """Return the stored features of contents, those that there are."""
    number = known_encoder(db, *encoder) if ids else None
    if number is None:
        return [], np.zeros((0, 0), dtype=np.float32)
    keys = {content: key for key, content in ids.items()}
    contents, rows = read_features(db, number, list(ids.values()))
    return [keys[content] for content in contents.tolist()], rows


def put_encoded(db: Connection, made: Encoded, sources: Sequence[Source], ids: Mapping[str, int]) -> None:
    """Store features and points of those contents that have ids; models that were removed meanwhile get none."""
    for (fingerprint, side), (keys, rows) in made.features.items():
        places = [place for place, key in enumerate(keys) if key in ids]
        if places:
            encoder = encoder_id(db, fingerprint, side, rows.shape[1])
            put_features(db, encoder, [ids[keys[place]] for place in places], rows[places])
    for model, _ in sources:
        for side in SIDES:
            keys, rows = made.points.get((model.id, side), ([], np.zeros((0, 0))))
            places = [place for place, key in enumerate(keys) if key in ids]
            width = db.value("SELECT width FROM model WHERE id = ?", (model.id,)) if places else None
            if width == 0:
                create_point_tables(db, model.id, rows.shape[1], "bits" if rows.dtype == np.uint8 else "f16")
            if width is not None:
                put_points(db, model.id, side, [ids[keys[place]] for place in places], rows[places])


def _has_tables(db: Connection, model: Model) -> bool:
    # They are made with the first points, perhaps since the model was read.
    return bool(model.width or db.value("SELECT width FROM model WHERE id = ?", (model.id,)))


def _with_points_of(db: Connection, model: Model, side: Side, ids: Sequence[int]) -> set[int]:
    if not ids or not _has_tables(db, model):
        return set()
    condition, values = db.among("content", ids)
    return set(db.ids(f"SELECT content FROM {point_table(model.id, side)} WHERE {condition}", values).tolist())


# Encoding


def encode(task: EncodingTask, sources: Sequence[Source]) -> Encoded:
    """Make features and points."""
    return _with_points(encode_features(task, sources), task, sources)


def encode_features(task: EncodingTask, sources: Sequence[Source]) -> Encoded:
    """Make features, once for models that share an encoder; what one of them cannot read has none of the others."""
    features: dict[EncoderSide, Rows] = {}
    failures: dict[str, str] = {}
    unopened: set[str] = set()
    for model, retriever in sources:
        check_same_points(retriever, model)
        for side in SIDES:
            encoder = model.encoder(side), side
            keys = [key for key in task.to_encode.get(encoder, ()) if key not in failures]
            if encoder in features or not keys:
                continue
            if side == "text":
                made, refused = _text_features(retriever, {key: task.texts[key] for key in keys})
                failures |= refused
            else:
                pictures = _Pictures(retriever, {key: task.files[key] for key in keys})
                made = pictures.features
                failures |= pictures.failures
                unopened |= pictures.unopened
            if made:
                features[encoder] = list(made), np.stack(list(made.values()))
    return Encoded(features, {}, failures, frozenset(unopened))


def _joined(parts: Sequence[Encoded]) -> Encoded:
    features: dict[EncoderSide, Rows] = {}
    for encoder in {encoder for part in parts for encoder in part.features}:
        keys, rows = zip(*(part.features[encoder] for part in parts if encoder in part.features), strict=True)
        features[encoder] = [key for some in keys for key in some], np.concatenate(rows)
    failures = {key: reason for part in parts for key, reason in part.failures.items()}
    return Encoded(features, {}, failures, frozenset[str]().union(*(part.unopened for part in parts)))


def _with_points(made: Encoded, task: EncodingTask, sources: Sequence[Source]) -> Encoded:
    """Make the points of a whole task: their last bits depend on how many are made at once."""
    points: dict[ModelSide, Rows] = {}
    failures = dict(made.failures)
    for model, retriever in sources:
        check_same_points(retriever, model)
        for side in SIDES:
            encoder = model.encoder(side), side
            parts = [part[encoder] for part in (task.features, made.features) if encoder in part]
            rows = {key: row for keys, found in parts for key, row in zip(keys, found, strict=True)}
            wanted = [key for key in task.lacking.get((model.id, side), ()) if key in rows]
            if wanted:
                stored, reasons = _stored_points(retriever, side, wanted, np.stack([rows[key] for key in wanted]))
                failures |= reasons
                points[model.id, side] = [key for key in wanted if key not in reasons], stored
    return replace(made, points=points, failures=failures)


# Limits that overlap leave behind the one that ends last.
_limiting = threading.Lock()


def stored_points(retriever: RetrieverProtocol, side: Side, features: AnyArray) -> AnyArray:
    """Return the points of features as the tables store them; raise where one is beyond the range of their numbers."""
    to_points = retriever.images_to_points if side == "image" else retriever.texts_to_points
    # The last bits of a product may depend on how many cores share it.
    with _limiting, threadpool_limits(limits=1):
        points = np.asarray(to_points(np.asarray(features, dtype=np.float32)))
    return Scoring(retriever.space, "text_query" if side == "image" else "image_query").stored(points)


def _stored_points(
    retriever: RetrieverProtocol, side: Side, keys: Sequence[str], features: AnyArray
) -> tuple[AnyArray, dict[str, str]]:
    """Return the points of features, and the reasons of those that cannot be stored."""
    try:
        return stored_points(retriever, side, features), {}
    except InvalidInputError:
        # One bad point must not cost the others.
        stored, reasons = [], {}
        for key, row in zip(keys, features, strict=True):
            try:
                stored.append(stored_points(retriever, side, row[None]))
            except InvalidInputError as reason:
                reasons[key] = str(reason)
        return np.concatenate(stored) if stored else np.zeros((0, 0)), reasons


class _Pictures:
    """Features of pictures by content, and the reasons of those that cannot be read."""

    def __init__(self, retriever: RetrieverProtocol, files: Mapping[str, StatedFile]) -> None:
        self.features: dict[str, AnyArray] = {}
        self.failures: dict[str, str] = {}
        self.unopened: set[str] = set()
        before: dict[str, os.stat_result] = {}
        for key, (path, hashed) in files.items():
            try:
                before[key] = file_status(path)
            except InvalidInputError as reason:
                self.failures[key] = str(reason)
                self.unopened.add(key)
                continue
            # The one who hashed it may know it by another inode.
            if (before[key].st_size, before[key].st_mtime_ns) != (hashed.st_size, hashed.st_mtime_ns):
                self._has_changed(key)
        keys = [key for key in files if key not in self.failures]
        found: dict[int, AnyArray] = {}
        for batch in retriever.stream_image_features([files[key][0] for key in keys]) if keys else ():
            self.failures |= {keys[row]: reason for row, reason in batch.failures.items()}
            for row, features in zip(batch.rows, batch.features, strict=True):
                if _is_still(files[keys[row]][0], before[keys[row]]):
                    found[row] = features
                else:
                    self._has_changed(keys[row])
        # A cache gives first what it knows, and the order of rows must not depend on it.
        self.features = {keys[row]: found[row] for row in sorted(found)}

    def _has_changed(self, key: str) -> None:
        self.failures[key] = "it changed while it was read; index again"


def _is_still(path: Path, before: os.stat_result) -> bool:
    try:
        now = file_status(path)
    except InvalidInputError:
        return False
    return (now.st_size, now.st_mtime_ns, now.st_ino) == (before.st_size, before.st_mtime_ns, before.st_ino)


def _text_features(
    retriever: RetrieverProtocol, texts: Mapping[str, str]
) -> tuple[dict[str, AnyArray], dict[str, str]]:
    """Return the features of texts, and the reasons of those that the encoder refuses."""
    features: dict[str, AnyArray] = {}
    failures: dict[str, str] = {}
    keys = list(texts)
    for start in range(0, len(keys), TEXTS_AT_ONCE):
        part = keys[start : start + TEXTS_AT_ONCE]
        try:
            features |= _encoded_texts(retriever, texts, part)
        except (ValueError, ArithmeticError):
            # One bad text must not cost the others.
            for key in part:
                try:
                    features |= _encoded_texts(retriever, texts, [key])
                except (ValueError, ArithmeticError) as reason:
                    failures[key] = f"the caption {textwrap.shorten(texts[key], 60)!r} cannot be encoded ({reason})"
    return features, failures


def _encoded_texts(retriever: RetrieverProtocol, texts: Mapping[str, str], keys: Sequence[str]) -> dict[str, AnyArray]:
    return dict(zip(keys, retriever.text_features([texts[key] for key in keys]), strict=True))


# Workers

Asker = TypeVar("Asker")


def encoded(
    workers: Workers, tasks: Iterable[tuple[Asker, EncodingTask]], sources: Sequence[Source]
) -> Iterator[tuple[Asker, Encoded]]:
    """Yield what becomes of tasks, in their order, each with whatever it came with.

    Workers of a cluster share a task, so that none of them waits long for another with the last one.
    """
    under_way: deque[tuple[Asker, EncodingTask, int]] = deque()

    def begun() -> Iterator[EncodingTask]:
        for asker, task in tasks:
            parts = task.divided() if workers.elsewhere else [task]
            under_way.append((asker, task, len(parts)))
            yield from parts

    results = workers.map(encode_features if workers.elsewhere else encode, begun(), list(sources))
    for made in results:
        asker, task, n_parts = under_way.popleft()
        if workers.elsewhere:
            made = _with_points(_joined([made, *islice(results, n_parts - 1)]), task, sources)
        for key in made.unopened:
            check_unopened(workers, task.files[key][0], made.failures[key])
        yield asker, made


def check_unopened(workers: Workers, path: Path, reason: str) -> None:
    """Raise when a file that a worker cannot open can be opened here."""
    if workers.elsewhere and os.access(path, os.R_OK):
        raise InvalidInputError(
            f"a worker cannot open {path}, which is here ({reason}); let the workers see the pictures under the same "
            "names, on a drive they share, and index again"
        )


def squares_of(sources: Iterable[Source]) -> tuple[Square, ...]:
    """Return what all networks look at; nothing where an encoder reads pictures in its own way."""
    from diptych.encoders.image.image_encoder import ConvolutionalEncoder

    encoders = [getattr(retriever, "image_encoder_", None) for _, retriever in sources]
    parts = [part for encoder in encoders for part in (encoder.sources if encoder is not None else [None])]
    networks: list[ConvolutionalEncoder] = [part for part in parts if isinstance(part, ConvolutionalEncoder)]
    return tuple(dict.fromkeys(network.square for network in networks)) if len(networks) == len(parts) else ()
