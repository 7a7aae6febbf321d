"""A local model that knows pictures and words together."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from diptych.arrays import FloatArray
from diptych.encoders.joint.joint_image_encoder import JointImageEncoder
from diptych.encoders.joint.joint_text_encoder import JointTextEncoder
from diptych.encoders.joint.open_joint_folder import open_joint_folder
from diptych.errors import InvalidInputError


class JointModel:
    """Two encoders into one space, and how similarities in it become probabilities.

    Three layouts of folders are recognised:

    - Hugging Face: ``config.json`` (``model_type`` clip or siglip), ``model.safetensors`` (or its parts and their
      index), ``tokenizer.json`` (or CLIP's ``vocab.json`` and ``merges.txt``) and ``preprocessor_config.json``;
    - ONNX: ``onnx/vision_model.onnx`` and ``onnx/text_model.onnx`` (or ``visual.onnx`` and ``textual.onnx``) with the
      last two;
    - OpenCLIP: ``open_clip_config.json``, ``open_clip_model.safetensors`` and the tokenizer.

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
