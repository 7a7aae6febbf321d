"""From pictures and texts to features and points, here or on a cluster, and into the store."""

from __future__ import annotations

import os
import textwrap
import threading
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from diptych.arrays import AnyArray
from diptych.cluster import Workers
from diptych.collection.changes.file_facts import file_status
from diptych.collection.storage.layout import RetrieverNames
from diptych.collection.storage.retriever_protocol import SIDES, RetrieverProtocol, Side
from diptych.collection.storage.saved_retrievers import check_same_points
from diptych.collection.storage.store import Store, features_table, points_table
from diptych.errors import InvalidInputError

if TYPE_CHECKING:
    from diptych.encoders.image.image_encoder import ConvolutionalEncoder
    from diptych.encoders.image.reading_once import Square

StatedFile = tuple[Path, os.stat_result]
Vectors = tuple[list[str], AnyArray]


@dataclass(frozen=True)
class EncodingTask:
    """Pictures and texts by content, and which of them lack features and points, by table of points.

    Each picture comes with its file's status before it was hashed: what is read from one replaced since is not kept.
    """

    files: Mapping[str, StatedFile] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    lacking: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @classmethod
    def of(
        cls, files: Mapping[str, StatedFile], texts: Mapping[str, str], lacking: Mapping[str, Sequence[str]]
    ) -> EncodingTask:
        """Return a task without what is lacking nowhere."""
        wanted = {key for keys in lacking.values() for key in keys}
        return cls(
            {key: file for key, file in files.items() if key in wanted},
            {key: text for key, text in texts.items() if key in wanted},
            lacking,
        )

    def divided(self) -> list[EncodingTask]:
        """Return all texts, since how they are encoded depends on those beside them, and a few pictures at a time."""
        files = list(self.files.items())
        few = [dict(files[start : start + _FEW_PICTURES]) for start in range(0, len(files), _FEW_PICTURES)]
        parts = [self.texts, *few] if self.texts else few
        each = ({table: [key for key in keys if key in part] for table, keys in self.lacking.items()} for part in parts)
        return [EncodingTask.of(self.files, self.texts, lacking) for lacking in each]


# What networks take at once by default, so that they see the same batches.
_FEW_PICTURES = 8


@dataclass(frozen=True)
class Encoded:
    """What became of a task: keys and rows by table, why contents have none, and ``unopened``: files not there."""

    vectors: Mapping[str, Vectors] = field(default_factory=dict)
    failures: Mapping[str, str] = field(default_factory=dict)
    unopened: frozenset[str] = frozenset()

    @classmethod
    def joined(cls, parts: Sequence[Encoded]) -> Encoded:
        """Return what became of the parts of a task."""
        vectors: dict[str, Vectors] = {}
        for table in {table for part in parts for table in part.vectors}:
            keys, rows = zip(*(part.vectors[table] for part in parts if table in part.vectors), strict=True)
            vectors[table] = [key for some in keys for key in some], np.concatenate(rows)
        failures = {key: reason for part in parts for key, reason in part.failures.items()}
        return cls(vectors, failures, frozenset[str]().union(*(part.unopened for part in parts)))

    def chosen(self, table: str, keys: Sequence[str]) -> Vectors:
        """Return those of some keys that there are rows of."""
        found, rows = self.vectors.get(table, ([], np.zeros((0, 0), dtype=np.float32)))
        places = {key: place for place, key in enumerate(found)}
        kept = [key for key in keys if key in places]
        return kept, rows[[places[key] for key in kept]]


Sources = Sequence[tuple[RetrieverNames, RetrieverProtocol]]


def encode(task: EncodingTask, sources: Sources) -> Encoded:
    """Make features and points."""
    return _with_points(encode_features(task, sources), task, sources)


def encode_features(task: EncodingTask, sources: Sources) -> Encoded:
    """Make features, once for retrievers that share an encoder; what one cannot read has none."""
    rows: dict[str, dict[str, AnyArray]] = {}
    failures: dict[str, str] = {}
    unopened: set[str] = set()
    for names, retriever in sources:
        check_same_points(retriever, names)
        for side in SIDES:
            features = rows.setdefault(features_table(names, side), {})
            wanted = task.lacking.get(points_table(names, side), ())
            fresh = [key for key in wanted if key not in failures and key not in features]
            if fresh and side == "text":
                made_texts, refused = _text_features(retriever, {key: task.texts[key] for key in fresh})
                features |= made_texts
                failures |= refused
            elif fresh:
                made = _Pictures(retriever, {key: task.files[key] for key in fresh})
                features |= made.features
                failures |= made.failures
                unopened |= made.unopened
    vectors = {table: (list(found), np.stack(list(found.values()))) for table, found in rows.items() if found}
    return Encoded(vectors, failures, frozenset(unopened))


