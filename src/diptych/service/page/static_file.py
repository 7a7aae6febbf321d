"""One file of the page, as it is sent."""

from __future__ import annotations

import gzip
import hashlib
import mimetypes
from dataclasses import dataclass
from functools import cached_property

# Taken from here alone: the tables of an operating system may call a module text/plain, which browsers refuse to run.
_TYPES = mimetypes.MimeTypes(filenames=())
_TYPES.add_type("text/javascript", ".js")
_TYPES.add_type("image/svg+xml", ".svg")


@dataclass(frozen=True)
class StaticFile:
    """A name and its bytes, with the type and the tag that browsers need.

    >>> from diptych.service.page.static_file import StaticFile
    >>> file = StaticFile("js/main.js", b"export {};")
    >>> file.media_type, file.matches(file.etag), file.matches('W/"old", *'), file.matches(None)
    ('text/javascript; charset=utf-8', True, True, False)
    """

    name: str
    content: bytes

    @cached_property
    def etag(self) -> str:
        """A tag that changes with the content; weak, because it stands for the packed bytes as well."""
        return f'W/"{hashlib.sha256(self.content).hexdigest()[:32]}"'

    @cached_property
    def packed(self) -> bytes:
        """The bytes for browsers that unpack gzip, about a third of the plain ones."""
        return gzip.compress(self.content, mtime=0)

    @property
    def media_type(self) -> str:
        """The type that the name stands for."""
        kind = _TYPES.guess_type(self.name)[0] or "application/octet-stream"
        return f"{kind}; charset=utf-8" if kind.startswith("text/") else kind

    def matches(self, if_none_match: str | None) -> bool:
        """Whether a browser that sends ``If-None-Match`` has this content already."""
        tags = {tag.strip().removeprefix("W/") for tag in (if_none_match or "").split(",")}
        return bool(tags & {self.etag.removeprefix("W/"), "*"})
