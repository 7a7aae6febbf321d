"""From points of a space to the plane."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from diptych.arrays import AnyArray, FloatArray
from diptych.space import DIRECTIONS, Space

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

    t-SNE with a start at the two leading principal components. In spaces of inner products and Euclidean distance the
    vectors are compared as the space compares them (unit length for cosine); in others the distances are minus the
    scores, both ways averaged. With fewer than six points the start itself is the answer. ``progress`` is told the
    stages done and may raise to stop.

    van der Maaten and Hinton, "Visualizing data using t-SNE", JMLR 2008; Kobak and Berens, "The art of using t-SNE for
    single-cell transcriptomics", 2019, for the start.

    >>> import numpy as np
    >>> from diptych import Space
    >>> from diptych.service.maps.plane import plane
    >>> plane(Space("euclidean"), np.array([[0.0, 0.0], [2.0, 0.0], [2.0, 1.0]])).shape
    (3, 2)
    """
    is_vector = space.name in _VECTOR_SPACES
    rows = _vectors(space, points) if is_vector else _distances(space, points)
    start = _principal_components(rows) if is_vector else _classical_scaling(rows)
    if len(points) < _FEWEST_FOR_NEIGHBOURS or not start.any():
        return _fitted(start)
    return _fitted(_neighbour_embedding(rows, start, is_vector, seed, progress))


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


def _fitted(places: FloatArray) -> FloatArray:
    """Move and scale places into the unit square, both directions alike, the narrower one in the middle."""
    low, high = places.min(axis=0), places.max(axis=0)
    span = float((high - low).max())
    if span <= 0:
        return np.full(places.shape, 0.5)
    return np.asarray(np.clip((places - (low + high) / 2) / span + 0.5, 0.0, 1.0))
