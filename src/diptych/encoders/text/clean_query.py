"""A query as the words that count."""

from __future__ import annotations

from diptych.encoders.text.lemmas import lemma
from diptych.encoders.text.query_words import query_words


def clean_query(text: str) -> tuple[str, ...]:
    """Return the words of a query in order: lower case, no punctuation, dictionary forms, no stop words.

    This is the preprocessing of Dong et al., "Cross-media similarity evaluation for web image retrieval in the wild",
    IEEE Transactions on Multimedia 2018: words of more than three letters become their dictionary form, the function
    words of English go, and so do image, picture, photo and pic with their plurals. Single characters between double
    quotes, or each with a full stop, are one word. The lemmas are those of the package simplemma,
    where theirs are those of NLTK, and the stop words are our own list.

    Use it wherever two queries are compared by their words, as the click models do: queries with the same words are
    then the same query, whatever their order, number and punctuation.

    Examples
    --------
    >>> from diptych.encoders import clean_query
    >>> clean_query("Pictures of the DOGS and cats!")
    ('dog', 'cat')
    >>> clean_query('jessie "t v" show'), clean_query("photo of the")
    (('jessie', 'tv', 'show'), ())
    """
    return tuple([lemma(word.word) for word in query_words(text) if word.counts])
