"""Settings on their way to another process."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from diptych.service.limits import Limits
from diptych.service.settings import Settings


def settings_to_json(settings: Settings) -> str:
    """Return settings as one line; it holds the token, so it goes through a pipe and nowhere else."""
    return json.dumps(asdict(settings), default=str)


def settings_from_json(text: str) -> Settings:
    """Return the settings of :func:`settings_to_json`.

    >>> from pathlib import Path
    >>> from diptych.service.operations.settings_document import settings_from_json, settings_to_json
    >>> from diptych.service.settings import Settings
    >>> settings = Settings({"photos": Path("photos/.diptych")}, allowed_hosts=("a.example",), read_only=True)
    >>> settings_from_json(settings_to_json(settings)) == settings
    True
    """
    document = json.loads(text)
    socket = document.pop("writer_socket")
    return Settings(
        **{
            **document,
            "collections": {name: Path(folder) for name, folder in document["collections"].items()},
            "allowed_hosts": tuple(document["allowed_hosts"]),
            "trusted_proxies": tuple(document["trusted_proxies"]),
            "limits": Limits(**document["limits"]),
            "writer_socket": None if socket is None else Path(socket),
        }
    )
