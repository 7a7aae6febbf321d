"""What all hashing methods share: a number of bits, real outputs before the sign, packed codes after it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from diptych.arrays import FloatArray
from diptych.codes import pack_signs
from diptych.models.base import CrossModalModel, Side
from diptych.models.hashing._solvers import KernelBasis, fit_kernel_logistic
from diptych.models.linear import project
from diptych.models.parameters import Count
from diptych.space import Space

# Eighty units of float32, as a share of a row's largest output.
_CLOSE, _MANY_BITS = 1e-5, 8


@dataclass(kw_only=True, eq=False, repr=False)
class HashingModel(CrossModalModel):
    """Two towers into binary codes of ``n_bits``, compared by Hamming distance.

    A subclass writes ``_fit`` and ``_decide``: real outputs of one side, one column per bit, whose sign is the bit.
    Whatever centres or shifts them comes from the training rows, and what float32 cannot tell from zero is decided in
    float64, so that an item alone gets the code it has in a batch, unless float64 cannot tell it either.
    `encode_pairs` gives items with both sides a unified code, by default the sign of the mean of both.
    """

    n_bits: Count = 16
    random_state: int = 0

    @property
    def space(self) -> Space:
        """Hamming distance of packed codes."""
        return Space("hamming")

    def decision_images(self, images: ArrayLike) -> FloatArray:
        """Return the real outputs of ``images``, one column per bit; a bit is 1 where its output is at least zero."""
        self._check_fitted()
        return _decided(partial(self._decide, "image"), self._rows("image", images))

    def decision_texts(self, texts: ArrayLike) -> FloatArray:
        """Return the real outputs of ``texts``, one column per bit; a bit is 1 where its output is at least zero."""
        self._check_fitted()
        return _decided(partial(self._decide, "text"), self._rows("text", texts))

    def decision_pairs(self, images: ArrayLike, texts: ArrayLike) -> FloatArray:
        """Return the real outputs of aligned pairs, from both sides together."""
        self._check_fitted()
        image_rows = self._rows("image", images)
        text_rows = self._rows("text", texts)
        self._check_rows(image_rows, text_rows)
        return _decided(self._decide_pairs, image_rows, text_rows)

    def encode_pairs(self, images: ArrayLike, texts: ArrayLike) -> NDArray[np.uint8]:
        """Return one unified code per aligned pair, for galleries whose items have both sides."""
        return pack_signs(self.decision_pairs(images, texts))

    def _encode_side(self, side: Side, rows: FloatArray) -> NDArray[np.uint8]:
        return pack_signs(_decided(partial(self._decide, side), rows))

    def _decide(self, side: Side, rows: FloatArray) -> FloatArray:
        raise NotImplementedError

    def _decide_pairs(self, images: FloatArray, texts: FloatArray) -> FloatArray:
        return np.asarray((self._decide("image", images) + self._decide("text", texts)) / 2)


def _decided(decide: Callable[..., FloatArray], *sides: FloatArray) -> FloatArray:
    """Return the outputs of rows; rows with one that float32 cannot tell from zero are decided in float64.

    A product of matrices sums a row alone in another order than among others, and a bit would then depend on the batch.
    """
    outputs = decide(*sides)
    if outputs.dtype != np.float32:
        return outputs
    sizes = np.abs(outputs)
    # Of a few bits the largest output may be near zero itself.
    close = sizes.min(axis=1) < _CLOSE * sizes.max(axis=1) if outputs.shape[1] >= _MANY_BITS else slice(None)
    outputs[close] = decide(*(side[close].astype(np.float64) for side in sides))
    return outputs


class LinearHashingModel(HashingModel):
    """Codes sgn((x − x̄)P) and sgn((y − ȳ)Q) with the means of the training rows."""

    image_mean_: FloatArray
    text_mean_: FloatArray
    image_projection_: FloatArray
    text_projection_: FloatArray

    def _decide(self, side: Side, rows: FloatArray) -> FloatArray:
        return project(rows, *self._of_side(side, "mean", "projection"))


class KernelHashingModel(HashingModel):
    """Codes sgn(φ(x)W) and sgn(ψ(y)V) of Gaussian kernels around k-means centres, fitted by logistic regression."""

    n_centres: int
    logistic_max_iter: int
    random_state: int

    def _fit_kernels(self, side: str, rows: FloatArray, signs: FloatArray, penalty: float) -> None:
        basis = KernelBasis.fitted(rows, self.n_centres, seed=self.random_state)
        weights = fit_kernel_logistic(basis, rows, signs, regularization=penalty, max_iter=self.logistic_max_iter)
        for name, value in {**vars(basis), "weights": weights}.items():
            setattr(self, f"{side}_{name}_", value)

    def _decide(self, side: Side, rows: FloatArray) -> FloatArray:
        mean, scale, centres, weights = self._of_side(side, "mean", "scale", "centres", "weights")
        return KernelBasis(mean, scale, centres).outputs(rows, weights)
