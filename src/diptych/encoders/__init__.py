"""Pixels or words to feature vectors, cached."""

from diptych.encoders.encode_splits import encode_splits
from diptych.encoders.encoder import Encoder
from diptych.encoders.feature_cache import FeatureCache
from diptych.encoders.image import ColourEdgeHistograms, read_picture
from diptych.encoders.text import LdaTopics, TfidfTopics

__all__ = [
    "ColourEdgeHistograms",
    "Encoder",
    "FeatureCache",
    "LdaTopics",
    "TfidfTopics",
    "encode_splits",
    "read_picture",
]
