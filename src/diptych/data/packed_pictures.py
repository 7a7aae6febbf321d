"""Pictures that come packed with their captions: Hugging Face data sets on disk, Parquet files, WebDataset shards."""

from __future__ import annotations

import io
import json
import os
import re
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from diptych.arrow import arrow_package
from diptych.atomic_files import atomic_write
from diptych.data.caption_files import CaptionedPictures, read_captions
from diptych.data.caption_formats import CaptionRecord, caption_record_of, file_column, record_from_json
from diptych.data.clicks.click_files import open_parquet
from diptych.data.picture_files import picture_suffixes
from diptych.data.text_files import parse_json
from diptych.errors import InvalidInputError

CAPTIONS_FILE = "captions.jsonl"
"""What unpacked pictures are described in, beside them."""

_TARS, _TABLES = (".tar", ".tgz", ".tar.gz"), (".parquet", ".arrow")
_ROWS_AT_ONCE = 16
_LARGEST_PICTURE, _LARGEST_TEXT = 256 << 20, 1 << 20
_SUFFIXES = {"JPEG": ".jpg", "TIFF": ".tif", "MPO": ".jpg", "JPEG2000": ".jp2"}


@dataclass(frozen=True, slots=True)
class _Packed:
    """A picture with what is said of it; without ``content`` where it is too large or elsewhere."""

    content: bytes | None
    record: CaptionRecord


def unpack_pictures(source: str | os.PathLike[str], folder: str | os.PathLike[str]) -> CaptionedPictures:
    """Write the pictures that ``source`` holds into ``folder``, and return them with their captions.

    ``source`` is a folder of a Hugging Face data set (written by ``save_to_disk``, or as downloaded, in Parquet), a
    Parquet or Arrow table, whose pictures are bytes or paths beside it, a WebDataset shard (``.tar``, with ``.txt``,
    ``.json`` and ``.cls`` beside each picture), or a folder of these. Columns are read as `read_captions` reads those
    of a table; numbers of classes become their names. Links and other things that are no plain files are passed over
    in shards, and so is what is larger than a picture may be.

    The folder must be new, empty or one of an earlier call, which is brought up to date. It gets a ``captions.jsonl``
    with all that was said, which `read_captions` and ``diptych index --captions`` read. Pictures that were named but
    not there, or no pictures, are ``missing`` of what is returned.

    >>> import io, tarfile, tempfile
    >>> from PIL import Image
    >>> from diptych.data import unpack_pictures
    >>> picture = io.BytesIO()
    >>> Image.new("RGB", (8, 8), "red").save(picture, "PNG")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with tarfile.open(f"{folder}/shard.tar", "w") as shard:
    ...         for name, content in {"0.png": picture.getvalue(), "0.txt": b"a red square"}.items():
    ...             member = tarfile.TarInfo(name)
    ...             member.size = len(content)
    ...             shard.addfile(member, io.BytesIO(content))
    ...     pictures = unpack_pictures(f"{folder}/shard.tar", f"{folder}/pictures")
    ...     [(path.name, found.captions) for path, found in pictures.items()]
    [('0.png', ('a red square',))]
    """
    root = Path(folder)
    files = _packed_files(Path(source))
    if root.is_dir() and any(root.iterdir()) and not (root / CAPTIONS_FILE).is_file():
        raise InvalidInputError(f"{root} holds other files; name a new folder for what {source} holds")
    root.mkdir(parents=True, exist_ok=True)
    taken: set[str] = set()
    with atomic_write(root / CAPTIONS_FILE) as draft, draft.open("w", encoding="utf-8") as lines:
        for packed in (packed for file in files for packed in _opened(file)):
            record = packed.record
            name = None if packed.content is None else _written(packed.content, root, record.file, taken)
            entry = {
                "file": name or record.file,
                "captions": record.captions,
                "labels": record.labels,
                **record.metadata,
            }
            lines.write(json.dumps(entry, ensure_ascii=False, default=str) + "\n")
    if not taken:
        raise InvalidInputError(f"{source} holds no picture; name what holds pictures as bytes, or paths beside it")
    return read_captions(root / CAPTIONS_FILE, root)


