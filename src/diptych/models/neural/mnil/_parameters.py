"""The constructor parameters of MNiL and their checks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

from diptych.errors import InvalidInputError
from diptych.models.base import check_choice, check_count, check_counts, check_number, check_numbers
from diptych.models.item_model import ItemModel
from diptych.models.neural._torch import Device
from diptych.models.neural.mnil._objective import OptimiserName, Positive, RankBase, RankingObjective, TrainedDirections
from diptych.models.neural.mnil._picture_tower import ConvolutionPlan, packaged_resnet, read_weights
from diptych.models.neural.mnil._towers import Normalization
from diptych.space import Space

Schedule = Literal["cosine", "constant"]
ImageNetwork = Literal["residual", "resnet50", "features"]
TextNetwork = Literal["words", "minilm"]


@dataclass(kw_only=True, eq=False, repr=False)
class MNiLParameters(ItemModel):
    """The parameters of `MNiL`, whose documentation explains them, and what they mean to the parts of a training."""

    encoding_parameters: ClassVar[tuple[str, ...]] = (
        "image_tower",
        "image_side",
        "image_crop",
        "image_widths",
        "image_blocks",
        "max_words",
        "normalization",
    )

    n_components: int = 128
    image_tower: ImageNetwork = "residual"
    image_side: int = 64
    image_crop: int | None = None
    flip: bool = False
    image_widths: tuple[int, ...] = (32, 64, 128, 256)
    image_blocks: int = 1
    image_weights: str | None = None
    image_hidden: int = 0
    train_image: bool = True
    text_tower: TextNetwork = "words"
    word_vectors: str | None = None
    train_words: bool = True
    word_size: int = 256
    hidden_size: int = 256
    dropout: float = 0.1
    max_words: int = 20
    min_texts: int = 1
    normalization: Normalization = "cosine"
    margin: float = 0.3
    within_margin: float = 0.5
    image_term: float = 0.1
    text_term: float = 0.2
    direction: TrainedDirections = "both"
    positive: Positive = "same_class"
    max_trials: int = 100
    rank_base: RankBase = "pairs"
    scale_weights: bool = True
    relevance: Literal["auto", "pairs", "labels"] = "auto"
    optimizer: OptimiserName = "adam"
    learning_rate: float = 5e-4
    map_factor: float = 10.0
    image_factor: float = 1.0
    momentum: float = 0.9
    weight_decay: float = 5e-5
    schedule: Schedule = "cosine"
    epochs: int = 20
    batch_size: int = 128
    texts_per_picture: int = 1
    accumulate: int = 1
    validation: float = 0.0
    patience: int | None = None
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
    def _edge(self) -> int:
        """The side of the square of pixels that the network sees."""
        return self.image_crop or self.image_side

    @property
    def crop_margin(self) -> int:
        """By how many pixels the square that the network sees may be moved."""
        return self.image_side - self._edge

    @property
    def pictures_per_batch(self) -> int:
        """Pictures in a batch, each with ``texts_per_picture`` texts."""
        return max(2, self.batch_size // self.texts_per_picture)

    def _plan(self) -> ConvolutionPlan | None:
        if self.image_tower == "residual":
            return ConvolutionPlan.residual(tuple(self.image_widths), self.image_blocks)
        return ConvolutionPlan.resnet50() if self.image_tower == "resnet50" else None

    def _start_weights(self) -> dict[str, Any] | None:
        if self.image_tower != "resnet50":
            return None
        return packaged_resnet() if self.image_weights is None else read_weights(self.image_weights)

    def _cut_side(self) -> int | None:
        """Return the side of the square that is cut out; the whole one is cut, too, where it may be mirrored."""
        return self._edge if self.image_crop or self.flip else None

    def _objective(self, n_pairs: int) -> RankingObjective:
        return RankingObjective(
            n_pairs=n_pairs,
            margin=self.margin,
            within_margin=self.within_margin,
            image_term=self.image_term,
            text_term=self.text_term,
            direction=self.direction,
            positive=self.positive,
            max_trials=self.max_trials,
            rank_base=self.rank_base,
            scaled=self.scale_weights,
        )

    def _check_parameters(self) -> None:
        check_choice("image_tower", self.image_tower, get_args(ImageNetwork))
        check_choice("text_tower", self.text_tower, get_args(TextNetwork))
        if self.text_tower == "minilm" and self.word_vectors is not None:
            raise InvalidInputError("text_tower is 'minilm', which has its own word_vectors; leave them at None")
        check_choice("normalization", self.normalization, get_args(Normalization))
        check_choice("direction", self.direction, get_args(TrainedDirections))
        check_choice("positive", self.positive, get_args(Positive))
        check_choice("rank_base", self.rank_base, get_args(RankBase))
        check_choice("relevance", self.relevance, ("auto", "pairs", "labels"))
        check_choice("optimizer", self.optimizer, get_args(OptimiserName))
        check_choice("schedule", self.schedule, get_args(Schedule))
        check_counts(self, "n_components", "image_side", "image_blocks", "word_size", "hidden_size", "max_words")
        check_counts(self, "min_texts", "max_trials", "epochs", "batch_size", "texts_per_picture", "accumulate")
        for width in self.image_widths:
            check_count("each of image_widths", width)
        check_numbers(self, "margin", "within_margin", "image_term", "text_term", "weight_decay", low=0)
        check_numbers(self, "learning_rate", "map_factor", "image_factor", low=0, open_low=True)
        if self.image_hidden:
            check_count("image_hidden", self.image_hidden)
        check_number("momentum", self.momentum, low=0, high=1)
        check_number("dropout", self.dropout, low=0, high=0.99)
        check_number("validation", self.validation, low=0, high=0.9)
        if self.patience is not None:
            check_count("patience", self.patience)
        if self.image_crop is not None and check_count("image_crop", self.image_crop) > self.image_side:
            raise InvalidInputError(f"image_crop must be at most image_side ({self.image_side}), got {self.image_crop}")
