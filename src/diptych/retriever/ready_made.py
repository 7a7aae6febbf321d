"""Retrievers that need no training by the user."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

from diptych.encoders import SentenceEncoder
from diptych.encoders.image.efficientnet_lite import EfficientNetLite
from diptych.models import CCA
from diptych.retriever.retriever import Retriever

SHIPPED = Path(__file__).parent / "shipped"


def default_retriever() -> Retriever:
    """Return the shipped projection."""
    return Retriever.load(SHIPPED)


def conse_retriever() -> Retriever:
    """Return the likeliest ImageNet labels of a picture as a point among words."""
    raise NotImplementedError


def joint_retriever(folder: str | PathLike[str]) -> Retriever:
    """Return a retriever on a local joint model."""
    raise NotImplementedError


def default_part(name: str) -> Any:
    """Return an unfitted part of the default retriever by the name of its parameter."""
    return {"image_encoder": EfficientNetLite, "text_encoder": SentenceEncoder, "model": CCA}[name]()
