"""What image encoders share: decoding in threads, batches, failures by row, and running a convolutional network."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from diptych.arrays import AnyArray, FloatArray, as_matrix, indexed_items
from diptych.cluster import begun_early
from diptych.data.item_sequences import is_listed
from diptych.devices import batch_for_device
from diptych.encoders.encoder import BatchEncoder, EncodedBatch, Modality, check_pictures
from diptych.encoders.image.reading_once import Square, held_square
from diptych.encoders.networks.onnx_network import OnnxEncoder
from diptych.errors import InvalidInputError

if TYPE_CHECKING:
    from diptych.encoders.image.picture_decoding import Picture


@dataclass(kw_only=True, eq=False, repr=False)
class ImageEncoder(BatchEncoder):
    """Turns pictures into features in two steps: each alone in a thread, then together in batches.

    A subclass writes :meth:`prepare`, which reads one picture and makes the input of the second step (threads call it,
    so it changes nothing), and :meth:`encode_prepared`, which turns a list of such inputs into rows. It also says its
    :attr:`n_features` and the :attr:`reading_side` it needs.

    :meth:`read` gives pixels that serve for more than the features: ``prepare(encoder.read(path))`` equals
    ``prepare(path)`` to the byte, so one can read a file once and also make a thumbnail of it.

    Two parameters every subclass has: ``batch_size``, the pictures encoded at once, and ``n_threads``, by default as
    many as there are cores. Neither changes the features.

    >>> import numpy as np
    >>> from diptych.encoders import ColourEdgeHistograms
    >>> encoder = ColourEdgeHistograms(batch_size=2)
    >>> pictures = [np.full((8, 8, 3), shade, dtype=np.uint8) for shade in (0, 90, 255)]
    >>> [batch.rows for batch in encoder.stream([*pictures, "nowhere.jpg"])]
    [[0, 1], [2]]
    """

    modality: ClassVar[Modality] = "image"
    batch_size: int = 8

    @property
    @abstractmethod
    def n_features(self) -> int:
        """The width of the feature matrix."""

    @property
    @abstractmethod
    def reading_side(self) -> int:
        """The shortest side, in pixels, below which pictures need not be read any larger."""

    def read(self, picture: Picture) -> NDArray[np.uint8]:
        """Return upright RGB pixels, as large as this encoder can use."""
        # Words are searched for without a library of pictures.
        from diptych.encoders.image.picture_decoding import read_picture

        return read_picture(picture, shortest_side=self.reading_side)

    @abstractmethod
    def prepare(self, picture: Picture) -> Any:
        """Read one picture and make of it what :meth:`encode_prepared` takes; threads may call this."""

    def held(self, picture: Picture) -> Any:
        """Return what :meth:`prepare` would, where a picture brings it along."""
        del picture
        return None

    @abstractmethod
    def encode_prepared(self, prepared: Sequence[Any]) -> FloatArray:
        """Return one row of features for each prepared picture, at least one."""

    def fit(self, items: Sequence[Picture]) -> Self:
        """Check the parameters; there is nothing to learn from the pictures."""
        del items
        self.check_parameters()
        return self

    def transform(self, items: Sequence[Picture]) -> FloatArray:
        """Return one row of features per picture; the first unreadable picture raises an error that names it."""
        batches = self.stream(items)
        features = np.empty((len(items), self.n_features), dtype=np.float32)
        for batch in batches:
            if batch.failures:
                raise InvalidInputError(batch.failures[min(batch.failures)])
            features[batch.rows] = batch.features
        return features

    def stream(self, items: Sequence[Picture]) -> Iterator[EncodedBatch]:
        """Encode the pictures batch by batch, in order, and go on past unreadable ones.

        Threads fetch, read and prepare the next two batches while the present one is encoded. An item is fetched when
        its turn comes, so a lazy sequence is never held whole.
        """
        self.check_parameters()
        check_pictures(items, "encode")
        return self._stream(indexed_items(items, name="pictures"))

    def _stream(self, items: Sequence[Picture]) -> Iterator[EncodedBatch]:
        pool = ThreadPoolExecutor(self.threads)
        at_once, count = self.pictures_at_once, len(items)
        batches = (range(start, min(count, start + at_once)) for start in range(0, count, at_once))

        def begun(row: int) -> Any:
            held = self.held(items[row]) if is_listed(items) else None
            # A thread fetches its item itself, so that a lazy sequence is never made here.
            return pool.submit(lambda: self.prepare(items[row])) if held is None else held

        starts = ([(row, begun(row)) for row in rows] for rows in batches)
        try:
            yield from map(self._encoded, begun_early(starts, lambda: 2))
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _encoded(self, batch: list[tuple[int, Any]]) -> EncodedBatch:
        prepared: dict[int, Any] = {}
        failures: dict[int, str] = {}
        for row, begun in batch:
            try:
                prepared[row] = begun.result() if isinstance(begun, Future) else begun
            except InvalidInputError as error:
                failures[row] = str(error)
        features = self.encode_prepared(list(prepared.values())) if prepared else np.empty((0, self.n_features))
        return EncodedBatch(list(prepared), features.astype(np.float32, copy=False), failures)

    @property
    def pictures_at_once(self) -> int:
        """Pictures of a batch: more on an accelerator."""
        return batch_for_device(self.batch_size)


@dataclass(kw_only=True, eq=False, repr=False)
class ConvolutionalEncoder(ImageEncoder, OnnxEncoder):
    """The pooled features of a network that looks at squares, and what its classifier makes of them.

    A subclass says the :attr:`side` of the square and writes the network in :meth:`make_network`: ``pixels``, bytes
    (n, side, side, 3), to ``features``; :meth:`read_classifier` reads the last layer.
    """

    crop: Literal["whole", "centre"] = "whole"
    mirror: bool = False

    @property
    @abstractmethod
    def side(self) -> int:
        """The side of the network's square in pixels."""

    @abstractmethod
    def read_classifier(self) -> tuple[FloatArray, FloatArray]:
        """Read the last layer: a matrix (labels, features) and a bias (labels)."""

    @property
    def square(self) -> Square:
        """What the network looks at."""
        return Square(self.side, self.crop)

    @property
    def reading_side(self) -> int:
        """The side of the network's square, and the margin when it is cut out of the middle."""
        return self.square.reading_side

    def check_parameters(self) -> None:
        """Raise when a parameter cannot be used."""
        super().check_parameters()
        if self.crop not in ("whole", "centre"):
            raise InvalidInputError(f"crop must be 'whole' or 'centre', got {self.crop!r}")

    def held(self, picture: Picture) -> NDArray[np.uint8] | None:
        """Return the square that was cut when the picture was read."""
        return held_square(picture, self.square)

    def prepare(self, picture: Picture) -> NDArray[np.uint8]:
        """Return the network's square of RGB bytes."""
        held = self.held(picture)
        return self.square.cut(self.read(picture)) if held is None else held

    def encode_prepared(self, prepared: Sequence[AnyArray]) -> FloatArray:
        """Return the pooled features of prepared squares."""
        network, pixels = self.open_network(), np.stack(prepared)
        features = network.run("features", {"pixels": pixels})
        if not self.mirror:
            return features
        return (features + network.run("features", {"pixels": np.ascontiguousarray(pixels[:, :, ::-1])})) / 2

    def probabilities(self, features: FloatArray) -> FloatArray:
        """Return, from pooled features, the probability of each label of :func:`imagenet_labels`."""
        kernel, bias = self._made_once(("classifier", self.network_name), self.read_classifier)
        scores = as_matrix(features, name="features", width=kernel.shape[1]).astype(np.float32) @ kernel.T + bias
        scores -= scores.max(axis=1, keepdims=True)
        exponentials = np.exp(scores.astype(np.float64))
        return np.asarray(exponentials / exponentials.sum(axis=1, keepdims=True), dtype=np.float32)
