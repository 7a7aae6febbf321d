"""A note beside a data set of what was downloaded."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

RECEIPTS_FILE = "downloads.json"


class Receipts:
    """Which addresses a data set's files came from, with the size and the digest that were found.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from diptych.data.downloads.receipts import Receipts
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     receipts = Receipts(Path(folder))
    ...     receipts.add("http://example.org/a.zip", size=3, sha256="ab", holds=())
    ...     receipts.covers("http://example.org/a.zip"), receipts.covers("http://example.org/b.zip")
    (True, False)
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def covers(self, url: str) -> bool:
        """Say whether what came from ``url`` is still here."""
        receipt = self._read().get(url)
        return receipt is not None and all((self._folder / name).exists() for name in receipt.get("holds", ()))

    def add(self, url: str, *, size: int, sha256: str, holds: tuple[str, ...]) -> None:
        """Note what came from ``url``: its size, its digest and the names it put into the folder."""
        receipts = self._read() | {url: {"bytes": size, "sha256": sha256, "holds": list(holds)}}
        draft = self._folder / f".{RECEIPTS_FILE}.part"
        draft.write_text(json.dumps(receipts, indent=2) + "\n", encoding="utf-8")
        os.replace(draft, self._folder / RECEIPTS_FILE)

    def _read(self) -> dict[str, Any]:
        try:
            found = json.loads((self._folder / RECEIPTS_FILE).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}
