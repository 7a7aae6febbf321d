"""Videos: the frame at a time, and the moments at which something else begins to be seen."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import takewhile
from typing import Any, BinaryIO

# The package of an extra: this module is imported when a file needs it.
import av
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from diptych.encoders.image.picture_formats import LateImageFile

# Up to 5.7K; a decoder holds up to seventeen frames.
_MOST_PIXELS = 2**24
# No playlists or scripts among them, which could name other files and addresses.
_SUFFIXES = {
    "mov": ".mp4",
    "matroska": ".mkv",
    "avi": ".avi",
    "mpegts": ".mts",
    "mpeg": ".mpg",
    "asf": ".wmv",
    "flv": ".flv",
    "ogg": ".ogv",
}
_OPENING_SECONDS = 10.0
_MOST_FRAMES_TO_A_MOMENT = 1500

# Signatures are 16 × 16 colours between 0 and 255.
_SIGNATURE_SIDE = 16
_BLANK = 6.0
_CHANGE = 24.0
_LOOK_SECONDS, _LEAST_SECONDS = 0.5, 1.0
_MOST_LOOKS = 600
_MOST_MOMENTS = 40
# Where an encoder sets fewer key frames than this, all frames of a short video are looked at.
_KEY_FRAME_SECONDS, _SHORT_SECONDS = 4.0, 300.0

_Look = tuple[float, NDArray[np.float32]]


class VideoImageFile(LateImageFile):
    """One frame of a video as Pillow's own formats are: at a time, or else the first that is not blank."""

    format = "VIDEO"
    format_description = "Frame of a video"

    def __init__(self, file: BinaryIO, seconds: float | None = None) -> None:
        self._seconds = seconds
        super().__init__(file)

    def _open(self) -> None:
        assert self.fp is not None
        with closing(_Video(self.fp)) as video:
            frame = video.opening() if self._seconds is None else video.frame_at(self._seconds)
            self._frame = _upright(frame)
        self.suffix = video.suffix
        self._mode, self._size = self._frame.mode, self._frame.size

    def _decoded(self) -> Image.Image:
        return self._frame


def find_moments(file: BinaryIO) -> list[float]:
    """Return the seconds at which a video begins to show something else, besides its beginning; at most 39.

    Key frames are looked at, at most 600 of them; in short videos that hardly have any, frames between them too. A
    moment is one that is unlike the moment before by more than a bound, which is raised until there are not too many.
    """
    with closing(_Video(file)) as video:
        opening = video.opening()
        first, begins = _signature(opening), video.time_of(opening)
    with closing(_Video(file)) as video:
        looks = [(seconds, seen) for seconds, seen in video.looks() if not _is_blank(seen)]
    bound = _CHANGE
    while len(moments := _changes((begins, first), looks, bound)) >= _MOST_MOMENTS:
        bound *= 1.25
    return moments


def _changes(first: _Look, looks: list[_Look], bound: float) -> list[float]:
    (last_seconds, last), moments = first, []
    for seconds, seen in looks:
        if seconds >= last_seconds + _LEAST_SECONDS and float(np.abs(seen - last).mean()) >= bound:
            moments.append(round(seconds, 3))
            last_seconds, last = seconds, seen
    return moments


def _is_blank(signature: NDArray[np.float32]) -> bool:
    return bool(signature.std(axis=(0, 1)).max() < _BLANK)


