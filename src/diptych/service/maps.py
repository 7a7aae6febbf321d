"""Maps of collections: pictures and captions of the common space in the plane."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from diptych.arrays import AnyArray, FloatArray
from diptych.atomic_files import atomic_write
from diptych.collection import Collection, Item
from diptych.space import DIRECTIONS, Space

__all__ = ["has_map", "make_map", "read_map"]


def map_path(collection: Collection, fingerprint: str) -> Path:
    """Return the file of the map that shows the points of the retriever with this fingerprint."""
    return collection.folder / "service" / "maps" / f"{fingerprint}.json"


def has_map(collection: Collection, fingerprint: str) -> bool:
    """Say whether a map has been made."""
    return map_path(collection, fingerprint).is_file()


def read_map(collection: Collection, fingerprint: str) -> dict[str, Any] | None:
    """Return a map as it was made, or None where there is none that can be read."""
    try:
        document = json.loads(map_path(collection, fingerprint).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return document if isinstance(document, dict) and isinstance(document.get("points"), list) else None


Progress = Callable[[int, int], None]
_STAGES = 3
_STAGE_STEPS = 250
_PERPLEXITY = 30.0
_FEWEST_FOR_NEIGHBOURS = 6
_FEWEST_FOR_ITERATION = 400
_START_SPREAD = 1e-4
_VECTOR_SPACES = ("cosine", "pearson", "covariance", "dot", "euclidean")


def plane(space: Space, points: AnyArray, *, seed: int = 0, progress: Progress | None = None) -> FloatArray:
    """Return a place (x, y) from 0 to 1 for each point, so that neighbours of the space are neighbours there.

    t-SNE with a start at the two leading principal components, which is the answer itself for fewer than six points. In
    spaces of inner products and Euclidean distance the vectors are compared as the space compares them; in others the
    distances are minus the scores, both ways averaged. ``progress`` is told the stages done and may raise to stop.

    van der Maaten and Hinton, "Visualizing data using t-SNE", JMLR 2008; Kobak and Berens, "The art of using t-SNE for
    single-cell transcriptomics", 2019, for the start.

    >>> import numpy as np
    >>> from diptych import Space
    >>> from diptych.service.maps import plane
    >>> plane(Space("euclidean"), np.array([[0.0, 0.0], [2.0, 0.0], [2.0, 1.0]])).shape
    (3, 2)
    """
    if space.name == "corrected":
        # Pictures and texts have their places by what they show, not by their corrections.
        space, points = Space("dot"), points[:, :-2]
    is_vector = space.name in _VECTOR_SPACES
    rows = _vectors(space, points) if is_vector else _distances(space, points)
    start = _principal_components(rows) if is_vector else _classical_scaling(rows)
    if len(points) < _FEWEST_FOR_NEIGHBOURS or not start.any():
        return _fit_to_square(start)
    return _fit_to_square(_neighbour_embedding(rows, start, is_vector, seed, progress))


def _neighbour_embedding(
    rows: FloatArray, start: FloatArray, is_vector: bool, seed: int, progress: Progress | None
) -> FloatArray:
    """Run t-SNE in stages, so that it can tell how far it is and be stopped."""
    # Imported here: whoever only reads a map does not wait for it.
    from sklearn.manifold import TSNE

    perplexity = min(_PERPLEXITY, (len(rows) - 1) / 3)
    places: FloatArray = start / start.std() * _START_SPREAD
    for stage in range(_STAGES):
        if progress is not None:
            progress(stage, _STAGES)
        embedding = TSNE(
            perplexity=perplexity,
            # Pulling neighbours together at first is for the first stage alone.
            early_exaggeration=12.0 if stage == 0 else 1.0,
            max_iter=_STAGE_STEPS,
            metric="euclidean" if is_vector else "precomputed",
            init=places.astype(np.float32),
            random_state=seed,
            n_jobs=1,
        )
        places = np.asarray(embedding.fit_transform(rows), dtype=np.float64)
    if progress is not None:
        progress(_STAGES, _STAGES)
    return places


def _vectors(space: Space, points: AnyArray) -> FloatArray:
    """Return vectors whose distances order as the scores do, of both directions side by side where these differ."""
    directions = DIRECTIONS if space.split is not None else DIRECTIONS[:1]
    forms = [space.indexable(direction) for direction in directions]
    return np.hstack([form.gallery(np.asarray(points)) for form in forms if form is not None]).astype(np.float32)


def _distances(space: Space, points: AnyArray) -> FloatArray:
    """Return minus the scores, averaged over both ways to ask, from 0 up."""
    distances: FloatArray = np.zeros((len(points), len(points)), dtype=np.float32)
    for rows, scores in space.blocks(points, points):
        distances[rows] = -scores
    distances = np.asarray((distances + distances.T) / 2)
    distances -= min(0.0, float(distances.min()))
    np.fill_diagonal(distances, 0)
    return distances


def _classical_scaling(distances: FloatArray) -> FloatArray:
    squares = -0.5 * distances.astype(np.float64) ** 2
    gram = squares - squares.mean(axis=0) - squares.mean(axis=1, keepdims=True) + squares.mean()
    values, vectors = _two_leading(np.asarray(gram))
    return _with_fixed_signs(np.asarray(vectors * np.sqrt(np.maximum(values, 0))))


def _principal_components(rows: FloatArray) -> FloatArray:
    centred = rows.astype(np.float64) - rows.mean(axis=0, dtype=np.float64)
    # Rounding leaves something of points that are all the same.
    if np.abs(centred).max(initial=0.0) <= 1e-6 * float(np.abs(rows).max(initial=0.0)):
        return np.zeros((len(rows), 2))
    _, vectors = _two_leading(centred.T @ centred)
    return _with_fixed_signs(np.asarray(centred @ vectors))


def _two_leading(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the two largest eigenvalues of a symmetric matrix, largest first, and their vectors as columns."""
    if len(matrix) < _FEWEST_FOR_ITERATION:
        values, vectors = np.linalg.eigh(matrix)
        values, vectors = values[::-1][:2], vectors[:, ::-1][:, :2]
        missing = 2 - len(values)
        return np.pad(values, (0, missing)), np.pad(vectors, ((0, 0), (0, missing)))
    from scipy.sparse.linalg import eigsh

    # A fixed start makes the iteration repeatable.
    start = np.random.default_rng(0).standard_normal(len(matrix))
    values, vectors = eigsh(matrix, k=2, which="LA", v0=start)
    order = np.argsort(-values)
    return values[order], vectors[:, order]


