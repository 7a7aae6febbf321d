"""What a search asks for, in words that people type, and what it found."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, overload

from diptych.collection.filter import Filter
from diptych.collection.item import Item
from diptych.collection.retriever_protocol import Side
from diptych.collection.searching.options import RERANKINGS, SORTS, SearchOptions
from diptych.collection.searching.query_words import UNWANTED_WEIGHT, wanted_and_unwanted
from diptych.data.picture_files import is_picture_suffix
from diptych.encoders.image.picture_parts import PictureRegion, PictureWord
from diptych.errors import InvalidInputError

MAX_QUERY_CHARACTERS = 2_000
"""How many characters the words of a query have at most, those of all its terms together."""
MAX_TERMS = 16
"""How many terms a query has at most."""
MAX_SHOWN = 30
"""How many answers a notebook shows."""


@dataclass(frozen=True, eq=False)
class Term:
    """Words, a picture or a stored item, with a weight; a negative weight asks for what is unlike it.

    ``is_quoted`` asks for the words as they stand: what holds them one after the other comes first.
    """

    kind: Literal["text", "picture", "item"]
    value: Any
    weight: float = 1.0
    is_quoted: bool = False

    def __post_init__(self) -> None:
        if not math.isfinite(self.weight) or self.weight == 0:
            raise InvalidInputError(f"the weight of a query term is a number other than 0, got {self.weight}")
        if self.kind in ("text", "item") and (not isinstance(self.value, str) or not self.value.strip()):
            raise InvalidInputError(f"a query term needs {'words' if self.kind == 'text' else 'an id'}, got nothing")

    def __str__(self) -> str:
        weight = "" if abs(self.weight) == 1 else f"{abs(self.weight):g}:"
        if self.kind == "item":
            return f"{weight}item:{self.value}"
        if self.is_quoted:
            return f'"{self.value}"'
        if self.kind == "text" or isinstance(self.value, (str, os.PathLike)):
            return f"{weight}{os.fspath(self.value)}"
        return f"{weight}(picture)"


_LONE_SIGN = re.compile(r"(^|\s)[+-](\s|$)")


@dataclass(frozen=True, eq=False)
class Query:
    """A weighted sum of words, pictures and stored items; minus asks for what is unlike a term.

    >>> from diptych.collection import Query
    >>> query = 2 * Query.text("golden retriever") + Query.picture("photo.jpg") - Query.text("snow")
    >>> print(query)
    2:golden retriever + photo.jpg - snow
    """

    terms: tuple[Term, ...]

    def __post_init__(self) -> None:
        if not self.terms:
            raise InvalidInputError("the query is empty; write what to look for")
        if len(self.terms) > MAX_TERMS:
            raise InvalidInputError(f"a query has at most {MAX_TERMS} terms, got {len(self.terms)}; leave some out")
        _check_length(sum(len(term.value) for term in self.terms if term.kind == "text"))

    @classmethod
    def text(cls, words: str) -> Query:
        """Ask for words; nothing in them is an operator."""
        return cls((Term("text", words),))

    @classmethod
    def picture(cls, picture: Any) -> Query:
        """Ask for what resembles a picture: a path, an array of bytes or a Pillow image."""
        return cls((Term("picture", picture),))

    @classmethod
    def item(cls, item_id: str) -> Query:
        """Ask for what resembles a stored item."""
        return cls((Term("item", item_id),))

    @classmethod
    def of(cls, query: Any, find_picture: Callable[[str], Path | None] | None = None) -> Query:
        """Return a query as it is, parse a string, and take anything else for a picture."""
        if isinstance(query, Query):
            return query
        if isinstance(query, str):
            return parse_query(query, find_picture=find_picture)
        return cls.picture(query)

    @property
    def unwanted(self) -> tuple[str, ...]:
        """The words of negative terms."""
        return tuple(term.value for term in self.terms if term.kind == "text" and term.weight < 0)

    @property
    def words(self) -> str:
        """The words asked for, without those of negative terms; quoted ones in quotation marks."""
        wanted = (term for term in self.terms if term.kind == "text" and term.weight > 0)
        return " ".join(f'"{term.value}"' if term.is_quoted else term.value for term in wanted)

    def __add__(self, other: Query) -> Query:
        return Query(self.terms + other.terms)

    def __sub__(self, other: Query) -> Query:
        return self + -1 * other

    def __mul__(self, weight: float) -> Query:
        return Query(tuple(replace(term, weight=weight * term.weight) for term in self.terms))

    __rmul__ = __mul__

    def __str__(self) -> str:
        terms = [(term.weight, _protected(term)) for term in self.terms]
        return " ".join(f"{'-' if weight < 0 else '+'} {text}" for weight, text in terms).removeprefix("+ ")


def _check_length(characters: int) -> None:
    if characters > MAX_QUERY_CHARACTERS:
        raise InvalidInputError(
            f"a query has at most {MAX_QUERY_CHARACTERS:,} characters, got {characters:,}; use fewer words"
        )


def _protected(term: Term) -> str:
    return f'"{term}"' if _LONE_SIGN.search(str(term)) and not term.is_quoted else str(term)


# A quoted part stands alone between operators; elsewhere a quotation mark is an ordinary character.
_PART = re.compile(r'\s*(?:"(?P<quoted>[^"]*)"(?=\s+[+-](?:\s|$)|$)|(?P<plain>.*?)(?=\s+[+-](?:\s|$)|$))', re.DOTALL)
_JOINING_SIGN = re.compile(r"\s+(?P<sign>[+-])(?=\s|$)")
_FIRST_SIGN = re.compile(r"(?P<sign>[+-])(?=\s|$)")
_WEIGHT = re.compile(r"(?P<weight>\d+(?:\.\d*)?|\.\d+):(?!\d)\s*(?=\S)")


def parse_query(text: str, *, find_picture: Callable[[str], Path | None] | None = None) -> Query:
    """Return the query that a text describes; a text without operators is itself, but for what it does not want.

    * Terms are joined by ``+`` (like) and ``-`` (unlike) with white space on both sides; the first term may have a sign
      as well, followed by white space. A hyphen inside a word, ``-word`` and ``C++`` are ordinary text.
    * A term may begin with a weight, a number and a colon: ``2:golden retriever``. A number and colon before a digit
      are not a weight, so ``16:9`` and ``10:30`` are text.
    * A term in double quotes from end to end may contain operators: ``"salt - pepper" + sea``. The quotes go around the
      weight as well: ``"2:golden retriever"``. A text that is quoted as a whole asks for these very words.
    * A text that names an existing picture file as a whole is that picture, even if its name holds operators.
    * A term that names an existing picture file is that picture; a single word that ends like a picture file and does
      not exist is an error, because it is a slip more often than a search.
    * ``item:ID`` is an item of the collection, everything else is words.
    * Without operators, ``beach but no people`` is ``beach - 0.5:people``; ``without``, ``not`` and
      such words of other languages mean the same.

    ``find_picture`` looks a name up elsewhere than in the current folder.

    >>> from diptych.collection import parse_query
    >>> [(term.kind, term.value, term.weight) for term in parse_query('"2:golden retriever" + sea - snow').terms]
    [('text', 'golden retriever', 2.0), ('text', 'sea', 1.0), ('text', 'snow', -1.0)]
    >>> [term.value for term in parse_query("a well-known t-shirt, 16:9").terms]
    ['a well-known t-shirt, 16:9']
    """
    terms, text = [], text.strip()
    if not text:
        raise InvalidInputError("type some words or the path of a picture: write what to look for")
    _check_length(len(text))
    find_picture = find_picture or _existing
    whole = find_picture(text) if _ends_like_picture(text) else None
    if whole is not None:
        return Query((Term("picture", whole),))
    first = _FIRST_SIGN.match(text)
    sign, position = (first["sign"], first.end()) if first else ("+", 0)
    while True:
        part = _PART.match(text, position)
        body = "" if part is None else (part["plain"] if part["quoted"] is None else part["quoted"])
        if part is None or not body.strip() or (part["quoted"] is None and _FIRST_SIGN.match(body)):
            raise InvalidInputError(
                f"the query {text!r} lacks words or a picture after {sign!r}; write what to look for"
            )
        terms.append(_term(body.strip(), -1.0 if sign == "-" else 1.0, find_picture))
        operator = _JOINING_SIGN.match(text, part.end())
        if operator is None:
            if len(terms) == 1 and part["quoted"] is not None and terms[0].value == body.strip() and sign == "+":
                return Query((replace(terms[0], is_quoted=True),))
            if len(terms) == 1 and first is None and part["quoted"] is None and terms[0].value == body.strip():
                wanted, unwanted = wanted_and_unwanted(terms[0].value)
                terms = [Term("text", wanted)] if wanted else []
                terms += [Term("text", words, UNWANTED_WEIGHT) for words in unwanted]
            return Query(tuple(terms))
        sign, position = operator["sign"], operator.end()


def _term(body: str, sign: float, find_picture: Callable[[str], Path | None]) -> Term:
    weight = _WEIGHT.match(body)
    if weight is not None:
        sign, body = sign * float(weight["weight"]), body[weight.end() :]
    if body.startswith("item:"):
        return Term("item", body.removeprefix("item:"), sign)
    if not _ends_like_picture(body):
        return Term("text", body, sign)
    picture = find_picture(body)
    if picture is None and len(body.split()) == 1:
        raise InvalidInputError(f"there is no picture {body!r}; check the path, or ask with more words for a text")
    return Term("text", body, sign) if picture is None else Term("picture", picture, sign)


def _ends_like_picture(name: str) -> bool:
    # Few words have an ending, and without one nobody waits for what reads pictures, nor for a path.
    return "." in name and is_picture_suffix(Path(name).suffix.lower())


def _existing(name: str) -> Path | None:
    try:
        path = Path(name).expanduser()
        return path if path.is_file() else None
    except (OSError, ValueError, RuntimeError):
        return None


@dataclass(frozen=True)
class SearchRequest(SearchOptions):
    """A query and how it is answered.

    ``offset`` answers are left out before the ``k`` that are wanted. ``hybrid`` is the weight of words in a ranking
    that joins them with similarity by reciprocal rank, True is 0.5, False leaves words out; None looks for those words
    alone that ask for something by its name.
    """

    query: Query
    k: int = 10
    offset: int = 0
    filter: Filter | None = None
    hybrid: float | bool | None = None

    def __post_init__(self) -> None:
        if self.k < 1 or self.offset < 0:
            raise InvalidInputError(f"k must be at least 1 and offset at least 0, got {self.k} and {self.offset}")
        if self.hybrid is not None and not 0 <= float(self.hybrid) <= 1:
            raise InvalidInputError(f"hybrid is the weight of the words, between 0 and 1, got {self.hybrid}")
        if self.hybrid not in (None, False) and not self.query.words:
            raise InvalidInputError("a hybrid search looks for words, but the query has none; add words")
        if self.rerank is not None and self.rerank < 1:
            raise InvalidInputError(
                f"rerank is how many of the nearest codes to score again, at least 1, got {self.rerank}"
            )
        if self.target not in ("images", "texts"):
            raise InvalidInputError(f"target must be 'images' or 'texts', got {self.target!r}")
        for name, known in (("rerank_by", RERANKINGS), ("sort", SORTS)):
            if (given := getattr(self, name)) not in known:
                raise InvalidInputError(f"{name} must be one of {', '.join(known)}, got {given!r}")

    @property
    def side(self) -> Side:
        """The side of the space that is searched."""
        return "image" if self.target == "images" else "text"

    @property
    def word_share(self) -> float | None:
        """The weight of words in a joined ranking, None where only those that name something are looked for."""
        return None if self.hybrid is None else 0.5 if self.hybrid is True else float(self.hybrid)


@dataclass(frozen=True)
class Answer:
    """One item that a search found.

    ``score`` is the similarity in the space of the retriever, larger is better; ``probability`` the calibrated
    probability that the answer is relevant. ``caption`` is the text that was found when texts are searched, None when
    pictures are. ``matched_by`` says what brought the answer up: "points" of the space, "words" that it holds.
    ``matched_fields`` says where these stand ("caption", "file name", "label", "keyword", "text in picture", or the
    name of a metadata field), ``has_words`` that all the words are there that were looked for, and ``picture_words``
    where they stand in the picture. ``region`` is the part of the picture that answers better than the whole; None
    where the whole does, or regions were not asked for. ``item`` is the whole item as it was when it was found.
    """

    rank: int
    id: str
    path: Path | None
    score: float
    probability: float
    caption: str | None = None
    caption_id: str | None = None
    matched_by: tuple[str, ...] = ("points",)
    labels: tuple[str, ...] = ()
    metadata: Mapping[str, Any] | None = None
    matched_fields: tuple[str, ...] = ()
    has_words: bool = False
    picture_words: tuple[PictureWord, ...] = ()
    region: PictureRegion | None = None
    item: Item | None = field(default=None, repr=False, compare=False)

    @property
    def seconds(self) -> float | None:
        """Where in a video the answer is; None for what is no video."""
        return None if self.item is None else self.item.seconds


Mode = Literal["similarity", "words", "both"]
# What can be asked for, and what it is called among the options of a search.
HYBRID_OF_MODE: Mapping[str, float | bool | None] = {"auto": None, "similarity": False, "words": 1.0, "both": 0.5}


@dataclass(frozen=True)
class Answers(Sequence[Answer]):
    """The answers of a search, best first, and what can be said about all of them.

    ``no_good_match`` is true when no answer of the collection reaches the probability that counts as a match or has all
    the words that were looked for. ``mode`` says what was compared: "similarity", "words" or "both".
    ``considered`` counts the items or captions that the filter left, ``exact`` says whether all of them were compared,
    ``seconds`` includes encoding the query. ``notes`` are remarks for the person who asked. ``retriever`` is the stored
    name of the retriever that answered, with its ``fingerprint``. Answers below the probability ``cutoff`` are less
    good than the best; where there is no good match, it is what the best one would have needed. ``did_you_mean`` is the
    query with misspelt words corrected; where no other spelling was likely, that was searched for: ``is_corrected``.
    """

    found: tuple[Answer, ...]
    no_good_match: bool
    considered: int
    exact: bool
    seconds: float
    notes: tuple[str, ...] = ()
    retriever: str = ""
    fingerprint: str = ""
    cutoff: float = 0.0
    mode: Mode = "similarity"
    did_you_mean: str | None = None
    is_corrected: bool = False

    def __len__(self) -> int:
        return len(self.found)

    @overload
    def __getitem__(self, place: int) -> Answer: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[Answer, ...]: ...

    def __getitem__(self, place: int | slice) -> Answer | tuple[Answer, ...]:
        return self.found[place]

    def _repr_html_(self) -> str:
        # Imported lazily: only notebooks show pictures here.
        from diptych.collection.notebook import figures_html

        nothing = f"no good match: nothing reaches {self.cutoff:.0%}; these are the nearest"
        captions = [one.caption or "".join(one.item.captions[:1] if one.item else ()) for one in self]
        shown = [(one.path, one.probability, said) for one, said in zip(self, captions, strict=True)]
        return figures_html([*([nothing] if self.no_good_match else []), *self.notes], shown[:MAX_SHOWN])
