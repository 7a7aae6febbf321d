"""Encoding for all retrievers of a collection."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from diptych.collection.encoding import Encoding


class EveryEncoding:
    """Makes what is missing for each of several retrievers.

    Items are written after this, so that an item that exists is found with every retriever. Retrievers that share an
    encoder share its features: the first stores them, the others take them from there.
    """

    def __init__(self, encodings: Sequence[Encoding]) -> None:
        self._encodings = encodings

    def pictures(self, files: Mapping[str, tuple[Path, os.stat_result]]) -> dict[str, str]:
        """Encode pictures by content hash; return the reasons of those that some retriever cannot read."""
        failures: dict[str, str] = {}
        for encoding in self._encodings:
            failures.update(encoding.pictures({key: file for key, file in files.items() if key not in failures}))
        return failures

    def texts(self, texts: Mapping[str, str]) -> None:
        """Encode texts by content hash."""
        for encoding in self._encodings:
            encoding.texts(texts)
