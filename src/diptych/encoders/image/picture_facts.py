"""What a picture file says without being decoded: its format and size, and what the photograph says of itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from diptych.data.photo_facts.reading import read_photo_facts
from diptych.encoders.image.decoding_process import decode_elsewhere, is_available
from diptych.encoders.image.picture_decoding import MOST_SECONDS
from diptych.encoders.image.picture_formats import check_format, open_image, picture_format
from diptych.encoders.image.plain_pictures import is_plain

# A long video is looked through frame by frame.
_MOST_SECONDS_OF_A_VIDEO = 120.0
_SUFFIXES = {"MPO": ".jpg", "JPEG": ".jpg", "TIFF": ".tif", "HEIF": ".heic", "JPEG2000": ".jp2"}


@dataclass(frozen=True)
class PictureFacts:
    """Width and height as a picture is seen, the ending its file should have, and what the photograph says of itself.

    ``trouble`` is what of that could not be read.
    """

    width: int
    height: int
    suffix: str
    fields: dict[str, Any] = field(default_factory=dict)
    trouble: str = ""


def picture_facts(file: BinaryIO, path: Path, sidecars: Sequence[Path] = ()) -> PictureFacts:
    """Return the facts of a picture, with those of the XMP files beside it; ValueError says why it is none.

    >>> import io
    >>> from PIL import Image
    >>> content = io.BytesIO()
    >>> Image.new("L", (40, 30)).save(content, "PNG")
    >>> picture_facts(content, Path("IMG_20190714_180531.png")).fields["taken"]
    '2019-07-14T18:05:31'
    """
    if is_available() and not is_plain(file):
        check_format(file, picture_format(file))
        named = {"path": path.name, "sidecars": [str(sidecar) for sidecar in sidecars]}
        return PictureFacts(**decode_elsewhere("facts", file, str(path), MOST_SECONDS, **named)[0])
    image = open_image(file, to_decode=False)
    photo = read_photo_facts(image, file, path, sidecars)
    width, height = image.size[::-1] if photo.on_its_side else image.size
    # A video and a camera's own file say more than the name of their format.
    kind = image.format or "JPEG"
    suffix = getattr(image, "suffix", None) or _SUFFIXES.get(kind) or f".{kind.lower()}"
    return PictureFacts(width, height, suffix, photo.fields, photo.trouble)


def video_moments(file: BinaryIO, path: Path) -> list[float]:
    """Return the seconds at which a video begins to show something else, besides its beginning."""
    if is_available():
        found = decode_elsewhere("moments", file, str(path), _MOST_SECONDS_OF_A_VIDEO)[0]["moments"]
        return [float(seconds) for seconds in found]
    from diptych.encoders.image.videos import find_moments

    return find_moments(file)
