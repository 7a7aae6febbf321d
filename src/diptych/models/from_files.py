"""Fits from files that may be larger than memory: parts of the rows become moments, here or on a cluster, and merge."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from diptych.arrays import AnyArray
from diptych.cluster import Workers, merge_in_pairs, open_workers
from diptych.data import FeatureFiles, open_features
from diptych.errors import InvalidInputError
from diptych.models.base import CrossModalModel
from diptych.models.labels import Targets
from diptych.models.moments import MomentModel, Moments
from diptych.models.parameters import check_count
from diptych.models.registry import model_classes
from diptych.models.semantic.classifier_pair import CorrelatedInputs

Model = TypeVar("Model", bound=CrossModalModel)
Progress = Callable[[int, int], None]
Points = tuple[AnyArray, AnyArray, AnyArray]


def fit_from_files(
    model: Model,
    features: FeatureFiles | str | os.PathLike[str],
    *,
    n_jobs: int | None = None,
    scheduler: str | None = None,
    progress: Progress | None = None,
) -> Model:
    """Fit a method on features in files without loading them, and return it.

    Methods that know their rows by moments (`MomentModel`) read the files once. `SCM` and `MarginalSCM` read them
    twice; the points in the subspace of their correlation and the labels are then all that is held of every row. The
    result is that of ``fit`` on the same rows to rounding: that of float64, or of float32 for rows of float32.

    The same parts are summed and merged in the same order by threads of this process and by the workers of a cluster,
    however many there are and whatever becomes of them: the result is the same to the last bit on equal machines.

    Parameters
    ----------
    model : CrossModalModel
        The method; it is fitted in place, as by ``fit``.
    features : FeatureFiles or path
        What `open_features` opens.
    n_jobs : int or None
        Threads; None takes one per core. Each holds one block of rows and one set of moments.
    scheduler : str or None
        Address of a Dask scheduler, such as tcp://host:8786, whose workers see the same files under the same names.
    progress : callable or None
        Called with (rows done, rows in all) after each part, anew for each reading of the files.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from diptych.models import CCA, fit_from_files
    >>> rng = np.random.default_rng(0)
    >>> texts = rng.normal(size=(200, 3))
    >>> images = texts @ rng.normal(size=(3, 5)) + rng.normal(size=(200, 5))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/images.npy", images)
    ...     np.save(f"{folder}/texts.npy", texts)
    ...     model = fit_from_files(CCA(n_components=2), folder)
    >>> bool(np.allclose(model.correlations_, CCA(n_components=2).fit(images, texts).correlations_, rtol=1e-10))
    True
    """
    opened = features if isinstance(features, FeatureFiles) else open_features(features)
    n_threads = (os.cpu_count() or 1) if n_jobs is None else check_count("n_jobs", n_jobs)
    with open_workers(scheduler, n_threads) as workers:
        return _fit(model, opened, workers, progress or (lambda done, total: None))


def _fit(model: Model, features: FeatureFiles, workers: Workers, progress: Progress) -> Model:
    if not isinstance(model, (MomentModel, CorrelatedInputs)):
        able = [name for name, cls in model_classes().items() if issubclass(cls, (MomentModel, CorrelatedInputs))]
        raise InvalidInputError(
            f"{type(model).__name__} needs all its rows at once: load them and call fit. From files learn: "
            f"{', '.join(able)}"
        )
    model._check_parameters()
    classes = features.classes() if "labels" in model.needs else None
    if isinstance(model, MomentModel):
        model.fit_moments(_moments(model, features, classes, workers, progress))
    else:
        model.correlation_ = _fit(model.new_correlation(), features, workers, progress)
        images, texts, labels = _points(model.correlation_, features, workers, progress)
        model._fit_classifiers(images, texts, Targets.from_labels(labels, len(images), classes))
        model._finish_fit(features.n_rows, features.image_width, features.text_width)
    return model


def _moments(
    model: MomentModel, features: FeatureFiles, classes: AnyArray | None, workers: Workers, progress: Progress
) -> Moments:
    done = 0

    def count(part: range) -> None:
        nonlocal done
        done += len(part)
        progress(done, features.n_rows)

    # A thread for each part at work, not for each product: numbers then depend on no number of cores.
    with threadpool_limits(limits=1):
        return workers.merged(
            moments_of_part, features.parts(), model, features, classes, merge=Moments.merge, done=count
        )


def _points(model: CrossModalModel, features: FeatureFiles, workers: Workers, progress: Progress) -> Points:
    parts, found = features.parts(), []
    with threadpool_limits(limits=1):
        for part, points in zip(parts, workers.map(points_of_part, parts, model, features), strict=True):
            progress(part.stop, features.n_rows)
            found.append(points)
    images, texts, labels = (np.concatenate(side) for side in zip(*found, strict=True))
    return images, texts, labels


def moments_of_part(part: range, model: MomentModel, features: FeatureFiles, classes: AnyArray | None) -> Moments:
    """Sum one part of the rows."""
    return merge_in_pairs(
        (
            model._moments(
                rows.images,
                rows.texts,
                None if rows.labels is None else Targets.from_labels(rows.labels, len(rows.images), classes),
            )
            for rows in features.blocks(part, labels=classes is not None)
        ),
        Moments.merge,
    )


def points_of_part(part: range, model: CrossModalModel, features: FeatureFiles) -> Points:
    """Return the points of one part of the rows, and their labels."""
    blocks = [
        (model.encode_images(rows.images), model.encode_texts(rows.texts), np.asarray(rows.labels))
        for rows in features.blocks(part, labels=True)
    ]
    images, texts, labels = (np.concatenate(side) for side in zip(*blocks, strict=True))
    return images, texts, labels
