"""A collection for one search: asked of the service that has it open already, opened here where there is none."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from functools import cached_property
from http.client import HTTPConnection, HTTPException, HTTPResponse
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from diptych.collection.storage.layout import Layout, Root
from diptych.data.picture_files import split_moment
from diptych.service.local_search import SIGNATURE_HEADER, ServiceNote, answers_of, read_note, signature

if TYPE_CHECKING:
    from diptych.collection import Answer, Answers, Collection, Item, Query

_PATIENCE_SECONDS = 10.0


class ServedCollection:
    """What a search needs of a collection; a query with a picture of this machine is always answered here.

    Whatever goes wrong with the service, its answer is done without: opening the collection says what is wrong.
    """

    def __init__(self, folder: Path, open_here: Callable[[], Collection]) -> None:
        self._note = read_note(folder)
        self._folder = folder
        self._open_here = open_here
        self._items: dict[str, Item] = {}

    @property
    def root(self) -> Path:
        """The folder that stored paths are relative to."""
        return Layout.read(self._folder).root_folder

    @cached_property
    def _here(self) -> Collection:
        return self._open_here()

    def search(self, query: Query, k: int, **how: Any) -> Answers:
        """Return what ``Collection.search`` returns."""
        if self._note is not None and all(term.kind != "picture" for term in query.terms):
            asked = {"q": str(query), "k": k, **{name: value for name, value in how.items() if value is not None}}
            try:
                answers = answers_of(_signed_answer(self._note, asked))
            except (OSError, HTTPException, ValueError, TypeError, KeyError):
                self._note = None
            else:
                self._items |= {answer.id: answer.item for answer in answers if answer.item is not None}
                return replace(answers, found=tuple(map(self._found_here, answers)))
        return self._here.search(query, k, **how)

    def _found_here(self, answer: Answer) -> Answer:
        # The service may have come to the same folder by another path.
        stored = None if answer.item is None else answer.item.path
        return answer if stored is None else replace(answer, path=split_moment(Root(self.root).file(stored))[0])

    def __getitem__(self, which: str) -> Item:
        """Return an item of the answers."""
        return self._items[which] if which in self._items else self._here[which]

    def thumbnail(self, which: str) -> bytes | None:
        """Return a small JPEG of an item's picture, or None."""
        if self._note is not None and which in self._items:
            with suppress(OSError, HTTPException):
                answer, body = _get(self._note, f"items/{quote(which, safe='')}/thumbnail", {})
                return body if answer.status == 200 else None
        return self._here.thumbnail(which)

    def close(self) -> None:
        """Close what was opened."""
        if "_here" in self.__dict__:
            self._here.close()


def _signed_answer(note: ServiceNote, asked: dict[str, Any]) -> bytes:
    """Return the body of an answer that only the service of the note can have given."""
    if not ip_address(note.host).is_loopback:
        raise ValueError(f"{note.host} is not this machine")
    words = urlencode(asked, quote_via=quote)
    answer, body = _get(note, f"answers?{words}", {SIGNATURE_HEADER: signature(note.key, words)})
    given = answer.headers.get(SIGNATURE_HEADER, "")
    if answer.status != 200 or not hmac.compare_digest(given.encode(), signature(note.key, body).encode()):
        raise ValueError(f"the service answered with status {answer.status}")
    return body


def _get(note: ServiceNote, address: str, headers: Mapping[str, str]) -> tuple[HTTPResponse, bytes]:
    with closing(HTTPConnection(note.host, note.port, timeout=_PATIENCE_SECONDS)) as connection:
        connection.request("GET", f"/v1/collections/{quote(note.name)}/{address}", headers=dict(headers))
        answer = connection.getresponse()
        return answer, answer.read()
