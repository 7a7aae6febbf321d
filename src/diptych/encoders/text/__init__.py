"""Words to feature vectors."""

from diptych.encoders.text.sentence_encoder import SentenceEncoder
from diptych.encoders.text.tfidf import LdaTopics, Tfidf, TfidfTopics
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

__all__ = [
    "LdaTopics",
    "MeanWordVectors",
    "NearWord",
    "SentenceEncoder",
    "Tfidf",
    "TfidfTopics",
    "VisualQuery",
    "VisualSpan",
    "Visualness",
    "WordPipeline",
    "WordVectorCodebook",
    "WordVectors",
    "clean_query",
    "imagenet_concepts",
    "label_vectors",
    "load_word_vectors",
    "nearest_words",
    "read_vocabulary",
    "skip_gram",
    "visual_share",
]
