"""Maps of collections: pictures and captions of the common space in the plane."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from diptych.arrays import AnyArray, FloatArray
from diptych.atomic_files import atomic_write
from diptych.collection import Collection, Item
from diptych.space import Space

MAX_POINTS = 3000
MAX_TEXT = 200
PERPLEXITY = 30.0
MIN_POINTS_FOR_NEIGHBOURS = 6
START_SPREAD = 1e-4


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


def plane(space: Space, points: AnyArray, *, seed: int = 0) -> FloatArray:
    """Return a place (x, y) from 0 to 1 for each point, so that neighbours of the space are neighbours there.

    t-SNE on minus the scores, both ways averaged, with a start at the two leading principal components, which is the
    answer itself for fewer than six points.

    van der Maaten and Hinton, "Visualizing data using t-SNE", JMLR 2008; Kobak and Berens, "The art of using t-SNE for
    single-cell transcriptomics", 2019, for the start.

    >>> import numpy as np
    >>> from diptych import Space
    >>> from diptych.service.maps import plane
    >>> plane(Space("euclidean"), np.array([[0.0, 0.0], [2.0, 0.0], [2.0, 1.0]])).shape
    (3, 2)
    """
    # Imported lazily: reading a map does not need it.
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE

    if space.name == "corrected":
        # Pictures and texts have their places by what they show, not by their corrections.
        space, points = Space("euclidean"), points[:, :-2]
    distances = _distances(space, points)
    # Rounding leaves something of points that are all the same.
    if len(distances) < 2 or float(np.ptp(distances)) <= 1e-6:
        return np.full((len(distances), 2), 0.5)
    places: FloatArray = PCA(2, random_state=seed).fit_transform(distances)
    if len(distances) >= MIN_POINTS_FOR_NEIGHBOURS:
        embedding = TSNE(
            perplexity=min(PERPLEXITY, (len(distances) - 1) / 3),
            metric="precomputed",
            init=(places / places.std() * START_SPREAD).astype(np.float32),
            random_state=seed,
            n_jobs=1,
        )
        places = np.asarray(embedding.fit_transform(distances), dtype=np.float64)
    low, high = places.min(axis=0), places.max(axis=0)
    # Both directions are scaled alike, the narrower one stands in the middle.
    return np.asarray(np.clip((places - (low + high) / 2) / float((high - low).max()) + 0.5, 0.0, 1.0))


def _distances(space: Space, points: AnyArray) -> FloatArray:
    """Return minus the scores, averaged over both ways to ask, from 0 up."""
    distances: FloatArray = np.zeros((len(points), len(points)), dtype=np.float32)
    for rows, scores in space.blocks(points, points):
        distances[rows] = -scores
    distances = np.asarray((distances + distances.T) / 2)
    np.fill_diagonal(distances, distances.min(initial=0.0))
    return np.asarray(distances - distances.min(initial=0.0))


def make_map(
    collection: Collection, *, retriever: str | None = None, most: int = MAX_POINTS, seed: int = 0
) -> dict[str, Any]:
    """Lay pictures and captions of the common space out in the plane, keep the map, and return what it holds.

    As in figure 5 of Zhang et al. (MNiL): what lies near each other in the space lies near each other on the map,
    pictures and texts alike. Each item brings its picture and its first caption; ``most`` bounds the number of points,
    and of a larger collection items are drawn at random. ``retriever`` names the one whose points are shown, by
    default the active one.
    """
    source = collection.retriever_named(retriever)
    items = collection.items()
    shown, points = _map_entries(collection, items, retriever, most, seed)
    places = plane(source.space, points, seed=seed).round(5).tolist() if len(points) else []
    counts = {
        "retriever": retriever or source.name,
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "items_in_map": len({entry["id"] for entry in shown}),
        "items_total": len(items),
    }
    newest = max((item.updated_ns for item in items), default=0)
    laid_out = [{"x": x, "y": y, **entry} for entry, (x, y) in zip(shown, places, strict=True)]
    target = map_path(collection, source.fingerprint)
    target.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(target, durable=True) as draft:
        draft.write_text(json.dumps({**counts, "newest_ns": newest, "points": laid_out}), encoding="utf-8")
    return {**counts, "points": len(shown)}


def _map_entries(
    collection: Collection, items: list[Item], retriever: str | None, most: int, seed: int
) -> tuple[list[dict[str, Any]], AnyArray]:
    """Return what the points stand for, and the points, pictures before texts."""
    pictures = dict(zip(*collection.points("image", None, retriever), strict=True))
    first_captions = {item.id: item.caption_ids[0] for item in items if item.caption_ids}
    texts = dict(zip(*collection.points("text", list(first_captions.values()), retriever), strict=True))
    usable = [item for item in items if item.id in pictures or first_captions.get(item.id) in texts]
    if len(pictures) + len(texts) > most:
        drawn = np.random.default_rng(seed).permutation(len(usable))[: max(1, most // 2)]
        usable = [usable[place] for place in sorted(drawn.tolist())]
    entries, rows = [], []
    for item in usable:
        if item.id in pictures:
            entries.append({"kind": "image", "id": item.id, **_label(item)})
            rows.append(pictures[item.id])
    for item in usable:
        if (caption := first_captions.get(item.id)) in texts:
            text = item.captions[0] if len(item.captions[0]) <= MAX_TEXT else item.captions[0][: MAX_TEXT - 1] + "…"
            entries.append({"kind": "text", "id": item.id, "caption_id": caption, "text": text, **_label(item)})
            rows.append(texts[caption])
    return entries, np.stack(rows) if rows else np.zeros((0, 0), dtype=np.float32)


def _label(item: Item) -> dict[str, str]:
    return {"label": item.labels[0]} if item.labels else {}
