"""What words about a generated scene ask for: things with their looks and numbers, places, and the words for them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import ClassVar, Self

import numpy as np

from diptych.arrays import FloatArray
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
from diptych.encoders.encoder import Encoder, check_texts
from diptych.encoders.scenes.scene_things import LENGTH, POSITIONS, SEVERAL, WIDTH, fact, main_fact, place_fact
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


# How much each thing said counts. The colour counts more than the place, so that "a red car in the city" is answered
# by red cars elsewhere before cars of other colours in the city.
_OF_KIND, _OF_PLACE, _OF_NUMBER, _OF_PLURAL, _OF_UNKNOWN = 1.0, 1.0, 1.2, 0.2, 1.0
_OF_LOOKS = {"colour": 1.5, "texture": 0.8, "size": 0.4, "row": 0.3, "column": 0.3}
# A text that says more, all of it true, is a better answer to a picture than one that says less.
_SILENCE = 0.1
# Among pictures that show what is asked for, those that show little else come first.
_OF_MAIN = 0.15
_SENTENCE_ENDS = frozenset(".!?;:")


@dataclass
class Mention:
    """A thing that a text speaks of: its kind, None for any, its looks and how many there are."""

    kind: str | None = None
    looks: dict[str, str] = field(default_factory=dict)
    number: str | None = None


@dataclass
class Reading:
    """What a text asks for: things, places by the words that name them, and words that nothing painted answers."""

    mentions: list[Mention] = field(default_factory=list)
    places: list[frozenset[str]] = field(default_factory=list)
    unknown: set[str] = field(default_factory=set)


class SceneWords(Encoder):
    """The facts about a generated scene that a text asks for, eight times their shares of all that it asks for.

    The grammar is that of short English descriptions: adjectives belong to the noun after them ("a red car and a white
    house") or, after "is", "with" and the like, to the one before ("the car is red", "a ball with stripes"); numbers
    are words or digits; places are phrases ("on the seabed", "at night") or single words ("snow"). Words that mean
    the same ask for the same fact: automobile and car, ship and boat, scarlet and red. A word that names nothing
    that is painted takes its share with it, so that no picture answers such a text in full. There is nothing to learn.

    Examples
    --------
    >>> from diptych.encoders import SceneWords
    >>> from diptych.encoders.scenes.scene_things import FACTS
    >>> asked = SceneWords().transform(["two scarlet automobiles in town"])[0]
    >>> [name for name, share in zip(FACTS, asked) if share > 0]
    ['at: city', 'a car', 'a red car', '2 × red car', 'mostly car']
    """

    learns: ClassVar[bool] = False

    @property
    def understood_languages(self) -> frozenset[str]:
        """English alone."""
        return frozenset({"en"})

    def fit(self, items: Sequence[str]) -> Self:
        """Do nothing: there is nothing to learn."""
        del items
        return self

    def transform(self, items: Sequence[str]) -> FloatArray:
        """Return one row of facts per text."""
        check_texts(items)
        return np.stack([_asked(read_text(text)) for text in items])


def read_text(text: str) -> Reading:
    """Return what a text asks for.

    >>> from diptych.encoders.scenes.scene_words import read_text
    >>> reading = read_text("Three balls, two red and one blue, in the snow.")
    >>> [(mention.kind, mention.number, mention.looks) for mention in reading.mentions]
    [('ball', '3', {}), ('ball', '2', {'colour': 'red'}), ('ball', '1', {'colour': 'blue'})]
    """
    reading = Reading()
    sentence: list[str] = []
    for word in [*WORD.findall(text.lower()), "."]:
        if word not in _SENTENCE_ENDS:
            sentence.append(word)
        elif sentence:
            _read_sentence(list(_without_places(sentence, reading)), reading)
            sentence = []
    return reading


def _without_places(words: list[str], reading: Reading) -> Iterator[str]:
    """Yield the words that are not about the place, and note the places that the others name."""
    start = 0
    while start < len(words):
        for phrase, places in place_phrases().get(words[start], ()):
            if words[start : start + len(phrase)] == phrase:
                reading.places.append(places)
                start += len(phrase)
                break
        else:
            if words[start : start + 2] == ["to", "the"] and words[start + 3 : start + 4] == ["of"]:
                # "to the left of" tells where another thing is.
                start += 3
            else:
                yield words[start]
                start += 1


def _read_sentence(words: list[str], reading: Reading) -> None:
    last: Mention | None = None
    # What was said of no noun yet: in front, then what goes on beside it.
    waiting: list[Mention] = []
    open_mention = Mention()
    for word in words:
        begins = word in BEGINNINGS or word in NUMBER_WORDS
        if begins and open_mention.looks:
            _give(open_mention, last, waiting, reading)
            open_mention = Mention()
        if word in NUMBER_WORDS:
            open_mention.number = NUMBER_WORDS[word]
        elif word == "them":
            # "One of them a red car" counts nothing.
            open_mention.number = None
        elif word in looks():
            look, value = looks()[word]
            open_mention.looks[look] = value
        elif word in nouns() or word in ANY_THING:
            kind, is_plural = nouns().get(word, (None, False))
            last = Mention(kind, open_mention.looks, open_mention.number)
            if last.number is None and is_plural:
                last.number = "plural"
            reading.mentions.append(last)
            reading.mentions += [Mention(kind, each.looks, each.number) for each in waiting]
            waiting, open_mention = [], Mention()
        elif not is_neutral(word):
            reading.unknown.add(word)
    if open_mention.looks:
        _give(open_mention, last, waiting, reading)
    reading.mentions += waiting


def _give(said: Mention, last: Mention | None, waiting: list[Mention], reading: Reading) -> None:
    """Give looks without a noun to the noun before them, or let them wait for one."""
    if last is None:
        waiting.append(said)
    elif said.number is None:
        for look, value in said.looks.items():
            last.looks.setdefault(look, value)
    else:
        reading.mentions.append(Mention(last.kind, said.looks, said.number))


def _asked(reading: Reading) -> FloatArray:
    """Return the shares of the facts that a text asks for."""
    asked: dict[str, float] = {}
    for mention in reading.mentions:
        for name, weight in _facts_of(mention):
            asked[name] = max(weight, asked.get(name, 0.0))
    total = sum(asked.values()) + _OF_UNKNOWN * len(reading.unknown)
    row = np.zeros(WIDTH)
    for name, weight in asked.items():
        row[POSITIONS[name]] = weight
    for mention in reading.mentions:
        main = mention.looks.get("colour") if mention.kind is None else mention.kind
        if main is not None:
            row[POSITIONS[main_fact(main)]] = _OF_MAIN
    if reading.places:
        total += _OF_PLACE
        for places in reading.places:
            for background in places:
                row[POSITIONS[place_fact(background)]] += _OF_PLACE / len(reading.places)
    return np.asarray(row * (LENGTH / (total + _SILENCE)), dtype=np.float32)


def _facts_of(mention: Mention) -> Iterator[tuple[str, float]]:
    subject = [] if mention.kind is None else [("kind", mention.kind)]
    if mention.kind is not None:
        yield fact(mention.kind), _OF_KIND
    for look, value in mention.looks.items():
        weight = _OF_LOOKS[look]
        if mention.kind is None:
            yield fact(value), weight
        else:
            yield fact(mention.kind, value), weight
    if {"colour", "texture"} <= set(mention.looks):
        yield fact(mention.looks["colour"], mention.looks["texture"]), _OF_LOOKS["texture"]
    if mention.number is None:
        return
    if "colour" in mention.looks:
        subject.append(("colour", mention.looks["colour"]))
    number, weight = (SEVERAL, _OF_PLURAL) if mention.number == "plural" else (mention.number, _OF_NUMBER)
    yield fact(*(value for _, value in subject), number=number), weight
