"""Words to feature vectors."""

from diptych.encoders.text.lda_topics import LdaTopics
from diptych.encoders.text.sentence_encoder import SentenceEncoder
from diptych.encoders.text.tfidf_topics import TfidfTopics

__all__ = ["LdaTopics", "SentenceEncoder", "TfidfTopics"]
