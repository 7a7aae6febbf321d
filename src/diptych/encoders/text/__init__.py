"""Words to feature vectors."""

from diptych.encoders.text.lda_topics import LdaTopics
from diptych.encoders.text.sentence_encoder import SentenceEncoder
from diptych.encoders.text.tfidf import Tfidf
from diptych.encoders.text.tfidf_topics import TfidfTopics
from diptych.encoders.text.word_pipeline import WordPipeline

__all__ = ["LdaTopics", "SentenceEncoder", "Tfidf", "TfidfTopics", "WordPipeline"]
