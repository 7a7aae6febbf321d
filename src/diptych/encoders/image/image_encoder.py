"""What every image encoder shares: decoding in threads beside the network, batches, failures by row."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from diptych.arrays import AnyArray, FloatArray
from diptych.encoders.encoder import Encoder, Modality
from diptych.encoders.image.encoded_batch import EncodedBatch
from diptych.encoders.image.pictures import Picture, read_picture
from diptych.encoders.network.network import available_processors
from diptych.errors import InvalidInputError


class ImageEncoder(Encoder):
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
    speed_parameters: ClassVar[tuple[str, ...]] = ("batch_size", "n_threads")

    batch_size: int
    n_threads: int | None

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
        return read_picture(picture, shortest_side=self.reading_side)

    @abstractmethod
    def prepare(self, picture: Picture) -> AnyArray:
        """Read one picture and make of it what :meth:`encode_prepared` takes; threads may call this."""

    @abstractmethod
    def encode_prepared(self, prepared: Sequence[AnyArray]) -> FloatArray:
        """Return one row of features for each prepared picture, at least one."""

    def fit(self, items: Sequence[Picture]) -> Self:
        """Check the parameters; there is nothing to learn from the pictures."""
        del items
        self.check_parameters()
        return self

    def check_parameters(self) -> None:
        """Raise when a parameter cannot be used; subclasses add their own checks."""
        if self.batch_size < 1:
            raise InvalidInputError(f"batch_size must be at least 1, got {self.batch_size}")
        if self.n_threads is not None and self.n_threads < 1:
            raise InvalidInputError(f"n_threads must be at least 1, or None for all cores, got {self.n_threads}")

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
        if isinstance(items, (str, bytes, os.PathLike)):
            raise InvalidInputError("pictures must be a sequence, got one path; pass it in a list")
        if len(items) == 0:
            raise InvalidInputError("there are no pictures to encode; pass at least one")
        return self._stream(items)

    def _stream(self, items: Sequence[Picture]) -> Iterator[EncodedBatch]:
        pool = ThreadPoolExecutor(self.threads)
        starts = range(0, len(items), self.batch_size)
        pending: deque[list[tuple[int, Future[AnyArray]]]] = deque()
        try:
            for start in starts:
                rows = range(start, min(len(items), start + self.batch_size))
                pending.append([(row, pool.submit(self._prepare_row, items, row)) for row in rows])
                if len(pending) > 2:
                    yield self._encoded(pending.popleft())
            while pending:
                yield self._encoded(pending.popleft())
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _prepare_row(self, items: Sequence[Picture], row: int) -> AnyArray:
        return self.prepare(items[row])

    def _encoded(self, batch: list[tuple[int, Future[AnyArray]]]) -> EncodedBatch:
        prepared: dict[int, AnyArray] = {}
        failures: dict[int, str] = {}
        for row, future in batch:
            try:
                prepared[row] = future.result()
            except InvalidInputError as error:
                failures[row] = str(error)
        features = self.encode_prepared(list(prepared.values())) if prepared else np.empty((0, self.n_features))
        return EncodedBatch(list(prepared), features.astype(np.float32, copy=False), failures)

    @property
    def threads(self) -> int:
        """The number of threads that ``n_threads`` means on this machine."""
        return self.n_threads if self.n_threads is not None else available_processors()

    def __getstate__(self) -> dict[str, Any]:
        # Runtime sessions can be neither copied nor sent to another process; they are made again when needed.
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}
