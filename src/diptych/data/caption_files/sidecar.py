"""A file of captions beside each picture."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from diptych.data.caption_files.caption_record import CaptionRecord
from diptych.data.caption_files.decoding import decode_file
from diptych.data.caption_files.json_records import described, parse_json
from diptych.errors import InvalidInputError


def read_sidecars(pictures: Iterable[Path], notes: list[str], unreadable: list[str]) -> Iterator[CaptionRecord]:
    """Yield a record per picture that has a sidecar; notes about encodings are appended to ``notes``.

    A sidecar that cannot be understood is passed over: it is one of many, and often another program's. It is added to
    ``unreadable``, and the reason to ``notes``.

    The sidecars of ``boat.jpg`` are ``boat.txt`` or ``boat.jpg.txt``, one caption per line, and ``boat.json`` or
    ``boat.jpg.json``, a caption, a list of captions or a record. Both kinds add up.
    """
    for picture in pictures:
        for sidecar in _sidecars(picture):
            try:
                record, note = _read(sidecar, picture)
            except (InvalidInputError, RecursionError) as error:
                unreadable.append(str(sidecar))
                notes.append(f"{sidecar} was passed over: {error}")
                continue
            if note:
                notes.append(note)
            yield record


def _read(sidecar: Path, picture: Path) -> tuple[CaptionRecord, str]:
    """Return what a sidecar says, and a note about its encoding."""
    text, note = decode_file(sidecar)
    if sidecar.suffix == ".json":
        return described(parse_json(sidecar, text), str(sidecar), str(picture)), note
    return CaptionRecord(str(picture), tuple(filter(str.strip, text.splitlines())), str(sidecar)), note


def _sidecars(picture: Path) -> Iterator[Path]:
    for suffix in (".txt", ".json"):
        for sidecar in (picture.with_suffix(suffix), picture.with_name(picture.name + suffix)):
            if sidecar.is_file():
                yield sidecar
