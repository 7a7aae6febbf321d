"""The formats of caption files (tables, token files, JSON, COCO, Karpathy's splits), and what one record says."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

from diptych.data.clicks.click_files import open_parquet
from diptych.data.picture_files import picture_suffixes
from diptych.data.text_files import BadRow, delimited_rows, first_named, normalised_name, parse_json
from diptych.errors import InvalidInputError

# In order of preference: where a file has two of one kind, the first is meant and the other is metadata.
FILE_NAMES = (
    "file",
    "file_name",
    "filename",
    "path",
    "file_path",
    "filepath",
    "image",
    "image_name",
    "image_path",
    "image_file",
    "picture",
    "photo",
)
CAPTION_NAMES = ("caption", "captions", "text", "texts", "sentence", "sentences", "description", "comment", "raw")
ONE_LABEL_NAMES = ("label", "category", "class")
LABEL_NAMES = (*ONE_LABEL_NAMES, "labels", "categories", "classes", "tags", "keywords")
_NUMBERED_CAPTION = re.compile(r"(caption|text|sentence)_?\d+")


@dataclass(frozen=True, slots=True)
class CaptionRecord:
    """A picture as a caption file names it, what is said there, empty captions too, and the row or key for messages."""

    file: str
    captions: tuple[str, ...]
    place: str
    labels: tuple[str, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)


def file_column(names: Sequence[str]) -> str | None:
    """Return the name that holds the picture's file, or None."""
    return first_named(FILE_NAMES, names)


def caption_record_of(entry: Mapping[str, Any], place: str, *, file: str | None = None) -> CaptionRecord:
    """Return what an object with named values says; ``file`` is the picture when its name stands outside."""
    file_name, caption_names, label_names, others = _roles(tuple(entry), file is None)
    if file is None:
        if file_name is None:
            raise InvalidInputError(f"{place} names no picture; give it a {' or '.join(map(repr, FILE_NAMES[:4]))}")
        file = entry[file_name]
        if not isinstance(file, str) or not file.strip():
            raise InvalidInputError(f"{place} has no file name; write the picture's path there")
    captions = [caption for name in caption_names for caption in captions_in(entry[name], place)]
    labels = [label for name in label_names for label in _labels_in(entry[name], normalised_name(name), place)]
    metadata = {name: plain_value(entry[name]) for name in others if entry[name] not in (None, "")}
    return CaptionRecord(file, tuple(captions), place, tuple(labels), metadata)


