"""From a fitted model to run and qrels files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from diptych.arrays import row_blocks
from diptych.benchmark.exchange.trec_files import Qrels, RankedList, Scores, write_qrels, write_run
from diptych.errors import InvalidInputError
from diptych.models import CrossModalModel
from diptych.protocols import EncodedRetrieval, Gallery, Relevant, Retrieval
from diptych.space import DIRECTIONS, Direction, Space, opposite

_SCORES_AT_ONCE = 1 << 22


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
    """Yield the ranking of the gallery for every query, best first, a block of queries at a time.

    >>> import numpy as np
    >>> from diptych import Space
    >>> from diptych.benchmark.exchange import ranked_lists
    >>> found = next(ranked_lists(np.eye(2), np.eye(2), Space("cosine"), ["q1", "q2"], ["a", "b"]))
    >>> found.query, found.items.tolist()
    ('q1', ['a', 'b'])
    """
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
