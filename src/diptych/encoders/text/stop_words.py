"""Words that say nothing about what a text is about."""

from __future__ import annotations

from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from diptych.errors import InvalidInputError

_CLOSED_CLASSES = (
    # articles and demonstratives
    "a an the this that these those here there",
    # pronouns
    "i me my mine myself you your yours yourself yourselves he him his himself she her hers herself it its itself",
    "we us our ours ourselves they them their theirs themselves who whom whose which what",
    # auxiliary verbs
    "am is are was were be been being do does did doing done have has had having can could may might must shall",
    "should will would",
    # what is left of contractions when the apostrophe cuts them
    "don doesn didn isn aren wasn weren won wouldn shouldn couldn hasn haven hadn ain ll ve re",
    # prepositions
    "about above across after against along among around as at before behind below beneath beside besides between",
    "beyond by despite down during except for from in inside into near of off on onto out outside over past per since",
    "than through throughout till to toward towards under underneath until up upon via with within without",
    # conjunctions
    "and but or so yet if because although though while whereas whether unless when where why how",
    # quantifiers and adverbs of degree and time
    "all any both each either every more most much neither no nor not other others another some such own same too very",
    "just only also then again once ever never now",
)

FUNCTION_WORDS = frozenset(word for line in _CLOSED_CLASSES for word in line.split())
"""The closed classes of English. Words that can be seen (fire, front, two) are not among them."""

PICTURE_WORDS = frozenset({"image", "images", "picture", "pictures", "photo", "photos", "pic", "pics"})
"""What people write when they search for a picture of something, whatever the something is."""


def find_stop_words(name: str | None) -> frozenset[str]:
    """Return a list of stop words: none for None, that of scikit-learn for ``"english"``, or ``"pictures"``.

    ``"pictures"`` joins :data:`FUNCTION_WORDS` and :data:`PICTURE_WORDS`, which Dong et al., "Cross-media similarity
    evaluation for web image retrieval in the wild", 2018, remove from queries.

    >>> from diptych.encoders.text.stop_words import find_stop_words
    >>> sorted({"photo", "of", "fire"} & find_stop_words("pictures"))
    ['of', 'photo']
    """
    if name not in _LISTS:
        raise InvalidInputError(f"stop_words must be one of {', '.join(map(repr, _LISTS))}, got {name!r}")
    return _LISTS[name]


_LISTS: dict[str | None, frozenset[str]] = {
    None: frozenset(),
    "english": frozenset(ENGLISH_STOP_WORDS),
    "pictures": FUNCTION_WORDS | PICTURE_WORDS,
}