# All rows of a table have the same names.
@lru_cache(maxsize=64)
def _roles(
    names: tuple[str, ...], holds_file: bool
) -> tuple[str | None, tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return which of an object's names hold the file, captions, labels and metadata."""
    file = file_column(names) if holds_file else None
    others = [name for name in names if name != file]
    captions = tuple(name for name in others if _NUMBERED_CAPTION.fullmatch(normalised_name(name)))
    if (first := first_named(CAPTION_NAMES, others)) is not None:
        captions = (first, *captions)
    labels = tuple(name for name in others if normalised_name(name) in LABEL_NAMES)
    return file, captions, labels, tuple(name for name in others if name not in (*captions, *labels))


def captions_in(value: Any, place: str) -> list[str]:
    """Return the captions of a value: text, a list of texts, or a list of objects that hold one each."""
    if value is None:
        return [""]
    if isinstance(value, str):
        listed = _listed(value)
        return [value] if listed is None else listed or [""]
    if isinstance(value, list):
        return [caption for part in value for caption in captions_in(part, place)]
    if isinstance(value, dict):
        for name in ("raw", "caption", "text", "sentence"):
            if isinstance(value.get(name), str):
                return [value[name]]
    raise InvalidInputError(f"{place}: a caption must be text, got {json.dumps(value)[:60]}; write it in quotes")


def plain_value(value: Any) -> str | int | float | bool:
    """Return a plain value as it is, and a list or object as JSON text."""
    return value if isinstance(value, str | int | float | bool) else json.dumps(value, ensure_ascii=False)


def _labels_in(value: Any, name: str, place: str) -> list[str]:
    if value in (None, ""):
        return []
    if isinstance(value, list):
        return [label for part in value for label in _labels_in(part, name, place)]
    if isinstance(value, dict):
        inner = value.get("name", value.get("label"))
        if inner is None:
            raise InvalidInputError(f"{place}: a label must be a word or a number, got {json.dumps(value)[:60]}")
        return _labels_in(inner, name, place)
    text = str(value)
    listed = _listed(text)
    if listed is not None:
        return [label.strip() for label in listed if label.strip()]
    marks = ";|" if name in ONE_LABEL_NAMES or ";" in text or "|" in text else ","
    return [label.strip() for label in re.split(f"[{marks}]", text) if label.strip()]


def _listed(text: str) -> list[str] | None:
    """Return the strings of a JSON list written in a cell, or None when the text is no such list."""
    if not (text.startswith("[") and text.endswith("]")):
        return None
    try:
        listed = json.loads(text)
    except ValueError:
        return None
    return listed if all(isinstance(part, str) for part in listed) else None


_INTEGER = re.compile(r"-?(0|[1-9]\d{0,17})")
_DECIMAL = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")
_TOKEN_LINE = re.compile(r"(?P<file>[^\t]+)#(?P<number>\d+)\t(?P<caption>.*)")
_LIST_NAMES = ("images", "pictures", "data", "records", "items", "annotations")
_NO_METADATA = {"filename", "filepath", "sentences", "sentids"}


def read_delimited(path: Path, text: str, delimiters: str = "\t,;|") -> Iterator[CaptionRecord]:
    """Yield a record per row; without names of columns, a table of two is read as picture and caption.

    Columns other than file, captions and labels are metadata, numbers where every value of the column is one.
    """
    delimiter, header = _table_layout(path, text, delimiters)
    rows = _table_rows(path, text, delimiter)
    names = rows.pop(0)[1] if header is None else header
    records = [_row_record(path, line, names, row) for line, row in rows if any(cell.strip() for cell in row)]
    converters = _converters(records)
    for record in records:
        for name, value in record.metadata.items():
            record.metadata[name] = converters[name](value)
        yield record


def _table_layout(path: Path, text: str, delimiters: str) -> tuple[str, Sequence[str] | None]:
    """Return the delimiter, and the columns where the table does not name them itself."""
    first = next((line for line in io.StringIO(text) if line.strip()), "").strip("\r\n")
    split = {}
    for delimiter in delimiters:
        row = next(delimited_rows([first], delimiter, skipinitialspace=True), (1, []))
        if isinstance(row, BadRow):
            raise _bad_row_error(path, row)
        split[delimiter] = row[1]
    for delimiter, cells in split.items():
        if len(cells) > 1 and file_column(cells) is not None:
            return delimiter, None
    for delimiter, cells in split.items():
        if len(cells) == 2 and any(map(_is_picture, cells)):
            return delimiter, ("file", "caption") if _is_picture(cells[0]) else ("caption", "file")
    raise InvalidInputError(
        f"{path}: line 1 names no columns; start the table with a row such as {FILE_NAMES[0]},{CAPTION_NAMES[0]}"
    )


def _is_picture(cell: str) -> bool:
    return PurePosixPath(cell.strip()).suffix.lower() in picture_suffixes()


def _table_rows(path: Path, text: str, delimiter: str) -> list[tuple[int, list[str]]]:
    # Tables with tabs are often written without any quoting, so that a quote is only a quote.
    for quotes in (True, False) if delimiter == "\t" else (True,):
        stream = io.StringIO(text, newline="")
        rows = list(delimited_rows(stream, delimiter, quotes=quotes, strict=True, skipinitialspace=True))
        good = [row for row in rows if not isinstance(row, BadRow)]
        if len(good) == len(rows):
            return good
    raise _bad_row_error(path, next(row for row in rows if isinstance(row, BadRow)))


def _bad_row_error(path: Path, row: BadRow) -> InvalidInputError:
    return InvalidInputError(
        f"{path}: line {row.place} is no valid row ({row.reason}); save the table as text, close every quote, and "
        "double the quotes inside a quoted field"
    )


def _row_record(path: Path, line: int, names: Sequence[str], row: Sequence[str]) -> CaptionRecord:
    if len(row) != len(names):
        raise InvalidInputError(
            f"{path}: line {line} has {len(row)} fields, but there are {len(names)} columns; put quotes around a field "
            "that holds the separator"
        )
    return caption_record_of(dict(zip(names, row, strict=True)), f"{path}: line {line}")


def _converters(records: Iterable[CaptionRecord]) -> dict[str, Callable[[str], Any]]:
    """Return for each column of metadata what turns its values into integers, numbers or text."""
    converters: dict[str, Callable[[str], Any]] = {}
    for record in records:
        for name, value in record.metadata.items():
            narrowest = converters.get(name, int)
            if narrowest is int and not _INTEGER.fullmatch(value):
                narrowest = float
            # Leading zeros belong to codes, such as 007, and not to numbers.
            if narrowest is float and (not _DECIMAL.fullmatch(value) or re.match(r"-?0\d", value)):
                narrowest = str
            converters[name] = narrowest
    return converters


def read_parquet(path: Path) -> Iterator[CaptionRecord]:
    """Yield a record per row of a Parquet table that names its pictures by their files."""
    number = 0
    with open_parquet(path) as table:
        for batch in table.iter_batches():
            for row in batch.to_pylist():
                number += 1
                if any(isinstance(value, bytes | dict) for value in row.values()):
                    raise InvalidInputError(
                        f"{path} holds pictures themselves; unpack them: diptych index FOLDER --from {path}"
                    )
                yield caption_record_of(row, f"{path}: row {number}")


def is_token_line(line: str) -> bool:
    """Return True if a line is a file, a number, a tab and a caption."""
    return _TOKEN_LINE.fullmatch(line.rstrip("\r")) is not None


def read_token_file(path: Path, text: str) -> Iterator[CaptionRecord]:
    """Yield a record per picture, its captions in the order of their numbers."""
    captions: dict[str, list[tuple[int, str]]] = {}
    places: dict[str, int] = {}
    for row, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        found = _TOKEN_LINE.fullmatch(line.rstrip("\r"))
        if found is None:
            raise InvalidInputError(f"{path}: line {row} must be file#number, a tab and the caption, got {line[:60]!r}")
        captions.setdefault(found["file"], []).append((int(found["number"]), found["caption"]))
        places.setdefault(found["file"], row)
    for file, numbered in captions.items():
        listed = tuple(caption for _, caption in sorted(numbered, key=lambda pair: pair[0]))
        yield CaptionRecord(file, listed, f"{path}: line {places[file]}")


def read_json_captions(path: Path, content: Any) -> Iterator[CaptionRecord]:
    """Yield the records of an object of files, ``{file: caption, captions or record}``, or of a list of records."""
    if isinstance(content, list):
        return _list_records(content, f"{path}: entry")
    if not isinstance(content, dict):
        raise InvalidInputError(f"{path} must hold an object or a list, got {type(content).__name__}")
    if file_column(list(content)) is not None:
        return _list_records([content], f"{path}: entry")
    for name in _LIST_NAMES:
        listed = content.get(name)
        if isinstance(listed, list) and all(isinstance(entry, dict) for entry in listed):
            return _list_records(listed, f"{path}: {name} entry")
    return (record_from_json(value, f"{path}: {file!r}", file) for file, value in content.items())


def read_caption_lines(path: Path, text: str) -> Iterator[CaptionRecord]:
    """Yield the record of every line."""
    # Not splitlines: JSON may hold the Unicode line separators that it also splits at.
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield from _list_records([parse_json(path, line, line=number)], f"{path}: line {number}", numbered=False)


def record_from_json(value: Any, place: str, file: str) -> CaptionRecord:
    """Return what a caption, a list of captions or a record says about ``file``."""
    if isinstance(value, dict):
        return caption_record_of(value, place, file=file)
    return CaptionRecord(file, tuple(captions_in(value, place)), place)


def _list_records(entries: Iterable[Any], where: str, *, numbered: bool = True) -> Iterator[CaptionRecord]:
    for number, entry in enumerate(entries, start=1):
        place = f"{where} {number}" if numbered else where
        if not isinstance(entry, dict):
            raise InvalidInputError(f'{place} must be an object such as {{"file": "1.jpg", "caption": "a boat"}}')
        yield caption_record_of(entry, place)


def is_coco(content: Any) -> bool:
    """Return True if parsed JSON has the layout of COCO."""
    return isinstance(content, dict) and all(isinstance(content.get(key), list) for key in ("images", "annotations"))


def read_coco(path: Path, content: Any) -> Iterator[CaptionRecord]:
    """Yield a record per image, its categories as labels (Lin et al., "Microsoft COCO", ECCV 2014; cocodataset.org)."""
    if not is_coco(content):
        raise InvalidInputError(f"{path} is not in COCO's layout: it needs the lists 'images' and 'annotations'")
    if not isinstance(listed := content.get("categories", []), list):
        raise InvalidInputError(f"{path}: 'categories' must be a list; get a fresh copy of the file")
    categories = {
        _coco_value(path, "category", entry, "id"): str(_coco_value(path, "category", entry, "name"))
        for entry in listed
    }
    captions: dict[Any, list[str]] = {_coco_value(path, "image", image, "id"): [] for image in content["images"]}
    labels: dict[Any, dict[str, None]] = {}
    for number, annotation in enumerate(content["annotations"], start=1):
        place = f"annotation {number}"
        image = _coco_value(path, place, annotation, "image_id")
        if image not in captions:
            raise InvalidInputError(f"{path}: {place} is of image {image!r}, which 'images' does not list")
        if "caption" in annotation:
            captions[image].append(_coco_text(path, place, annotation, "caption"))
        elif "category_id" in annotation:
            if (category := _coco_value(path, place, annotation, "category_id")) not in categories:
                raise InvalidInputError(f"{path}: {place} has category {category!r}, which 'categories' lacks")
            labels.setdefault(image, {})[categories[category]] = None
    for number, image in enumerate(content["images"], start=1):
        file = _coco_text(path, f"image {number}", image, "file_name")
        known = {name: plain_value(value) for name, value in image.items() if name != "file_name" and value is not None}
        yield CaptionRecord(
            file, tuple(captions[image["id"]]), f"{path}: image {number}", tuple(labels.get(image["id"], ())), known
        )


def _coco_value(path: Path, place: str, entry: Any, name: str) -> Any:
    if not isinstance(entry, dict) or name not in entry:
        raise InvalidInputError(f"{path}: {place} has no {name!r}; get a fresh copy of the file")
    if isinstance(value := entry[name], dict | list):
        raise InvalidInputError(f"{path}: {name!r} of {place} must be a number or a name, got {value!r}")
    return value


def _coco_text(path: Path, place: str, entry: Any, name: str) -> str:
    if not isinstance(value := _coco_value(path, place, entry, name), str):
        raise InvalidInputError(
            f"{path}: {name!r} of {place} must be text, got {value!r}; get a fresh copy of the file"
        )
    return value


def is_karpathy(content: Any) -> bool:
    """Return True if parsed JSON has the layout of a Karpathy split."""
    images = content.get("images") if isinstance(content, dict) else None
    return isinstance(images, list) and bool(images) and isinstance(images[0], dict) and "sentences" in images[0]


def read_karpathy(path: Path, content: Any) -> Iterator[CaptionRecord]:
    """Yield a record per image, its part of the split as metadata ``split`` (Karpathy and Fei-Fei, CVPR 2015)."""
    if not is_karpathy(content):
        raise InvalidInputError(f"{path} is not a Karpathy split: it needs 'images' with 'filename' and 'sentences'")
    for number, image in enumerate(content["images"], start=1):
        place = f"{path}: image {number}"
        if not isinstance(image, dict) or not isinstance(image.get("filename"), str) or "sentences" not in image:
            raise InvalidInputError(f"{place} needs 'filename' and 'sentences'; get a fresh copy of the file")
        folder = image.get("filepath")
        file = f"{folder}/{image['filename']}" if folder else image["filename"]
        known = {
            name: plain_value(value) for name, value in image.items() if name not in _NO_METADATA and value is not None
        }
        yield CaptionRecord(file, tuple(captions_in(image["sentences"], place)), place, metadata=known)
