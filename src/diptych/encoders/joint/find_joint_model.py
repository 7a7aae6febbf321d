"""Where a user keeps the joint model that is to be used without being asked for."""

from __future__ import annotations

import os
from pathlib import Path

from diptych.data.folders import cache_folder
from diptych.errors import ModelFileError

JOINT_MODEL_VARIABLE = "DIPTYCH_JOINT_MODEL"
"""The environment variable that names a model folder."""


def find_joint_model() -> Path | None:
    """Return the folder of the user's joint model, or None.

    That is the folder ``$DIPTYCH_JOINT_MODEL``, or else the first, by name, under ``joint`` in the cache folder. Only
    the place is looked up; :meth:`JointModel.from_folder` says whether it holds a usable model.

    >>> import os, tempfile
    >>> from diptych.encoders.joint import find_joint_model
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     os.environ["DIPTYCH_JOINT_MODEL"] = folder
    ...     find_joint_model() == Path(folder)
    True
    >>> del os.environ["DIPTYCH_JOINT_MODEL"]
    """
    chosen = os.environ.get(JOINT_MODEL_VARIABLE)
    if chosen:
        folder = Path(chosen).expanduser()
        if not folder.is_dir():
            raise ModelFileError(
                f"{JOINT_MODEL_VARIABLE} names {folder}, which is not a folder; correct the variable or unset it"
            )
        return folder
    shelf = cache_folder() / "joint"
    if not shelf.is_dir():
        return None
    folders = (path for path in shelf.iterdir() if path.is_dir() and not path.name.startswith("."))
    return min(folders, default=None)
