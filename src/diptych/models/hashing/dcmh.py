"""Deep cross-modal hashing on features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from diptych.arrays import FloatArray, IntArray
from diptych.models.base import Grid, Need, Side
from diptych.models.hashing.hashing_model import HashingModel
from diptych.models.labels import Targets
from diptych.models.neural._layers import StandardView, for_raw_rows, run_layers
from diptych.models.neural._torch import Descent, Device, Tower, choose_device, torch_package
from diptych.models.parameters import Count, DropoutShare, NonNegative, Positive


@dataclass(frozen=True)
class HashObjective:
    """Likelihood of shared labels, distance to the codes and balance of the bits, batch by batch."""

    indicator: Any  # 0/1 labels as a tensor
    gamma: float
    eta: float
    n_compared: int
    balanced: bool

    def compared(self, rng: np.random.Generator) -> IntArray | slice:
        """Return all pairs, or a draw where there are more than ``n_compared``."""
        n_pairs = len(self.indicator)
        return slice(None) if n_pairs <= self.n_compared else rng.integers(n_pairs, size=self.n_compared)

    def side(
        self, live: Any, rows: IntArray, *, own: Any, other: Any, codes: Any, compared: IntArray | slice = slice(None)
    ) -> Any:
        """Return the part of the objective that a batch of one side decides, divided by n times the batch.

        ``live`` are the outputs of ``rows``, ``own`` and ``other`` those of all pairs on this side and on the other,
        as last seen. The likelihood of the pairs ``compared`` stands for that of all.
        """
        beside = other[compared]
        theta = live @ beside.T / 2
        shared = (self.indicator[rows] @ self.indicator[compared].T > 0).to(theta.dtype)
        misfits = torch_package().nn.functional.softplus(theta) - shared * theta
        if self.balanced:
            misfits = misfits * _even_weights(shared)
        misfit = misfits.sum() * (len(own) / len(beside))
        quantisation = ((codes[rows] - live) ** 2).sum()
        balance = _balance(live, len(own))
        return (misfit + self.gamma * quantisation + self.eta * balance) / (len(own) * len(rows))


def _even_weights(shared: Any) -> Any:
    """Return weights of mean one that give pairs with and without a shared label half of the sum each."""
    share = shared.mean().clamp(1 / shared.numel(), 1 - 1 / shared.numel())
    return shared / (2 * share) + (1 - shared) / (2 * (1 - share))


def _balance(live: Any, n_pairs: int) -> Any:
    """Return the batch's share of ‖1ᵀF‖² = Σ_ij f_i·f_j, estimated from its own outputs without bias."""
    # The square of the batch's sum alone would count each f_i·f_i too often and draw all outputs to zero.
    squares = (live**2).sum()
    crossed = (live.sum(dim=0) ** 2).sum() - squares
    return squares + crossed * (n_pairs - 1) / max(1, len(live) - 1)


