"""Captions of a user's own pictures: from a file in any known format to the pictures of a folder it describes."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path, PurePosixPath
from typing import Literal, get_args

import numpy as np

from diptych.data.caption_formats import (
    CaptionRecord,
    is_coco,
    is_karpathy,
    is_token_line,
    read_caption_lines,
    read_coco,
    read_delimited,
    read_json_captions,
    read_karpathy,
    read_parquet,
    read_token_file,
    record_from_json,
)
from diptych.data.pairs import Pairs
from diptych.data.picture_files import OnUnreadable, find_pictures
from diptych.data.remote_files import full_path, is_remote
from diptych.data.text_files import decode_file, parse_json
from diptych.errors import InvalidInputError, UnknownNameError, counted

MetadataValue = str | int | float | bool


@dataclass(frozen=True, slots=True)
class CaptionedPicture:
    """A picture file with its captions, its labels and whatever else a caption file says about it.

    Metadata are plain values, strings, numbers and booleans; what was a list or an object is kept as JSON text.

    >>> from pathlib import Path
    >>> from diptych.data import CaptionedPicture
    >>> CaptionedPicture(Path("1.jpg"), ("a boat",), labels=("boat",), metadata={"year": 2010}).metadata["year"]
    2010
    """

    path: Path
    captions: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    metadata: Mapping[str, MetadataValue] = field(default_factory=dict)


@dataclass(frozen=True, eq=False, repr=False)
class CaptionedPictures(Mapping[Path, CaptionedPicture]):
    """Picture files of ``folder`` by path, in the order of their paths, as :func:`read_captions` returns them.

    ``missing`` lists the files that are named but not in the folder, ``ambiguous`` those that several pictures could
    be, each once and as written, and ``unreadable`` the sidecars that were passed over; ``n_empty_captions`` counts the
    captions that held nothing and were dropped, and ``notes`` says in words what else a reader should know.

    >>> from pathlib import Path
    >>> from diptych.data import CaptionedPicture, CaptionedPictures
    >>> boat = CaptionedPicture(Path("1.jpg"), ("a boat", "a ship"), labels=("boat",))
    >>> pictures = CaptionedPictures(Path("."), {boat.path: boat}, missing=("2.jpg",))
    >>> pictures
    <CaptionedPictures: 1 picture, 2 captions, 1 with labels, 1 file not found>
    >>> pictures.pairs().texts
    ('a boat', 'a ship')
    """

    folder: Path
    pictures: Mapping[Path, CaptionedPicture]
    missing: tuple[str, ...] = ()
    ambiguous: tuple[str, ...] = ()
    n_empty_captions: int = 0
    notes: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()

    def __getitem__(self, path: Path) -> CaptionedPicture:
        return self.pictures[path]

    def __iter__(self) -> Iterator[Path]:
        return iter(self.pictures)

    def __len__(self) -> int:
        return len(self.pictures)

    @property
    def n_captions(self) -> int:
        """The number of captions of all pictures."""
        return sum(len(picture.captions) for picture in self.pictures.values())

    @property
    def n_labelled(self) -> int:
        """The number of pictures with at least one label."""
        return sum(bool(picture.labels) for picture in self.pictures.values())

    def pairs(self) -> Pairs:
        """Return the pictures that have captions as pairs, ready for encoders and models.

        Labels come along when every such picture has at least one: one class each if no picture has more, otherwise an
        indicator of all classes. The ids are the paths below the folder.
        """
        captioned = [picture for picture in self.pictures.values() if picture.captions]
        if not captioned:
            raise InvalidInputError(f"no picture in {self.folder} has a caption, so there are no pairs to learn from")
        labels, names = _labels([picture.labels for picture in captioned])
        return Pairs(
            [picture.path for picture in captioned],
            [caption for picture in captioned for caption in picture.captions],
            labels=labels,
            ids=[_below(picture.path, self.folder) for picture in captioned],
            class_names=names,
            owners=[row for row, picture in enumerate(captioned) for _ in picture.captions],
        )

    def describe(self) -> str:
        """Return the counts in one line."""
        parts = [counted(len(self), "picture"), counted(self.n_captions, "caption")]
        further = {
            f"{self.n_labelled:,} with labels": self.n_labelled,
            f"{counted(len(self.missing), 'file')} not found": self.missing,
            f"{counted(len(self.ambiguous), 'file')} with several candidates": self.ambiguous,
            f"{counted(len(self.unreadable), 'sidecar')} passed over": self.unreadable,
            f"{counted(self.n_empty_captions, 'empty caption')} dropped": self.n_empty_captions,
        }
        return ", ".join([*parts, *(words for words, found in further.items() if found)])

    def __repr__(self) -> str:
        return f"<CaptionedPictures: {self.describe()}>"


def _below(path: Path, folder: Path) -> str:
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else path.as_posix()


def _labels(listed: list[tuple[str, ...]]) -> tuple[np.ndarray | None, tuple[str, ...]]:
    if not all(listed):
        return None, ()
    names = tuple(sorted({label for labels in listed for label in labels}))
    if max(map(len, listed)) == 1:
        return np.array([labels[0] for labels in listed]), names
    columns = {name: column for column, name in enumerate(names)}
    indicator = np.zeros((len(listed), len(names)), dtype=np.uint8)
    for row, labels in enumerate(listed):
        indicator[row, [columns[label] for label in labels]] = 1
    return indicator, names


__all__ = ["CAPTION_FORMATS", "CaptionFormat", "CaptionedPicture", "CaptionedPictures", "read_captions"]
CaptionFormat = Literal["auto", "csv", "tsv", "json", "jsonl", "coco", "karpathy", "sidecar", "token", "parquet"]
CAPTION_FORMATS: tuple[CaptionFormat, ...] = get_args(CaptionFormat)
PathLike = str | os.PathLike[str]


class PictureIndex:
    """The pictures of a folder, found by whatever name a caption file gives them.

    A name is tried as a path below the folder, then as a path beside the caption file, and then by its base name
    alone: of the pictures of that base name, the one that shares most of the path's end is meant. Names are compared
    with composed accents (NFC), base names also without regard to case.
    """

    def __init__(self, folder: Path, pictures: Iterable[Path]) -> None:
        self.pictures: list[Path] = list(pictures)
        self._root = os.path.abspath(folder)
        self._by_name: dict[str, list[Path]] = {}
        self._by_base: dict[str, list[tuple[tuple[str, ...], Path]]] = {}
        self._exact: dict[str, Path] = {}
        self._found: dict[tuple[str, Path | None], Sequence[Path]] = {}
        for picture in self.pictures:
            name = picture.relative_to(folder).as_posix()
            composed = unicodedata.normalize("NFC", name)
            parts = tuple(composed.casefold().split("/"))
            self._exact[name] = picture
            self._by_name.setdefault(composed, []).append(picture)
            self._by_base.setdefault(parts[-1], []).append((parts, picture))

    def find(self, name: str, beside: Path | None = None) -> Sequence[Path]:
        """Return the pictures that ``name`` may mean, one if it is clear; ``beside`` is the caption file's folder."""
        # Tables name a picture once per caption.
        asked = name, beside
        if asked not in self._found:
            self._found[asked] = self._search(name.strip().replace("\\", "/"), beside)
        return self._found[asked]

    def _search(self, wanted: str, beside: Path | None) -> Sequence[Path]:
        for place in (self._root, None if beside is None else os.path.abspath(beside)):
            below = None if place is None else self._below_root(place, wanted)
            if below in self._exact:
                return [self._exact[below]]
            if below is not None and (found := self._by_name.get(unicodedata.normalize("NFC", below))):
                return found
        return self._with_longest_end(wanted)

    def _below_root(self, place: str, name: str) -> str | None:
        path = os.path.normpath(os.path.join(place, name))
        root = os.path.join(self._root, "")
        return PurePosixPath(path[len(root) :].replace(os.sep, "/")).as_posix() if path.startswith(root) else None

    def _with_longest_end(self, name: str) -> list[Path]:
        wanted = tuple(unicodedata.normalize("NFC", name).casefold().split("/"))
        candidates = self._by_base.get(wanted[-1], [])
        shared = [_common_end(wanted, parts) for parts, _ in candidates]
        return [path for (_, path), length in zip(candidates, shared, strict=True) if length == max(shared)]


