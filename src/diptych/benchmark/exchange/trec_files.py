"""Run and qrels files: rankings and judgements in memory, made by a fitted model, and how they are written and read."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import IO, Literal, get_args
from urllib.parse import quote

import numpy as np
from numpy.typing import ArrayLike

from diptych.arrays import AnyArray, FloatArray, row_blocks
from diptych.errors import InvalidInputError
from diptych.metrics import Relevance
from diptych.models import CrossModalModel
from diptych.protocols import EncodedRetrieval, Gallery, Relevant, Retrieval
from diptych.space import DIRECTIONS, Direction, Space, opposite

_UNSAFE = re.compile(r"[\s%]")
_RUN_FIELDS = ("query", "Q0", "item", "rank", "score", "tag")
_QRELS_FIELDS = ("query", "iteration", "item", "grade")
Scores = Literal["rank", "model"]

_SCORES_AT_ONCE = 1 << 22


@dataclass(frozen=True, eq=False)
class RankedList:
    """What one query found: names of items and their scores, larger is better.

    >>> from diptych.benchmark.exchange import RankedList
    >>> found = RankedList.of("q1", {"a": 0.5, "b": 0.9, "c": 0.5})
    >>> found.in_order().items.tolist()
    ['b', 'c', 'a']
    """

    query: str
    items: AnyArray
    scores: FloatArray

    def __post_init__(self) -> None:
        if self.items.shape != self.scores.shape or self.items.ndim != 1:
            raise InvalidInputError(
                f"query {self.query!r} has {self.items.size} items and {self.scores.size} scores; give one for each"
            )
        if not np.isfinite(self.scores).all():
            raise InvalidInputError(f"the scores of query {self.query!r} hold NaN or infinity; check its points")
        if len(np.unique(self.items)) != len(self.items):
            raise InvalidInputError(f"query {self.query!r} ranks an item more than once; keep its best line only")

    @classmethod
    def of(cls, query: str, scores: Mapping[str, float]) -> RankedList:
        """Return the ranking of items by their scores, given by name."""
        return cls(query, np.array([*scores], dtype=str), np.array([*scores.values()], dtype=np.float64))

    def in_order(self, *, single_precision: bool = False) -> RankedList:
        """Return the list best first; of equal scores, the item whose name is later in the alphabet comes first.

        That is trec_eval's rule, whatever the ranks in a file say. trec_eval also keeps scores in single precision, so
        that scores which differ only beyond it are equal there; ``single_precision`` does the same.
        """
        scores = self.scores.astype(np.float32) if single_precision else self.scores
        order = np.lexsort((self.items, scores))[::-1]
        return RankedList(self.query, self.items[order], self.scores[order])


def open_text(path: Path, mode: Literal["rt", "wt"]) -> IO[str]:
    """Open a UTF-8 file, compressed if its name ends in ``.gz``."""
    try:
        if path.suffix == ".gz":
            return gzip.open(path, mode, encoding="utf-8", newline="\n")
        return path.open(mode, encoding="utf-8", newline="\n")
    except OSError as error:
        doing = "read" if mode == "rt" else "written"
        raise InvalidInputError(f"{path} cannot be {doing}: {error.strerror or error}; check the path") from error


@lru_cache(maxsize=1 << 16)
def as_word(name: str) -> str:
    """Return ``name`` without white space, which would end the field: written as in addresses, ``%20``."""
    if not name:
        raise InvalidInputError("an item or query has an empty name; give every one a name of its own")
    return _UNSAFE.sub(lambda found: quote(found.group(), safe=""), name)


def fields_of(path: Path, fields: Sequence[str], *, further: bool = False) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the words of every line but empty ones and comments, which begin with ``#``.

    A line must have as many words as ``fields``; with ``further`` more words may follow, which are left out.
    """
    try:
        with open_text(path, "rt") as file:
            for number, line in enumerate(file, start=1):
                words = line.split()
                if not words or words[0].startswith("#"):
                    continue
                if len(words) < len(fields) or (len(words) > len(fields) and not further):
                    raise InvalidInputError(
                        f"{path}: line {number} has {len(words)} words, expected {len(fields)}: {' '.join(fields)}"
                    )
                yield number, words[: len(fields)]
    except (UnicodeDecodeError, EOFError, OSError) as error:
        raise InvalidInputError(f"{path} is not a text file in UTF-8; check that it is the right file") from error