@dataclass(kw_only=True, eq=False, repr=False)
class DCMH(HashingModel):
    """Deep cross-modal hashing: networks whose outputs make shared labels likely and lie near one code per pair.

    With F and G the outputs for pictures and texts, one row each, S_ij = 1 where i and j share a label and
    Θ = FGᵀ/2,

        min  Σ_ij (log(1 + exp Θ_ij) − S_ij Θ_ij) + γ (‖B − F‖² + ‖B − G‖²) + η (‖1ᵀF‖² + ‖1ᵀG‖²),   B = sgn(F + G).

    The first term is the likelihood of the labels, the second keeps the outputs near the codes, the third balances the
    bits. Each epoch trains the network of the pictures with G and B fixed, then that of the texts with F and B fixed,
    then takes B anew. A batch needs its rows of Θ and S only, so that n × n numbers never exist. Here the networks work
    on features; those of a pretrained network for pictures stand for the convolutional layers that the paper trains.

    Training needs PyTorch (``pip install 'diptych[deep]'``), encoding does not.

    Parameters
    ----------
    n_bits : int
        Length of the codes.
    image_hidden, text_hidden : tuple of int
        Widths of the hidden layers of either network.
    gamma, eta : float
        γ and η above; both 1 in the paper. The sum of all outputs is estimated from the batch's own, because one
        remembered from earlier batches sets large steps swinging.
    balanced : bool
        Whether pairs that share a label and pairs that do not count half each in the likelihood, which is ours. The
        paper counts all alike; with many classes hardly any pair is similar then, and training needs far longer to
        find them.
    dropout : float
        Share of hidden units left out in each step.
    learning_rate, weight_decay : float
        Of Adam, in place of the paper's plain descent; the rate falls evenly to zero.
    epochs, batch_size : int
        Passes over the pairs, and pairs in a step.
    n_compared : int
        Pairs that a batch is compared with in a step. Where there are more, so many are drawn in each step and stand
        for all; this is ours and makes an epoch linear in the number of pairs.
    device : {"auto", "cpu", "cuda"}
        Where to train. On the processor the same seed gives the same networks.
    random_state : int
        Of the start, the batches and the draws.

    Attributes
    ----------
    losses_ : array of shape (epochs, 2)
        Mean loss of the batches of each epoch, divided by n times the batch, for pictures and texts.

    References
    ----------
    Jiang and Li, "Deep cross-modal hashing", CVPR 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import DCMH
    >>> rng = np.random.default_rng(0)
    >>> labels = np.repeat(["bird", "boat"], 50)
    >>> images = rng.normal(size=(100, 6)) + 2 * (labels == "boat")[:, None]
    >>> texts = rng.normal(size=(100, 4)) - 2 * (labels == "boat")[:, None]
    >>> model = DCMH(n_bits=8).fit(images, texts, labels)
    >>> bool(model.score(images, texts, labels) > 0.9)
    True
    """

    needs: ClassVar[frozenset[Need]] = frozenset({"labels", "pairs"})
    when_to_use: ClassVar[str] = "Codes from thousands of labelled pairs, several labels an item too; needs PyTorch."
    grid: ClassVar[Grid] = {"eta": [0.1, 1.0]}

    image_hidden: tuple[Count, ...] = (256,)
    text_hidden: tuple[Count, ...] = (256,)
    gamma: NonNegative = 1.0
    eta: NonNegative = 0.1
    balanced: bool = True
    dropout: DropoutShare = 0.5
    learning_rate: Positive = 0.01
    weight_decay: NonNegative = 5e-4
    epochs: Count = 100
    batch_size: Count = 128
    n_compared: Count = 4096
    device: Device = "auto"

    def _fit(self, images: FloatArray, texts: FloatArray, targets: Targets) -> None:
        hidden = self.image_hidden, self.text_hidden
        views = StandardView.of(images, name="images"), StandardView.of(texts, name="texts")
        rng = np.random.default_rng(self.random_state)
        device = choose_device(self.device)
        towers = [
            Tower.drawn((view.rows.shape[1], *sizes, self.n_bits), rng, dropout=self.dropout, device=device)
            for view, sizes in zip(views, hidden, strict=True)
        ]
        self._train(views, towers, targets, rng)
        self.image_mean_, self.text_mean_ = views[0].mean, views[1].mean
        self.image_layers_, self.text_layers_ = (
            for_raw_rows(tower.layers(), view.deviation) for tower, view in zip(towers, views, strict=True)
        )

    def _train(
        self, views: tuple[StandardView, StandardView], towers: list[Tower], targets: Targets, rng: np.random.Generator
    ) -> None:
        known = targets.labelled
        indicator = towers[0].tensor(targets.indicator[known].astype(np.float32))
        objective = HashObjective(indicator, self.gamma, self.eta, self.n_compared, self.balanced)
        # The first outputs are noise, as in the paper: from equal ones the bits could never tell themselves apart.
        outputs = [tower.tensor(rng.normal(size=(len(known), self.n_bits)).astype(np.float32)) for tower in towers]
        descents = [Descent(tower.parameters, self.weight_decay) for tower in towers]
        losses = np.zeros((self.epochs, 2))
        for epoch in range(self.epochs):
            rate = self.learning_rate * (1 - epoch / self.epochs)
            codes = torch_package().where(outputs[0] + outputs[1] >= 0, 1.0, -1.0)
            for side, (view, tower, descent) in enumerate(zip(views, towers, descents, strict=True)):
                own, other = outputs[side], outputs[1 - side]
                for rows in np.array_split(rng.permutation(len(known)), -(-len(known) // self.batch_size)):
                    live = tower.outputs(view.standardized(known[rows]), training=True)
                    own[rows] = live.detach()
                    compared = objective.compared(rng)
                    loss = objective.side(live, rows, own=own, other=other, codes=codes, compared=compared)
                    descent.step(loss, rate)
                    losses[epoch, side] += loss.item() * len(rows) / len(known)
        self.losses_ = losses

    def _decide(self, side: Side, rows: FloatArray) -> FloatArray:
        return run_layers(rows, *self._of_side(side, "mean", "layers"), activation="relu")
