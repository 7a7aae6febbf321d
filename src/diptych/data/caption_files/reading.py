"""From a caption file in any known format to the pictures of a folder."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, get_args

from diptych.data.caption_files.caption_record import CaptionRecord
from diptych.data.caption_files.captioned_pictures import CaptionedPictures
from diptych.data.caption_files.coco import is_coco, read_coco
from diptych.data.caption_files.decoding import decode_file
from diptych.data.caption_files.delimited import read_delimited
from diptych.data.caption_files.gathering import Gathering
from diptych.data.caption_files.json_records import parse_json, read_json, read_json_lines
from diptych.data.caption_files.karpathy import is_karpathy, read_karpathy
from diptych.data.caption_files.picture_index import PictureIndex
from diptych.data.caption_files.sidecar import read_sidecars
from diptych.data.caption_files.token_file import is_token_line, read_token_file
from diptych.data.picture_files import OnUnreadable, find_pictures
from diptych.errors import InvalidInputError, UnknownNameError

CaptionFormat = Literal["auto", "csv", "tsv", "json", "jsonl", "coco", "karpathy", "sidecar", "token"]
CAPTION_FORMATS: tuple[CaptionFormat, ...] = get_args(CaptionFormat)

PathLike = str | os.PathLike[str]


def read_captions(
    source: PathLike | Sequence[PathLike],
    folder: PathLike,
    *,
    format: CaptionFormat = "auto",
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
    ============ ====================================================================================

    Files may be named by their path below ``folder``, by their path beside the caption file, or by a base name that
    only one picture has. Whatever is named but not there is listed, not fatal; a file that cannot be understood is an
    error that names the row, but a sidecar, one of many, is passed over, listed and noted. Of metadata that rows of one
    picture disagree on, the first is kept.

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
    root = Path(folder)
    index = PictureIndex(root, find_pictures(root, on_unreadable=on_unreadable))
    gathering = Gathering(index)
    for one in map(Path, sources):
        beside = one if one.is_dir() else one.parent
        gathering.add(_records(one, index, format, gathering), beside)
    return gathering.result(root)


def _records(source: Path, index: PictureIndex, format: CaptionFormat, gathering: Gathering) -> Iterator[CaptionRecord]:
    if source.is_dir():
        if format not in ("auto", "sidecar"):
            raise InvalidInputError(f"{source} is a folder, but format {format!r} is one file; name that file")
        return read_sidecars(index.pictures, gathering.notes, gathering.unreadable)
    if format == "sidecar":
        raise InvalidInputError(f"{source} is not a folder; sidecars are found by naming the folder of pictures")
    if not source.exists():
        raise InvalidInputError(f"{source} does not exist; name the caption file, or the folder that holds sidecars")
    text, note = decode_file(source)
    if note:
        gathering.notes.append(note)
    if not text.strip():
        raise InvalidInputError(f"{source} is empty; name a file that holds captions")
    return _parsed(source, text, _detected(source, text) if format == "auto" else format)


def _detected(source: Path, text: str) -> CaptionFormat:
    first = text.lstrip().partition("\n")[0]
    if first[0] not in "{[":
        return "token" if is_token_line(first) else "csv"
    # A record per line is told from one document by its first line, which is whole and not the last.
    is_last = not text.strip()[len(first) :].strip()
    is_whole = first.rstrip().endswith("}") and first.startswith("{")
    if source.suffix.lower() in (".jsonl", ".ndjson") or (is_whole and not is_last):
        return "jsonl"
    return "json"


def _parsed(source: Path, text: str, format: CaptionFormat) -> Iterator[CaptionRecord]:
    match format:
        case "csv":
            return read_delimited(source, text)
        case "tsv":
            return read_delimited(source, text, delimiters="\t")
        case "token":
            return read_token_file(source, text)
        case "jsonl":
            return read_json_lines(source, text)
    content = parse_json(source, text)
    if format == "karpathy" or (format == "json" and is_karpathy(content)):
        return read_karpathy(source, content)
    if format == "coco" or (format == "json" and is_coco(content)):
        return read_coco(source, content)
    return read_json(source, content)
