"""How a collection names a retriever."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RetrieverNames:
    """A saved retriever: its folder, what people call it, and the fingerprints of it and of its encoders."""

    saved: str
    name: str
    fingerprint: str
    image_fingerprint: str
    text_fingerprint: str
