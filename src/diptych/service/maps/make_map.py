"""A map of a collection, made and kept."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np

from diptych.arrays import AnyArray
from diptych.collection import Collection, Item
from diptych.service.maps.map_file import write_map
from diptych.service.maps.map_sample import map_sample
from diptych.service.maps.plane import Progress, plane

_MOST_CHARACTERS = 200


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
    default the active one. ``progress`` is told how much is done of how much, and stops the work by raising.

    The result counts items and points; :func:`read_map` returns the map itself.
    """
    source = collection.retriever if retriever is None else collection.retriever_named(retriever)
    fingerprint = source.fingerprint
    items = collection.items()
    made = datetime.now(UTC).isoformat(timespec="seconds")
    shown, points = _shown(collection, items, retriever, most, seed)
    places = plane(source.space, points, seed=seed, progress=progress) if len(points) else np.zeros((0, 2))
    document = {
        "retriever": retriever or source.name,
        "fingerprint": fingerprint,
        "made": made,
        "items_in_map": len({entry["id"] for entry in shown}),
        "items_total": len(items),
        "newest_ns": max((item.updated_ns for item in items), default=0),
        "points": [
            {"x": round(float(x), 5), "y": round(float(y), 5), **entry}
            for entry, (x, y) in zip(shown, places, strict=True)
        ],
    }
    write_map(collection, fingerprint, document)
    return {name: document[name] for name in ("retriever", "made", "items_in_map", "items_total")} | {
        "points": len(shown)
    }


def _shown(
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
    entries += [
        {"kind": "text", "id": item.id, "caption_id": item.caption_ids[0], "text": _short(item.captions[0])}
        | _label(item)
        for item in with_text
    ]
    rows = [pictures[item.id] for item in with_picture] + [texts[item.caption_ids[0]] for item in with_text]
    return entries, np.stack(rows) if rows else np.zeros((0, 0), dtype=np.float32)


def _label(item: Item) -> dict[str, str]:
    return {"label": item.labels[0]} if item.labels else {}


def _short(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else text[: _MOST_CHARACTERS - 1] + "…"
