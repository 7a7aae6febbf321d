"""Methods for click logs, each fitted and scored once, and the weighted sums of their scores."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np

from diptych.arrays import FloatArray, IntArray, row_blocks, unit_rows
from diptych.atomic_files import atomic_write
from diptych.benchmark.click_data import JudgedLists, WebData
from diptych.benchmark.runner import PeakMemory
from diptych.encoders import (
    FeatureCache,
    ImageNetLabels,
    MeanWordVectors,
    TfidfTopics,
    imagenet_labels,
    label_vectors,
    load_word_vectors,
)
from diptych.errors import UnknownNameError
from diptych.estimators import clone
from diptych.metrics import (
    NDCG,
)
from diptych.models import (
    CCA,
    PSI,
    ConSE,
    CoordinateAscent,
    CrossModalModel,
    DeViSE,
    Image2Text,
    ImageAnnotation,
    OnlineClassification,
    Preprocessed,
    QueryBasedScoring,
    Text2Image,
    fuse_scores,
)
from diptych.models.clicks.click_model import ClickModel

Scores = Callable[[Sequence[str], str], FloatArray]
"""Scores queries against the pictures of a part, (queries, pictures); larger is better."""

# Pairs with two clicks and more, as the authors' released code takes them; few passes, since the log is small.
_TRAINING: dict[str, Any] = {"min_clicks": 2.0, "epochs": 6}
_REVISION = 2
_DEVELOPMENT = "captions"


@dataclass(frozen=True)
class WebScorer:
    """How a method learns from the data with one kind of image features.

    ``settings`` tell it from others of its kind, as plain values.
    """

    settings: Mapping[str, Any]
    fit: Callable[[WebData, str], Scores]


def click_scorer(model: ClickModel) -> WebScorer:
    """Return what fits a click model on the log."""

    def fit(data: WebData, feature: str) -> Scores:
        fitted: ClickModel = clone(model).fit_clicks(data.log, data.logged(feature))
        return lambda queries, part: fitted.scores(list(queries), data.features[feature][part])

    return WebScorer({"model": type(model).__name__, **model.get_params()}, fit)


def conse_scorer() -> WebScorer:
    """Return ConSE: a picture is the mean vector of its ten likeliest ImageNet labels, a query that of its words.

    The network's own classifier makes probabilities of its features, so no picture is read again, and nothing learned.
    """

    def fit(data: WebData, feature: str) -> Scores:
        table = load_word_vectors()
        words, labels = MeanWordVectors(vectors=table), ImageNetLabels(network=feature)
        vectors, _ = label_vectors([label.lemmas[0] for label in imagenet_labels()], table)
        some = labels.probabilities(data.features[feature]["dev"][:2])
        model = ConSE(label_vectors=vectors).fit(some, vectors[: len(some)])

        def scores(queries: Sequence[str], part: str) -> FloatArray:
            probabilities = labels.probabilities(data.features[feature][part])
            return model.similarity(probabilities, words.transform(list(queries))).T

        return scores

    return WebScorer({"model": "ConSE", "n_labels": 10, "vectors": "auto"}, fit)


def retriever_scorer() -> WebScorer:
    """Return CCA of the training pictures and their whole captions, as a retriever starts with."""
    unfitted = Preprocessed(model=CCA(n_components=256, regularization=1.0, weight_power=0.5), images="l2")

    def fit(data: WebData, feature: str) -> Scores:
        cache, train = FeatureCache(), data.splits.train
        texts = cache.encode(data.text_encoder, list(train.texts))
        model = clone(unfitted).fit(data.features[feature]["train"][train.owners], texts)

        def scores(queries: Sequence[str], part: str) -> FloatArray:
            asked = cache.encode(data.text_encoder, list(queries))
            similarity: FloatArray = model.similarity(data.features[feature][part], asked)
            return similarity.T

        return scores

    parameters = unfitted.get_params().items()
    settings = {key: value for key, value in parameters if not isinstance(value, CrossModalModel)}
    return WebScorer(settings, fit)


def clicked_cca_scorer() -> WebScorer:
    """Return CCA of the log alone: clicked pictures and topics of the words that they were clicked for."""
    words = TfidfTopics(n_components=256)
    model = CCA(n_components=256, regularization=1.0, weight_power=0.5)

    def fit(data: WebData, feature: str) -> Scores:
        log, images = data.log, unit_rows(data.logged(feature))
        encoder = clone(words).fit(list(log.queries))
        texts = encoder.transform(list(log.queries))
        pairs = np.flatnonzero(log.clicks >= _TRAINING["min_clicks"])
        fitted = clone(model)
        blocks = [pairs[rows] for rows in row_blocks(len(pairs))]
        sums = (fitted.moments(images[log.image_ids[rows]], texts[log.query_ids[rows]]) for rows in blocks)
        fitted.fit_moments(reduce(lambda one, other: one.merge(other), sums))

        def scores(queries: Sequence[str], part: str) -> FloatArray:
            asked = encoder.transform(list(queries))
            similarity: FloatArray = fitted.similarity(unit_rows(data.features[feature][part]), asked)
            return similarity.T

        return scores

    return WebScorer({"model": "CCA of clicks", **model.get_params(), **words.get_params()}, fit)


@dataclass(frozen=True)
class WebMethod:
    """A method, and whether it is a part of the fusions."""

    name: str
    scorer: WebScorer
    is_fused: bool = True


def web_methods() -> dict[str, WebMethod]:
    """Return every method of the comparison by its name.

    Fusions are of the paper's methods that learn from the log: without ConSE they do better on the development part.
    """
    methods = (
        WebMethod("image2text", click_scorer(Image2Text())),
        WebMethod("image-annotation", click_scorer(ImageAnnotation()), False),
        WebMethod("text2image", click_scorer(Text2Image())),
        WebMethod("query-based-scoring", click_scorer(QueryBasedScoring()), False),
        WebMethod("online-classification", click_scorer(OnlineClassification()), False),
        WebMethod("psi", click_scorer(PSI(**_TRAINING))),
        WebMethod("devise", click_scorer(DeViSE(**_TRAINING))),
        WebMethod("conse", conse_scorer(), False),
        WebMethod("cca", clicked_cca_scorer(), False),
        WebMethod("retriever", retriever_scorer(), False),
    )
    return {method.name: method for method in methods}


@dataclass(frozen=True, eq=False)
class WebRun:
    """The scores a method gives to every list, and what learning and scoring cost; seconds are of processor time."""

    method: str
    feature: str
    scores: Mapping[str, FloatArray]
    fit_seconds: float
    fit_megabytes: float
    test_seconds: float
    test_megabytes: float


def measure_run(data: WebData, method: WebMethod, feature: str, folder: Path | None = None) -> WebRun:
    """Fit and score, or read what an earlier run of the same settings on the same data left in ``folder``."""
    settings = method.scorer.settings
    file = None if folder is None else folder / f"{method.name}-{feature}-{_digest(data, settings, feature)}.npz"
    if file is not None and file.is_file():
        return _read(file, method.name, feature)
    start = time.process_time()
    with PeakMemory() as fitting:
        fitted_scores = method.scorer.fit(data, feature)
    fitted = time.process_time()
    with PeakMemory() as testing:
        scores = {
            name: np.asarray(fitted_scores(lists.queries, part), dtype=np.float32)
            for name, (lists, part) in data.every_list().items()
        }
    costs = (fitted - start, fitting.megabytes, time.process_time() - fitted, testing.megabytes)
    run = WebRun(method.name, feature, scores, *costs)
    if file is not None:
        _write(file, run, costs)
    return run


def _digest(data: WebData, settings: Mapping[str, object], feature: str) -> str:
    """Return a name for everything the scores depend on."""
    plain = json.dumps({name: repr(value) for name, value in settings.items()}, sort_keys=True)
    digest = hashlib.sha256(f"{_REVISION} {feature} {plain}".encode())
    for array in (data.log.query_ids, data.log.image_ids, data.log.clicks):
        digest.update(array.tobytes())
    digest.update("\n".join(data.log.queries).encode())
    for lists, part in data.every_list().values():
        digest.update("\n".join(lists.queries).encode())
        digest.update(data.features[feature][part].tobytes())
    return digest.hexdigest()[:24]


def _read(file: Path, method: str, feature: str) -> WebRun:
    with np.load(file, allow_pickle=False) as stored:
        scores = {name.removeprefix("scores/"): stored[name] for name in stored.files if name.startswith("scores/")}
        return WebRun(method, feature, scores, *stored["costs"].tolist())


def _write(file: Path, run: WebRun, costs: tuple[float, ...]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, Any] = {f"scores/{name}": values for name, values in run.scores.items()}
    with atomic_write(file) as draft, draft.open("wb") as stream:
        np.savez(stream, costs=np.array(costs), **arrays)


@dataclass(frozen=True, eq=False)
class FusedRuns:
    """A weighted sum of standardised scores: each part's scores of a list have mean 0 and deviation 1.

    Dong et al. (2018) put scores through a sigmoid; z-scores, which that equation leaves to the reader, keep parts of
    different scales comparable.
    """

    parts: tuple[WebRun, ...]
    weights: FloatArray

    @classmethod
    def average(cls, parts: Sequence[WebRun]) -> FusedRuns:
        """Return the fusion with equal weights."""
        return cls(tuple(parts), np.full(len(parts), 1 / len(parts)))

    @classmethod
    def learned(
        cls,
        parts: Sequence[WebRun],
        development: JudgedLists,
        queries: IntArray | None = None,
        *,
        restarts: int = 2,
        trials: int = 12,
        seed: int = 0,
    ) -> FusedRuns:
        """Return the fusion whose weights coordinate ascent finds on queries of the development part."""
        standard = [fuse_scores([part.scores[_DEVELOPMENT]], rescale="zscore") for part in parts]
        chosen = np.arange(len(development.queries)) if queries is None else queries
        scores, grades = [], []
        for query in chosen.tolist():
            columns, own = development.candidates(query)
            scores.append(np.stack([part[query, columns] for part in standard]))
            grades.append(own)
        ascent = CoordinateAscent(measure=NDCG(), restarts=restarts, trials=trials, random_state=seed).fit(
            scores, grades
        )
        return cls(tuple(parts), ascent.weights_)

    def scores(self, name: str) -> FloatArray:
        """Return the fused scores of a list."""
        return fuse_scores([part.scores[name] for part in self.parts], self.weights, rescale="zscore")

    @property
    def shares(self) -> Mapping[str, float]:
        """The weight of each part by its name."""
        names = (f"{part.method} {part.feature}" for part in self.parts)
        return dict(zip(names, self.weights.tolist(), strict=True))


def chosen_methods(names: Collection[str] | None) -> list[WebMethod]:
    """Return the methods of these names, all without any; a typo gets a suggestion."""
    known = web_methods()
    for name in names or ():
        if name not in known:
            raise UnknownNameError("method of the click benchmark", name, known)
    return [method for name, method in known.items() if not names or name in names]
