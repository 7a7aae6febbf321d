"""A file of a data set that is public by address."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from diptych.errors import InvalidInputError


@dataclass(frozen=True)
class Download:
    """A zip archive, where it is, and what of it a data set needs.

    ``size`` and ``sha256`` are checked where they are known and never guessed. ``members`` are patterns of the names in
    the archive; ``flat`` drops the folders before a name. ``note`` tells a user what is uncertain about the address.

    >>> from diptych.data.downloads import Download
    >>> Download("https://example.org/sets/photos.zip").file_name
    'photos.zip'
    """

    url: str
    size: int | None = None
    sha256: str | None = None
    members: tuple[str, ...] = ("*",)
    flat: bool = False
    unpacked_size: int | None = None
    note: str = ""

    def __post_init__(self) -> None:
        if urlsplit(self.url).scheme not in ("http", "https") or not self.file_name:
            raise InvalidInputError(f"a download needs the http address of a file, got {self.url!r}")

    @property
    def file_name(self) -> str:
        """The name of the file at the address."""
        return PurePosixPath(unquote(urlsplit(self.url).path)).name
