"""Multimodal similarity-preserving hashing with coupled siamese networks."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy

from diptych.arrays import BoolArray, FloatArray, IntArray, row_blocks
from diptych.codes import pack_signs
from diptych.estimators import scikit_learn
from diptych.metrics import AP, SharedLabel, evaluate
from diptych.models.base import Grid, Need, Side
from diptych.models.hashing.hashing_model import HashingModel
from diptych.models.labels import RelatedRows, Targets, draw_until_right
from diptych.models.neural._layers import StandardView, for_raw_rows, held_out_rows, initial_layers, run_layers
from diptych.models.neural._torch import Descent, Tower, copied, torch_package
from diptych.models.neural._training_loop import CheckpointFile, EpochReport, ResumableModel, TrainingLoop, timed_epoch
from diptych.models.optimisers import scheduled_rate
from diptych.models.parameters import Count, HeldOutShare, NonNegative, Positive
from diptych.space import DIRECTIONS, Space

N_JUDGEMENTS = 20
"""How often a training looks at the rows held out."""
PATIENCE = 6
"""How many looks may bring nothing before a training ends."""
COLLAPSED_ENTROPY = 0.05
"""No bit of a side says anything below this entropy."""
SMALLEST_DISTANCE = 1e-6


@dataclass(kw_only=True, eq=False, repr=False)
class MMNN(ResumableModel, HashingModel):
    """Multimodal neural hashing: two networks, trained so that codes of similar items agree and others differ.

    Networks ξ for pictures and η for texts end in q tanh units, and the code is the sign of their outputs. With P the
    pairs of items that share a label and N those that do not,

        ℓ_XY = ½ Σ_P ‖ξ(x) − η(y)‖² + ½ Σ_N max(0, m − ‖ξ(x) − η(y)‖)²,     L = ℓ_XY + a (ℓ_X + ℓ_Y)

    where ℓ_X and ℓ_Y are the same with two pictures and two texts; sums are taken as means. A step draws as many
    similar as dissimilar pairs; half of the similar pairs across the sides are an item's own picture and text. Where
    there are fewer classes than codes the networks become classifiers: strong on classes seen in training, weak on
    others. Training needs PyTorch (``pip install 'diptych[deep]'``), encoding does not.

    Parameters
    ----------
    n_bits : int
        Length q of the codes.
    hidden : tuple of int
        Widths of the hidden layers of either network.
    margin : float
        m in units of √(2q), the distance of codes that differ in half of their bits.
    within : float
        a above; 0 trains on pairs across the sides alone.
    learning_rate, weight_decay : float
        Of Adam; the weights' squares are added to the loss times half the second.
    epochs, batch_size : int
        Passes over the rows, and rows with a similar and a dissimilar partner in a step.
    validation : float
        Share of the rows held out. Training stops when the MAP of their codes no longer rises, and the best networks
        are kept; 0 trains all epochs and keeps the last.
    checkpoint : str or None
        Folder for the state of training after each epoch: the same call goes on after a crash, to the same bits. It is
        refused where it holds that of other data or parameters.
    random_state : int
        Of everything drawn.

    Attributes
    ----------
    losses_ : array
        The mean loss of each epoch.
    bit_entropies_ : array of shape (2, q)
        Entropy of each bit over the training rows, for pictures and texts; a bit that is constant has 0, an even one 1.

    References
    ----------
    Masci, Bronstein, Bronstein and Schmidhuber, "Multimodal similarity-preserving hashing", TPAMI 2014. Architecture,
    margin, weights and schedule are ours.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import MMNN
    >>> rng = np.random.default_rng(0)
    >>> labels = np.repeat(["bird", "boat"], 50)
    >>> images = rng.normal(size=(100, 6)) + 2 * (labels == "boat")[:, None]
    >>> texts = rng.normal(size=(100, 4)) - 2 * (labels == "boat")[:, None]
    >>> model = MMNN(n_bits=8, epochs=30).fit(images, texts, labels)
    >>> bool(model.score(images, texts, labels) > 0.9)
    True
    """

    needs: ClassVar[frozenset[Need]] = frozenset({"labels", "pairs"})
    when_to_use: ClassVar[str] = "Codes for classes seen in training that no hyperplane separates; trains on PyTorch."
    title: ClassVar[str] = "MM-NN"
    grid: ClassVar[Grid] = {"margin": [0.7, 1.0]}
    command_name: ClassVar[str] = "mm-nn"

    hidden: tuple[Count, ...] = (256,)
    margin: Positive = 1.0
    within: NonNegative = 0.5
    learning_rate: Positive = 1e-3
    weight_decay: NonNegative = 1e-4
    epochs: Count = 100
    batch_size: Count = 256
    validation: HeldOutShare = 0.2
    checkpoint: str | None = None

    def _fit(self, images: FloatArray, texts: FloatArray, targets: Targets) -> None:
        rng = np.random.default_rng(self.random_state)
        views = StandardView.of(images, name="images"), StandardView.of(texts, name="texts")
        sizes = [(view.rows.shape[1], *self.hidden, self.n_bits) for view in views]
        towers = [Tower(initial_layers(widths, rng), activation="tanh") for widths in sizes]
        # The number of epochs shapes every step, so it may not change as it may where steps are all alike.
        file = self._checkpoint_file("networks", images, texts, targets.indicator, may_change=("checkpoint",))
        self._train(views, towers, targets, rng, file)
        self.image_mean_, self.text_mean_ = views[0].mean, views[1].mean
        self.image_layers_ = for_raw_rows(towers[0].layers(), views[0].deviation)
        self.text_layers_ = for_raw_rows(towers[1].layers(), views[1].deviation)
        self._measure_bits(images, texts)

    def _train(
        self,
        views: tuple[StandardView, StandardView],
        towers: list[Tower],
        targets: Targets,
        rng: np.random.Generator,
        file: CheckpointFile | None,
    ) -> None:
        known = targets.labelled
        indicator = targets.indicator[known]
        rows, held_out = held_out_rows(indicator, self.validation, rng)
        related = RelatedRows.of_marks(indicator[rows])
        n_batches = -(-len(rows) // self.batch_size)
        descent = Descent([tensor for tower in towers for tensor in tower.parameters], weight_decay=0.0)
        margin = self.margin * math.sqrt(2 * self.n_bits)

        def outputs(chosen: IntArray) -> list[Any]:
            return [
                tower.outputs(view.standardized(known[chosen])).tanh()
                for tower, view in zip(towers, views, strict=True)
            ]

        def train() -> float:
            losses = []
            for items in np.array_split(rng.permutation(len(rows)), n_batches):
                batch = PairBatch.drawn(items, related, rng)
                images, texts = outputs(rows[batch.rows])
                loss = coupled_loss(images, texts, batch, margin=margin, within=self.within)
                weights = sum((tensor**2).sum() for tensor in descent.tensors if tensor.ndim > 1)
                loss = loss + self.weight_decay / 2 * weights
                rate = scheduled_rate(self.learning_rate, descent.n_steps, self.epochs * n_batches)
                descent.step(loss, rate)
                losses.append(loss.item())
            return float(np.mean(losses))

        def judge() -> tuple[float, float]:
            # Every so many epochs: MAP takes as long as training does.
            epoch = descent.n_steps // n_batches
            if not len(held_out) or epoch % max(1, self.epochs // N_JUDGEMENTS):
                return math.nan, math.nan
            return _code_map([copied(side) for side in outputs(held_out)], indicator[held_out]), math.nan

        loop = TrainingLoop(self.epochs, PATIENCE, file, self._progress)
        reports = loop.run(towers, [descent], timed_epoch(train, judge, len(rows)), EpochReport, rng)
        self.losses_ = np.array([report.loss for report in reports])

    def _measure_bits(self, images: FloatArray, texts: FloatArray) -> None:
        shares = np.stack([self._shares("image", images), self._shares("text", texts)])
        self.bit_entropies_ = scipy.special.entr(shares) / np.log(2) + scipy.special.entr(1 - shares) / np.log(2)
        if (self.bit_entropies_.max(axis=1) < COLLAPSED_ENTROPY).any():
            warnings.warn(
                "MM-NN gives nearly all items of one side the same code; raise within, margin or epochs",
                scikit_learn("sklearn.exceptions").ConvergenceWarning,
                stacklevel=2,
            )

    def _decide(self, side: Side, rows: FloatArray) -> FloatArray:
        return np.tanh(run_layers(rows, *self._of_side(side, "mean", "layers"), activation="tanh"))

    def _shares(self, side: Side, rows: FloatArray) -> FloatArray:
        """Return the share of ones of each bit."""
        ones = sum((self._decide(side, rows[block]) >= 0).sum(axis=0) for block in row_blocks(len(rows)))
        return np.asarray(ones / len(rows))


def _code_map(outputs: list[FloatArray], indicator: FloatArray) -> float:
    """Return the MAP of the codes of aligned rows, both directions averaged."""
    images, texts = (pack_signs(of_side) for of_side in outputs)
    sides = {"image_query": (images, texts), "text_query": (texts, images)}
    relevance, hamming = SharedLabel(indicator, indicator), Space("hamming")
    means = [evaluate(*sides[way], hamming, relevance, [AP()], direction=way).mean[AP()] for way in DIRECTIONS]
    return float(np.mean(means))


@dataclass(frozen=True)
class PairBatch:
    """Items with a similar and a dissimilar partner each."""

    rows: IntArray  # three parts of one length: the items, their similar and their dissimilar partners
    own: BoolArray  # where the similar text of a picture is its own instead of its partner's
    differs: BoolArray  # where the dissimilar partner is one

    @classmethod
    def drawn(cls, items: IntArray, related: RelatedRows, rng: np.random.Generator) -> PairBatch:
        """Draw partners for ``items``; half of the pairs across the sides are an item's own.

        Where some draws find no dissimilar partner, there may be none at all, and the item goes without.
        """
        similar = related.partners(items, rng)
        n_rows = len(related.set_of)
        dissimilar, shares = draw_until_right(len(items), n_rows, lambda rows: related.pairs(items, rows), rng)
        return cls(np.concatenate([items, similar, dissimilar]), rng.random(len(items)) < 0.5, ~shares)


def coupled_loss(images: Any, texts: Any, batch: PairBatch, *, margin: float, within: float) -> Any:
    """Return ℓ_XY + a(ℓ_X + ℓ_Y), means over pairs, of points in the order of ``batch.rows``."""
    torch = torch_package()
    own, differs = torch.from_numpy(batch.own)[:, None], torch.from_numpy(batch.differs)

    def attract(left: Any, right: Any) -> Any:
        return ((left - right) ** 2).sum() / (2 * len(left))

    def repel(left: Any, right: Any) -> Any:
        distances = (left - right).norm(dim=1).clamp(min=SMALLEST_DISTANCE)
        return ((margin - distances).relu()[differs] ** 2).sum() / (2 * max(1, int(differs.sum())))

    (image, similar_image, other_image), (text, similar_text, other_text) = images.chunk(3), texts.chunk(3)
    loss = attract(image, torch.where(own, text, similar_text)) + repel(image, other_text)
    for item, similar, other in ((image, similar_image, other_image), (text, similar_text, other_text)):
        loss = loss + within * (attract(item, similar) + repel(item, other))
    return loss
