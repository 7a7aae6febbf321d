"""Interleaving that cannot begin or end now."""

from __future__ import annotations

from diptych.errors import DiptychError


class InterleavingError(DiptychError):
    """Two retrievers are interleaved already, or none are."""
