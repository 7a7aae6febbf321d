"""Maps of collections: pictures and captions of the common space in the plane."""

from __future__ import annotations

import json
from collections.abc import Callable
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
    """Return True if a map has been made."""
    return map_path(collection, fingerprint).is_file()


def read_map(collection: Collection, fingerprint: str) -> dict[str, Any] | None:
    """Return a map as it was made, or None where there is none that can be read."""
    try:
        document = json.loads(map_path(collection, fingerprint).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return document if isinstance(document, dict) and isinstance(document.get("points"), list) else None


Progress = Callable[[int, int], None]
_PERPLEXITY = 30.0
_MIN_POINTS_FOR_NEIGHBOURS = 6
_START_SPREAD = 1e-4
_VECTOR_SPACES = ("cosine", "pearson", "covariance", "dot", "euclidean")


def plane(space: Space, points: AnyArray, *, seed: int = 0) -> FloatArray:
    """Return a place (x, y) from 0 to 1 for each point, so that neighbours of the space are neighbours there.

    t-SNE with a start at the two leading principal components, which is the answer itself for fewer than six points. In
    spaces of inner products and Euclidean distance the vectors are compared as the space compares them; in others the
    distances are minus the scores, both ways averaged.

    van der Maaten and Hinton, "Visualizing data using t-SNE", JMLR 2008; Kobak and Berens, "The art of using t-SNE for
    single-cell transcriptomics", 2019, for the start.

    >>> import numpy as np
    >>> from diptych import Space
    >>> from diptych.service.maps import plane
    >>> plane(Space("euclidean"), np.array([[0.0, 0.0], [2.0, 0.0], [2.0, 1.0]])).shape
    (3, 2)
    """
    # Imported here: reading a map does not need it.
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE

    if space.name == "corrected":
        # Pictures and texts have their places by what they show, not by their corrections.
        space, points = Space("dot"), points[:, :-2]
    is_vector = space.name in _VECTOR_SPACES
    rows = _vectors(space, points) if is_vector else _distances(space, points)
    # Rounding leaves something of points that are all the same.
    if len(rows) < 2 or float(np.ptp(rows, axis=0).max()) <= 1e-6 * float(np.abs(rows).max()):
        return np.full((len(rows), 2), 0.5)
    # A column of zeros, because there may be one alone.
    places: FloatArray = PCA(2, random_state=seed).fit_transform(np.pad(rows, ((0, 0), (0, 1))))
    if len(rows) >= _MIN_POINTS_FOR_NEIGHBOURS:
        embedding = TSNE(
            perplexity=min(_PERPLEXITY, (len(rows) - 1) / 3),
            metric="euclidean" if is_vector else "precomputed",
            init=(places / places.std() * _START_SPREAD).astype(np.float32),
            random_state=seed,
            n_jobs=1,
        )
        places = np.asarray(embedding.fit_transform(rows), dtype=np.float64)
    return _fit_to_square(places)


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


def _fit_to_square(places: FloatArray) -> FloatArray:
    """Move and scale places into the unit square, both directions alike, the narrower one in the middle."""
    low, high = places.min(axis=0), places.max(axis=0)
    span = float((high - low).max())
    return np.asarray(np.clip((places - (low + high) / 2) / span + 0.5, 0.0, 1.0))


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
    and of a larger collection items are drawn at random. ``retriever`` names the one whose points are shown, by
    default the active one. ``progress`` is told how much is done of how much, and stops the work by raising. The result
    counts items and points; :func:`read_map` returns the map itself.
    """
    source = collection.retriever if retriever is None else collection.retriever_named(retriever)
    items = collection.items()
    made = datetime.now(UTC).isoformat(timespec="seconds")
    shown, points = _map_entries(collection, items, retriever, most, seed)
    if progress is not None:
        progress(0, 1)
    places = plane(source.space, points, seed=seed) if len(points) else np.zeros((0, 2))
    if progress is not None:
        progress(1, 1)
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
    usable = [item for item in items if item.id in pictures or (item.caption_ids and item.caption_ids[0] in texts)]
    n_shown = min(len(usable), max(1, most // 2)) if len(pictures) + len(texts) > most else len(usable)
    drawn = set(np.random.default_rng(seed).permutation(len(usable))[:n_shown].tolist())
    chosen = [item for place, item in enumerate(usable) if place in drawn]
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
