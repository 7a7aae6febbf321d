"""What encoders share that run a convolutional network trained on ImageNet."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from diptych.arrays import AnyArray, FloatArray, as_matrix
from diptych.encoders.image.convolution_graph import ConvolutionGraph
from diptych.encoders.image.image_encoder import ImageEncoder
from diptych.encoders.image.pictures import Picture
from diptych.encoders.network.network import Network
from diptych.errors import InvalidInputError

_CROP_MARGIN = 32


class ConvolutionalEncoder(ImageEncoder):
    """The pooled features of a network that looks at squares, and what its classifier makes of them.

    A subclass says the :attr:`side` of the square, the :attr:`network_name` that stands for its weights and the code
    that writes it, and writes the network in :meth:`write_network`; :meth:`read_classifier` reads the last layer.

    Parameters
    ----------
    crop:
        ``whole`` squeezes the whole picture into the network's square; ``centre`` takes the middle square of it, as
        classifiers are tested. What lies near the border matters for search, so ``whole`` is the default.
    mirror:
        Average the features of the picture and of its mirror image, at twice the cost.
    batch_size, n_threads:
        Pictures encoded at once, and threads (all cores); neither changes the features.
    """

    learns: ClassVar[bool] = False

    def __init__(
        self,
        *,
        crop: Literal["whole", "centre"] = "whole",
        mirror: bool = False,
        batch_size: int = 8,
        n_threads: int | None = None,
    ) -> None:
        self.crop = crop
        self.mirror = mirror
        self.batch_size = batch_size
        self.n_threads = n_threads

    @property
    @abstractmethod
    def side(self) -> int:
        """The side of the network's square in pixels."""

    @property
    @abstractmethod
    def network_name(self) -> str:
        """The name under which the network is kept on disk; another one for other weights or another graph."""

    @abstractmethod
    def write_network(self, graph: ConvolutionGraph) -> None:
        """Write the network: input ``pixels``, RGB bytes (n, side, side, 3); output ``features``."""

    @abstractmethod
    def read_classifier(self) -> tuple[FloatArray, FloatArray]:
        """Read the last layer: a matrix (labels, features) and a bias (labels)."""

    @property
    def reading_side(self) -> int:
        """The side of the network's square, and the margin when it is cut out of the middle."""
        return self.side + (_CROP_MARGIN if self.crop == "centre" else 0)

    def check_parameters(self) -> None:
        """Raise when a parameter cannot be used."""
        super().check_parameters()
        if self.crop not in ("whole", "centre"):
            raise InvalidInputError(f"crop must be 'whole' or 'centre', got {self.crop!r}")

    def prepare(self, picture: Picture) -> NDArray[np.uint8]:
        """Return the network's square of RGB bytes."""
        image = Image.fromarray(self.read(picture))
        box = self._middle(image.size) if self.crop == "centre" else None
        return np.asarray(image.resize((self.side, self.side), Image.Resampling.BICUBIC, box=box))

    def _middle(self, size: tuple[int, int]) -> tuple[float, float, float, float]:
        width, height = size
        edge = min(size) * self.side / (self.side + _CROP_MARGIN)
        return ((width - edge) / 2, (height - edge) / 2, (width + edge) / 2, (height + edge) / 2)

    def encode_prepared(self, prepared: Sequence[AnyArray]) -> FloatArray:
        """Return the pooled features of prepared squares."""
        pixels = np.stack(prepared)
        features = self._run(pixels)
        return (features + self._run(pixels[:, :, ::-1])) / 2 if self.mirror else features

    def _run(self, pixels: NDArray[np.uint8]) -> FloatArray:
        return self.open_network().run("features", {"pixels": np.ascontiguousarray(pixels)})

    def open_network(self) -> Network:
        """Return the network, ready to run."""
        key = (self.network_name, self.threads)
        kept: tuple[tuple[str, int], Network] | None = vars(self).get("_network")
        if kept is None or kept[0] != key:
            kept = (key, Network.written_once(key[0], ConvolutionGraph, self.write_network, self.threads))
            self._network = kept
        return kept[1]

    def probabilities(self, features: FloatArray) -> FloatArray:
        """Return, from pooled features, the probability of each label of :func:`imagenet_labels`."""
        kernel, bias = self._classifier()
        scores = as_matrix(features, name="features", width=kernel.shape[1]).astype(np.float32) @ kernel.T + bias
        scores -= scores.max(axis=1, keepdims=True)
        exponentials = np.exp(scores.astype(np.float64))
        return np.asarray(exponentials / exponentials.sum(axis=1, keepdims=True), dtype=np.float32)

    def _classifier(self) -> tuple[FloatArray, FloatArray]:
        kept: tuple[str, tuple[FloatArray, FloatArray]] | None = vars(self).get("_layer")
        if kept is None or kept[0] != self.network_name:
            kept = (self.network_name, self.read_classifier())
            self._layer = kept
        return kept[1]
