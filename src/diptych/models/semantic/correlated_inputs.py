"""Correlation first, abstraction second: classifiers that read points of a correlated subspace."""

from __future__ import annotations

from sklearn.base import clone

from diptych.arrays import FloatArray
from diptych.models.base import CrossModalModel
from diptych.models.correlation.cca import CCA
from diptych.models.semantic.classifier_pair import ClassifierPairModel


class CorrelatedInputs(ClassifierPairModel):
    """Fits ``correlation`` on the pairs and hands its points, not the features, to the classifiers."""

    correlation: CrossModalModel | None
    correlation_: CrossModalModel

    def _fit_inputs(self, images: FloatArray, texts: FloatArray) -> tuple[FloatArray, FloatArray]:
        self.correlation_ = (CCA() if self.correlation is None else clone(self.correlation)).fit(images, texts)
        return self._image_inputs(images), self._text_inputs(texts)

    def _image_inputs(self, images: FloatArray) -> FloatArray:
        return self.correlation_.encode_images(images)

    def _text_inputs(self, texts: FloatArray) -> FloatArray:
        return self.correlation_.encode_texts(texts)