def _with_fixed_signs(places: FloatArray) -> FloatArray:
    largest = np.take_along_axis(places, np.abs(places).argmax(axis=0)[None, :], axis=0)
    return np.asarray(places * np.where(largest < 0, -1.0, 1.0))


def _fit_to_square(places: FloatArray) -> FloatArray:
    """Move and scale places into the unit square, both directions alike, the narrower one in the middle."""
    low, high = places.min(axis=0), places.max(axis=0)
    span = float((high - low).max())
    if span <= 0:
        return np.full(places.shape, 0.5)
    return np.asarray(np.clip((places - (low + high) / 2) / span + 0.5, 0.0, 1.0))


def map_sample(items: Iterable[Item], costs: Mapping[str, int], most: int, seed: int) -> list[Item]:
    """Return items whose points, ``costs`` by id, are at most ``most`` together, in the order of addition.

    Where there are too many, labels take turns, so that a rare label is seen beside a common one; within a label items
    are drawn at random. Items without points are left out.
    """
    usable = [item for item in items if costs.get(item.id, 0) > 0]
    if sum(costs[item.id] for item in usable) <= most:
        return usable
    chosen: set[str] = set()
    left = most
    for item in _in_turns(usable, seed):
        if costs[item.id] <= left:
            chosen.add(item.id)
            left -= costs[item.id]
        if left <= 0:
            break
    return [item for item in usable if item.id in chosen]


