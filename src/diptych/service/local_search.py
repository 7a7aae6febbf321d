"""What a service and ``diptych search`` on the same machine tell each other: a note of where it listens, and answers.

The note lies in the collection, readable to its user alone, and holds a key. Whoever asks signs with it, and so does
the service that answers: a note that was left behind, or another program on the same port, is found out.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

from diptych._version import __version__
from diptych.atomic_files import atomic_write
from diptych.collection.search.query import Answer, Answers
from diptych.collection.storage.item import Item
from diptych.encoders.image.picture_parts import PictureRegion, PictureWord

SIGNATURE_HEADER = "X-Diptych-Signature"


@dataclass(frozen=True)
class ServiceNote:
    """Where a service of this version listens, the collection and what it is called there, and the key of both sides.

    A copy of the collection brings the note along, but lies elsewhere.
    """

    host: str
    port: int
    folder: str
    name: str
    key: str
    version: str = __version__


def local_key(secret: str, folder: Path) -> str:
    """Return the key of a collection, which a service knows by its own secret."""
    return hmac.digest(secret.encode(), f"search {folder}".encode(errors="surrogateescape"), "sha256").hex()


def signature(key: str, text: str | bytes) -> str:
    """Return what shows that whoever sends a text has the key."""
    return hmac.digest(key.encode(), text.encode() if isinstance(text, str) else text, "sha256").hex()


def read_note(folder: Path) -> ServiceNote | None:
    """Return the note in a collection, None where there is none of this version for this very folder."""
    with suppress(OSError, ValueError, TypeError):
        note = ServiceNote(**json.loads(_place(folder).read_text(encoding="utf-8")))
        if (note.version, note.folder) == (__version__, str(folder.resolve())):
            return note
    return None


@contextmanager
def announced(collections: Mapping[str, Path], address: tuple[str, int], secret: str) -> Iterator[None]:
    """Leave notes in the collections of this machine while they are served."""
    with ExitStack() as notes:
        for name, folder in collections.items():
            note = ServiceNote(*address, str(folder.resolve()), name, local_key(secret, folder))
            notes.enter_context(_left(folder, note))
        yield


@contextmanager
def _left(folder: Path, note: ServiceNote) -> Iterator[None]:
    place = _place(folder)
    # Who may not write there serves all the same.
    with suppress(OSError):
        place.parent.mkdir(exist_ok=True)
        with atomic_write(place, private=True) as draft:
            draft.write_text(answers_text(note) + "\n", encoding="utf-8")
    try:
        yield
    finally:
        # Another service may have taken over.
        if read_note(folder) == note:
            place.unlink(missing_ok=True)


def _place(folder: Path) -> Path:
    return folder / "service" / "address.json"


def answers_text(answers: Any) -> str:
    """Return answers, or any dataclass, as JSON with everything they hold."""
    return json.dumps(answers, default=_plain)


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        return dict(value)
    return value.item() if hasattr(value, "item") else str(value)


def answers_of(text: str | bytes) -> Answers:
    """Return the answers of a text, equal to those that were written.

    >>> from pathlib import Path
    >>> item = Item("a", "a.jpg", None, labels=("dog",))
    >>> answer = Answer(1, "a", Path("a.jpg"), 0.1, 0.2, region=PictureRegion(0.0, 0.0, 0.6, 0.6), item=item)
    >>> answers = Answers((answer,), no_good_match=False, considered=3, exact=True, seconds=0.01)
    >>> again = answers_of(answers_text(answers))
    >>> again == answers, again[0].item == answer.item
    (True, True)
    """
    document = json.loads(text)
    return Answers(**{**_tuples(document), "found": tuple(map(_answer, document["found"]))})


def _answer(document: dict[str, Any]) -> Answer:
    path, item = document["path"], document["item"]
    found = {"path": None if path is None else Path(path), "item": None if item is None else Item(**_tuples(item))}
    words = (PictureWord(word["text"], tuple(map(tuple, word["corners"]))) for word in document["picture_words"])
    region = None if document["region"] is None else PictureRegion(**document["region"])
    return Answer(**{**_tuples(document), **found, "picture_words": tuple(words), "region": region})


def _tuples(document: Mapping[str, Any]) -> dict[str, Any]:
    # JSON has lists only.
    return {key: tuple(value) if isinstance(value, list) else value for key, value in document.items()}
