"""Fits from files that may be larger than memory: parts of the rows become moments, here or on a cluster, and merge."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from diptych.arrays import AnyArray
from diptych.cluster import connect, dask_distributed
from diptych.data import FeatureFiles, open_features
from diptych.errors import InvalidInputError
from diptych.models.base import CrossModalModel, check_count
from diptych.models.labels import Targets
from diptych.models.moments import MomentModel, Moments
from diptych.models.registry import model_classes
from diptych.models.semantic.classifier_pair import CorrelatedInputs

Model = TypeVar("Model", bound=CrossModalModel)
Item = TypeVar("Item")
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
    with _work(opened, n_jobs, scheduler, progress or (lambda done, total: None)) as work:
        return _fit(model, opened, work)


class Work(Protocol):
    """Something that reads the parts of files, here or elsewhere."""

    def merged(self, model: MomentModel, classes: AnyArray | None) -> Moments:
        """Return the moments of all rows."""

    def points(self, model: CrossModalModel) -> Iterator[Points]:
        """Yield the points of both sides and the labels, part by part."""


def _fit(model: Model, features: FeatureFiles, work: Work) -> Model:
    if not isinstance(model, (MomentModel, CorrelatedInputs)):
        able = [name for name, cls in model_classes().items() if issubclass(cls, (MomentModel, CorrelatedInputs))]
        raise InvalidInputError(
            f"{type(model).__name__} needs all its rows at once: load them and call fit. From files learn: "
            f"{', '.join(able)}"
        )
    model._check_parameters()
    classes = features.classes() if "labels" in model.needs else None
    if isinstance(model, MomentModel):
        model.fit_moments(work.merged(model, classes))
    else:
        model.correlation_ = _fit(model.new_correlation(), features, work)
        images, texts, labels = (np.concatenate(side) for side in zip(*work.points(model.correlation_), strict=True))
        model._fit_classifiers(images, texts, Targets.from_labels(labels, len(images), classes))
        model._finish_fit(features.n_rows, features.image_width, features.text_width)
    return model


def moments_of_part(model: MomentModel, features: FeatureFiles, part: range, classes: AnyArray | None) -> Moments:
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


def points_of_part(model: CrossModalModel, features: FeatureFiles, part: range) -> Points:
    """Return the points of one part of the rows, and their labels."""
    blocks = [
        (model.encode_images(rows.images), model.encode_texts(rows.texts), np.asarray(rows.labels))
        for rows in features.blocks(part, labels=True)
    ]
    images, texts, labels = (np.concatenate(side) for side in zip(*blocks, strict=True))
    return images, texts, labels


def merge_in_pairs(items: Iterable[Item], merge: Callable[[Item, Item], Item]) -> Item:
    """Merge neighbours, then neighbours of these, and so on: in an order that only their number decides.

    No more than the logarithm of that number waits at once.

    >>> merge_in_pairs("abcdefg", lambda left, right: f"({left}{right})")
    '(((ab)(cd))((ef)g))'
    """
    waiting: list[tuple[int, Item]] = []
    for item in items:
        size = 1
        while waiting and waiting[-1][0] == size:
            item, size = merge(waiting.pop()[1], item), 2 * size
        waiting.append((size, item))
    merged = waiting.pop()[1]
    while waiting:
        merged = merge(waiting.pop()[1], merged)
    return merged


@contextmanager
def _work(features: FeatureFiles, n_jobs: int | None, scheduler: str | None, progress: Progress) -> Iterator[Work]:
    if scheduler is None:
        threads = (os.cpu_count() or 1) if n_jobs is None else check_count("n_jobs", n_jobs)
        yield _LocalWork(features, threads, progress)
        return
    with connect(scheduler) as client:
        yield _ClusterWork(features, client, progress)


@dataclass(frozen=True)
class _LocalWork:
    """Threads of this process."""

    features: FeatureFiles
    n_jobs: int
    progress: Progress

    def merged(self, model: MomentModel, classes: AnyArray | None) -> Moments:
        """Return the moments of all rows."""
        calls = (delayed(moments_of_part)(model, self.features, part, classes) for part in self.features.parts())
        sums: Moments = merge_in_pairs(self._run(calls), Moments.merge)
        return sums

    def points(self, model: CrossModalModel) -> Iterator[Points]:
        """Yield the points of both sides and the labels, part by part."""
        yield from self._run(delayed(points_of_part)(model, self.features, part) for part in self.features.parts())

    def _run(self, calls: Iterable[Any]) -> Iterator[Any]:
        # A thread for each part at work, not for each product: numbers then depend on no number of cores.
        with threadpool_limits(limits=1):
            results = Parallel(n_jobs=self.n_jobs, backend="threading", return_as="generator")(calls)
            for part, result in zip(self.features.parts(), results, strict=True):
                self.progress(part.stop, self.features.n_rows)
                yield result


@dataclass(frozen=True)
class _ClusterWork:
    """Workers of a Dask scheduler; what a worker that dies was doing or holding is done again by others."""

    features: FeatureFiles
    client: Any
    progress: Progress

    def merged(self, model: MomentModel, classes: AnyArray | None) -> Moments:
        """Return the moments of all rows, which meet on the workers."""
        parts = {
            self._submit(moments_of_part, model, self.features, part, classes): part for part in self.features.parts()
        }
        merged = merge_in_pairs(list(parts), lambda left, right: self._submit(Moments.merge, left, right))
        done = 0
        # Sums that have been merged are of no use to anybody, and what is not asked for any more is forgotten.
        for future in dask_distributed().as_completed(list(parts), loop=self.client.loop):
            if future.status == "error":
                raise self._problem(future.exception())
            done += len(parts.pop(future))
            self.progress(done, self.features.n_rows)
        sums: Moments = self._result(merged)
        return sums

    def points(self, model: CrossModalModel) -> Iterator[Points]:
        """Yield the points of both sides and the labels, part by part."""
        # Sent once, and made again where it is lost.
        fitted = self._submit(_itself, model)
        futures = [self._submit(points_of_part, fitted, self.features, part) for part in self.features.parts()]
        for part in self.features.parts():
            yield self._result(futures.pop(0))
            self.progress(part.stop, self.features.n_rows)

    def _submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return self.client.submit(function, *arguments, pure=False)

    def _result(self, future: Any) -> Any:
        error = future.exception()
        if error is not None:
            raise self._problem(error)
        return future.result()

    def _problem(self, error: BaseException) -> BaseException:
        if isinstance(error, dask_distributed().KilledWorker):
            return InvalidInputError(f"workers died one after the other, perhaps for want of memory ({error})")
        return error


def _itself(value: Any) -> Any:
    return value
