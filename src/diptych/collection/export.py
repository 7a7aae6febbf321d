"""Items as files for other programs, answers as files for people: pictures in a folder or a zip, or a gallery."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import time
import unicodedata
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePath
from typing import Any, BinaryIO, Literal
from zipfile import ZipFile, ZipInfo

import numpy as np

from diptych.arrays import AnyArray
from diptych.arrow import arrow_package
from diptych.atomic_files import atomic_write
from diptych.collection.item import Item
from diptych.data.picture_files import split_moment
from diptych.data.text_files import written_cells
from diptych.encoders.image.picture_decoding import read_picture, thumbnail
from diptych.encoders.image.picture_formats import picture_format
from diptych.errors import InvalidInputError, UnknownNameError, counted

FORMATS = ("csv", "jsonl", "parquet", "npz")
Points = tuple[list[str], AnyArray]
"""Points in rows, and the id of each."""


def export_format(path: Path, chosen: str | None) -> str:
    """Return the chosen format, or the one that the name of the file says."""
    name = path.suffix.removeprefix(".").lower() if chosen is None else chosen
    if name not in FORMATS:
        raise UnknownNameError("export format", name, FORMATS)
    return name


def write_items(
    path: Path, kind: str, items: Iterable[Item], texts: Mapping[str, str], points: Points | None = None
) -> None:
    """Write items as a table, with the texts in their pictures by content; in CSV, lists and mappings are JSON.

    With ``points`` of pictures, which a Parquet file can hold, each item has its own; an item without a picture none.
    """
    if points is not None and kind != "parquet":
        raise InvalidInputError(f"a {kind} file holds items without points; write them to parquet or npz")
    rows = [{**_row(item), _TEXT: texts.get(item.content_hash or "", "")} for item in items]
    if points is not None:
        places = {key: place for place, key in enumerate(points[0])}
        for row in rows:
            place = places.get(row["id"])
            row["point"] = None if place is None else points[1][place]
    writers = {"csv": _write_csv, "jsonl": _write_lines, "parquet": _write_parquet}
    with atomic_write(path) as draft:
        writers[kind](draft, rows)


def write_points(path: Path, points: Mapping[str, Points]) -> None:
    """Write points for NumPy: an array per side, and the ids of its rows."""
    names = {f"{side}_ids": np.array(keys, dtype=str) for side, (keys, _) in points.items()}
    with atomic_write(path) as draft, draft.open("wb") as stream:
        np.savez(stream, allow_pickle=False, **{side: matrix for side, (_, matrix) in points.items()}, **names)


_NUMBERS = ("size", "width", "height")
_LISTS = ("labels", "captions")
_OBJECTS = ("metadata", "facts")
_KNOWN = ("id", "path", "content_hash", *_NUMBERS, *_LISTS, *_OBJECTS, "modified", "added", "updated")
_TEXT = "picture_text"
_COLUMNS = (*_KNOWN, _TEXT)


def _row(item: Item) -> dict[str, Any]:
    row = {name: getattr(item, name) for name in _KNOWN}
    lists = {"labels": list(item.labels), "captions": list(item.captions)}
    return {**row, **lists, "metadata": dict(item.metadata), "facts": dict(item.facts)}


def _write_csv(path: Path, rows: list[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, _COLUMNS)
        writer.writeheader()
        for row in rows:
            lists = {name: json.dumps(row[name], ensure_ascii=False) for name in (*_LISTS, *_OBJECTS)}
            writer.writerow(dict(zip(row, written_cells((row | lists).values()), strict=True)))


def _write_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8") as stream:
        stream.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _write_parquet(path: Path, rows: list[dict[str, Any]]) -> None:
    pa = arrow_package("writing Parquet files")
    kinds = dict.fromkeys(_NUMBERS, pa.int64()) | dict.fromkeys(_LISTS, pa.list_(pa.string()))
    columns = [(name, kinds.get(name, pa.string())) for name in _COLUMNS]
    if (first := next((row["point"] for row in rows if row.get("point") is not None), None)) is not None:
        columns.append(("point", pa.list_(pa.from_numpy_dtype(first.dtype), len(first))))
    schema = pa.schema(columns)
    plain = [row | {name: json.dumps(row[name], ensure_ascii=False) for name in _OBJECTS} for row in rows]
    pa.parquet.write_table(pa.Table.from_pylist(plain, schema=schema), path)


_BLOCK = 1 << 18
_LONGEST_SIDE = 2560
_LONGEST_NAME = 60
_MARK = ".diptych-export"
_MANY_THUMBNAILS = 200

OpenPicture = Callable[[Item], BinaryIO | None]
Entry = tuple[str, Iterable[bytes]]


@dataclass(frozen=True)
class ExportedPictures:
    """What was written: how many items, and the names of those whose pictures could not be read any more."""

    target: Path
    items: int
    left_out: tuple[str, ...] = ()


def rendered_picture(file: BinaryIO, seconds: float | None) -> tuple[bytes, Literal["JPEG", "PNG"]]:
    """Return a picture as every browser can show it, without anything else that its file says; drawings as PNG.

    Of a video it is the frame at so many ``seconds``, or the first that shows something.
    """
    kind: Literal["JPEG", "PNG"] = "PNG" if picture_format(file) == "SVG" else "JPEG"
    pixels = read_picture(file, shortest_side=_LONGEST_SIDE // 2, seconds=seconds)
    return thumbnail(pixels, longest_side=_LONGEST_SIDE, format=kind, quality=85), kind


def safe_name(name: str, number: int, n_all: int) -> str:
    """Return a name for a file that every system takes, that stays in order and is unlike every other one.

    >>> safe_name("Über uns: 1/2?.JPG", 7, 120), safe_name("..", 1, 9)
    ('007-Über_uns_1_2.jpg', '1-picture')
    """
    plain = PurePath(re.sub(r"[^\w.-]+", "_", unicodedata.normalize("NFC", name)))
    stem = plain.stem.strip("._-")[:_LONGEST_NAME].rstrip("._-") or "picture"
    return f"{number:0{len(str(n_all))}d}-{stem}{plain.suffix.lower() if plain.stem.strip('.') else ''}"


class PictureExport:
    """The files of an export, one after the other; ``left_out`` has the names of pictures that could not be read.

    ``open_picture`` opens the file of an item, ``thumbnails`` returns small JPEGs of items by their ids. A gallery has
    a page for a browser beside the pictures. Unless ``keep_metadata`` they are drawn again, at most 2,560 pixels long,
    so that nothing else is told that the files say: where they were taken, by whom, with which camera.
    """

    def __init__(
        self,
        items: Sequence[Item],
        open_picture: OpenPicture,
        thumbnails: Callable[[list[str]], list[bytes | None]],
        *,
        title: str = "Pictures",
        about: str = "",
        gallery: bool = False,
        keep_metadata: bool | None = None,
    ) -> None:
        self.items = items
        self.left_out: list[str] = []
        self._open_picture = open_picture
        self._thumbnails = thumbnails
        self._title, self._about = title, about
        self._is_gallery = gallery
        self._keeps_metadata = not gallery if keep_metadata is None else keep_metadata
        self._shown: list[dict[str, Any]] = []

    def entries(self) -> Iterator[Entry]:
        """Yield names and contents; those that say what is there come last, when that is known."""
        videos: dict[str, str] = {}
        for number, item in enumerate(self.items, start=1):
            if item.path is None:
                yield from self._text(item, number)
                continue
            file = split_moment(item.path)[0]
            if self._keeps_metadata and str(file) in videos:
                # A video is copied once, whichever of its moments were found.
                self._note(item, file.name, videos[str(file)])
                continue
            opened = self._open_picture(item)
            if opened is None:
                self.left_out.append(file.name)
                continue
            with opened:
                name = safe_name(file.name, number, len(self.items))
                content: Iterable[bytes] = iter(partial(opened.read, _BLOCK), b"")
                if not self._keeps_metadata:
                    try:
                        drawn, kind = rendered_picture(opened, item.seconds or None)
                    # Whatever a library says of a broken file.
                    except Exception:
                        self.left_out.append(file.name)
                        continue
                    name, content = f"{PurePath(name).stem}.{'jpg' if kind == 'JPEG' else 'png'}", [drawn]
                place = f"pictures/{name}" if self._is_gallery else name
                videos[str(file)] = place
                self._note(item, file.name, place)
                yield place, content
        yield from self._gallery() if self._is_gallery else self._captions()

    def _text(self, item: Item, number: int) -> Iterator[Entry]:
        self._note(item, "", "")
        if not self._is_gallery:
            yield safe_name("text.txt", number, len(self.items)), ["\n".join(item.captions).encode() + b"\n"]

    def _note(self, item: Item, name: str, place: str) -> None:
        fields = item.fields
        told = {"file": place, "captions": list(item.captions), "labels": list(item.labels)}
        self._shown.append({**told, "id": item.id, "name": name, "taken": str(fields.get("taken") or "")[:10]})

    def _captions(self) -> Iterator[Entry]:
        """Yield a file of captions that ``diptych index --captions`` reads."""
        told = [{name: one[name] for name in ("file", "captions", "labels")} for one in self._shown if one["file"]]
        yield "captions.json", [json.dumps({"pictures": told}, ensure_ascii=False, indent=2).encode()]
        if self.left_out:
            yield "left-out.txt", ["".join(f"{name}\n" for name in self.left_out).encode("utf-8", "replace")]

    def _gallery(self) -> Iterator[Entry]:
        from jinja2 import Environment, PackageLoader

        pictured = [one for one in self._shown if one["file"]]
        for start in range(0, len(pictured), _MANY_THUMBNAILS):
            some = pictured[start : start + _MANY_THUMBNAILS]
            for one, small in zip(some, self._thumbnails([one["id"] for one in some]), strict=True):
                if small is not None:
                    one["thumbnail"] = f"thumbnails/{PurePath(one['file']).stem}.jpg"
                    yield one["thumbnail"], [small]
        pages = Environment(
            loader=PackageLoader("diptych.collection", "page"),
            autoescape=True,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        texts = len(self._shown) - len(pictured)
        counts = [counted(len(pictured), "picture")] if pictured else []
        page = pages.get_template("gallery.html.j2").render(
            title=self._title,
            about=self._about,
            shown=", ".join([*counts, *([counted(texts, "text")] if texts else [])]) or "Nothing was found.",
            entries=[{**one, "caption": next(iter(one["captions"]), "")} for one in self._shown],
            left_out=self.left_out,
            made=time.strftime("%Y-%m-%d"),
        )
        yield "index.html", [page.encode("utf-8", "replace")]

    def zipped(self) -> Iterator[bytes]:
        """Yield the bytes of a zip file with everything, never more than a block at once."""
        sink, now = _Sink(), time.localtime()[:6]
        with ZipFile(sink, "w") as archive:
            for name, content in self.entries():
                with archive.open(ZipInfo(name, now), "w", force_zip64=True) as part:
                    for block in content:
                        part.write(block)
                        yield from sink.taken()
        yield from sink.taken()

    def write(self, target: Path, *, force: bool = False) -> ExportedPictures:
        """Write a folder, or a zip file where the name ends so; it appears under its name when it is whole.

        What exists is not overwritten, unless ``force``: a zip file, or the files of an earlier export in a folder.
        """
        if target.suffix.lower() == ".zip":
            if target.exists() and not force:
                raise InvalidInputError(f"{target} exists already; choose another name, or replace it with --force")
            with atomic_write(target) as draft, draft.open("wb") as stream:
                stream.writelines(self.zipped())
        else:
            _check_folder(target, force)
            with _draft_beside(target) as draft:
                for name, content in self.entries():
                    (draft / name).parent.mkdir(exist_ok=True)
                    with (draft / name).open("wb") as stream:
                        stream.writelines(content)
                _move_in(draft, target)
        return ExportedPictures(target, len(self._shown), tuple(self.left_out))


class _Sink(io.RawIOBase):
    """Takes what a zip file writes until somebody fetches it."""

    def __init__(self) -> None:
        super().__init__()
        self._held: list[bytes] = []

    def writable(self) -> bool:
        """Say that it takes bytes; it cannot seek, so sizes come after each file."""
        return True

    def write(self, data: Any) -> int:
        """Hold some bytes."""
        self._held.append(bytes(data))
        return len(self._held[-1])

    def taken(self) -> list[bytes]:
        """Return what is held, and hold it no more."""
        held, self._held = self._held, []
        return held


def _check_folder(target: Path, force: bool) -> None:
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return
    if not target.is_dir():
        raise InvalidInputError(f"{target} is a file; name a new folder, or a zip file that ends in .zip")
    if not (target / _MARK).is_file():
        raise InvalidInputError(f"{target} holds other files; name a new folder")
    if not force:
        raise InvalidInputError(f"{target} is an earlier export; choose another name, or replace it with --force")


@contextmanager
def _draft_beside(target: Path) -> Iterator[Path]:
    draft = target.with_name(f".{target.name}.{uuid.uuid4().hex[:12]}")
    draft.mkdir(parents=True)
    try:
        yield draft
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _move_in(draft: Path, target: Path) -> None:
    """Put the files of a draft in the place of those of an earlier export; files of others stay."""
    names = sorted(path.relative_to(draft).as_posix() for path in draft.rglob("*") if path.is_file())
    if (target / _MARK).is_file():
        for name in (target / _MARK).read_text(encoding="utf-8").splitlines():
            # The list is a file that anybody may have changed; nothing outside is touched.
            if ".." not in PurePath(name).parts and not PurePath(name).is_absolute():
                (target / name).unlink(missing_ok=True)
    for name in names:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (draft / name).replace(target / name)
    (target / _MARK).write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