class _Video:
    """The frames of the first video in a file; times count from its beginning."""

    def __init__(self, file: Any) -> None:
        file.seek(0)
        try:
            self._opened = av.open(file, mode="r", metadata_errors="ignore", options={"protocol_whitelist": ""})
        except av.FFmpegError as problem:
            raise ValueError(f"the video cannot be opened: {_words(problem)}") from None
        try:
            self._check()
        except ValueError:
            self.close()
            raise

    def _check(self) -> None:
        container = self._opened.format.name.partition(",")[0]
        if container not in _SUFFIXES:
            raise ValueError(f"it is no video but {self._opened.format.name}")
        if not self._opened.streams.video:
            raise ValueError("there is no video in it, only sound or text")
        self._stream = self._opened.streams.video[0]
        width, height = self._stream.codec_context.width, self._stream.codec_context.height
        if width * height > _MOST_PIXELS:
            raise ValueError(f"it has {width:,} × {height:,} pixels, and a video may have {_MOST_PIXELS:,}")
        is_webm = container == "matroska" and self._stream.codec_context.name in ("vp8", "vp9", "libdav1d", "av1")
        self.suffix = ".webm" if is_webm else _SUFFIXES[container]
        # What a frame says of itself may be more than what the file says.
        self._stream.codec_context.options = {"max_pixels": str(_MOST_PIXELS)}
        self._stream.codec_context.thread_count = 1
        self._base = self._stream.time_base
        self._start = self._stream.start_time or 0

    def close(self) -> None:
        self._opened.close()

    def time_of(self, frame: Any) -> float:
        return 0.0 if frame.pts is None or self._base is None else float((frame.pts - self._start) * self._base)

    def opening(self) -> Any:
        """Return the first frame that is not blank, or else the very first."""
        self._stream.codec_context.skip_frame = "NONKEY"
        first = None
        for frame in takewhile(lambda frame: self.time_of(frame) <= _OPENING_SECONDS, self._frames()):
            if not _is_blank(_signature(frame)):
                return frame
            first = first or frame
        if first is None:
            raise ValueError("there is no frame in it that can be decoded")
        return first

    def frame_at(self, seconds: float) -> Any:
        """Return the frame at a time; where there is none any more, the last one."""
        if self._base is not None:
            # What cannot be wound is read from its beginning.
            try:
                self._opened.seek(int(seconds / self._base) + self._start, stream=self._stream)
            except av.FFmpegError:
                self._opened.seek(0)
        found = None
        for number, frame in enumerate(self._frames()):
            found = frame
            # Times are rounded to milliseconds where they are kept.
            if self.time_of(frame) >= seconds - 0.002 or number >= _MOST_FRAMES_TO_A_MOMENT:
                break
        if found is None:
            raise ValueError(f"there is no frame at {seconds:g} seconds that can be decoded")
        return found

    def looks(self) -> Iterator[_Look]:
        """Yield times and signatures of frames, not too many of them."""
        keys = [packet.pts for packet in self._packets() if packet.is_keyframe and packet.pts is not None]
        duration = (self._opened.duration or 0) / av.time_base
        pause = max(_LOOK_SECONDS, duration / _MOST_LOOKS)
        is_sparse = duration / max(1, len(keys)) > _KEY_FRAME_SECONDS and duration <= _SHORT_SECONDS
        self._opened.seek(0)
        wanted = None if is_sparse or self._base is None else _spaced(keys, pause / float(self._base))
        if wanted is None:
            self._stream.codec_context.skip_frame = "NONREF"
        last = -pause
        for frame in self._frames(wanted):
            # A time that some encoders round is no reason to leave a frame out.
            if (seconds := self.time_of(frame)) >= last + 0.9 * pause:
                last = seconds
                yield seconds, _signature(frame)

    def _packets(self) -> Iterator[Any]:
        try:
            yield from self._opened.demux(self._stream)
        except av.FFmpegError:
            # A video that was cut off shows what it has.
            return

    def _frames(self, wanted: set[int] | None = None) -> Iterator[Any]:
        """Yield frames, of those packets that are wanted."""
        for packet in self._packets():
            # The last packet is empty, and asks for what the decoder still holds.
            if wanted is None or packet.pts is None or packet.pts in wanted:
                try:
                    yield from packet.decode()
                except av.FFmpegError:
                    continue


def _spaced(times: list[int], pause: float) -> set[int]:
    kept: list[int] = []
    for time in sorted(times):
        if not kept or time >= kept[-1] + 0.9 * pause:
            kept.append(time)
    return set(kept)


def _signature(frame: Any) -> NDArray[np.float32]:
    small = frame.reformat(_SIGNATURE_SIDE, _SIGNATURE_SIDE, "rgb24", interpolation="AREA")
    return np.asarray(small.to_ndarray(), dtype=np.float32)


def _upright(frame: Any) -> Image.Image:
    image: Image.Image = frame.to_image()
    return image.rotate(frame.rotation, expand=True) if frame.rotation else image


def _words(problem: av.FFmpegError) -> str:
    return str(problem.strerror or problem)
