"""Where data sets and cached features are: folders of this machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def cache_folder() -> Path:
    """Return the per-user cache folder by the conventions of the platform.

    ``$XDG_CACHE_HOME/diptych`` wherever that variable is set; otherwise ``~/Library/Caches/diptych`` on macOS,
    ``%LOCALAPPDATA%\\diptych`` on Windows and ``~/.cache/diptych`` elsewhere. The folder is not created.

    >>> from diptych.data import cache_folder
    >>> cache_folder().name
    'diptych'
    """
    chosen = os.environ.get("XDG_CACHE_HOME")
    if chosen:
        return Path(chosen).expanduser() / "diptych"
    return _platform_caches(sys.platform, Path.home(), os.environ.get("LOCALAPPDATA")) / "diptych"


def data_folder() -> Path:
    """Return the folder that holds one sub-folder per data set: ``$DIPTYCH_DATA``, or the user's cache folder."""
    chosen = os.environ.get("DIPTYCH_DATA")
    return Path(chosen).expanduser() if chosen else cache_folder()


def state_folder() -> Path:
    """Return where this user's programs keep state: ``$XDG_STATE_HOME/diptych`` or ``~/.local/state/diptych``."""
    chosen = os.environ.get("XDG_STATE_HOME")
    return (Path(chosen).expanduser() if chosen else Path.home() / ".local" / "state") / "diptych"


def _platform_caches(platform: str, home: Path, local_app_data: str | None) -> Path:
    if platform == "darwin":
        return home / "Library" / "Caches"
    if platform == "win32":
        return Path(local_app_data) if local_app_data else home / "AppData" / "Local"
    return home / ".cache"
