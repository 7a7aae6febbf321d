"""The constructor parameters of MNiL, what follows from them, and what a training reports."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

from diptych.errors import InvalidInputError
from diptych.models.item_model import ItemModel
from diptych.models.neural._torch import Device
from diptych.models.neural.mnil._plan import ConvolutionPlan, Normalization, Weights, packaged_resnet, read_weights
from diptych.models.parameters import Count, DropoutShare, Fraction, HeldOutShare, NonNegative, Positive, check_count
from diptych.space import Space

TrainedDirections = Literal["both", "image_query", "text_query"]
HISTORY_COLUMNS = ("epoch", "loss", "rate", "draws", "violating", "held_out", "norm")


@dataclass(frozen=True)
class EpochRecord:
    """Means over one epoch.

    >>> print(EpochRecord(1, 0.4, 0.2, 3.0, 0.9, float("nan"), 1.0, 100.0, 2.0))
    epoch 1: loss 0.4000, 100 pictures a second
    """

    epoch: int
    loss: float
    rate: float
    draws: float  # negatives drawn until one violated the margin, over the anchors that found one
    violating: float  # the share of anchors that did
    held_out: float  # both ways' mean of recall at 10, or of average precision with labels; NaN without such a part
    norm: float  # mean length of points
    pictures_per_second: float
    seconds: float

    def __str__(self) -> str:
        held_out = "" if math.isnan(self.held_out) else f"held out {self.held_out:.3f}, "
        return f"epoch {self.epoch}: loss {self.loss:.4f}, {held_out}{self.pictures_per_second:,.0f} pictures a second"

    @property
    def judged(self) -> float:
        """What the best epoch is chosen by."""
        return self.held_out


Progress = Callable[[EpochRecord], None]


@dataclass(kw_only=True, eq=False, repr=False)
class MNiLParameters(ItemModel):
    """The parameters of `MNiL`, whose documentation explains them."""

    encoding_parameters: ClassVar[tuple[str, ...]] = (
        "image_tower",
        "image_side",
        "image_crop",
        "image_widths",
        "image_blocks",
        "max_words",
        "normalization",
    )

    n_components: Count = 128
    image_tower: Literal["residual", "resnet50", "features"] = "residual"
    image_side: Count = 64
    image_crop: Count | None = None
    flip: bool = False
    image_widths: tuple[Count, ...] = (32, 64, 128, 256)
    image_blocks: Count = 1
    image_weights: str | None = None
    image_hidden: int = 0
    train_image: bool = True
    text_tower: Literal["words", "minilm"] = "words"
    word_vectors: str | None = None
    train_words: bool = True
    word_size: Count = 256
    hidden_size: Count = 256
    dropout: DropoutShare = 0.1
    max_words: Count = 20
    min_texts: Count = 1
    normalization: Normalization = "cosine"
    margin: NonNegative = 0.3
    within_margin: NonNegative = 0.5
    image_term: NonNegative = 0.1
    text_term: NonNegative = 0.2
    direction: TrainedDirections = "both"
    positive: Literal["own_pair", "same_class"] = "same_class"
    max_trials: Count = 100
    rank_base: Literal["pairs", "negatives"] = "pairs"
    scale_weights: bool = True
    relevance: Literal["auto", "pairs", "labels"] = "auto"
    optimizer: Literal["adam", "sgd"] = "adam"
    learning_rate: Positive = 5e-4
    map_factor: Positive = 10.0
    image_factor: Positive = 1.0
    momentum: Fraction = 0.9
    weight_decay: NonNegative = 5e-5
    schedule: Literal["cosine", "constant"] = "cosine"
    epochs: Count = 20
    batch_size: Count = 128
    texts_per_picture: Count = 1
    accumulate: Count = 1
    validation: HeldOutShare = 0.0
    patience: Count | None = None
    mixed_precision: bool = True
    compile: bool = False
    checkpoint: str | None = None
    device: Device = "auto"
    random_state: int = 0

    @property
    def space(self) -> Space:
        """Cosine where points have unit length, else the inner product."""
        return Space("cosine" if self.normalization == "cosine" else "dot")

    @property
    def takes_pictures(self) -> bool:
        """Whether images are pictures, not rows of features."""
        return self.image_tower != "features"

    @property
    def picture_side(self) -> int:
        """The side of the squares that pictures are squeezed into."""
        return self.image_side

    @property
    def seen_side(self) -> int:
        """The side of the square of pixels that the network sees."""
        return self.image_crop or self.image_side

    @property
    def crop_margin(self) -> int:
        """By how many pixels the square that the network sees may be moved."""
        return self.image_side - self.seen_side

    @property
    def pictures_per_batch(self) -> int:
        """Pictures in a batch, each with ``texts_per_picture`` texts."""
        return max(2, self.batch_size // self.texts_per_picture)

    def _plan(self) -> ConvolutionPlan | None:
        if self.image_tower == "residual":
            return ConvolutionPlan.residual(tuple(self.image_widths), self.image_blocks)
        return ConvolutionPlan.resnet50() if self.image_tower == "resnet50" else None

    def _start_weights(self) -> Weights | None:
        if self.image_tower != "resnet50":
            return None
        return packaged_resnet() if self.image_weights is None else read_weights(self.image_weights)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.text_tower == "minilm" and self.word_vectors is not None:
            raise InvalidInputError("text_tower is 'minilm', which has its own word_vectors; leave them at None")
        if self.image_hidden:
            check_count("image_hidden", self.image_hidden)
        if self.image_crop is not None and self.image_crop > self.image_side:
            raise InvalidInputError(f"image_crop must be at most image_side ({self.image_side}), got {self.image_crop}")
