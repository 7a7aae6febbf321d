"""Answers as HTML, as notebooks show them: small pictures with their probabilities, in one document."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from html import escape
from pathlib import Path

from diptych.encoders.image.picture_decoding import read_picture, thumbnail
from diptych.errors import DiptychError

SIDE = 160
FIGURE = "display:inline-block;vertical-align:top;margin:4px;width:160px;font-size:12px;overflow-wrap:anywhere"


def figures_html(remarks: Iterable[str], answers: Iterable[tuple[Path | None, float, str]]) -> str:
    """Return remarks, and below them answers as figures: picture, probability and what is said of it."""
    above = "".join(f"<p>{escape(remark)}</p>" for remark in remarks)
    return f"<div>{above}{''.join(_figure(*answer) for answer in answers)}</div>"


def _figure(path: Path | None, probability: float, said: str) -> str:
    name = "" if path is None else f"<br>{escape(path.name)}"
    text = f"<b>{probability:.0%}</b>{name}<br>{escape(said)}"
    return f'<figure style="{FIGURE}">{_picture(path)}<figcaption>{text}</figcaption></figure>'


def _picture(path: Path | None) -> str:
    if path is None:
        return ""
    try:
        small = thumbnail(read_picture(path, shortest_side=SIDE), longest_side=SIDE)
    except (DiptychError, OSError):
        # Its file is gone or elsewhere; the name says which one it is.
        return ""
    return f'<img alt="" src="data:image/jpeg;base64,{b64encode(small).decode()}">'
