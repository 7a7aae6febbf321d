"""Texts of a language that no network here knows, brought into English word by word by a glossary of that language."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from diptych.encoders.text.languages import language_probabilities

_GRAMMAR = frozenset({"endings", "stem", "derived", "singular_after", "before_noun", "prefix", "joint", "letters"})
_FIXED = "fixed"
_PLURAL, _MARKS, _NO_ENDING = "+", "+?!", "-"
# Rules look at so many of the last letters, and prefixes leave as many at least.
_LONGEST_RULE, _SHORTEST_WITHOUT_PREFIX = 6, 4
_MORE_THAN_ONE = re.compile(
    "two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|several|many|few|some|both|hundred|thousand"
)
# So many words may stand between a number and what is counted.
_REACH_OF_NUMBERS = 3
_IRREGULAR = {
    "man": "men",
    "woman": "women",
    "child": "children",
    "person": "people",
    "foot": "feet",
    "tooth": "teeth",
    "goose": "geese",
    "mouse": "mice",
    "wife": "wives",
    "knife": "knives",
    "shelf": "shelves",
    "leaf": "leaves",
}
_WITHOUT_PLURAL = re.compile("sheep|fish|deer|people|children|police|clothes|food|water|snow|grass|hair|traffic")
# A text is understood where at least this share of its words is in the glossary.
_LEAST_KNOWN = 0.5
# What is surely in a language needs no more; what may be in it needs every word in the glossary.
_SURE, _PERHAPS, _NEARLY = 0.8, 0.25, 0.9


@dataclass(frozen=True)
class Translation:
    """A text in English words, and the words of it that the glossary does not have, which stay as they are."""

    text: str
    unknown: tuple[str, ...]
    n_words: int

    @property
    def is_understood(self) -> bool:
        """Whether the glossary has most of the words."""
        return self.n_words > 0 and self.n_words - len(self.unknown) >= _LEAST_KNOWN * self.n_words


@dataclass(frozen=True)
class _Found:
    """What a word or a phrase means: its English, the kind of its entry and how its ending counts."""

    english: str
    kind: str
    number: str = ""


@dataclass(frozen=True)
class _Rule:
    """Lemmas that end like this have such a stem, which takes the endings of a class."""

    ending: re.Pattern[str]
    stem: str
    inflection: str


class Glossary:
    """English words for the words of another language, whatever their endings.

    The file has a line for each English word or term, with the lemmas of the other language that stand for it. How
    lemmas are inflected is told by the same file, so that another language is another file:

    - ``endings``, a class, its endings: ``+`` marks those of the plural, ``?`` and ``!`` those that may be of the
      plural, ``-`` is no ending at all.
    - ``stem``, a kind of entry, a regular expression for the end of a lemma, what takes the place of that end, and the
      class of the endings that follow. All rules that fit a lemma give it a stem.
    - ``derived``, a kind of entry, what is put behind its stems, and the class of the endings that follow: adjectives
      made of nouns and the like, which mean the same here.
    - ``singular_after``, ``?`` or ``!``, and the words after which an ending with this mark is of the singular.
    - ``before_noun``, a word, and what it means there, unless a verb stands before it.
    - ``letters``, in the first line: those that no other language has that is told apart.
    - ``prefix``: what may stand before a verb or an adjective that is found without it.
    - ``joint``: what joins two adjectives in one word.
    - any other line is an entry: its kind, the English, and lemmas or, joined by ``_``, phrases, in which every word
      may be inflected; further forms of a lemma follow it after ``/``. Those of the kind ``fixed`` have one form only.

    A word is looked up with its longest stem, first as it is spelt, then without accents, which may be left out of a
    query. Of several entries for one word the first counts.

    Examples
    --------
    >>> from diptych.encoders.text.glossaries import glossary
    >>> glossary("cs").translated("dva hnědí psi běží po pláži").text
    'two brown dogs running along beach'
    """

    def __init__(self, lines: Iterable[str]) -> None:
        rows: dict[str, list[list[str]]] = defaultdict(list)
        for line in lines:
            kind, *cells = line.rstrip("\n").split("\t")
            rows[kind if kind in _GRAMMAR else "entry"].append(cells if kind in _GRAMMAR else [kind, *cells])
        self._rules: dict[str, list[_Rule]] = defaultdict(list)
        for kind, ending, stem, inflection in rows["stem"]:
            self._rules[kind].append(_Rule(re.compile(f"(?:{ending})$"), stem, inflection))
        self._derived = [(kind, suffix, inflection) for kind, suffix, inflection in rows["derived"]]
        self._singular_after = {mark: frozenset(words.split()) for mark, words in rows["singular_after"]}
        self._before_noun = {word: _Found(english, _FIXED) for word, english in rows["before_noun"]}
        self._prefixes, self._joints = (
            [part for (parts,) in rows[kind] for part in parts.split()] for kind in ("prefix", "joint")
        )
        endings = {name: dict(map(_marked_ending, written.split())) for name, written in rows["endings"]}
        self._spelt = _Forms({}, defaultdict(dict), endings)
        # Phrases by the stems of their first word, each with the stems of all its words.
        self._phrases: dict[str, list[tuple[list[frozenset[str]], _Found]]] = defaultdict(list)
        for kind, english, lemmas in rows["entry"]:
            for lemma in lemmas.split():
                self._add(_Found(english, kind), lemma)
        self._plain = self._spelt.without_accents()
        self._all_endings = (*self._spelt.endings.values(), *self._plain.endings.values())

    def translated(self, text: str) -> Translation:
        """Return a text in English words, in the order of the text."""
        words = re.findall(r"[^\W_]+", unicodedata.normalize("NFC", text))
        lower = [word.lower() for word in words]
        english: list[str] = []
        unknown = []
        place, counted_until = 0, -1
        before, kind_before = "", ""
        while place < len(words):
            length, found = self._phrase_at(lower, place, kind_before)
            if found is None:
                unknown.append(words[place])
                found = _Found(words[place], "")
            meaning = found.english
            if found.kind == "noun":
                is_plural = found.number == _PLURAL or before not in self._singular_after.get(found.number, {before})
                meaning = _plural(meaning) if is_plural or place <= counted_until else meaning
                counted_until = -1
            elif _MORE_THAN_ONE.fullmatch(meaning):
                counted_until = place + _REACH_OF_NUMBERS
            # "malá holčička" is no little little girl.
            if english and meaning.startswith(f"{english[-1]} "):
                english.pop()
            english.append(meaning)
            # An adjective between a preposition and its noun changes nothing.
            before = before if found.kind == "adjective" else lower[place + length - 1]
            kind_before = found.kind
            place += length
        return Translation(" ".join(filter(None, english)), tuple(unknown), len(words))

    def _add(self, found: _Found, lemma: str) -> None:
        if "_" in lemma:
            forms = []
            for word in lemma.split("_"):
                stems = {word, *self._stems_of_any(word, found.kind)}
                forms.append(frozenset(stems | set(map(_without_accents, stems))))
            for first in forms[0]:
                self._phrases[first].append((forms, found))
        elif found.kind == _FIXED:
            self._spelt.fixed.setdefault(lemma, found)
        else:
            for form in lemma.split("/"):
                self._spelt.fixed.setdefault(form, found)
                for inflection, stem in self._stems(found.kind, form):
                    self._spelt.stems[stem].setdefault(inflection, found)

    def _stems(self, kind: str, lemma: str) -> Iterator[tuple[str, str]]:
        start = max(len(lemma) - _LONGEST_RULE, 0)
        for rule in self._rules[kind]:
            end, fits = rule.ending.subn(rule.stem, lemma[start:], count=1)
            if fits:
                yield rule.inflection, lemma[:start] + end

    def _stems_of_any(self, word: str, kind: str) -> Iterator[str]:
        if kind != _FIXED:
            for each in tuple(self._rules):
                yield from (stem for _, stem in self._stems(each, word))

    def _phrase_at(self, words: Sequence[str], place: int, kind_before: str) -> tuple[int, _Found | None]:
        """Return how many words belong to the longest entry that begins at a place, and the entry."""
        best: tuple[int, _Found | None] = (1, None)
        for stem in _beginnings(words[place]):
            for forms, found in self._phrases.get(stem, ()):
                here = words[place : place + len(forms)]
                is_form = frozenset.__contains__ if found.kind == _FIXED else self._is_form
                if len(forms) > best[0] and len(here) == len(forms) and all(map(is_form, forms, here)):
                    best = (len(forms), found)
        if best[1] is not None:
            return best
        if words[place] in self._before_noun and kind_before != "verb" and place + 1 < len(words):
            after = self._word(words[place + 1])
            if after is not None and after.kind in ("noun", "adjective"):
                return 1, self._before_noun[words[place]]
        return 1, self._word(words[place])

    def _is_form(self, stems: frozenset[str], word: str) -> bool:
        """Say whether a word is one of these stems, with or without an ending."""
        return any(
            beginning in stems and any(word[len(beginning) :] in endings for endings in self._all_endings)
            for beginning in _beginnings(word)
        )

    def _word(self, word: str) -> _Found | None:
        return (
            self._own_form(word)
            or self._spelt.find_derived(word, self._derived)
            or self._joined(word)
            or self._prefixed(word)
        )

    def _own_form(self, word: str) -> _Found | None:
        found = self._spelt.fixed.get(word) or self._plain.fixed.get(word)
        # A word of one form is known without its accents, before others are tried with endings.
        if found is not None and found.kind == _FIXED:
            return found
        return self._spelt.find(word) or self._plain.find(_without_accents(word))

    def _joined(self, word: str) -> _Found | None:
        for joint in self._joints:
            for match in re.finditer(joint, word[:-1]):
                parts = [self._own_form(part) for part in (word[: match.end()], word[match.end() :])]
                if all(part is not None and part.kind == "adjective" for part in parts):
                    return _Found(" and ".join(part.english for part in parts if part), "adjective")
        return None

    def _prefixed(self, word: str) -> _Found | None:
        for prefix in self._prefixes:
            if word.startswith(prefix) and len(word) - len(prefix) >= _SHORTEST_WITHOUT_PREFIX:
                found = self._spelt.find(word[len(prefix) :])
                if found is not None and found.kind in ("verb", "adjective"):
                    return found
        return None


@dataclass(frozen=True)
class _Forms:
    """What is found by how it is spelt: words of one form, stems with the classes of their endings, and the endings."""

    fixed: dict[str, _Found]
    stems: dict[str, dict[str, _Found]]
    endings: Mapping[str, Mapping[str, str]]

    def without_accents(self) -> _Forms:
        endings: dict[str, dict[str, str]] = defaultdict(dict)
        for name, marks in self.endings.items():
            for ending, mark in marks.items():
                endings[name].setdefault(_without_accents(ending), mark)
        plain = _Forms({}, defaultdict(dict), endings)
        for word, found in self.fixed.items():
            plain.fixed.setdefault(_without_accents(word), found)
        # Stems that differ in accents alone come together; the order of the classes decides between them.
        for inflection in self.endings:
            for stem, classes in self.stems.items():
                if inflection in classes:
                    plain.stems[_without_accents(stem)].setdefault(inflection, classes[inflection])
        return plain

    def find(self, word: str) -> _Found | None:
        if word in self.fixed:
            return self.fixed[word]
        for stem in _beginnings(word):
            for inflection, found in self.stems.get(stem, {}).items():
                mark = self.endings[inflection].get(word[len(stem) :])
                if mark is not None:
                    return replace(found, number=mark)
        return None

    def find_derived(self, word: str, derived: Sequence[tuple[str, str, str]]) -> _Found | None:
        for stem in _beginnings(word):
            for kind, suffix, inflection in derived:
                mark = self.endings[inflection].get(word[len(stem) :])
                if mark is None or not stem.endswith(suffix):
                    continue
                for found in self.stems.get(stem.removesuffix(suffix), {}).values():
                    if found.kind == kind:
                        return replace(found, number=mark)
        return None


@cache
def glossary(language: str) -> Glossary:
    """Return the glossary of a language that has one, read when it is first asked for."""
    with _table(language).open(encoding="utf-8") as lines:
        return Glossary(line for line in lines if line.strip())


@cache
def glossary_languages() -> frozenset[str]:
    """Return the languages that have a glossary, by their codes in ISO 639-1."""
    return frozenset(file.stem.removeprefix("glossary_") for file in _table("*").parent.glob(_table("*").name))


def _table(language: str) -> Path:
    return Path(__file__).with_name(f"glossary_{language}.tsv")


@cache
def _own_letters(language: str) -> frozenset[str]:
    with _table(language).open(encoding="utf-8") as lines:
        return frozenset(next(lines).rstrip("\n").split("\t")[1].split())


def english_of(text: str, probabilities: Mapping[str, float] | None = None) -> str | None:
    """Return the English words of a text in a language that has a glossary; None for any other text.

    ``probabilities`` are those of `language_probabilities`, where they are known already. A text that is surely in the
    language, by these or by letters of its own, needs most of its words in the glossary. Where that is not sure, as of
    few words, it needs all of them, and such letters or no other language that is clearly likelier.

    >>> from diptych.encoders.text.glossaries import english_of
    >>> [english_of(text) for text in ("červené auto", "dva psi na plazi", "a red car", "zwei Hunde")]
    ['red car', 'two dogs on the beach', None, None]
    """
    found = language_probabilities(text) if probabilities is None else probabilities
    for language in sorted(glossary_languages() & found.keys()):
        chance, likeliest = found[language], max(found.values())
        has_own_letters = not _own_letters(language).isdisjoint(text.lower())
        if has_own_letters or chance >= max(_PERHAPS, _NEARLY * likeliest):
            translation = glossary(language).translated(text)
            is_sure = chance >= _SURE or (has_own_letters and chance == likeliest)
            if translation.text and translation.is_understood and (is_sure or not translation.unknown):
                return translation.text
    return None


def _beginnings(word: str) -> Iterator[str]:
    return (word[:end] for end in range(len(word), 0, -1))


def _marked_ending(written: str) -> tuple[str, str]:
    mark = written[0] if written[0] in _MARKS else ""
    ending = written[len(mark) :]
    return ("" if ending == _NO_ENDING else ending), mark


def _plural(english: str) -> str:
    *before, noun = english.split(" ")
    return " ".join((*before, _plural_noun(noun)))


def _plural_noun(noun: str) -> str:
    if noun in _IRREGULAR:
        return _IRREGULAR[noun]
    for singular in ("woman", "man"):
        if noun.endswith(singular):
            return noun.removesuffix(singular) + _IRREGULAR[singular]
    if _WITHOUT_PLURAL.fullmatch(noun) or (noun.endswith("s") and not noun.endswith("ss") and noun != "bus"):
        return noun
    if re.search(r"(s|x|ch|sh)$", noun):
        return f"{noun}es"
    return re.sub(r"([^aeiou])y$", r"\1ie", noun) + "s"


def _without_accents(word: str) -> str:
    if word.isascii():
        return word
    return "".join(letter for letter in unicodedata.normalize("NFD", word) if not unicodedata.combining(letter))
