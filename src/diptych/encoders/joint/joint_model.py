"""The two encoders of a local model that knows pictures and words together, and where it is looked for."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from diptych.arrays import FloatArray, unit_rows
from diptych.encoders.encoder import Encoder
from diptych.encoders.image.image_encoder import ImageEncoder
from diptych.encoders.image.picture_decoding import Picture, read_image
from diptych.encoders.joint.joint_folder import JointFolder, Prepared, RunImageTower
from diptych.encoders.joint.onnx_folder import OPEN_CLIP_CONFIG, OnnxFolder, has_tower
from diptych.encoders.joint.torch_folder import TRANSFORMERS_WEIGHTS, OpenClipFolder, TransformersFolder
from diptych.encoders.text.text_network import TextNetworkEncoder, TextTower
from diptych.errors import ModelFileError

_WHAT_TO_HAVE = (
    "a joint model is onnx/vision_model.onnx and onnx/text_model.onnx with tokenizer.json and "
    "preprocessor_config.json, or a folder of Transformers or OpenCLIP with its configuration and safetensors weights"
)
JOINT_MODEL_VARIABLE = "DIPTYCH_JOINT_MODEL"
"""The environment variable that names a model folder."""


def open_joint_folder(folder: str | os.PathLike[str]) -> JointFolder:
    """Recognise the layout of a model folder; an incomplete one is an error that names what is missing.

    Exported networks run on ONNX Runtime, in either usual layout: ``onnx/vision_model.onnx`` and
    ``onnx/text_model.onnx`` (or ``visual.onnx`` and ``textual.onnx``) with ``preprocessor_config.json``, or
    ``visual/model.onnx`` and ``textual/model.onnx`` with OpenCLIP's ``config.json``. Folders of Transformers
    (``config.json``, ``model.safetensors``) and OpenCLIP (``open_clip_config.json``, ``open_clip_model.safetensors``)
    are run by these libraries, ``pip install 'diptych[joint]'``; `export_folder` writes ONNX from them. Exported
    networks are preferred to weights, because they run without PyTorch. Nothing in the folder is executed, and
    pickled weights are refused.
    """
    path = Path(folder).expanduser()
    if not path.is_dir():
        raise ModelFileError(f"there is no folder {path}; pass the folder of a joint model: {_WHAT_TO_HAVE}")
    if has_tower(path):
        return OnnxFolder(path)
    if (path / OPEN_CLIP_CONFIG).is_file():
        return OpenClipFolder(path)
    if any((path / name).is_file() for name in ("config.json", *TRANSFORMERS_WEIGHTS)):
        return TransformersFolder(path)
    raise ModelFileError(f"{path} holds no model; {_WHAT_TO_HAVE}")


@dataclass(kw_only=True, eq=False, repr=False)
class JointTower(Encoder):
    """One tower of a joint model, named by what its folder holds and not by where that lies."""

    learns: ClassVar[bool] = False
    revision: ClassVar[int] = 3

    folder: str

    @property
    def identity(self) -> str:
        """The class and what the folder holds, wherever it lies."""
        return f"{type(self).__name__}(folder={self.weights_digest[:32]!r})"

    @property
    def weights_digest(self) -> str:
        """The digest of every file of the model that shapes the features."""
        return self.model().digest

    @property
    def n_features(self) -> int:
        """The width of the feature matrix."""
        return self.model().n_features

    def model(self) -> JointFolder:
        """Return the opened folder."""
        return self._made_once((self.folder,), lambda: open_joint_folder(self.folder))


@dataclass(kw_only=True, eq=False, repr=False)
class JointImageEncoder(JointTower, ImageEncoder):
    """The image tower of a joint model: rows of unit length whose dot product with texts is their similarity.

    Radford et al., "Learning transferable visual models from natural language supervision", ICML 2021; Zhai et al.,
    "Sigmoid loss for language image pre-training", ICCV 2023. Use it together with :class:`JointTextEncoder` on the
    same folder, whenever you have the weights of such a model: it finds far more than anything trained on a few
    thousand captions.

    Parameters
    ----------
    folder:
        The folder of the model, in any layout that :func:`open_joint_folder` knows. Nothing is ever downloaded.
    batch_size, n_threads:
        As in :class:`ImageEncoder`.

    Examples
    --------
    >>> from diptych.encoders import JointImageEncoder
    >>> JointImageEncoder(folder="models/clip").get_params()
    {'batch_size': 16, 'folder': 'models/clip', 'n_threads': None}
    """

    batch_size: int = 16

    @property
    def reading_side(self) -> int:
        """The shortest side, in pixels, below which pictures need not be read any larger."""
        return self.model().reading_side

    def check_parameters(self) -> None:
        """Raise when a parameter cannot be used, or the folder does not hold a whole model."""
        super().check_parameters()
        self.model()

    def read(self, picture: Picture) -> NDArray[np.uint8]:
        """Return upright RGB pixels, without transparency, as large as this encoder can use."""
        return np.asarray(read_image(picture, shortest_side=self.reading_side).convert("RGB"))

    def prepare(self, picture: Picture) -> Prepared:
        """Read one picture and resize, crop and normalise it as the model was trained."""
        return self.model().prepare(read_image(picture, shortest_side=self.reading_side))

    def encode_prepared(self, prepared: Sequence[Prepared]) -> FloatArray:
        """Return one row of unit length for each prepared picture."""
        return unit_rows(self._tower()(prepared))

    def _tower(self) -> RunImageTower:
        key = (self.folder, self.threads)
        return self._made_once(key, lambda: self.model().open_image_tower(self.threads))


@dataclass(kw_only=True, eq=False, repr=False)
class JointTextEncoder(JointTower, TextNetworkEncoder):
    """The text tower of a joint model: rows of unit length whose dot product with pictures is their similarity.

    Radford et al., "Learning transferable visual models from natural language supervision", ICML 2021. Texts are cut to
    the length the model was trained with, 77 tokens for CLIP and 64 for SigLIP.

    Parameters
    ----------
    folder:
        The folder of the model, in any layout that :func:`open_joint_folder` knows. Nothing is ever downloaded.
    batch_size:
        Texts encoded at once.
    n_threads:
        Threads of the network; by default one for each processor.

    Examples
    --------
    >>> from diptych.encoders import JointTextEncoder
    >>> JointTextEncoder(folder="models/clip").get_params()
    {'batch_size': 32, 'folder': 'models/clip', 'n_threads': None}
    """

    def check_weights(self) -> None:
        """Raise unless the folder holds a model."""
        self.model()

    def _tower(self) -> TextTower:
        key = (self.folder, self.n_threads)
        return self._made_once(key, lambda: self.model().open_text_tower(self.n_threads))


def find_joint_model() -> Path | None:
    """Return the folder of the user's joint model, which ``$DIPTYCH_JOINT_MODEL`` names, or None.

    Only the place is looked up; :func:`open_joint_folder` says whether it holds a usable model.

    >>> import os, tempfile
    >>> from diptych.encoders import find_joint_model
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     os.environ["DIPTYCH_JOINT_MODEL"] = folder
    ...     find_joint_model() == Path(folder)
    True
    >>> del os.environ["DIPTYCH_JOINT_MODEL"]
    """
    chosen = os.environ.get(JOINT_MODEL_VARIABLE)
    if not chosen:
        return None
    folder = Path(chosen).expanduser()
    if not folder.is_dir():
        raise ModelFileError(
            f"{JOINT_MODEL_VARIABLE} names {folder}, which is not a folder; correct the variable or unset it"
        )
    return folder
