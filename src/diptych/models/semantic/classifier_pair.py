"""What semantic methods share: one classifier a side, points that are class probabilities, and logistic regression."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import scipy

from diptych.arrays import AnyArray, FloatArray, map_rows, row_blocks
from diptych.estimators import clone, scikit_learn
from diptych.models.base import CrossModalModel, Side
from diptych.models.correlation.cca import CCA
from diptych.models.labels import Targets

Loss = Literal["softmax", "ovr"]


def fit_logistic(
    rows: FloatArray, targets: FloatArray, *, C: float, loss: Loss, max_iter: int, tol: float
) -> tuple[FloatArray, FloatArray]:
    """Return (weights, intercepts) that minimise  Σᵢ ℓ(yᵢ, xᵢW + b) + ‖W‖²/(2C).

    ``softmax``: ℓ is the cross-entropy of the target distribution. ``ovr``: ℓ sums one binary cross-entropy per class.
    Features are centred internally, which changes nothing but the conditioning, because intercepts are not penalised.
    """
    n_rows, n_features, n_classes = len(rows), rows.shape[1], targets.shape[1]
    mean = rows.mean(axis=0, dtype=np.float64)
    # One unit for all features makes the stopping rule independent of their scale: X W = (X/s)(sW), ‖W‖² = ‖sW‖²/s².
    unit = _spread(rows, mean)
    penalty = 1 / (C * unit**2)

    def objective(flat: FloatArray) -> tuple[float, FloatArray]:
        scaled, intercepts = _unflatten(flat, n_features, n_classes)
        weights = scaled / unit
        kernel, bias = weights.astype(rows.dtype, copy=False), intercepts - mean @ weights
        value = penalty * float((scaled**2).sum()) / 2
        gradient, bias_gradient = np.zeros_like(scaled), np.zeros(n_classes)
        for block in row_blocks(n_rows):
            loss_value, residual = _LOSSES[loss](rows[block] @ kernel + bias, targets[block])
            value += loss_value
            gradient += rows[block].T @ residual.astype(rows.dtype, copy=False)
            bias_gradient += residual.sum(axis=0)
        # The features are centred by algebra, not by a copy: (X − 1mᵀ)ᵀR = XᵀR − m(1ᵀR).
        gradient = (gradient - np.outer(mean, bias_gradient)) / unit + penalty * scaled
        return value / n_rows, np.concatenate([gradient.ravel(), bias_gradient]) / n_rows

    start = np.zeros((n_features + 1) * n_classes)
    options = {"maxiter": max_iter, "gtol": tol, "ftol": 64 * np.finfo(float).eps, "maxcor": 20}
    solution = scipy.optimize.minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
    if solution.nit >= max_iter:
        warnings.warn(
            f"logistic regression stopped after {max_iter} iterations before it converged; raise max_iter, "
            "lower C or scale the features",
            scikit_learn("sklearn.exceptions").ConvergenceWarning,
            stacklevel=2,
        )
    scaled, intercepts = _unflatten(solution.x, n_features, n_classes)
    weights = scaled / unit
    return weights, intercepts - mean @ weights


def _spread(rows: FloatArray, mean: FloatArray) -> float:
    """Return the root mean square of the centred features, 1 when they are constant."""
    total = sum(float(((rows[block] - mean) ** 2).sum()) for block in row_blocks(len(rows)))
    return float(np.sqrt(total / rows.size)) or 1.0


def predict_logistic(rows: FloatArray, weights: FloatArray, intercepts: FloatArray, *, loss: Loss) -> FloatArray:
    """Return class probabilities: they sum to one for ``softmax``, each stands alone for ``ovr``."""
    kernel, bias = weights.astype(rows.dtype, copy=False), intercepts.astype(rows.dtype, copy=False)
    function = partial(scipy.special.softmax, axis=1) if loss == "softmax" else scipy.special.expit
    return map_rows(lambda block: function(block @ kernel + bias), rows, weights.shape[1])


def _unflatten(flat: FloatArray, n_features: int, n_classes: int) -> tuple[FloatArray, FloatArray]:
    return flat[: n_features * n_classes].reshape(n_features, n_classes), flat[n_features * n_classes :]


def _softmax_loss(scores: FloatArray, targets: FloatArray) -> tuple[float, FloatArray]:
    scores = scores - scores.max(axis=1, keepdims=True)
    shares = np.exp(scores)
    partition = shares.sum(axis=1, keepdims=True)
    return float(np.log(partition).sum() - (targets * scores).sum()), shares / partition - targets


def _ovr_loss(scores: FloatArray, targets: FloatArray) -> tuple[float, FloatArray]:
    return float((np.logaddexp(0, scores) - targets * scores).sum()), scipy.special.expit(scores) - targets


_LOSSES = {"softmax": _softmax_loss, "ovr": _ovr_loss}


class ClassifierPairModel(CrossModalModel):
    """Two logistic regressions on the same classes; a subclass chooses inputs, normalisation and space."""

    C: float
    loss: Loss
    max_iter: int
    tol: float

    classes_: AnyArray
    multilabel_: bool

    def _fit(self, images: FloatArray, texts: FloatArray, targets: Targets) -> None:
        self._fit_classifiers(*self._fit_inputs(images, texts), targets)

    def _fit_classifiers(self, images: FloatArray, texts: FloatArray, targets: Targets) -> None:
        images, texts, targets = targets.with_labels_only(images, texts)
        wanted = targets.distribution if self.loss == "softmax" else targets.indicator
        fit = partial(fit_logistic, C=self.C, loss=self.loss, max_iter=self.max_iter, tol=self.tol)
        for side, features in (("image", images), ("text", texts)):
            weights, intercepts = fit(features, wanted)
            setattr(self, f"{side}_weights_", weights)
            setattr(self, f"{side}_intercepts_", intercepts)
        self.classes_, self.multilabel_ = targets.classes, targets.multilabel

    def _encode_side(self, side: Side, rows: FloatArray) -> FloatArray:
        weights, intercepts = self._of_side(side, "weights", "intercepts")
        return self._finish(predict_logistic(self._inputs(side, rows), weights, intercepts, loss=self.loss))

    def _fit_inputs(self, images: FloatArray, texts: FloatArray) -> tuple[FloatArray, FloatArray]:
        return images, texts

    def _inputs(self, side: Side, rows: FloatArray) -> FloatArray:
        return rows

    def _finish(self, probabilities: FloatArray) -> FloatArray:
        return probabilities


def as_distribution(probabilities: FloatArray) -> FloatArray:
    """Scale rows to sum to one; a row of zeros becomes uniform."""
    totals = probabilities.sum(axis=1, keepdims=True)
    uniform = 1 / probabilities.shape[1]
    return np.where(totals > 0, probabilities / np.where(totals > 0, totals, 1), uniform).astype(probabilities.dtype)


@dataclass(kw_only=True, eq=False, repr=False)
class CorrelatedInputs(ClassifierPairModel):
    """Fits ``correlation`` on the pairs and hands its points, not the features, to the classifiers."""

    correlation: CrossModalModel | None = None

    def new_correlation(self) -> CrossModalModel:
        """Return the correlation method, not fitted yet."""
        unfitted: CrossModalModel = CCA() if self.correlation is None else clone(self.correlation)
        return unfitted

    def _fit_inputs(self, images: FloatArray, texts: FloatArray) -> tuple[FloatArray, FloatArray]:
        self.correlation_ = self.new_correlation().fit(images, texts)
        return self._inputs("image", images), self._inputs("text", texts)

    def _inputs(self, side: Side, rows: FloatArray) -> FloatArray:
        return self.correlation_.encode_images(rows) if side == "image" else self.correlation_.encode_texts(rows)
