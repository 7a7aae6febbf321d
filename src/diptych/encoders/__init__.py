"""Pixels or words to feature vectors, cached."""

from diptych.encoders.concatenated import Concatenated
from diptych.encoders.encode_splits import encode_splits
from diptych.encoders.encoder import Encoder
from diptych.encoders.feature_cache import FeatureCache
from diptych.encoders.image import (
    ColourEdgeHistograms,
    EfficientNetLite,
    EncodedBatch,
    ImageEncoder,
    ImageNetLabels,
    ResNet50,
    SiftWords,
    imagenet_labels,
    read_picture,
    thumbnail,
)
from diptych.encoders.joint import JointImageEncoder, JointModel, JointTextEncoder, find_joint_model
from diptych.encoders.matrix_cache import MatrixCache
from diptych.encoders.text import (
    LdaTopics,
    MeanWordVectors,
    SentenceEncoder,
    Tfidf,
    TfidfTopics,
    WordPipeline,
    WordVectorCodebook,
    WordVectors,
    clean_query,
    label_vectors,
    load_word_vectors,
)

__all__ = [
    "ColourEdgeHistograms",
    "Concatenated",
    "EfficientNetLite",
    "EncodedBatch",
    "Encoder",
    "FeatureCache",
    "ImageEncoder",
    "ImageNetLabels",
    "JointImageEncoder",
    "JointModel",
    "JointTextEncoder",
    "LdaTopics",
    "MatrixCache",
    "MeanWordVectors",
    "ResNet50",
    "SentenceEncoder",
    "SiftWords",
    "Tfidf",
    "TfidfTopics",
    "WordPipeline",
    "WordVectorCodebook",
    "WordVectors",
    "clean_query",
    "encode_splits",
    "find_joint_model",
    "imagenet_labels",
    "label_vectors",
    "load_word_vectors",
    "read_picture",
    "thumbnail",
]