def _in_turns(items: list[Item], seed: int) -> list[Item]:
    order = np.random.default_rng(seed).permutation(len(items))
    seen: dict[str, int] = {}
    turns = []
    for row in order.tolist():
        label = items[row].labels[0] if items[row].labels else ""
        seen[label] = seen.get(label, 0) + 1
        turns.append((seen[label], row))
    # The draw decides among those of one turn; sorting is stable.
    return [items[row] for _, row in sorted(turns, key=lambda turn: turn[0])]


def make_map(
    collection: Collection,
    progress: Progress | None = None,
    *,
    retriever: str | None = None,
    most: int = 3000,
    seed: int = 0,
) -> dict[str, Any]:
    """Lay pictures and captions of the common space out in the plane, keep the map, and return what it holds.

    As in figure 5 of Zhang et al. (MNiL): what lies near each other in the space lies near each other on the map,
    pictures and texts alike. Each item brings its picture and its first caption; ``most`` bounds the number of points,
    and a larger collection is drawn from, label by label. ``retriever`` names the one whose points are shown, by
    default the active one. ``progress`` is told how much is done of how much, and stops the work by raising. The result
    counts items and points; :func:`read_map` returns the map itself.
    """
    source = collection.retriever if retriever is None else collection.retriever_named(retriever)
    items = collection.items()
    made = datetime.now(UTC).isoformat(timespec="seconds")
    shown, points = _map_entries(collection, items, retriever, most, seed)
    places = plane(source.space, points, seed=seed, progress=progress) if len(points) else np.zeros((0, 2))
    document = {
        "retriever": retriever or source.name,
        "fingerprint": source.fingerprint,
        "made": made,
        "items_in_map": len({entry["id"] for entry in shown}),
        "items_total": len(items),
        "newest_ns": max((item.updated_ns for item in items), default=0),
        "points": [
            {"x": round(float(x), 5), "y": round(float(y), 5), **entry}
            for entry, (x, y) in zip(shown, places, strict=True)
        ],
    }
    target = map_path(collection, source.fingerprint)
    target.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(target, durable=True) as draft:
        draft.write_text(json.dumps(document), encoding="utf-8")
    counts = {name: document[name] for name in ("retriever", "made", "items_in_map", "items_total")}
    return {**counts, "points": len(shown)}


def _map_entries(
    collection: Collection, items: list[Item], retriever: str | None, most: int, seed: int
) -> tuple[list[dict[str, Any]], AnyArray]:
    """Return what the points stand for, and the points, pictures before texts."""
    pictures = dict(zip(*collection.points("image", None, retriever), strict=True))
    first_captions = [item.caption_ids[0] for item in items if item.caption_ids]
    texts = dict(zip(*collection.points("text", first_captions, retriever), strict=True))
    costs = {
        item.id: (item.id in pictures) + (bool(item.caption_ids) and item.caption_ids[0] in texts) for item in items
    }
    chosen = map_sample(items, costs, most, seed)
    with_picture = [item for item in chosen if item.id in pictures]
    with_text = [item for item in chosen if item.caption_ids and item.caption_ids[0] in texts]
    entries = [{"kind": "image", "id": item.id, **_label(item)} for item in with_picture]
    for item in with_text:
        text = item.captions[0] if len(item.captions[0]) <= 200 else item.captions[0][:199] + "…"
        entries.append({"kind": "text", "id": item.id, "caption_id": item.caption_ids[0], "text": text} | _label(item))
    rows = [pictures[item.id] for item in with_picture] + [texts[item.caption_ids[0]] for item in with_text]
    return entries, np.stack(rows) if rows else np.zeros((0, 0), dtype=np.float32)


def _label(item: Item) -> dict[str, str]:
    return {"label": item.labels[0]} if item.labels else {}
