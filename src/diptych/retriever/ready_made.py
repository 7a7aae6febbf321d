"""Retrievers that need no training by the user."""

from __future__ import annotations

from pathlib import Path

from diptych.errors import UnknownNameError
from diptych.retriever.calibration import Calibration

SHIPPED_FOLDER = Path(__file__).parent / "shipped"
READY_MADE = ("default", "strong")
"""The retrievers of the package: a fast one, and a better one at up to three times the time for each picture."""

# Cosines at which an answer is as likely right as wrong: of a joint model's pairs, and among points of one side. They
# stand in until the retriever is fitted on pairs or the collection on judgements.
_EVEN_ACROSS, _EVEN_WITHIN = 0.25, 0.8


def shipped_folder(name: str) -> Path:
    """Return the folder of one of the retrievers of the package, ``READY_MADE``."""
    if name not in READY_MADE:
        raise UnknownNameError("ready-made retriever", name, READY_MADE)
    return SHIPPED_FOLDER / name


def joint_calibration(logit_scale: float | None, logit_bias: float | None) -> Calibration:
    """Return probabilities by the scale and the bias that a joint model was trained with."""
    scale = 100.0 if logit_scale is None else logit_scale
    # A sigmoid model says itself what a cosine is worth; a softmax model only how much more than another.
    across = -scale * _EVEN_ACROSS if logit_bias is None else logit_bias
    return Calibration.assumed(scale, [across, across, -scale * _EVEN_WITHIN, -scale * _EVEN_WITHIN])
