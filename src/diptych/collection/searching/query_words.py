"""The words of a query as people write them: what they do not want to see, and words that they misspell."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from diptych.collection.sought_words import folded_words
from diptych.encoders.text.english_words import describing_words, is_english_word
from diptych.encoders.text.languages import reads_as_english


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


# "no" and "not" mean other things in other languages, and "sin" and "sans" in English.
_ENGLISH_NEGATORS = _set("no not nobody noone")
_FOREIGN_NEGATORS = _set("sin sans sem")
_NEGATORS = (
    _set("without ohne kein keine keinen keiner keinem senza zonder geen") | _ENGLISH_NEGATORS | _FOREIGN_NEGATORS
)
_NOBODY = _set("nobody noone")
_CONTRASTS = _set("but aber pero mais ma maar mas")
_AND = _set("and und y et e en")
_OR = _set("or nor oder o ou of")
# They lead to a negation and say nothing more: with no, and no, but without.
_LEADING = _CONTRASTS | _AND | _set("with mit con avec wearing")
_ARTICLES = _set("a an the any other ein eine einen un una une des de")
_PREPOSITIONS = _set("on in at near by under behind beside auf am an im sur dans")
# "is not looking" and "not only" describe; a sign that says no parking is wanted.
_AUXILIARIES = _set("is are was were do does did can could will would has have be why if or")
_AFTER_NOT = _set("only just yet so very to even much many enough really quite far") | _PREPOSITIONS
_AFTER_NO = _set("entry exit entrance access more longer doubt idea way problem matter limit limits")
_SIGNS = _set("sign signs symbol symbols logo poster warning")
# Captions describe people as without these: it can be seen, and text encoders know it.
_SEEN_TO_LACK = _set("shirt shirts shoes socks clothes clothing pants trousers top hands")
_MARKS = ",.;!?\"'"
UNWANTED_WEIGHT = -0.5
"""What is unwanted weighs less than what is wanted: as much would cost answers that show it."""
MAX_UNWANTED_WORDS = 3
"""What is unwanted has so many words at most; longer ones are sentences, which stay as they are."""
_CHINESE = re.compile(r"(?P<wanted>.*?)[，,]?\s*[没沒]有(?P<unwanted>[^的，,\s]{1,4})(?:的(?P<more>.+))?")


def wanted_and_unwanted(text: str) -> tuple[str, list[str]]:
    """Return what a text asks for, and what it wants to be without; a text that is not sure to say so is all wanted.

    >>> wanted_and_unwanted("a beach but no people"), wanted_and_unwanted("playa sin gente")
    (('a beach', ['people']), ('playa', ['gente']))
    >>> wanted_and_unwanted("no dogs or cats on the beach"), wanted_and_unwanted("a no parking sign")
    (('the beach', ['dogs', 'cats']), ('a no parking sign', []))
    """
    chinese = _CHINESE.fullmatch(text)
    if chinese is not None:
        return f"{chinese['wanted']}{chinese['more'] or ''}".strip(), [chinese["unwanted"]]
    words = [word for word in text.split() if word.strip(".!?")]
    plain = [word.lower().strip(_MARKS) for word in words]
    if _NEGATORS.isdisjoint(plain) or not _SIGNS.isdisjoint(plain):
        return text, []
    is_english = reads_as_english(text)
    wanted: list[str] = []
    unwanted: list[str] = []
    place = 0
    while place < len(words):
        word = plain[place]
        if word not in _NEGATORS or (word in _FOREIGN_NEGATORS and is_english):
            wanted.append(words[place])
            place += 1
            continue
        if word in _ENGLISH_NEGATORS and not (is_english and _excludes(plain, place)):
            return text, []
        while wanted and wanted[-1].lower().strip(_MARKS) in _LEADING | {""}:
            wanted.pop()
        parts, place = _unwanted_parts(words, plain, place, is_first=not wanted)
        if not parts or not all(map(_is_thing, parts)):
            return text, []
        unwanted += [" ".join(part) for part in parts]
    return " ".join(wanted).rstrip(",; "), unwanted


def _excludes(plain: Sequence[str], place: int) -> bool:
    """Return True if an English "no" or "not" excludes what follows it."""
    before = plain[place - 1] if place else ""
    after = plain[place + 1] if place + 1 < len(plain) else ""
    if plain[place] in _NOBODY:
        return True
    if plain[place] == "not":
        return bool(before and after) and before not in _AUXILIARIES and after not in _AFTER_NOT
    is_sign = after.endswith("ing") or after in _AFTER_NO or after[:1].isdigit()
    return bool(after) and not is_sign


def _unwanted_parts(
    words: Sequence[str], plain: Sequence[str], place: int, *, is_first: bool
) -> tuple[list[list[str]], int]:
    """Return the things that follow a negation, and where the text goes on."""
    parts: list[list[str]] = [["people"]] if plain[place] in _NOBODY else [[]]
    place += 1
    while place < len(words):
        word = plain[place]
        if word in _CONTRASTS or (word in _LEADING and place + 1 < len(words) and plain[place + 1] in _NEGATORS):
            break
        if word in _NEGATORS:
            break
        if is_first and word in _PREPOSITIONS:
            place += 1
            break
        if word in _AND and place + 1 < len(words) and plain[place + 1] in _ARTICLES:
            break
        if word in _OR | _AND:
            parts.append([])
        elif word == "one" and plain[place - 1] == "no":
            parts[-1].append("people")
        elif parts[-1] or word not in _ARTICLES:
            parts[-1].append(words[place].strip(_MARKS))
        place += 1
        if words[place - 1].endswith((",", ";")):
            break
    return [part for part in parts if part], place


def _is_thing(part: Sequence[str]) -> bool:
    """Return True if some words may be left out of pictures; sentences and what captions miss stay as they are."""
    is_said_of_people = not _SEEN_TO_LACK.isdisjoint(part)
    return len(part) <= MAX_UNWANTED_WORDS and not is_said_of_people and _AUXILIARIES.isdisjoint(part)


class Correction(NamedTuple):
    """A text with its misspelt words corrected, and whether that is sure enough to search for it at once."""

    text: str
    is_sure: bool


CountWords = Callable[[Sequence[str]], Mapping[str, int]]
"""Counts, for folded words, how many items and captions of a collection hold each; absent ones may be left out."""

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_KEYBOARD = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_WORD = re.compile(r"[^\W\d_]+")
MIN_LETTERS = 4
"""Shorter words have too many neighbours to be corrected."""
MIN_SURE_LETTERS = 5
MAX_LETTERS = 24
_FEWEST_IN_COLLECTION = 2
_COUNTED_AT_MOST = 50
# How likely words are that captions of photographs hold, their inflected forms, and names of visible things.
_USUAL, _INFLECTED, _NAME = 5.0, 2.0, 0.5
_DOUBLED = tuple("bdgmnprt")
_SURE = 4.0


def corrected(text: str, count_words: CountWords) -> Correction | None:
    """Return a text with the likeliest spelling of words that neither the collection nor a list of words has.

    The noisy channel of Kernighan, Church and Gale, "A spelling correction program based on a noisy channel model",
    COLING 1990: one slip away, a word is the likelier the more often the collection or captions of photographs have
    it, and the usual slips count more. None where every word is known or nothing is near. A correction is sure where
    no other is nearly as likely, the word has no capital and the rest of the text is English.

    >>> corrected("swiming pool", lambda words: {}), corrected("IMG_2034 kaufland", lambda words: {})
    (Correction(text='swimming pool', is_sure=True), None)
    """
    pieces: list[str] = []
    others = text
    end, is_sure = 0, True
    for match in _WORD.finditer(text):
        word = match.group()
        folded = folded_words(word)
        if len(folded) != 1 or not _may_be_misspelt(folded[0], text, match.span()):
            continue
        candidates = _likely(folded[0], count_words)
        if not candidates:
            continue
        (best, likelihood), *less_likely = sorted(candidates.items(), key=lambda each: (-each[1], each[0]))
        is_sure &= not less_likely or likelihood >= _SURE * less_likely[0][1]
        is_sure &= word.islower() and len(word) >= MIN_SURE_LETTERS
        pieces += [text[end : match.start()], best.capitalize() if word[0].isupper() else best]
        others = others.replace(word, "")
        end = match.end()
    if not pieces:
        return None
    return Correction("".join([*pieces, text[end:]]), is_sure and reads_as_english(others))


def _may_be_misspelt(word: str, text: str, span: tuple[int, int]) -> bool:
    """Return True if no list of words has a word, and it is no part of a number or the name of a file."""
    beside = text[max(0, span[0] - 1) : span[0]] + text[span[1] : span[1] + 1]
    if not (MIN_LETTERS <= len(word) <= MAX_LETTERS and word.isascii()) or re.search(r"[\w./@'’-]", beside):
        return False
    return not (word in describing_words() or is_english_word(word) or word in _named_words())


@cache
def _named_words() -> frozenset[str]:
    # Imported lazily: few queries hold a word that is in no dictionary.
    from diptych.encoders.text.visualness import concept_names

    return frozenset(word for name in concept_names() for word in folded_words(name))


@cache
def _inflected_words() -> frozenset[str]:
    """Return forms of usual words that may be English: running, leashes, tossed."""
    stems = {stem for word in describing_words() if word.isascii() for stem in (word, word.removesuffix("e"))}
    stems |= {word + word[-1] for word in stems if word.endswith(_DOUBLED)}
    return frozenset(stem + ending for stem in stems for ending in ("s", "es", "ed", "er", "ing"))


def _likely(word: str, count_words: CountWords) -> dict[str, float]:
    """Return known words that are one slip away with how likely each is; nothing where the collection has the word."""
    slips: dict[str, float] = defaultdict(float)
    for candidate, weight in _one_slip_away(word):
        slips[candidate] = max(slips[candidate], weight)
    counts = count_words([word, *slips])
    if counts.get(word):
        return {}
    usual, names = describing_words(), _named_words()
    found = {}
    for candidate, weight in slips.items():
        count = counts.get(candidate, 0)
        known = float(min(count, _COUNTED_AT_MOST)) if count >= _FEWEST_IN_COLLECTION else 0.0
        if candidate in usual:
            known += _USUAL
        elif candidate in _inflected_words() and is_english_word(candidate):
            known += _INFLECTED
        elif candidate in names and is_english_word(candidate):
            known += _NAME
        if known and len(candidate) >= MIN_LETTERS - 1:
            found[candidate] = weight * known
    return found


def _one_slip_away(word: str) -> Iterator[tuple[str, float]]:
    """Yield what one slip makes of a word, with how usual that slip is: the first letter is seldom wrong."""
    for place in range(len(word) + 1):
        head, tail = word[:place], word[place:]
        first = 0.2 if place == 0 else 1.0
        if len(tail) > 1:
            yield head + tail[1] + tail[0] + tail[2:], 2.0 * first
        if tail:
            yield head + tail[1:], first * (2.0 if tail[0] in (head[-1:], tail[1:2]) else 1.0)
            yield from ((head + letter + tail[1:], first * _slip(tail[0], letter)) for letter in _LETTERS)
        yield from (
            (head + letter + tail, first * (2.0 if letter in (head[-1:], tail[:1]) else 1.0)) for letter in _LETTERS
        )


def _slip(letter: str, typed: str) -> float:
    """Return how usual it is to type one letter for another: keys that lie beside each other, and vowels."""
    beside = any(abs(row.find(letter) - row.find(typed)) == 1 and letter in row and typed in row for row in _KEYBOARD)
    return 1.0 if beside or (letter in "aeiou" and typed in "aeiou") else 0.4
