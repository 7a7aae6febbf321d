"""Pixels or words to feature vectors, cached."""

from diptych.encoders.concatenated import Concatenated
from diptych.encoders.encode_splits import encode_splits
from diptych.encoders.encoder import Encoder
from diptych.encoders.feature_cache import FeatureCache
from diptych.encoders.image import ColourEdgeHistograms, read_picture
from diptych.encoders.matrix_cache import MatrixCache
from diptych.encoders.text import LdaTopics, SentenceEncoder, TfidfTopics

__all__ = [
    "ColourEdgeHistograms",
    "Concatenated",
    "Encoder",
    "FeatureCache",
    "LdaTopics",
    "MatrixCache",
    "SentenceEncoder",
    "TfidfTopics",
    "encode_splits",
    "read_picture",
]
