"""The words by which people ask for generated scenes: those of the captions, and others that mean the same."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache

from diptych.data.datasets.scenes.captions import (
    ACTIONS,
    COLOUR_WORDS,
    MOODS,
    NOUNS,
    PAGE_ACTIONS,
    SIZE_WORDS,
    TEXTURE_WORDS,
    VIEWS,
    WHERE,
)
from diptych.encoders.text.word_pipeline import find_stop_words

WORD = re.compile(r"[a-z]+(?:-[a-z]+)*|[0-9]+|[.,;:!?]")

_MORE_NOUNS: dict[str, str] = {
    "ball": "football beachball basketball sphere globe",
    "balloon": "airship ballon",
    "boat": "ship yacht vessel sailship dinghy",
    "butterfly": "moth",
    "car": "auto vehicle",
    "fish": "goldfish",
    "flower": "rose daisy tulip plant",
    "house": "home hut cabin building chalet villa",
    "kite": "",
    "mushroom": "fungus shroom",
    "rocket": "spacecraft spacerocket shuttle missile",
    "umbrella": "sunshade brolly",
}
_IRREGULAR_PLURALS: dict[str, str] = {"fish": "fish", "goldfish": "goldfish", "fungus": "fungi"}
_MORE_COLOURS: dict[str, str] = {
    "red": "crimson ruby reddish",
    "orange": "tangerine",
    "yellow": "gold lemon yellowish",
    "green": "emerald lime greenish",
    "turquoise": "cyan aqua aquamarine",
    "blue": "navy azure bluish",
    "purple": "lilac lavender mauve",
    "pink": "magenta pinkish",
    "brown": "tan beige chestnut brownish",
    "white": "ivory cream whitish",
}
_MORE_LOOKS: dict[str, dict[str, str]] = {
    "size": {"small": "mini miniature", "medium": "medium", "large": "huge giant enormous great"},
    "texture": {
        "plain": "unpatterned",
        "striped": "stripes stripe",
        "dotted": "dots spots dot spotty",
        "checked": "checkered checks checkerboard",
    },
    "row": {"top": "top upper", "bottom": "bottom lower"},
    "column": {"left": "left", "centre": "middle centre center", "right": "right"},
}
# Single words for places; a word that suits several places asks for any of them.
_PLACE_WORDS: dict[str, str] = {
    "meadow": "meadow meadows grass grassy field fields countryside lawn hills hill sunny pasture park",
    "seaside": "seaside beach beaches coast coastal seashore shore sand sandy sea ocean water waves",
    "night": "night nights starry stars star moon moonlit moonlight midnight nighttime",
    "desert": "desert deserts dune dunes sand sandy cactus cacti hot sahara",
    "snow": "snow snowy winter wintry snowing snowfall cold frost frosty ice icy mountains hills hill",
    "sunset": "sunset evening dusk twilight sundown lake shore water",
    "forest": "forest forests woods wood woodland tree trees clearing jungle",
    "city": "city cities town towns street streets skyline skyscraper skyscrapers buildings road urban downtown",
    "underwater": "underwater seabed seaweed bubbles undersea submarine sea ocean water",
    "paper": "paper page sketch sketchbook drawing drawn sheet notebook",
}
_MORE_PHRASES: dict[str, str] = {
    "underwater": "under water,under the sea,under the water,under the ocean,below the water,ocean floor,sea floor,"
    "bottom of the sea,bottom of the ocean,deep sea,in the sea",
    "seaside": "by the sea,on the sea,at the sea,near the sea,by the ocean",
    "sunset": "setting sun,on a lake,by a lake,evening sky,sun going down",
    "night": "night sky,at night,by night,in the dark",
    "city": "tall buildings,city lights,in town",
    "paper": "piece of paper,sheet of paper",
}
NUMBER_WORDS: dict[str, str] = {
    "1": "1",
    "one": "1",
    "single": "1",
    "lone": "1",
    "2": "2",
    "two": "2",
    "pair": "2",
    "couple": "2",
    "twin": "2",
    "both": "2",
    "3": "3",
    "three": "3",
    "trio": "3",
    "4": "4",
    "four": "4",
    "several": "several",
    "many": "several",
    "some": "several",
    "multiple": "several",
    "few": "several",
    "another": "several",
}
ANY_THING = frozenset({"thing", "things", "object", "objects", "something", "anything", "item", "items", "ones"})
# Words that begin to speak of another thing.
BEGINNINGS = frozenset({"a", "an", "another", ".", "!", "?", ";", ":"})
# Words of the captions that say nothing of what can be seen, or say it of no thing in particular.
_NEUTRAL_WORDS = """
    toy hot-air air hot sailing sailboat pattern patterned picture photo image scene here look see can one
    ones view there what them it its they sky next beside front behind above below left right with without
    colour coloured color colored painted painting pale broad light dark bright day
