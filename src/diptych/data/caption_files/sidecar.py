"""A file of captions beside each picture."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from diptych.data.caption_files.caption_record import CaptionRecord
from diptych.data.caption_files.decoding import decode_file
from diptych.data.caption_files.json_records import described, parse_json


def read_sidecars(pictures: Iterable[Path], notes: list[str]) -> Iterator[CaptionRecord]:
    """Yield a record per picture that has a sidecar; notes about encodings are appended to ``notes``.

    The sidecars of ``boat.jpg`` are ``boat.txt`` or ``boat.jpg.txt``, one caption per line, and ``boat.json`` or
    ``boat.jpg.json``, a caption, a list of captions or a record. Both kinds add up.
    """
    for picture in pictures:
        for sidecar in _sidecars(picture):
            text, note = decode_file(sidecar)
            if note:
                notes.append(note)
            if sidecar.suffix == ".json":
                yield described(parse_json(sidecar, text), str(sidecar), str(picture))
            else:
                yield CaptionRecord(str(picture), tuple(filter(str.strip, text.splitlines())), str(sidecar))


def _sidecars(picture: Path) -> Iterator[Path]:
    for suffix in (".txt", ".json"):
        for sidecar in (picture.with_suffix(suffix), picture.with_name(picture.name + suffix)):
            if sidecar.is_file():
                yield sidecar
