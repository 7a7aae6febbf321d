"""Pixels or words to feature vectors, cached."""

from typing import TYPE_CHECKING

from diptych.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from diptych.encoders.concatenated import Concatenated, SideBySide
    from diptych.encoders.encoded_splits import encode_splits
    from diptych.encoders.encoder import EncodedBatch, Encoder
    from diptych.encoders.feature_cache import FeatureCache, MatrixCache
    from diptych.encoders.image.colour_edge_histograms import ColourEdgeHistograms
    from diptych.encoders.image.efficientnet_lite import EfficientNetLite
    from diptych.encoders.image.image_encoder import ImageEncoder
    from diptych.encoders.image.imagenet_classes import ImageNetLabels, imagenet_labels
    from diptych.encoders.image.picture_decoding import read_picture, thumbnail
    from diptych.encoders.image.resnet50 import ResNet50
    from diptych.encoders.image.sift_words import SiftWords
    from diptych.encoders.joint.joint_model import JointImageEncoder, JointModel, JointTextEncoder, find_joint_model
    from diptych.encoders.scenes.scene_things import SceneThings
    from diptych.encoders.scenes.scene_words import SceneWords
    from diptych.encoders.text.languages import guess_language, language_probabilities
    from diptych.encoders.text.multilingual_sentences import MultilingualSentences
    from diptych.encoders.text.sentence_encoder import SentenceEncoder
    from diptych.encoders.text.tfidf import LdaTopics, Tfidf, TfidfTopics
    from diptych.encoders.text.universal_sentence_encoder import UniversalSentenceEncoder
    from diptych.encoders.text.visualness import (
        Visualness,
        VisualQuery,
        VisualSpan,
        imagenet_concepts,
        read_vocabulary,
        visual_share,
    )
    from diptych.encoders.text.word_pipeline import WordPipeline, clean_query
    from diptych.encoders.text.word_vector_encoders import MeanWordVectors, WordVectorCodebook
    from diptych.encoders.text.word_vector_files import load_word_vectors
    from diptych.encoders.text.word_vectors import NearWord, WordVectors, label_vectors, nearest_words, skip_gram
else:
    # Most of them need scikit-learn, which takes longer to import than all that a reader of pictures needs.
    __getattr__ = lazy_exports(
        __name__,
        {
            "diptych.encoders.concatenated": "Concatenated SideBySide",
            "diptych.encoders.encoded_splits": "encode_splits",
            "diptych.encoders.encoder": "EncodedBatch Encoder",
            "diptych.encoders.feature_cache": "FeatureCache MatrixCache",
            "diptych.encoders.image.colour_edge_histograms": "ColourEdgeHistograms",
            "diptych.encoders.image.efficientnet_lite": "EfficientNetLite",
            "diptych.encoders.image.image_encoder": "ImageEncoder",
            "diptych.encoders.image.imagenet_classes": "ImageNetLabels imagenet_labels",
            "diptych.encoders.image.picture_decoding": "read_picture thumbnail",
            "diptych.encoders.image.resnet50": "ResNet50",
            "diptych.encoders.image.sift_words": "SiftWords",
            "diptych.encoders.joint.joint_model": "JointImageEncoder JointModel JointTextEncoder find_joint_model",
            "diptych.encoders.scenes.scene_things": "SceneThings",
            "diptych.encoders.scenes.scene_words": "SceneWords",
            "diptych.encoders.text.languages": "guess_language language_probabilities",
            "diptych.encoders.text.multilingual_sentences": "MultilingualSentences",
            "diptych.encoders.text.sentence_encoder": "SentenceEncoder",
            "diptych.encoders.text.tfidf": "LdaTopics Tfidf TfidfTopics",
            "diptych.encoders.text.universal_sentence_encoder": "UniversalSentenceEncoder",
            "diptych.encoders.text.visualness": (
                "VisualQuery VisualSpan Visualness imagenet_concepts read_vocabulary visual_share"
            ),
            "diptych.encoders.text.word_pipeline": "WordPipeline clean_query",
            "diptych.encoders.text.word_vector_encoders": "MeanWordVectors WordVectorCodebook",
            "diptych.encoders.text.word_vector_files": "load_word_vectors",
            "diptych.encoders.text.word_vectors": "NearWord WordVectors label_vectors nearest_words skip_gram",
        },
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
    "MultilingualSentences",
    "NearWord",
    "ResNet50",
    "SceneThings",
    "SceneWords",
    "SentenceEncoder",
    "SideBySide",
    "SiftWords",
    "Tfidf",
    "TfidfTopics",
    "UniversalSentenceEncoder",
    "VisualQuery",
    "VisualSpan",
    "Visualness",
    "WordPipeline",
    "WordVectorCodebook",
    "WordVectors",
    "clean_query",
    "encode_splits",
    "find_joint_model",
    "guess_language",
    "imagenet_concepts",
    "imagenet_labels",
    "label_vectors",
    "language_probabilities",
    "load_word_vectors",
    "nearest_words",
    "read_picture",
    "read_vocabulary",
    "skip_gram",
    "thumbnail",
    "visual_share",
]
