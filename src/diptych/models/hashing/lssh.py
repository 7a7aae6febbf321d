"""Latent semantic sparse hashing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy

from diptych.arrays import FloatArray, map_rows, row_blocks, unit_rows
from diptych.models.base import Grid, Side
from diptych.models.hashing._solvers import sample_pairs
from diptych.models.hashing.hashing_model import HashingModel
from diptych.models.labels import Targets
from diptych.models.linear import centre, check_varies, fix_signs, project, rounding_level
from diptych.models.moments import moments
from diptych.models.parameters import Count, Fraction, Positive

# A block of codes, its momentum and its gradient stay in cache.
_BLOCK_NUMBERS = 1 << 17
_SWEEPS = 2
# A round moves the dictionaries a little, and its sparse codes start from the last round's: few steps keep up.
_ROUND_STEPS = 10


def sparse_codes(
    rows: FloatArray, atoms: FloatArray, ratio: float, n_iter: int, start: FloatArray | None = None
) -> FloatArray:
    """Return the codes s of every row x: argmin ½‖x − sD‖² + ratio·‖Dx‖_∞·‖s‖₁, where the rows of D are ``atoms``.

    The penalty is relative to the smallest one that gives the empty code, row by row. Accelerated gradient steps
    (FISTA) with a restart wherever momentum points uphill, each row on its own and for a fixed number of steps: a row's
    code does not depend on the rows beside it. A row of zeros has the zero code.
    """
    codes = np.zeros((len(rows), len(atoms)), dtype=rows.dtype) if start is None else start.copy()
    dictionary = atoms.astype(rows.dtype, copy=False)
    curvature = max(float(np.linalg.norm(dictionary, 2)) ** 2, float(np.finfo(rows.dtype).tiny))
    for block in row_blocks(len(rows), _BLOCK_NUMBERS // len(atoms)):
        codes[block] = _descend(rows[block], dictionary, ratio, 1 / curvature, n_iter, codes[block])
    return codes


def _descend(
    rows: FloatArray, atoms: FloatArray, ratio: float, step: float, n_iter: int, codes: FloatArray
) -> FloatArray:
    threshold = step * ratio * np.abs(rows @ atoms.T).max(axis=1, keepdims=True)
    pace: FloatArray = np.ones((len(rows), 1), dtype=rows.dtype)
    length, ahead = rows.dtype.type(step), codes
    for _ in range(n_iter):
        moved = ahead + length * ((rows - ahead @ atoms) @ atoms.T)
        fresh = moved - np.clip(moved, -threshold, threshold)
        change = fresh - codes
        uphill = np.einsum("ij,ij->i", ahead - fresh, change)[:, None] > 0
        next_pace = np.where(uphill, 1, (1 + np.sqrt(1 + 4 * pace**2)) / 2).astype(rows.dtype)
        ahead = fresh + change * np.where(uphill, 0, (pace - 1) / next_pace)
        codes, pace = fresh, next_pace
    return codes


def random_atoms(count: int, width: int, rng: np.random.Generator) -> FloatArray:
    """Return atoms of unit length in random directions."""
    return unit_rows(rng.normal(size=(count, width)))


def fit_atoms(
    codes: FloatArray, rows: list[FloatArray], atoms: list[FloatArray], n_sweeps: int, rng: np.random.Generator
) -> list[FloatArray]:
    """Return D that lower ‖X − SD‖² with rows of length at most 1, for one or more targets X of the same codes S.

    One atom after the other takes its best value given the others. The error grows alike in all directions from that,
    so that under the bound the best value is the same one brought back to the unit ball. Unused atoms are drawn anew.
    """
    widths = np.cumsum([part.shape[1] for part in atoms])[:-1]
    gram = (codes.T @ codes).astype(np.float64)
    targets = np.hstack([codes.T @ part for part in rows]).astype(np.float64)
    joint = np.hstack(atoms)
    used = np.diag(gram) > np.finfo(np.float64).eps * np.trace(gram)
    parts = np.split(joint, widths, axis=1)
    for _ in range(n_sweeps):
        for atom in np.flatnonzero(used):
            joint[atom] += (targets[atom] - gram[atom] @ joint) / gram[atom, atom]
            for part in parts:
                length = np.sqrt(part[atom] @ part[atom])
                if length > 1:
                    part[atom] /= length
    for part in parts:
        part[~used] = random_atoms(int((~used).sum()), part.shape[1], rng)
    return [np.ascontiguousarray(part) for part in parts]


@dataclass(kw_only=True, eq=False, repr=False)
class LSSH(HashingModel):
    """Latent semantic sparse hashing: sparse codes of pictures, latent topics of texts, and a linear map between them.

        ‖X − SD‖² + ρ Σᵢ‖sᵢ‖₁ + μ‖Y − AU‖² + γ‖A − SR‖²   with rows of D, U and R of length at most 1

    X are the leading principal components of the pictures and Y the texts, both centred and of unit length. S are
    sparse codes over the atoms D, A the topics, one per bit. The alternation solves ridge regressions for A, lassos for
    S on the stacked dictionary [D  √γR], and fits D, R and U atom by atom. Codes are sgn(sR) of a picture's own sparse
    code and sgn(yUᵀ(UUᵀ + γ/μ·I)⁻¹) of a text; a pair has both: sgn((γ/μ·sR + yUᵀ)(UUᵀ + γ/μ·I)⁻¹).

    There may be more bits than text features, since topics may overlap. A row that equals the training mean has no
    direction and gets the code of all ones.

    Parameters
    ----------
    n_bits : int
        Length of the codes.
    n_atoms : int
        Rows of D; never more than training pairs.
    n_image_components : int
        Principal components of the pictures, from which atoms are made.
    sparsity : float
        ρ of a row relative to the smallest value that makes its code empty, between 0 and 1; the default is ours.
    text_weight, coupling : float
        μ and γ.
    n_iter : int
        Rounds of all updates.
    n_lasso_iter : int
        Gradient steps of a sparse code that starts from zero, a new item's or the first in training; 100 bring the
        optimality conditions to about 1e-3.
    max_pairs : int or None
        Learn from so many pairs drawn at random when there are more.
    random_state : int
        Of the drawn pairs and of the first dictionaries.

    References
    ----------
    Zhou, Ding and Guo, "Latent semantic sparse hashing for cross-modal similarity search", SIGIR 2014. Components and
    other weights are those of public code; starting a round's sparse codes from the last round's is ours.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import LSSH
    >>> rng = np.random.default_rng(0)
    >>> meaning = np.eye(4)[np.arange(200) % 4]
    >>> images = meaning @ rng.normal(size=(4, 10)) + 0.2 * rng.normal(size=(200, 10))
    >>> texts = meaning @ rng.normal(size=(4, 6)) + 0.2 * rng.normal(size=(200, 6))
    >>> model = LSSH(n_bits=8, n_atoms=32).fit(images, texts)
    >>> bool(model.score(images, texts, meaning) > 0.9)
    True
    """

    when_to_use: ClassVar[str] = "Codes from pairs without labels when pictures are made of few parts out of many."
    grid: ClassVar[Grid] = {"sparsity": [0.2, 0.4]}

    n_atoms: Count = 512
    n_image_components: Count = 64
    sparsity: Fraction = 0.4
    text_weight: Positive = 0.5
    coupling: Positive = 1.0
    n_iter: Count = 20
    n_lasso_iter: Count = 100
    max_pairs: Count | None = 10_000

    def _fit(self, images: FloatArray, texts: FloatArray, targets: Targets | None) -> None:
        images, texts = sample_pairs(images, texts, self.max_pairs, self.random_state)
        check_varies(images=images, texts=texts)
        sums = moments(images, texts)
        self.image_mean_, self.text_mean_ = sums.image_mean, sums.text_mean
        self.image_components_ = _principal_components(sums.image, self.n_image_components, sums.precision)
        # Half the memory and time of training; what is encoded later has the precision that comes in.
        images = self._reduced_images(images).astype(np.float32, copy=False)
        texts = self._unit_texts(texts).astype(np.float32, copy=False)
        rng = np.random.default_rng(self.random_state)
        n_atoms = min(self.n_atoms, len(images))
        atoms = random_atoms(n_atoms, images.shape[1], rng)
        image_topics = random_atoms(n_atoms, self.n_bits, rng)
        text_topics = random_atoms(self.n_bits, texts.shape[1], rng)
        codes = sparse_codes(images, atoms, self.sparsity, self.n_lasso_iter)
        for _ in range(self.n_iter):
            latent = self._latent(codes @ image_topics, texts, text_topics)
            (text_topics,) = fit_atoms(latent, [texts], [text_topics], _SWEEPS, rng)
            codes = self._stacked_codes(images, latent, atoms, image_topics, codes)
            atoms, image_topics = fit_atoms(codes, [images, latent], [atoms, image_topics], _SWEEPS, rng)
        self.image_atoms_, self.image_topics_, self.text_topics_ = atoms, image_topics, text_topics
        self.shrinkage_ = self._shrinkage(text_topics)

    def _stacked_codes(
        self, images: FloatArray, latent: FloatArray, atoms: FloatArray, image_topics: FloatArray, start: FloatArray
    ) -> FloatArray:
        """Return S that fits pictures and latent rows at once: the lasso of [X  √γA] on the dictionary [D  √γR]."""
        root = np.sqrt(self.coupling)
        rows, dictionary = np.hstack([images, root * latent]), np.hstack([atoms, root * image_topics])
        return sparse_codes(rows.astype(start.dtype), dictionary, self.sparsity, _ROUND_STEPS, start)

    def _latent(self, from_images: FloatArray, texts: FloatArray, text_topics: FloatArray) -> FloatArray:
        """Return A, the ridge regression that fits texts and what pictures say."""
        ratio = self.coupling / self.text_weight
        return np.asarray((ratio * from_images + texts @ text_topics.T) @ self._shrinkage(text_topics))

    def _shrinkage(self, text_topics: FloatArray) -> FloatArray:
        """Return (UUᵀ + γ/μ·I)⁻¹."""
        ratio = self.coupling / self.text_weight
        return np.asarray(np.linalg.inv(text_topics @ text_topics.T + ratio * np.eye(len(text_topics))))

    def _reduced_images(self, images: FloatArray) -> FloatArray:
        return unit_rows(project(images, self.image_mean_, self.image_components_))

    def _unit_texts(self, texts: FloatArray) -> FloatArray:
        return unit_rows(centre(texts, self.text_mean_))

    def _decide(self, side: Side, rows: FloatArray) -> FloatArray:
        if side == "text":
            to_latent = (self.text_topics_.T @ self.shrinkage_).astype(rows.dtype, copy=False)
            return map_rows(lambda block: self._unit_texts(block) @ to_latent, rows, self.n_bits)
        topics = self.image_topics_.astype(rows.dtype, copy=False)

        def outputs(block: FloatArray) -> FloatArray:
            reduced = self._reduced_images(block)
            return sparse_codes(reduced, self.image_atoms_, self.sparsity, self.n_lasso_iter) @ topics

        return map_rows(outputs, rows, self.n_bits)

    def _decide_pairs(self, images: FloatArray, texts: FloatArray) -> FloatArray:
        from_images = self._decide("image", images)
        weight = (self.coupling / self.text_weight * self.shrinkage_).astype(from_images.dtype, copy=False)
        return np.asarray(from_images @ weight + self._decide("text", texts))


def _principal_components(moment: FloatArray, count: int, precision: float) -> FloatArray:
    """Return the leading directions of variance, none at rounding level, scaled to unit total variance."""
    count = min(count, len(moment))
    values, vectors = scipy.linalg.eigh(moment, subset_by_index=[len(moment) - count, len(moment) - 1])
    real = values > rounding_level(len(moment), precision) * float(values[-1])
    # Atoms are drawn in these coordinates: a sign that rounding chooses would change everything that follows.
    directions, _ = fix_signs(vectors[:, real][:, ::-1], vectors[:, real][:, ::-1])
    return np.asarray(directions / np.sqrt(values[real].sum()))
