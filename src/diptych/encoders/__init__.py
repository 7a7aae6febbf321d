"""Pixels or words to feature vectors, cached."""

from typing import TYPE_CHECKING

from diptych.lazy_exports import declared_exports

if TYPE_CHECKING:
    from diptych.encoders.concatenated import Concatenated as Concatenated
    from diptych.encoders.concatenated import SideBySide as SideBySide
    from diptych.encoders.encoded_splits import encode_splits as encode_splits
    from diptych.encoders.encoder import EncodedBatch as EncodedBatch
    from diptych.encoders.encoder import Encoder as Encoder
    from diptych.encoders.feature_cache import FeatureCache as FeatureCache
    from diptych.encoders.image.colour_edge_histograms import ColourEdgeHistograms as ColourEdgeHistograms
    from diptych.encoders.image.efficientnet_lite import EfficientNetLite as EfficientNetLite
    from diptych.encoders.image.image_encoder import ImageEncoder as ImageEncoder
    from diptych.encoders.image.imagenet_classes import ImageNetLabels as ImageNetLabels
    from diptych.encoders.image.imagenet_classes import imagenet_labels as imagenet_labels
    from diptych.encoders.image.picture_decoding import read_picture as read_picture
    from diptych.encoders.image.picture_decoding import thumbnail as thumbnail
    from diptych.encoders.image.resnet50 import ResNet50 as ResNet50
    from diptych.encoders.image.sift_words import SiftTopics as SiftTopics
    from diptych.encoders.image.sift_words import SiftWords as SiftWords
    from diptych.encoders.joint.export import export_folder as export_folder
    from diptych.encoders.joint.joint_model import JointImageEncoder as JointImageEncoder
    from diptych.encoders.joint.joint_model import JointTextEncoder as JointTextEncoder
    from diptych.encoders.joint.joint_model import find_joint_model as find_joint_model
    from diptych.encoders.joint.joint_model import open_joint_folder as open_joint_folder
    from diptych.encoders.text.multilingual_sentences import MultilingualSentences as MultilingualSentences
    from diptych.encoders.text.sentence_encoder import SentenceEncoder as SentenceEncoder
    from diptych.encoders.text.tfidf import LdaTopics as LdaTopics
    from diptych.encoders.text.tfidf import Tfidf as Tfidf
    from diptych.encoders.text.tfidf import TfidfTopics as TfidfTopics
    from diptych.encoders.text.universal_sentence_encoder import UniversalSentenceEncoder as UniversalSentenceEncoder
    from diptych.encoders.text.visualness import Visualness as Visualness
    from diptych.encoders.text.visualness import VisualQuery as VisualQuery
    from diptych.encoders.text.visualness import VisualSpan as VisualSpan
    from diptych.encoders.text.visualness import imagenet_concepts as imagenet_concepts
    from diptych.encoders.text.visualness import visual_share as visual_share
    from diptych.encoders.text.word_pipeline import WordPipeline as WordPipeline
    from diptych.encoders.text.word_pipeline import clean_query as clean_query
    from diptych.encoders.text.word_vector_encoders import MeanWordVectors as MeanWordVectors
    from diptych.encoders.text.word_vector_encoders import WordVectorCodebook as WordVectorCodebook
    from diptych.encoders.text.word_vector_files import load_word_vectors as load_word_vectors
    from diptych.encoders.text.word_vectors import NearWord as NearWord
    from diptych.encoders.text.word_vectors import WordVectors as WordVectors
    from diptych.encoders.text.word_vectors import label_vectors as label_vectors
    from diptych.encoders.text.word_vectors import nearest_words as nearest_words
    from diptych.encoders.text.word_vectors import skip_gram as skip_gram
else:
    # Most of them need scikit-learn, which takes longer to import than all that a reader of pictures needs.
    __getattr__, __all__ = declared_exports(__name__)
