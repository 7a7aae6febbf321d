"""What is done to texts before a joint model's tokenizer sees them, because its training did so."""

from __future__ import annotations

import html
import re
import string
import unicodedata
from collections.abc import Callable

Clean = Callable[[str], str]

_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_TERMINAL_COLOUR = re.compile("\x1b\\[[0-9;]*[a-zA-Z]")
_LINE_BREAKS = re.compile("\r\n|[\r\x85\u2028\u2029]")
_LIGATURES = "ĲĳŉǄǅǆǇǈǉǊǋǌǱǲǳﬀﬁﬂﬃﬄﬅﬆ"
_CURLED = {"'": "\u02bc\u2018\u2019\u201a\u201b", '"': "\u201c\u201d\u201e\u201f"}
_UNWANTED = (*range(0x09), 0x0B, *range(0x0E, 0x20), 0x7F, *range(0x206A, 0x2070), 0xFEFF, *range(0xFFF9, 0xFFFD))


def _plain_forms() -> dict[int, str]:
    """Return what takes the place of letters that are one sign by accident, of odd widths, quotes and controls."""
    forms = dict.fromkeys(_UNWANTED, "")
    # U+FF01 to U+FFEF are the letters of East Asian grids, half or twice as wide as their plain forms.
    forms |= {code: unicodedata.normalize("NFKC", chr(code)) for code in range(0xFF01, 0xFFF0)}
    forms[0x3000] = " "
    for sign in _LIGATURES:
        _, *parts = unicodedata.decomposition(sign).split()
        forms[ord(sign)] = "".join(chr(int(part, 16)) for part in parts)
    for plain, curled in _CURLED.items():
        forms |= {ord(sign): plain for sign in curled}
    return forms


_PLAIN_FORMS = _plain_forms()


def plain_text(text: str) -> str:
    """Return a text with HTML's entities as characters and with plain quotes, letters and spaces.

    OpenCLIP has this done by the library ftfy, whose other work, mending text that was decoded in the wrong encoding
    ("schÃ¶n" for "schön"), is not done here.

    >>> plain_text("Tom &amp;amp; Jerry’s “ﬁrst” ＢＯＡＴ ")
    'Tom & Jerry\\'s "first" BOAT'
    """
    # Text with a < may be HTML itself, and its entities are then meant; they become characters in the end only.
    before, literal = None, "<" in text
    while text != before:
        before = text
        unescaped = text if literal else html.unescape(text)
        coloured = _LINE_BREAKS.sub("\n", _TERMINAL_COLOUR.sub("", unescaped))
        text = unicodedata.normalize("NFC", coloured.translate(_PLAIN_FORMS))
    return html.unescape(html.unescape(text)).strip()


def single_spaced(text: str) -> str:
    """Return a text with one space wherever it has white space, and none at its ends."""
    return " ".join(text.split())


def without_punctuation(text: str) -> str:
    """Return the words of a text in small letters, without ASCII's punctuation, as SigLIP was trained.

    >>> without_punctuation("A cat,  a DOG!")
    'a cat a dog'
    """
    return single_spaced(text.lower().translate(_NO_PUNCTUATION))


def _open_clip_canonical(text: str) -> str:
    return without_punctuation(plain_text(text).replace("_", " "))


def _open_clip_spaced(text: str) -> str:
    return single_spaced(plain_text(text))


def _open_clip_lower(text: str) -> str:
    return _open_clip_spaced(text).lower()


OPEN_CLIP_CLEANING: dict[str, Clean] = {
    "canonicalize": _open_clip_canonical,
    "lower": _open_clip_lower,
    "whitespace": _open_clip_spaced,
}
"""The ways of cleaning that a configuration of OpenCLIP may name."""
