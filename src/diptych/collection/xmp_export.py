"""Captions, labels and ratings as XMP files beside pictures, for other photo programs; no picture is written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from diptych.atomic_files import atomic_write
from diptych.collection.item import Item
from diptych.collection.root import Root
from diptych.data.photo_facts.fields import rating_of
from diptych.data.picture_files import split_moment
from diptych.data.remote_files import is_remote
from diptych.errors import InvalidInputError

MARK = 'x:xmptk="Diptych"'


@dataclass(frozen=True)
class WrittenSidecars:
    """How many XMP files were written, and those of other programs that stayed as they are."""

    written: int
    left_out: tuple[str, ...] = ()


def xmp_document(item: Item) -> str:
    """Return what is known of an item as XMP: captions, labels and rating; empty where there is none of them.

    >>> "<rdf:li>dog</rdf:li>" in xmp_document(Item("1", "a.jpg", None, labels=("dog",)))
    True
    >>> xmp_document(Item("1", "a.jpg", None))
    ''
    """
    rating = rating_of(item.fields.get("rating"))
    if not item.captions and not item.labels and rating is None:
        return ""
    parts = []
    if item.captions:
        text = f'<rdf:li xml:lang="x-default">{_plain(chr(10).join(item.captions))}</rdf:li>'
        parts.append(f"<dc:description><rdf:Alt>{text}</rdf:Alt></dc:description>")
    if item.labels:
        labels = "".join(f"<rdf:li>{_plain(label)}</rdf:li>" for label in item.labels)
        parts.append(f"<dc:subject><rdf:Bag>{labels}</rdf:Bag></dc:subject>")
    rated = "" if rating is None else f" xmp:Rating={quoteattr(str(rating))}"
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<x:xmpmeta xmlns:x="adobe:ns:meta/" {MARK}>\n'
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">\n'
        '<rdf:Description rdf:about="" xmlns:dc="http://purl.org/dc/elements/1.1/" '
        f'xmlns:xmp="http://ns.adobe.com/xap/1.0/"{rated}>{"".join(parts)}</rdf:Description>\n'
        "</rdf:RDF>\n</x:xmpmeta>\n"
    )


def write_sidecars(items: Iterable[Item], root: Root, target: Path | None) -> WrittenSidecars:
    """Write ``photo.jpg.xmp`` for each picture: beside it, or in the same place below ``target``.

    A file that another program has written is left as it is.
    """
    root.check_trusted()
    if target is None and is_remote(root.folder):
        raise InvalidInputError(f"nothing is written to {root.folder}; name a folder for the XMP files")
    written, left_out = 0, []
    for item in items:
        document = "" if item.path is None or split_moment(item.path)[1] is not None else xmp_document(item)
        if item.path is None or not document:
            continue
        picture = root.picture(item.path)
        if target is None:
            beside = picture
        else:
            beside = target / (item.path if not Path(item.path).is_absolute() else Path(item.path).name)
            beside.parent.mkdir(parents=True, exist_ok=True)
        file = beside.with_name(f"{beside.name}.xmp")
        if file.exists() and MARK not in file.read_text(encoding="utf-8", errors="replace"):
            left_out.append(str(file))
            continue
        with atomic_write(file) as draft:
            draft.write_text(document, encoding="utf-8")
        written += 1
    return WrittenSidecars(written, tuple(left_out))


def _plain(text: str) -> str:
    """Return a text without the control characters that XML cannot hold."""
    return escape("".join(letter for letter in text if letter.isprintable() or letter in "\n\t"))