def _common_end(first: Sequence[str], second: Sequence[str]) -> int:
    pairs = zip(reversed(first), reversed(second), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


class CaptionCollector:
    """Collects records of any caption files and gives each picture what was said about it."""

    def __init__(self, index: PictureIndex) -> None:
        self.notes: list[str] = []
        self.unreadable: list[str] = []
        self._index = index
        self._captions: dict[Path, list[str]] = {}
        self._labels: dict[Path, dict[str, None]] = {}
        self._metadata: dict[Path, dict[str, MetadataValue]] = {}
        self._missing: dict[str, None] = {}
        self._ambiguous: dict[str, None] = {}
        self._n_empty = 0

    def add(self, records: Iterable[CaptionRecord], beside: Path) -> None:
        """Take in the records of a file in the folder ``beside``."""
        for record in records:
            found = self._index.find(record.file, beside)
            if len(found) == 1:
                self._add(found[0], record)
            else:
                (self._ambiguous if found else self._missing)[record.file] = None

    def _add(self, picture: Path, record: CaptionRecord) -> None:
        captions = self._captions.setdefault(picture, [])
        for caption in record.captions:
            words = " ".join(caption.split())
            if words:
                captions.append(words)
            else:
                self._n_empty += 1
        self._labels.setdefault(picture, {}).update(dict.fromkeys(record.labels))
        for name, value in record.metadata.items():
            self._metadata.setdefault(picture, {}).setdefault(name, value)

    def build(self, folder: Path) -> CaptionedPictures:
        """Return the pictures in the order of the folder."""
        pictures = {
            picture: CaptionedPicture(
                picture, tuple(self._captions[picture]), tuple(self._labels[picture]), self._metadata.get(picture, {})
            )
            for picture in self._index.pictures
            if picture in self._captions
        }
        return CaptionedPictures(
            folder,
            pictures,
            missing=tuple(self._missing),
            ambiguous=tuple(self._ambiguous),
            n_empty_captions=self._n_empty,
            unreadable=tuple(dict.fromkeys(self.unreadable)),
            notes=tuple(dict.fromkeys(self.notes)),
        )


def read_sidecars(pictures: Iterable[Path], notes: list[str], unreadable: list[str]) -> Iterator[CaptionRecord]:
    """Yield a record per sidecar: ``boat.txt`` or ``boat.jpg.txt``, a caption a line; ``boat.json``, ``boat.jpg.json``.

    One that cannot be understood, one of many and often another program's, is passed over: it is added to
    ``unreadable``, and the reason to ``notes``, where odd encodings are noted too.
    """
    for picture in pictures:
        for sidecar in _sidecars(picture):
            try:
                record, note = _read_sidecar(sidecar, picture)
            except (InvalidInputError, RecursionError) as error:
                unreadable.append(str(sidecar))
                notes.append(f"{sidecar} was passed over: {error}")
                continue
            if note:
                notes.append(note)
            yield record


def _read_sidecar(sidecar: Path, picture: Path) -> tuple[CaptionRecord, str]:
    """Return what a sidecar says, and a note about its encoding."""
    text, note = decode_file(sidecar)
    if sidecar.suffix == ".json":
        return record_from_json(parse_json(sidecar, text), str(sidecar), str(picture)), note
    return CaptionRecord(str(picture), tuple(filter(str.strip, text.splitlines())), str(sidecar)), note


def _sidecars(picture: Path) -> Iterator[Path]:
    for suffix in (".txt", ".json"):
        for sidecar in (picture.with_suffix(suffix), picture.with_name(picture.name + suffix)):
            if sidecar.is_file():
                yield sidecar


def read_captions(
    source: PathLike | Sequence[PathLike],
    folder: PathLike,
    *,
    format: CaptionFormat = "auto",
    pictures: Iterable[Path] | None = None,
    on_unreadable: OnUnreadable | None = None,
) -> CaptionedPictures:
    """Read captions, labels and metadata of the pictures in ``folder``.

    ``source`` is a caption file, or a folder for sidecars (usually ``folder`` itself), or several of these, whose words
    add up: COCO's captions and instances, for example. ``format`` is found out from the content unless it is named:

    ============ ====================================================================================
    ``csv``      a table with a row of names: file, caption, label or tags; other columns are metadata
    ``tsv``      the same with tabs
    ``json``     ``{file: caption, captions or record}`` or a list of records
    ``jsonl``    a record per line
    ``coco``     annotation files of COCO; the categories of an instances file become labels
    ``karpathy`` ``dataset_*.json`` of Karpathy and Fei-Fei, 2015; the split becomes metadata
    ``sidecar``  ``boat.txt`` (a caption per line) or ``boat.json`` beside ``boat.jpg``
    ``token``    ``file#number``, a tab and the caption, as in Flickr8k
    ``parquet``  a Parquet table with the columns of ``csv``; pictures in it are for `unpack_pictures`
    ============ ====================================================================================

    Files may be named by their path below ``folder``, by their path beside the caption file, or by a base name that
    only one picture has. Whatever is named but not there is listed, not fatal; a file that cannot be understood is an
    error that names the row, but a sidecar, one of many, is passed over, listed and noted. Of metadata that rows of one
    picture disagree on, the first is kept. ``pictures`` are the files of ``folder`` to look for, by default all.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from diptych.data import read_captions
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     (Path(folder) / "1.jpg").touch()
    ...     table = Path(folder) / "captions.csv"
    ...     _ = table.write_text("file,caption,year\\n1.jpg,a boat,2010\\n1.jpg,a ship,2010\\n2.jpg,a cat,2011\\n")
    ...     pictures = read_captions(table, folder)
    >>> pictures
    <CaptionedPictures: 1 picture, 2 captions, 1 file not found>
    >>> [(picture.captions, picture.metadata) for picture in pictures.values()]
    [(('a boat', 'a ship'), {'year': 2010})]
    """
    if format not in CAPTION_FORMATS:
        raise UnknownNameError("caption format", str(format), CAPTION_FORMATS)
    sources = [source] if isinstance(source, str | os.PathLike) else list(source)
    root = full_path(folder) if is_remote(folder) else Path(folder)
    index = PictureIndex(root, find_pictures(root, on_unreadable=on_unreadable) if pictures is None else pictures)
    collector = CaptionCollector(index)
    for one in map(Path, sources):
        beside = one if one.is_dir() else one.parent
        collector.add(_read_records(one, index, format, collector), beside)
    return collector.build(root)


def _read_records(
    source: Path, index: PictureIndex, format: CaptionFormat, collector: CaptionCollector
) -> Iterator[CaptionRecord]:
    if source.is_dir():
        if format not in ("auto", "sidecar"):
            raise InvalidInputError(f"{source} is a folder, but format {format!r} is one file; name that file")
        return read_sidecars(index.pictures, collector.notes, collector.unreadable)
    if format == "sidecar":
        raise InvalidInputError(f"{source} is not a folder; sidecars are found by naming the folder of pictures")
    if not source.exists():
        raise InvalidInputError(f"{source} does not exist; name the caption file, or the folder that holds sidecars")
    if format == "parquet" or (format == "auto" and source.suffix == ".parquet"):
        return read_parquet(source)
    text, note = decode_file(source)
    if note:
        collector.notes.append(note)
    if not text.strip():
        raise InvalidInputError(f"{source} is empty; name a file that holds captions")
    return _parsed_file(source, text, _detected_format(source, text) if format == "auto" else format)


def _detected_format(source: Path, text: str) -> CaptionFormat:
    first = text.lstrip().partition("\n")[0]
    if first[0] not in "{[":
        return "token" if is_token_line(first) else "csv"
    # A record per line is told from one document by its first line, which is whole and not the last.
    is_last = not text.strip()[len(first) :].strip()
    is_whole = first.rstrip().endswith("}") and first.startswith("{")
    if source.suffix.lower() in (".jsonl", ".ndjson") or (is_whole and not is_last):
        return "jsonl"
    return "json"


def _parsed_file(source: Path, text: str, format: CaptionFormat) -> Iterator[CaptionRecord]:
    match format:
        case "csv":
            return read_delimited(source, text)
        case "tsv":
            return read_delimited(source, text, delimiters="\t")
        case "token":
            return read_token_file(source, text)
        case "jsonl":
            return read_caption_lines(source, text)
    content = parse_json(source, text)
    if format == "karpathy" or (format == "json" and is_karpathy(content)):
        return read_karpathy(source, content)
    if format == "coco" or (format == "json" and is_coco(content)):
        return read_coco(source, content)
    return read_json_captions(source, content)
