"""The settings of a service: collections, access, limits."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class Limits(BaseModel):
    """Bounds on what a client may send and ask for; each keeps one client from starving the others.

    ``requests_per_second`` and ``burst`` are those of a token bucket per client address; 0 switches it off. Of
    one visitor ``logged_per_minute`` searches and as many clicks are logged by a process.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    upload_bytes: int = 20 * 2**20
    upload_pixels: int = 100_000_000
    body_bytes: int = 2**20
    body_seconds: float = 30.0
    page_size: int = 200
    deepest_answer: int = 10_000
    filter_conditions: int = 32
    exported_items: int = 1_000
    kept_uploads: int = 1_000
    kept_upload_bytes: int = 2**30
    upload_seconds: float = 3_600.0
    write_wait_seconds: float = 30.0
    requests_per_second: float = 50.0
    burst: int = 200
    logged_per_minute: int = 60


class Settings(BaseSettings):
    """The settings of a service; a limit that is not given comes from the environment: DIPTYCH_LIMITS__PAGE_SIZE=50."""

    model_config = SettingsConfigDict(
        frozen=True, extra="forbid", env_prefix="DIPTYCH_", env_nested_delimiter="__", hide_input_in_errors=True
    )

    collections: Mapping[str, Path | str]  # folders and database addresses by the names that URLs use
    roots: Mapping[str, Path] = {}  # folders of pictures that were named, by the same names
    replicas: Mapping[str, str] = {}  # addresses that answer searches, by the same names
    token: str | None = Field(default=None, repr=False)  # to write, or to read from elsewhere; never logged
    public: bool = False  # others than this machine can reach the service; reading needs the token as well
    allowed_hosts: tuple[str, ...] = ()  # names of the service, besides those of this machine
    read_only: bool = False
    watch: bool = False  # one process follows the folders of the collections
    log_clicks: bool = True
    log_visitors: bool = True  # with a number for each, so that one person is one voice
    limits: Limits = Limits()
    trusted_proxies: tuple[str, ...] = ()  # addresses whose word is taken for who the client is
    workers: int = 1  # processes; they share the cores and the rate limit
    # Signs the sessions of the page; the same in every process of a service.
    session_secret: str = Field(default_factory=lambda: secrets.token_hex(32), repr=False)
    session_folder: Path | None = None  # where its processes note sessions that ended; None: there is but one
