"""RAW photographs: the preview that the camera has put in, or else a quick development at half the size."""

from __future__ import annotations

import io
from contextlib import suppress

# The package of an extra: this module is imported when a file needs it.
import rawpy
from PIL import Image

from diptych.encoders.image.picture_formats import LateImageFile, open_image

_ORIENTATION_TAG, _DNG_VERSION = 0x0112, 50706
# Smaller previews are icons for the camera's screen: networks see more than that.
_SMALLEST_PREVIEW = 400
# Of LibRaw: how a photograph has to be turned to stand upright.
_TURNS = {3: Image.Transpose.ROTATE_180, 5: Image.Transpose.ROTATE_90, 6: Image.Transpose.ROTATE_270}
_ON_ITS_SIDE = (5, 6)
_MOST_PIXELS = 200_000_000


class RawImageFile(LateImageFile):
    """A RAW photograph as Pillow's own formats are: the size first, upright, and the pixels when they are wanted.

    Where there is no preview that is large enough, the photograph comes out with half as many rows and columns: of four
    neighbouring sensors, which see one colour each, one pixel is made.
    """

    format = "RAW"
    format_description = "RAW photograph"

    def _open(self) -> None:
        assert self.fp is not None
        content = self.fp.read()
        self._tags = _tags(content)
        try:
            self._raw = rawpy.imread(io.BytesIO(content))
        except rawpy.LibRawError as problem:
            raise ValueError(_words(problem)) from None
        sizes = self._raw.sizes
        # LibRaw makes room for all of it, so a size that only the header claims must end here.
        if sizes.raw_width * sizes.raw_height > _MOST_PIXELS:
            raise ValueError(
                f"it has {sizes.raw_width:,} × {sizes.raw_height:,} pixels, more than the limit of {_MOST_PIXELS:,}"
            )
        self.suffix = ".dng" if _DNG_VERSION in self._tags else ".raw"
        self._flip = sizes.flip
        is_on_its_side = self._flip in _ON_ITS_SIDE
        self._size = (sizes.height, sizes.width) if is_on_its_side else (sizes.width, sizes.height)
        self._mode = "RGB"

    def getexif(self) -> Image.Exif:
        """Return what the camera noted; the picture is upright already, and says so."""
        return self._tags

    def _decoded(self) -> Image.Image:
        try:
            with self._raw:
                return self._preview() or self._developed()
        except rawpy.LibRawError as problem:
            raise ValueError(_words(problem)) from None

    def _preview(self) -> Image.Image | None:
        """Return the preview of the camera, upright, or None where there is none that is of use."""
        # A preview that is damaged is no reason to give up the photograph.
        try:
            found = self._raw.extract_thumb()
            data = found.data
            image = open_image(io.BytesIO(data)) if isinstance(data, bytes) else Image.fromarray(data)
            if min(image.size) < _SMALLEST_PREVIEW or image.width * image.height > _MOST_PIXELS:
                return None
            noted = image.getexif().get(_ORIENTATION_TAG)
            upright = image.convert("RGB")
        except Exception:
            return None
        flip = self._flip if noted is None else _FLIPS.get(noted, 0)
        # Some cameras turn the preview themselves.
        is_turned = flip in _ON_ITS_SIDE and (image.width < image.height) == (self.width < self.height)
        return upright if is_turned or flip not in _TURNS else upright.transpose(_TURNS[flip])

    def _developed(self) -> Image.Image:
        return Image.fromarray(self._raw.postprocess(half_size=True, use_camera_wb=True, output_bps=8))


# The note of a camera in the numbers of LibRaw.
_FLIPS = {3: 3, 6: 6, 8: 5}


def _tags(content: bytes) -> Image.Exif:
    tags = Image.Exif()
    # Not every maker writes a TIFF file.
    with suppress(Exception):
        tags.load_from_fp(io.BytesIO(content))
    tags[_ORIENTATION_TAG] = 1
    return tags


def _words(problem: Exception) -> str:
    """Return what LibRaw says, which comes in bytes."""
    said = problem.args[0] if problem.args else type(problem).__name__
    return said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
