"""Words to feature vectors."""

from diptych.encoders.text.clean_query import clean_query
from diptych.encoders.text.label_vectors import label_vectors
from diptych.encoders.text.lda_topics import LdaTopics
from diptych.encoders.text.mean_word_vectors import MeanWordVectors
from diptych.encoders.text.sentence_encoder import SentenceEncoder
from diptych.encoders.text.tfidf import Tfidf
from diptych.encoders.text.tfidf_topics import TfidfTopics
from diptych.encoders.text.word_pipeline import WordPipeline
from diptych.encoders.text.word_vector_codebook import WordVectorCodebook
from diptych.encoders.text.word_vector_files import load_word_vectors
from diptych.encoders.text.word_vectors import WordVectors

__all__ = [
    "LdaTopics",
    "MeanWordVectors",
    "SentenceEncoder",
    "Tfidf",
    "TfidfTopics",
    "WordPipeline",
    "WordVectorCodebook",
    "WordVectors",
    "clean_query",
    "label_vectors",
    "load_word_vectors",
]
