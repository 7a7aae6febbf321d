"""The shape that semantic methods share: one classifier a side, points are class probabilities."""

from __future__ import annotations

import numpy as np

from diptych.arrays import AnyArray, FloatArray
from diptych.models.base import CrossModalModel
from diptych.models.labels import Targets
from diptych.models.parameters import check_choice, check_count, check_number
from diptych.models.semantic.logistic import Loss, fit_logistic, predict_logistic


class ClassifierPairModel(CrossModalModel):
    """Two logistic regressions on the same classes; a subclass chooses inputs, normalisation and space."""

    C: float
    loss: Loss
    max_iter: int
    tol: float

    classes_: AnyArray
    multilabel_: bool
    image_weights_: FloatArray
    image_intercepts_: FloatArray
    text_weights_: FloatArray
    text_intercepts_: FloatArray

    def _fit(self, images: FloatArray, texts: FloatArray, targets: Targets | None) -> None:
        check_number("C", self.C, low=0, open_low=True)
        check_choice("loss", self.loss, ("softmax", "ovr"))
        check_count("max_iter", self.max_iter)
        check_number("tol", self.tol, low=0, open_low=True)
        assert targets is not None, "the base class has checked that labels were given"
        images, texts = self._fit_inputs(images, texts)
        wanted = targets.distribution if self.loss == "softmax" else targets.indicator
        rows = targets.labelled
        everything = len(rows) == len(images)
        for side, features in (("image", images), ("text", texts)):
            weights, intercepts = fit_logistic(
                features if everything else features[rows],
                wanted if everything else wanted[rows],
                C=self.C,
                loss=self.loss,
                max_iter=self.max_iter,
                tol=self.tol,
            )
            setattr(self, f"{side}_weights_", weights)
            setattr(self, f"{side}_intercepts_", intercepts)
        self.classes_, self.multilabel_ = targets.classes, targets.multilabel

    def _encode_images(self, images: FloatArray) -> FloatArray:
        inputs = self._image_inputs(images)
        return self._finish(predict_logistic(inputs, self.image_weights_, self.image_intercepts_, loss=self.loss))

    def _encode_texts(self, texts: FloatArray) -> FloatArray:
        inputs = self._text_inputs(texts)
        return self._finish(predict_logistic(inputs, self.text_weights_, self.text_intercepts_, loss=self.loss))

    def _fit_inputs(self, images: FloatArray, texts: FloatArray) -> tuple[FloatArray, FloatArray]:
        return images, texts

    def _image_inputs(self, images: FloatArray) -> FloatArray:
        return images

    def _text_inputs(self, texts: FloatArray) -> FloatArray:
        return texts

    def _finish(self, probabilities: FloatArray) -> FloatArray:
        return probabilities


def as_distribution(probabilities: FloatArray) -> FloatArray:
    """Scale rows to sum to one; a row of zeros becomes uniform."""
    totals = probabilities.sum(axis=1, keepdims=True)
    uniform = 1 / probabilities.shape[1]
    return np.where(totals > 0, probabilities / np.where(totals > 0, totals, 1), uniform).astype(probabilities.dtype)
