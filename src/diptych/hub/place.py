"""Where the models of this user are: a folder of the platform for data, not for caches, which are emptied."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from diptych.errors import ModelFileError
from diptych.hub.catalogue import HUB_PREFIX, catalogue, find_source

MODELS_VARIABLE = "DIPTYCH_MODELS"
"""The environment variable that names the folder of models."""


def models_folder() -> Path:
    """Return the folder that has a folder for each model: ``$DIPTYCH_MODELS``, or one in the user's data.

    That is ``diptych/models`` in ``$XDG_DATA_HOME`` where it is set, otherwise in ``~/Library/Application Support`` on
    macOS, ``%LOCALAPPDATA%`` on Windows and ``~/.local/share`` elsewhere. The folder is not created.

    >>> from diptych.hub.place import models_folder
    >>> models_folder().name
    'models'
    """
    chosen = os.environ.get(MODELS_VARIABLE)
    if chosen:
        return Path(os.path.abspath(Path(chosen).expanduser()))
    data = os.environ.get("XDG_DATA_HOME")
    if data:
        base = Path(data).expanduser()
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        base = Path.home() / ".local" / "share"
    return base / "diptych" / "models"


def folder_of(name: str) -> Path:
    """Return the folder that a model of this name has, or will have."""
    return models_folder() / name


def partial_folder(name: str) -> Path:
    """Return the folder in which the files of a model are until all are there."""
    return models_folder() / ".partial" / name


def partial_models() -> set[str]:
    """Return the names of models that are here in part, because fetching them was interrupted."""
    shelf = partial_folder("")
    return {folder.name for folder in shelf.iterdir() if folder.is_dir()} if shelf.is_dir() else set()


def installed_models() -> dict[str, Path]:
    """Return the models that are here, by name: those that were fetched, and folders that somebody put there."""
    shelf = models_folder()
    folders = sorted(shelf.iterdir()) if shelf.is_dir() else []
    return {folder.name: folder for folder in folders if folder.is_dir() and not folder.name.startswith(".")}


def find_model(name: str) -> Path | None:
    """Return the folder of a model by its name; None for a name that no model has.

    One of the catalogue that is not here is an error that names the command: nothing is fetched unasked.
    """
    source = find_source(name) if name in catalogue() or name.startswith(HUB_PREFIX) else None
    called = name if source is None else source.name
    folder = installed_models().get(called)
    if folder is not None or source is None:
        return folder
    began = partial_folder(called).is_dir()
    raise ModelFileError(
        f"{name} {'is here in part' if began else 'is not here'}; fetch it with: diptych models get {name} "
        f"({source.size_words})"
    )