def write_run(
    path: str | PathLike[str], rankings: Iterable[RankedList], *, tag: str = "diptych", scores: Scores = "rank"
) -> int:
    """Write rankings to a run file, one after another, and return the number of lines.

    Each list is written best first, equal scores in trec_eval's order (`RankedList.in_order`). ``scores="rank"`` writes
    whole numbers that fall by one with every rank, so that there are no ties left, and every tool, whatever its rule
    for ties and its precision, sees this one order. ``"model"`` writes the scores themselves, for fusion and
    thresholds; tools then break ties as they like. White space in a name is written as ``%20``. A path that ends in
    ``.gz`` is compressed.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from diptych.benchmark.exchange import RankedList, write_run
    >>> path = Path(tempfile.mkdtemp()) / "run.txt"
    >>> write_run(path, [RankedList.of("q1", {"a": 0.2, "b": 0.7})], tag="cca")
    2
    >>> print(path.read_text(), end="")
    q1 Q0 b 1 2 cca
    q1 Q0 a 2 1 cca
    """
    if scores not in get_args(Scores):
        raise InvalidInputError(f"scores must be one of {', '.join(get_args(Scores))}, got {scores!r}")
    with open_text(Path(path), "wt") as file:
        return sum(_write_list(file, ranking.in_order(), as_word(tag), scores) for ranking in rankings)


def _write_list(file: IO[str], ranking: RankedList, tag: str, scores: Scores) -> int:
    query, count = as_word(ranking.query), len(ranking.items)
    values = range(count, 0, -1) if scores == "rank" else map(repr, ranking.scores.tolist())
    file.writelines(
        f"{query} Q0 {as_word(item)} {rank} {value} {tag}\n"
        for rank, (item, value) in enumerate(zip(ranking.items.tolist(), values, strict=True), start=1)
    )
    return count


def read_run(path: str | PathLike[str]) -> dict[str, RankedList]:
    """Read a run file of any tool: for each query its items and scores.

    The order is that of the scores; the column of ranks is not used, as in trec_eval, and words after the tag are
    left out. Lines of a query need not follow one another; those that begin with ``#`` are comments.
    """
    found: dict[str, dict[str, float]] = {}
    for number, (query, _, item, _, score, _) in fields_of(Path(path), _RUN_FIELDS, further=True):
        items = found.setdefault(query, {})
        if item in items:
            raise InvalidInputError(f"{path}: line {number} ranks {item!r} again for query {query!r}; keep one line")
        items[item] = _number(score, path, number)
    if not found:
        raise InvalidInputError(f"{path} holds no line of the form '{' '.join(_RUN_FIELDS)}'")
    return {query: RankedList.of(query, items) for query, items in found.items()}


def _number(text: str, path: str | PathLike[str], line: int) -> float:
    try:
        value = float(text)
    except ValueError:
        value = np.nan
    if not np.isfinite(value):
        raise InvalidInputError(f"{path}: line {line} has the score {text!r}, which is not a finite number")
    return value


