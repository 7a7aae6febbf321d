"""Words to feature vectors; the public names are those of `diptych.encoders`, and may be imported from here too."""

from diptych.lazy_exports import lazy_exports

__getattr__ = lazy_exports(
    __name__,
    {
        "diptych.encoders": (
            "LdaTopics MeanWordVectors NearWord SentenceEncoder Tfidf TfidfTopics UniversalSentenceEncoder "
            "VisualQuery VisualSpan Visualness WordPipeline WordVectorCodebook WordVectors clean_query "
            "imagenet_concepts label_vectors load_word_vectors nearest_words "
            "read_vocabulary skip_gram visual_share"
        )
    },
)
