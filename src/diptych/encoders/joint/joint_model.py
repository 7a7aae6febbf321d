"""A local model that knows pictures and words together, its two encoders, and where it is looked for."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from diptych.arrays import AnyArray, FloatArray, unit_rows
from diptych.data.folders import cache_folder
from diptych.devices import batch_for_device
from diptych.encoders.encoder import Encoder
from diptych.encoders.image.image_encoder import ImageEncoder
from diptych.encoders.image.picture_decoding import Picture, read_image
from diptych.encoders.joint.joint_folder import JointFolder, JointTextTower, RunImageTower
from diptych.encoders.joint.onnx_folder import IMAGE_TOWER_NAMES, TEXT_TOWER_NAMES, OnnxFolder, find_tower
from diptych.encoders.joint.open_clip_folder import OPEN_CLIP_CONFIG, OpenClipFolder
from diptych.encoders.joint.preparation import PicturePreparation
from diptych.encoders.joint.safetensors_folder import FAMILIES, HuggingFaceFolder
from diptych.encoders.networks.model_files import read_model_json
from diptych.encoders.networks.safetensors_weights import SAFETENSORS_FILES, Weights
from diptych.encoders.text.text_network import TextNetworkEncoder
from diptych.errors import InvalidInputError, ModelFileError

_WHAT_TO_HAVE = (
    "a joint model is config.json, model.safetensors, tokenizer.json and preprocessor_config.json (CLIP or SigLIP), or "
    "onnx/vision_model.onnx and onnx/text_model.onnx with the last two"
)
JOINT_MODEL_VARIABLE = "DIPTYCH_JOINT_MODEL"
"""The environment variable that names a model folder."""


def open_joint_folder(folder: str | os.PathLike[str]) -> JointFolder:
    """Recognise the layout of a model folder; an incomplete one is an error that names what is missing.

    Safetensors weights are preferred to ONNX files, because they say how similarities become probabilities.
    """
    path = Path(folder).expanduser()
    if not path.is_dir():
        raise ModelFileError(f"there is no folder {path}; pass the folder of a joint model: {_WHAT_TO_HAVE}")
    if _has_weights(path) and read_model_json(path / "config.json", {}).get("model_type") in FAMILIES:
        return HuggingFaceFolder(path)
    if (path / OPEN_CLIP_CONFIG).is_file() and not _has_onnx(path):
        return OpenClipFolder(path)
    if _has_onnx(path):
        return OnnxFolder(path)
    if (path / "config.json").is_file():
        return HuggingFaceFolder(path)
    if not _has_weights(path):
        Weights.of_folder(path)
    raise ModelFileError(f"{path} lacks config.json; {_WHAT_TO_HAVE}")


def _has_weights(path: Path) -> bool:
    return any((path / name).is_file() for name in SAFETENSORS_FILES)


def _has_onnx(path: Path) -> bool:
    for names in (IMAGE_TOWER_NAMES, TEXT_TOWER_NAMES):
        try:
            find_tower(path, names)
        except ModelFileError:
            continue
        return True
    return False


@dataclass(kw_only=True, eq=False, repr=False)
class JointTower(Encoder):
    """One tower of a joint model, named by what its folder holds and not by where that lies."""

    learns: ClassVar[bool] = False
    revision: ClassVar[int] = 2

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

    Radford et al., "Learning transferable visual models from natural language supervision", ICML 2021. Use it together
    with :class:`JointTextEncoder` on the same folder; :class:`JointModel` makes both.

    Parameters
    ----------
    folder:
        The folder of the model; see :class:`JointModel` for the layouts. Nothing is ever downloaded.
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
    def pictures_at_once(self) -> int:
        """Pictures of a batch."""
        return batch_for_device(self.batch_size)

    @property
    def reading_side(self) -> int:
        """The shortest side, in pixels, below which pictures need not be read any larger."""
        return self._preparation().reading_side

    def check_parameters(self) -> None:
        """Raise when a parameter cannot be used, or the folder does not hold a whole model."""
        super().check_parameters()
        self._preparation()

    def read(self, picture: Picture) -> NDArray[np.uint8]:
        """Return upright RGB pixels, without transparency, as large as this encoder can use."""
        return np.asarray(read_image(picture, shortest_side=self.reading_side).convert("RGB"))

    def prepare(self, picture: Picture) -> AnyArray:
        """Read one picture and resize, crop and normalise it as the model's configuration says."""
        return self._preparation().apply(read_image(picture, shortest_side=self.reading_side))

    def encode_prepared(self, prepared: Sequence[AnyArray]) -> FloatArray:
        """Return one row of unit length for each prepared picture."""
        return unit_rows(self._tower()(np.stack(prepared)))

    def _preparation(self) -> PicturePreparation:
        return self._made_once(("preparation", self.folder), lambda: self.model().preparation)

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
        The folder of the model; see :class:`JointModel` for the layouts. Nothing is ever downloaded.
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

    def _tower(self) -> JointTextTower:
        key = (self.folder, self.n_threads)
        return self._made_once(key, lambda: self.model().open_text_tower(self.n_threads))