@dataclass(frozen=True)
class Qrels:
    """For each query the grades of judged items; what is not judged, or has a grade of 0 or less, is not relevant.

    >>> from diptych.benchmark.exchange import Qrels
    >>> from diptych.metrics import SameLabel
    >>> Qrels.from_relevance(SameLabel(["cat"], ["dog", "cat"]), ["q1"], ["a", "b"])
    Qrels(grades={'q1': {'b': 1}})
    """

    grades: Mapping[str, Mapping[str, int]]

    @classmethod
    def from_relevance(cls, relevance: Relevance, queries: Sequence[str], items: Sequence[str]) -> Qrels:
        """Write down a relevance by the names of its queries and items.

        Items that were judged and found irrelevant, as `GradedRelevance` knows them with ``judged_only``, get grade 0.
        """
        if (len(queries), len(items)) != (relevance.n_queries, relevance.n_gallery):
            raise InvalidInputError(
                f"the relevance knows {relevance.n_queries} queries and {relevance.n_gallery} items, "
                f"but {len(queries)} and {len(items)} names were given"
            )
        if not (np.asarray(relevance.grades) == np.round(relevance.grades)).all():
            raise InvalidInputError(f"qrels hold whole grades, got {relevance.grades.tolist()}; round or rescale them")
        levels = [int(grade) for grade in relevance.grades]
        grades: dict[str, dict[str, int]] = {}
        for row, query in enumerate(queries):
            judged = relevance.judge(row)
            candidates = [] if judged.candidates is None else judged.candidates.tolist()
            positions = np.zeros(len(judged.items), dtype=np.int64) if judged.levels is None else judged.levels
            relevant = {items[item]: levels[level] for item, level in zip(judged.items, positions, strict=True)}
            grades[query] = {**{items[item]: 0 for item in candidates}, **relevant}
        return cls(grades)

    def at_least(self, grade: int) -> Qrels:
        """Return binary judgements in which ``grade`` and more is relevant, like trec_eval's option ``-l``."""
        judged = self.grades.items()
        return Qrels({query: {item: int(own >= grade) for item, own in items.items()} for query, items in judged})

    @property
    def positive_grades(self) -> FloatArray:
        """The grades of relevant items, ascending."""
        found = {grade for items in self.grades.values() for grade in items.values() if grade > 0}
        if not found:
            raise InvalidInputError("no item is relevant to any query; check that the qrels are the right ones")
        return np.array(sorted(found), dtype=np.float64)


def write_qrels(path: str | PathLike[str], qrels: Qrels) -> int:
    """Write judgements to a file and return the number of lines; names are written as in `write_run`.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from diptych.benchmark.exchange import Qrels, read_qrels, write_qrels
    >>> path = Path(tempfile.mkdtemp()) / "qrels.txt"
    >>> write_qrels(path, Qrels({"q1": {"a": 2, "b": 0}}))
    2
    >>> read_qrels(path)
    Qrels(grades={'q1': {'a': 2, 'b': 0}})
    """
    count = 0
    with open_text(Path(path), "wt") as file:
        for query, items in qrels.grades.items():
            file.writelines(f"{as_word(query)} 0 {as_word(item)} {grade}\n" for item, grade in items.items())
            count += len(items)
    return count


def read_qrels(path: str | PathLike[str]) -> Qrels:
    """Read the judgements of any collection; lines that begin with ``#`` are comments.

    Grades are whole numbers, negative ones count as irrelevant.
    """
    grades: dict[str, dict[str, int]] = {}
    for number, (query, _, item, grade) in fields_of(Path(path), _QRELS_FIELDS):
        items = grades.setdefault(query, {})
        if item in items:
            raise InvalidInputError(f"{path}: line {number} judges {item!r} again for query {query!r}; keep one line")
        try:
            items[item] = int(grade)
        except ValueError:
            raise InvalidInputError(f"{path}: line {number} has the grade {grade!r}, expected a whole number") from None
    if not grades:
        raise InvalidInputError(f"{path} holds no line of the form '{' '.join(_QRELS_FIELDS)}'")
    return Qrels(grades)


@dataclass(frozen=True)
class ExportedFiles:
    """Where the run and the qrels of each direction are, and how many lines each run has."""

    runs: dict[Direction, Path]
    qrels: dict[Direction, Path]
    n_lines: dict[Direction, int]