"""


def _plural(noun: str) -> str:
    if noun in _IRREGULAR_PLURALS:
        return _IRREGULAR_PLURALS[noun]
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("s", "sh", "ch", "x")) else f"{noun}s"


@cache
def nouns() -> dict[str, tuple[str, bool]]:
    """Return the kind that each noun stands for, and whether it is a plural."""
    found: dict[str, tuple[str, bool]] = {}
    for kind, forms in NOUNS.items():
        singulars = [name.split()[-1] for name, _ in forms] + _MORE_NOUNS[kind].split()
        found |= {_plural(name): (kind, True) for name in singulars}
        found |= dict.fromkeys(singulars, (kind, False))
    return found


@cache
def looks() -> dict[str, tuple[str, str]]:
    """Return the look and its value that each adjective stands for."""
    tables: list[tuple[str, Mapping[str, Iterable[str]]]] = [
        ("colour", COLOUR_WORDS),
        ("size", SIZE_WORDS),
        ("texture", TEXTURE_WORDS),
        ("colour", {value: words.split() for value, words in _MORE_COLOURS.items()}),
        *((look, {value: words.split() for value, words in table.items()}) for look, table in _MORE_LOOKS.items()),
    ]
    return {word: (look, value) for look, table in tables for value, words in table.items() for word in words}


@cache
def place_phrases() -> dict[str, list[tuple[list[str], frozenset[str]]]]:
    """Return by its first word each phrase about a place with the backgrounds that it may mean, the longest first."""
    found: dict[tuple[str, ...], set[str]] = {}
    for table in (VIEWS, MOODS):
        for background, phrases in table.items():
            for phrase in phrases:
                found.setdefault(_content(phrase), set()).add(background)
    for background, settings in WHERE.items():
        for phrases in settings.values():
            for phrase in phrases:
                found.setdefault(_content(phrase), set()).add(background)
    for background, listed in _MORE_PHRASES.items():
        for phrase in listed.split(","):
            found.setdefault(tuple(phrase.split()), set()).add(background)
    for background, words in _PLACE_WORDS.items():
        for word in words.split():
            found.setdefault((word,), set()).add(background)
    by_word: dict[str, list[tuple[list[str], frozenset[str]]]] = {}
    for content, places in sorted(found.items(), key=lambda each: -len(each[0])):
        by_word.setdefault(content[0], []).append((list(content), frozenset(places)))
    return by_word


def _content(phrase: str) -> tuple[str, ...]:
    # "a sunny meadow" is said as "the sunny meadow" and "sunny meadow", too.
    words = WORD.findall(phrase.lower())
    while words[0] in ("a", "an", "the"):
        words = words[1:]
    return tuple(words)


@cache
def is_neutral(word: str) -> bool:
    """Say whether a word that names nothing of a scene asks for nothing either."""
    return word in _neutral_words() or word in _verbs() or word in find_stop_words("pictures") or not word.isalnum()


@cache
def _neutral_words() -> frozenset[str]:
    return frozenset(_NEUTRAL_WORDS.split())


@cache
def _verbs() -> frozenset[str]:
    forms = [form for settings in ACTIONS.values() for actions in settings.values() for form in actions]
    return frozenset(word for action in (*forms, *PAGE_ACTIONS) for form in action for word in form.split())