def _with_points(made: Encoded, task: EncodingTask, sources: Sources) -> Encoded:
    """Make the points of a whole task: their last bits depend on how many are made at once."""
    points: dict[str, Vectors] = {}
    for names, retriever in sources:
        for side in SIDES:
            table = points_table(names, side)
            keys, features = made.chosen(features_table(names, side), task.lacking.get(table, ()))
            if keys:
                points[table] = keys, _points(retriever, side, features)
    return replace(made, vectors={**made.vectors, **points})


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
            # Whoever hashed it may know it by another inode.
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


_TEXTS_AT_ONCE = 1024


def _text_features(
    retriever: RetrieverProtocol, texts: Mapping[str, str]
) -> tuple[dict[str, AnyArray], dict[str, str]]:
    """Return the features of texts, and the reasons of those that the encoder refuses."""
    features: dict[str, AnyArray] = {}
    failures: dict[str, str] = {}
    keys = list(texts)
    for start in range(0, len(keys), _TEXTS_AT_ONCE):
        part = keys[start : start + _TEXTS_AT_ONCE]
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


# Limits that overlap leave behind the one that ends last.
_limiting = threading.Lock()


def _points(retriever: RetrieverProtocol, side: Side, features: AnyArray) -> AnyArray:
    to_points = retriever.images_to_points if side == "image" else retriever.texts_to_points
    # The last bits of a product may depend on how many cores share it.
    with _limiting, threadpool_limits(limits=1):
        return np.asarray(to_points(np.asarray(features, dtype=np.float32)))


Asker = TypeVar("Asker")


def encoded(
    workers: Workers, tasks: Iterable[tuple[Asker, EncodingTask]], sources: Sources
) -> Iterator[tuple[Asker, Encoded]]:
    """Yield what becomes of tasks, in their order, each with whatever it came with.

    Workers of a cluster share a task, so that none of them waits long for another with the last one.
    """
    under_way: deque[tuple[Asker, EncodingTask, int]] = deque()

    def begun() -> Iterator[EncodingTask]:
        for asker, task in tasks:
            parts = (task.divided() if workers.elsewhere else []) or [task]
            under_way.append((asker, task, len(parts)))
            yield from parts

    results = workers.map(encode_features if workers.elsewhere else encode, begun(), sources)
    for made in results:
        asker, task, n_parts = under_way.popleft()
        if workers.elsewhere:
            made = _with_points(Encoded.joined([made, *islice(results, n_parts - 1)]), task, sources)
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


_MANY_KEYS = 4000


