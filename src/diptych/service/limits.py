"""How much one request may ask for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Bounds on what a client may send and ask for; each keeps one client from starving the others.

    Sizes are in bytes, times in seconds. ``requests_per_second`` and ``burst`` are those of a token bucket per client
    address; 0 switches it off.
    """

    upload_bytes: int = 20 * 2**20
    upload_pixels: int = 100_000_000
    body_bytes: int = 2**20
    body_seconds: float = 30.0
    page_size: int = 200
    deepest_answer: int = 10_000
    query_characters: int = 2_000
    query_terms: int = 16
    filter_conditions: int = 32
    kept_uploads: int = 1_000
    kept_upload_bytes: int = 2**30
    upload_seconds: float = 3_600.0
    write_wait_seconds: float = 10.0
    requests_per_second: float = 50.0
    burst: int = 200