def export_retrieval(
    model: CrossModalModel,
    retrieval: Retrieval,
    folder: str | PathLike[str],
    *,
    gallery: Gallery = "view",
    relevant: Relevant = "auto",
    depth: int | None = None,
    tag: str = "diptych",
    scores: Scores = "rank",
) -> ExportedFiles:
    """Write what a fitted model answers, and what would be right, for image queries and for text queries.

    ``folder`` gets ``image_query.run``, ``image_query.qrels``, ``text_query.run`` and ``text_query.qrels``. Queries,
    gallery and relevance are those of :func:`diptych.protocols.evaluate_retrieval`, and the whole gallery is ranked, so
    that without ties `score_run` and other tools find the numbers of that function; with ties they find those of the
    one order that is written (see `write_run`), not the expectation over all. ``depth`` keeps the best of each list
    only, which lowers AP.

    >>> import tempfile
    >>> import numpy as np
    >>> from diptych.benchmark.exchange import export_retrieval, read_qrels, read_run, score_run
    >>> from diptych.data import Pairs
    >>> from diptych.metrics import AP
    >>> from diptych.models import CCA
    >>> from diptych.protocols import Retrieval, evaluate_retrieval
    >>> rows = np.random.default_rng(0).normal(size=(30, 3))
    >>> pairs = Pairs(rows, rows + 0.5, labels=np.arange(30) % 3)
    >>> model, retrieval = CCA().fit(*pairs.aligned()), Retrieval(pairs, pairs)
    >>> files = export_retrieval(model, retrieval, tempfile.mkdtemp())
    >>> files.n_lines["image_query"]
    900
    >>> scored = score_run(read_run(files.runs["image_query"]), read_qrels(files.qrels["image_query"]), [AP()])
    >>> bool(np.isclose(scored.mean[AP()], evaluate_retrieval(model, retrieval).image_query[AP()], rtol=1e-12))
    True
    """
    encoded = EncodedRetrieval.of(model, retrieval, gallery=gallery, relevant=relevant)
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInputError(f"{place} cannot be made: {error.strerror or error}; choose another folder") from error
    names = _names(retrieval, gallery)
    files = ExportedFiles({}, {}, {})
    for way in DIRECTIONS:
        queries, items = names[way]
        files.runs[way], files.qrels[way] = place / f"{way}.run", place / f"{way}.qrels"
        points, found = encoded.queries[way], encoded.gallery[opposite(way)]
        lists = ranked_lists(points, found, encoded.space, queries, items, direction=way, depth=depth)
        files.n_lines[way] = write_run(files.runs[way], lists, tag=tag, scores=scores)
        write_qrels(files.qrels[way], Qrels.from_relevance(encoded.relevance(way), queries, items))
    return files


def ranked_lists(
    queries: ArrayLike,
    gallery: ArrayLike,
    space: Space,
    query_names: Sequence[str],
    item_names: Sequence[str],
    *,
    direction: Direction = "image_query",
    depth: int | None = None,
) -> Iterator[RankedList]:
    """Yield the ranking of the gallery for every query, best first, a block of queries at a time."""
    if depth is not None and depth < 1:
        raise InvalidInputError(f"depth must be at least 1, got {depth}")
    points, found, names = np.asarray(queries), np.asarray(gallery), np.asarray(item_names, dtype=str)
    if (len(query_names), len(names)) != (len(points), len(found)):
        raise InvalidInputError(
            f"{len(points)} queries and {len(found)} items need as many names, got {len(query_names)} and {len(names)}"
        )
    alphabet = np.argsort(np.argsort(names))
    for block in row_blocks(len(points), max(1, _SCORES_AT_ONCE // len(found))):
        scores = np.asarray(space.compare(points[block], found, direction), dtype=np.float64)
        for query, row in zip(query_names[block], scores, strict=True):
            order = np.lexsort((alphabet, row))[::-1][:depth]
            yield RankedList(str(query), names[order], row[order])


def _names(retrieval: Retrieval, gallery: Gallery) -> dict[Direction, tuple[list[str], list[str]]]:
    asked, searched = retrieval.queries, retrieval.gallery
    images = searched.text_ids if gallery == "unified" else searched.ids
    return {
        "image_query": (asked.ids.tolist(), searched.text_ids.tolist()),
        "text_query": (asked.text_ids.tolist(), images.tolist()),
    }
