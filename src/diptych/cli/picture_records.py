"""The pictures of a folder and what a caption file says about them, as records for a collection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from diptych.collection import Record
from diptych.data import CaptionedPicture, CaptionedPictures, find_pictures, read_captions
from diptych.data.caption_files import CaptionFormat
from diptych.errors import InvalidInputError


@dataclass(frozen=True)
class PictureRecords:
    """Records of the pictures of a folder; ``unreadable`` are folders and links that could not be looked into."""

    records: list[Record]
    captioned: CaptionedPictures | None = None
    unreadable: Mapping[str, str] = field(default_factory=dict)


def picture_records(
    folder: Path, captions: str | None = None, captions_format: str = "auto", *, label_folders: bool = False
) -> PictureRecords:
    """Find the pictures of ``folder``; ``captions`` is a caption file, or ``sidecar`` for files beside the pictures.

    ``label_folders`` labels each picture with the name of the folder it lies in.
    """
    unreadable: dict[str, str] = {}

    def pass_over(path: Path, reason: str) -> None:
        unreadable[str(path)] = reason

    pictures = list(find_pictures(folder, on_unreadable=pass_over))
    captioned = None if captions is None else _read(folder, captions, captions_format)
    known: Mapping[Path, CaptionedPicture] = {} if captioned is None else captioned
    records = []
    for path in pictures:
        about = known.get(path)
        labels = list(about.labels) if about is not None else []
        if label_folders and path.parent != folder and path.parent.name not in labels:
            labels.append(path.parent.name)
        # None leaves what the collection already knows.
        records.append(
            Record(
                path.absolute(),
                captions=about.captions if about is not None and about.captions else None,
                labels=labels or None,
                metadata=about.metadata if about is not None and about.metadata else None,
            )
        )
    return PictureRecords(records, captioned, unreadable)


def _read(folder: Path, captions: str, captions_format: str) -> CaptionedPictures:
    if captions == "sidecar" and not Path(captions).exists():
        found = read_captions(folder, folder, format="sidecar")
    else:
        found = read_captions(Path(captions).expanduser(), folder, format=cast(CaptionFormat, captions_format))
    if not found:
        example = f", {found.missing[0]} for example" if found.missing else ""
        raise InvalidInputError(
            f"{captions} describes no picture of {folder}{example}; name the folder that its file names start from"
        )
    return found
