"""What a service was told to be."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from diptych.service.limits import Limits

Role = Literal["whole", "reader", "writer"]


@dataclass(frozen=True)
class Settings:
    """The settings of one process of the service.

    Parameters
    ----------
    collections :
        The folder of each collection by its name, which is part of addresses.
    token :
        The secret that lets programs write, and that everyone needs beyond this machine; never shown or logged.
    public :
        Whether others than this machine can reach the service; then reading needs the token as well.
    allowed_hosts :
        Names under which the service may be addressed, besides those of this machine.
    read_only :
        Refuse every write.
    log_clicks :
        Remember what was asked, shown and clicked, on this machine.
    role :
        ``whole`` answers everything, ``reader`` searches and hands writes to the ``writer``, of which there is one.
    writer_socket :
        Where the writer listens, for readers.
    trusted_proxies :
        Addresses of proxies whose word is taken for who the client is.
    workers :
        How many processes answer searches; they share the cores and the rate limit.
    session_secret :
        What signs the sessions of the page; the same in every process of a service.
    """

    collections: Mapping[str, Path]
    token: str | None = field(default=None, repr=False)
    public: bool = False
    allowed_hosts: tuple[str, ...] = ()
    read_only: bool = False
    log_clicks: bool = True
    role: Role = "whole"
    writer_socket: Path | None = None
    limits: Limits = field(default_factory=Limits)
    trusted_proxies: tuple[str, ...] = ()
    workers: int = 1
    session_secret: str = field(default_factory=lambda: secrets.token_hex(32), repr=False)