class KnownKeys:
    """Which keys the tables hold, for the only writer: each is looked for once, and for many all of them are read."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._looked_for: defaultdict[str, set[str]] = defaultdict(set)
        self._there: defaultdict[str, set[str]] = defaultdict(set)
        self._read_whole: set[str] = set()

    def among(self, table: str, keys: Sequence[str]) -> set[str]:
        """Return those of some keys that a table holds."""
        looked_for, there = self._looked_for[table], self._there[table]
        unknown = [] if table in self._read_whole else [key for key in keys if key not in looked_for]
        if len(looked_for) + len(unknown) > _MANY_KEYS:
            there.update(self._store.keys(table).to_pylist())
            self._read_whole.add(table)
        elif unknown:
            there.update(self._store.present_keys(table, unknown))
            looked_for.update(unknown)
        return there.intersection(keys)

    def add_vectors(self, table: str, keys: Sequence[str], vectors: Any) -> None:
        """Store rows, and know of them."""
        self._store.add_vectors(table, keys, vectors)
        self._there[table].update(keys)


class Encoding:
    """Stores what is missing of a retriever: features first, then points, each named by content.

    What others have not made, it makes.
    """

    def __init__(
        self, store: Store, retriever: RetrieverProtocol, names: RetrieverNames, known: KnownKeys | None = None
    ) -> None:
        check_same_points(retriever, names)
        self._store = store
        # Those who write in one run share what they know.
        self._known = known or KnownKeys(store)
        self._retriever = retriever
        self._names = names
        self.read_again = 0

    @property
    def source(self) -> tuple[RetrieverNames, RetrieverProtocol]:
        """The retriever and its names, for :func:`encode`."""
        return self._names, self._retriever

    def pictures(self, files: Mapping[str, StatedFile], made: Encoded | None = None) -> dict[str, str]:
        """Keep what was made of pictures by content hash; return the reasons of those that cannot be read."""
        made = made or Encoded()
        left = self._keep("image", list(files), made)
        failures = {key: made.failures[key] for key in left if key in made.failures}
        fresh = [key for key in self.from_features("image", left) if key not in failures]
        if fresh:
            here = encode(self._task("image", fresh, files={key: files[key] for key in fresh}), [self.source])
            self._keep("image", fresh, here)
            failures |= here.failures
        return failures

    def texts(self, texts: Mapping[str, str], made: Encoded | None = None) -> dict[str, str]:
        """Keep what was made of texts by content hash; return the reasons of those that cannot be encoded."""
        made = made or Encoded()
        left = self._keep("text", list(texts), made)
        failures = {key: made.failures[key] for key in left if key in made.failures}
        fresh = [key for key in self.from_features("text", left) if key not in failures]
        if fresh:
            here = encode(self._task("text", fresh, texts={key: texts[key] for key in fresh}), [self.source])
            self._keep("text", fresh, here)
            failures |= here.failures
        return failures

    def missing(self, side: Side, keys: Sequence[str]) -> list[str]:
        """Return the keys that have no points yet."""
        there = self._known.among(points_table(self._names, side), keys)
        return [key for key in keys if key not in there]

    def from_features(self, side: Side, keys: Sequence[str]) -> list[str]:
        """Make points from stored features, and return the keys that have neither."""
        missing = self.missing(side, keys) if len(keys) else []
        known: set[str] = set()
        table = features_table(self._names, side)
        for found, features in self._store.read_vectors(table, list(self._known.among(table, missing))):
            fresh = [row for row, key in enumerate(found) if key not in known]
            known.update(found)
            if fresh:
                points = _points(self._retriever, side, features[fresh])
                self._known.add_vectors(points_table(self._names, side), [found[row] for row in fresh], points)
        return [key for key in missing if key not in known]

    def _task(self, side: Side, keys: Sequence[str], **contents: Mapping[str, Any]) -> EncodingTask:
        return EncodingTask(**contents, lacking={points_table(self._names, side): keys})

    def _keep(self, side: Side, keys: Sequence[str], made: Encoded) -> list[str]:
        """Store rows of contents that lack points, and return those that still do."""
        missing = self.missing(side, keys) if len(keys) else []
        kept, points = made.chosen(points_table(self._names, side), missing)
        if kept:
            table = features_table(self._names, side)
            there = self._known.among(table, kept)
            self._known.add_vectors(table, *made.chosen(table, [key for key in kept if key not in there]))
            self._known.add_vectors(points_table(self._names, side), kept, points)
            self.read_again += len(kept) if side == "image" else 0
        done = set(kept)
        return [key for key in missing if key not in done]


def squares_of(encodings: Iterable[Encoding]) -> tuple[Square, ...]:
    """Return what all networks look at; nothing where an encoder reads pictures in its own way."""
    encoders = _image_encoders(encoding.source for encoding in encodings)
    networks = [encoder for encoder in encoders if encoder is not None]
    return tuple(dict.fromkeys(network.square for network in networks)) if len(networks) == len(encoders) else ()


def _image_encoders(sources: Iterable[tuple[RetrieverNames, RetrieverProtocol]]) -> list[ConvolutionalEncoder | None]:
    """Return the networks that pictures are encoded by, None for each encoder of another kind."""
    from diptych.encoders.image.image_encoder import ConvolutionalEncoder

    encoders = [getattr(retriever, "image_encoder_", None) for _, retriever in sources]
    parts = [part for encoder in encoders for part in (encoder.sources if encoder is not None else [None])]
    return [part if isinstance(part, ConvolutionalEncoder) else None for part in parts]


def _is_still(path: Path, before: os.stat_result) -> bool:
    try:
        now = file_status(path)
    except InvalidInputError:
        return False
    return (now.st_size, now.st_mtime_ns, now.st_ino) == (before.st_size, before.st_mtime_ns, before.st_ino)