class JointModel:
    """Two encoders into one space, and how similarities in it become probabilities.

    Three layouts of folders are recognised:

    - Hugging Face: ``config.json`` (``model_type`` clip or siglip), ``model.safetensors`` (or its parts and their
      index), ``tokenizer.json`` and ``preprocessor_config.json``;
    - ONNX: ``onnx/vision_model.onnx`` and ``onnx/text_model.onnx`` (or ``visual.onnx`` and ``textual.onnx``) with the
      last two, as MobileCLIP is read;
    - OpenCLIP: ``open_clip_config.json``, ``open_clip_model.safetensors`` and the tokenizer.

    ``diptych doctor`` checks a folder and says which files of a known model to put where.

    Nothing is ever downloaded, and nothing in the folder is executed: pickled weights are refused, with the command
    that converts them.

    Radford et al., "Learning transferable visual models from natural language supervision", ICML 2021; Zhai et al.,
    "Sigmoid loss for language image pre-training", ICCV 2023. Use it whenever you have the weights of such a model: it
    finds far more than anything trained on a few thousand captions.

    Parameters
    ----------
    image_encoder, text_encoder:
        On the same folder.
    family:
        The kind of network, such as ``"clip"`` or ``"siglip"``.
    logit_scale:
        What cosines are multiplied with before they become probabilities; None where the folder does not say.
    logit_bias:
        What is added then; None for models trained with a softmax.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.encoders import JointImageEncoder, JointModel, JointTextEncoder
    >>> encoders = JointImageEncoder(folder="clip"), JointTextEncoder(folder="clip")
    >>> model = JointModel(*encoders, family="clip", logit_scale=100.0)
    >>> model.probabilities(np.array([[0.30, 0.25]])).round(3)
    array([[0.993, 0.007]])
    """

    def __init__(
        self,
        image_encoder: JointImageEncoder,
        text_encoder: JointTextEncoder,
        *,
        family: str,
        logit_scale: float | None = None,
        logit_bias: float | None = None,
    ) -> None:
        self.image_encoder = image_encoder
        self.text_encoder = text_encoder
        self.family = family
        self.logit_scale = logit_scale
        self.logit_bias = logit_bias

    @classmethod
    def from_folder(cls, folder: str | os.PathLike[str], *, n_threads: int | None = None) -> JointModel:
        """Open a model folder, or raise an error that names what is missing from it."""
        place = str(Path(folder).expanduser().absolute())
        opened = open_joint_folder(place)
        return cls(
            JointImageEncoder(folder=place, n_threads=n_threads),
            JointTextEncoder(folder=place, n_threads=n_threads),
            family=opened.family,
            logit_scale=opened.logit_scale,
            logit_bias=opened.logit_bias,
        )

    def probabilities(self, similarity: FloatArray) -> FloatArray:
        """Return what the model itself makes of cosines (queries, gallery).

        Sigmoid models give for each pair the probability that it belongs together; softmax models give for each query
        a distribution over the gallery, which says nothing of whether any of it is right.
        """
        if self.logit_scale is None:
            raise InvalidInputError(
                "this model's files do not say how similarities become probabilities; use its safetensors weights"
            )
        logits = self.logit_scale * np.asarray(similarity, dtype=np.float64) + (self.logit_bias or 0.0)
        if self.logit_bias is not None:
            return np.asarray(0.5 * (1 + np.tanh(0.5 * logits)))
        weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
        return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def joint_shelf() -> Path:
    """Return the folder in which the folders of joint models are looked for."""
    return cache_folder() / "joint"


def find_joint_model() -> Path | None:
    """Return the folder of the user's joint model, or None.

    That is the folder ``$DIPTYCH_JOINT_MODEL``, or else the first, by name, under ``joint`` in the cache folder. Only
    the place is looked up; :meth:`JointModel.from_folder` says whether it holds a usable model.

    >>> import os, tempfile
    >>> from diptych.encoders import find_joint_model
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     os.environ["DIPTYCH_JOINT_MODEL"] = folder
    ...     find_joint_model() == Path(folder)
    True
    >>> del os.environ["DIPTYCH_JOINT_MODEL"]
    """
    chosen = os.environ.get(JOINT_MODEL_VARIABLE)
    if chosen:
        folder = Path(chosen).expanduser()
        if not folder.is_dir():
            raise ModelFileError(
                f"{JOINT_MODEL_VARIABLE} names {folder}, which is not a folder; correct the variable or unset it"
            )
        return folder
    shelf = joint_shelf()
    if not shelf.is_dir():
        return None
    folders = (path for path in shelf.iterdir() if path.is_dir() and not path.name.startswith("."))
    return min(folders, default=None)
