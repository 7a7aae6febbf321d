"""Retrievers that need no training by the user."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from diptych.errors import UnknownNameError
from diptych.models import SharedSpace
from diptych.retriever.calibration import Calibration

if TYPE_CHECKING:
    from diptych.encoders import JointModel
    from diptych.retriever.retriever import Retriever

SHIPPED_FOLDER = Path(__file__).parent / "shipped"
READY_MADE = ("light", "default", "strong", "conse")
"""The retrievers of the package: one, two or three image networks, or none that has seen pairs."""

# Cosines at which an answer is as likely right as wrong: of a joint model's pairs, and among points of one side. They
# stand in until the retriever is fitted on pairs or the collection on judgements.
_EVEN_ACROSS, _EVEN_WITHIN = 0.25, 0.8
# The same for generated scenes, in the order of SEARCH_DIRECTIONS: what is asked for and shown, twice; the cosine of
# what two pictures show; what two texts both ask for.
_EVEN_SCENES, _SCENE_SLOPES = (0.8, 0.8, 0.8, 8.0), (20.0, 20.0, 20.0, 0.5)


def default_retriever(kind: type[Retriever]) -> Retriever:
    """Return the user's joint model if there is one, else the shipped projection."""
    from diptych.encoders import find_joint_model

    folder = find_joint_model()
    return shipped_retriever(kind, "default") if folder is None else joint_retriever(kind, folder)


def shipped_retriever(kind: type[Retriever], name: str) -> Retriever:
    """Return one of the retrievers of the package, ``READY_MADE``."""
    if name not in READY_MADE:
        raise UnknownNameError("ready-made retriever", name, READY_MADE)
    retriever = kind.load(SHIPPED_FOLDER / name)
    # Found now, not in the middle of a search: a missing package is an error that names the command.
    _ = retriever.fingerprint
    return retriever


def joint_retriever(kind: type[Retriever], folder: str | PathLike[str]) -> Retriever:
    """Return a retriever on a local joint model."""
    from diptych.encoders import JointModel

    joint = JointModel.from_folder(folder)
    retriever = kind(image_encoder=joint.image_encoder, text_encoder=joint.text_encoder, name=Path(folder).name)
    retriever.image_encoder_, retriever.text_encoder_ = joint.image_encoder, joint.text_encoder
    width = joint.text_encoder.transform(["a photo"]).shape[1]
    retriever.model_ = SharedSpace().fit(np.eye(1, width), np.eye(1, width))
    retriever.calibration_ = _joint_calibration(joint)
    return retriever


def scene_retriever(kind: type[Retriever]) -> Retriever:
    """Return a retriever for generated scenes: both encoders speak of the same facts."""
    from diptych.encoders import SceneThings, SceneWords

    retriever = kind(image_encoder=SceneThings(), text_encoder=SceneWords(), name="scenes")
    retriever.image_encoder_, retriever.text_encoder_ = SceneThings(), SceneWords()
    width = retriever.image_encoder_.n_features
    retriever.model_ = SharedSpace(metric="dot").fit(np.eye(1, width), np.eye(1, width))
    slopes = np.array(_SCENE_SLOPES)
    retriever.calibration_ = Calibration.assumed(1.0, -slopes * np.array(_EVEN_SCENES))
    retriever.calibration_.slopes_ = slopes
    return retriever


def _joint_calibration(joint: JointModel) -> Calibration:
    scale = 100.0 if joint.logit_scale is None else joint.logit_scale
    # A sigmoid model says itself what a cosine is worth; a softmax model only how much more than another.
    across = -scale * _EVEN_ACROSS if joint.logit_bias is None else joint.logit_bias
    return Calibration.assumed(scale, [across, across, -scale * _EVEN_WITHIN, -scale * _EVEN_WITHIN])