def _packed_files(source: Path) -> list[Path]:
    if not source.exists():
        raise InvalidInputError(f"{source} does not exist; name a folder or file that holds pictures")
    found = [source] if source.is_file() else sorted(path for path in source.rglob("*") if path.is_file())
    # What the library of Hugging Face computed from a data set lies beside it.
    found = [path for path in found if path.name.endswith((*_TARS, *_TABLES)) and not path.name.startswith("cache-")]
    if not found:
        raise InvalidInputError(f"{source} holds nothing to unpack; wanted are {', '.join((*_TARS, *_TABLES))}")
    return found


def _opened(file: Path) -> Iterator[_Packed]:
    return _shard_pictures(file) if file.name.endswith(_TARS) else _table_pictures(file)


def _written(content: bytes, folder: Path, given: str, taken: set[str]) -> str | None:
    """Write a picture under a name like the given one, and return its name; None where it is no picture."""
    from PIL import Image

    try:
        with Image.open(io.BytesIO(content)) as picture:
            kind = str(picture.format)
    except (OSError, ValueError, Image.DecompressionBombError):
        return None
    suffix = _SUFFIXES.get(kind, f".{kind.lower()}")
    if suffix not in picture_suffixes():
        return None
    # Names come from others: what is not plain in them could lead elsewhere or be hidden.
    stem = re.sub(r"[^\w\-. ]", "_", PurePosixPath(given.replace("\\", "/")).stem)[:100].strip(". ") or "picture"
    name, number = f"{stem}{suffix}", 1
    while name.casefold() in taken:
        number += 1
        name = f"{stem}-{number}{suffix}"
    taken.add(name.casefold())
    # What is there already keeps its time, so that it is not encoded again.
    if not (folder / name).is_file() or (folder / name).read_bytes() != content:
        with atomic_write(folder / name) as draft:
            draft.write_bytes(content)
    return name


def _shard_pictures(file: Path) -> Iterator[_Packed]:
    """Yield the samples of a shard: members that follow each other and share their name up to its first dot."""
    try:
        with tarfile.open(file, "r|*") as shard:
            key, parts = "", dict[str, bytes | None]()
            for member in shard:
                folder, name = os.path.split(member.name)
                stem, _, ending = name.partition(".")
                if not member.isfile() or not stem:
                    continue
                if (beside := os.path.join(folder, stem)) != key:
                    yield from _sample(file, key, parts)
                    key, parts = beside, {}
                parts[f".{ending.lower()}"] = _content(shard, member)
            yield from _sample(file, key, parts)
    except (tarfile.TarError, EOFError) as error:
        raise InvalidInputError(f"{file} is no whole tar file ({error}); get a fresh copy of it") from error


def _content(shard: tarfile.TarFile, member: tarfile.TarInfo) -> bytes | None:
    largest = _LARGEST_TEXT if member.name.endswith((".txt", ".json", ".cls")) else _LARGEST_PICTURE
    stream = shard.extractfile(member) if member.size <= largest else None
    return None if stream is None else stream.read()


def _sample(file: Path, key: str, parts: dict[str, bytes | None]) -> Iterator[_Packed]:
    ending = next((ending for ending in parts if ending in picture_suffixes()), None)
    if ending is None:
        return
    place, name = f"{file}: {key}", key + ending
    told = {kind: (parts.get(kind) or b"").decode("utf-8", "replace") for kind in (".txt", ".json", ".cls")}
    said = CaptionRecord(name, (), place)
    if told[".json"]:
        said = record_from_json(parse_json(Path(f"{file}/{key}.json"), told[".json"]), place, name)
    captions = (*filter(str.strip, told[".txt"].splitlines()), *said.captions)
    labels = tuple(dict.fromkeys((*said.labels, *told[".cls"].split())))
    yield _Packed(parts[ending], CaptionRecord(name, captions, place, labels, said.metadata))


