"""Words to feature vectors."""

from diptych.encoders.text.clean_query import clean_query
from diptych.encoders.text.label_vectors import label_vectors
from diptych.encoders.text.lda_topics import LdaTopics
from diptych.encoders.text.mean_word_vectors import MeanWordVectors
from diptych.encoders.text.nearest_words import NearWord, nearest_words
from diptych.encoders.text.sentence_encoder import SentenceEncoder
from diptych.encoders.text.skip_gram import skip_gram
from diptych.encoders.text.tfidf import Tfidf
from diptych.encoders.text.tfidf_topics import TfidfTopics
from diptych.encoders.text.visual_concepts import imagenet_concepts
from diptych.encoders.text.visual_query import VisualQuery
from diptych.encoders.text.visual_share import visual_share
from diptych.encoders.text.visual_span import VisualSpan
from diptych.encoders.text.visual_vocabulary import read_vocabulary
from diptych.encoders.text.visualness import Visualness
from diptych.encoders.text.word_pipeline import WordPipeline
from diptych.encoders.text.word_vector_codebook import WordVectorCodebook
from diptych.encoders.text.word_vector_files import load_word_vectors
from diptych.encoders.text.word_vectors import WordVectors

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