def _table_pictures(file: Path) -> Iterator[_Packed]:
    with _opened_table(file) as (schema, batches):
        features = _hugging_face_features(schema)
        column = _picture_column(file, schema, features)
        names = {name: _class_names(feature) for name, feature in features.items()}
        rows = (row for batch in batches for row in _rows(batch))
        for number, row in enumerate(rows, start=1):
            content, given = _row_picture(row.pop(column), file)
            told = {name: _named(value, names.get(name)) for name, value in row.items()}
            told = {name: value for name, value in told.items() if not isinstance(value, bytes)}
            given = given or f"{file.stem}-{number:06d}"
            yield _Packed(content, caption_record_of(told, f"{file}: row {number}", file=given))


def _rows(batch: Any) -> Iterator[dict[str, Any]]:
    for start in range(0, batch.num_rows, _ROWS_AT_ONCE):
        yield from batch.slice(start, _ROWS_AT_ONCE).to_pylist()


@contextmanager
def _opened_table(file: Path) -> Iterator[tuple[Any, Iterator[Any]]]:
    if file.suffix != ".parquet":
        yield _arrow_batches(file)
        return
    with open_parquet(file) as table:
        yield table.schema_arrow, table.iter_batches(batch_size=_ROWS_AT_ONCE)


def _arrow_batches(file: Path) -> tuple[Any, Iterator[Any]]:
    arrow = arrow_package("reading Arrow files")
    readers: tuple[Callable[[Any], Any], ...] = (arrow.ipc.open_stream, arrow.ipc.open_file)
    for opened in readers:
        try:
            reader = opened(arrow.memory_map(str(file)))
        except (OSError, ValueError):
            continue
        if opened is arrow.ipc.open_stream:
            return reader.schema, iter(reader)
        return reader.schema, (reader.get_batch(place) for place in range(reader.num_record_batches))
    raise InvalidInputError(f"{file} is no readable Arrow file; get a fresh copy of it")


def _hugging_face_features(schema: Any) -> dict[str, Any]:
    written = (schema.metadata or {}).get(b"huggingface", b"{}")
    try:
        features = json.loads(written).get("info", {}).get("features", {})
    except (ValueError, AttributeError):
        return {}
    return features if isinstance(features, dict) else {}


def _picture_column(file: Path, schema: Any, features: dict[str, Any]) -> str:
    types = arrow_package("reading Arrow files").types
    for field in schema:
        feature = features.get(field.name)
        if isinstance(feature, dict) and feature.get("_type") == "Image":
            return str(field.name)
    for field in schema:
        is_struct = types.is_struct(field.type) and field.type.get_field_index("bytes") >= 0
        if is_struct or types.is_binary(field.type) or types.is_large_binary(field.type):
            return str(field.name)
    if (named := file_column(schema.names)) is None:
        raise InvalidInputError(f"{file} has no column of pictures or of their paths; it has {', '.join(schema.names)}")
    return named


def _class_names(feature: Any) -> list[str] | None:
    inner = feature.get("feature", feature) if isinstance(feature, dict) else None
    if not isinstance(inner, dict) or inner.get("_type") != "ClassLabel" or not isinstance(inner.get("names"), list):
        return None
    return [str(name) for name in inner["names"]]


def _named(value: Any, names: list[str] | None) -> Any:
    if isinstance(value, list):
        return [_named(part, names) for part in value]
    # A class that nobody knows is -1.
    return names[value] if names is not None and isinstance(value, int) and 0 <= value < len(names) else value


def _row_picture(value: Any, file: Path) -> tuple[bytes | None, str]:
    """Return the picture's bytes, those of the file it names where it has none itself, and the name it goes by."""
    content, given = (value.get("bytes"), value.get("path")) if isinstance(value, dict) else (value, None)
    if isinstance(content, str):
        content, given = None, content
    if content is None and given and (beside := file.parent / given).is_file():
        content = beside.read_bytes() if beside.stat().st_size <= _LARGEST_PICTURE else None
    return content, str(given or "")
