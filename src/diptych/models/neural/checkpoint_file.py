"""A training's state in a file, written whole."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from diptych.arrays import AnyArray, row_blocks
from diptych.errors import InvalidInputError, ModelFileError

_BLOCK_ROWS = 4096
_MAY_CHANGE = ("epochs", "patience", "checkpoint")
_FORMAT = "diptych-checkpoint-1"


@dataclass(frozen=True)
class CheckpointFile:
    """One safetensors file: arrays, and JSON in its header.

    ``identity`` names parameters and data; the state of another training is refused instead of continued. A new state
    replaces the older one in one move, so that a crash at any time leaves a whole file.

    >>> import numpy as np, tempfile
    >>> from diptych.models.neural.checkpoint_file import CheckpointFile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = CheckpointFile.within(folder, "towers", identity="a")
    ...     file.write({"weights": np.ones(2)}, {"epoch": 3})
    ...     arrays, facts = file.read()
    >>> arrays["weights"], facts["epoch"]
    (array([1., 1.]), 3)
    """

    path: Path
    identity: str

    @classmethod
    def within(cls, folder: str | PathLike[str], name: str, *, identity: str) -> CheckpointFile:
        """Return the file called ``name`` in ``folder``, which is made when it is first written."""
        return cls(Path(folder) / f"{name}.safetensors", identity)

    def write(self, arrays: Mapping[str, AnyArray], facts: Mapping[str, Any]) -> None:
        """Put the state in place of the one before."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        header = {"format": _FORMAT, "identity": self.identity, "facts": json.dumps(facts)}
        content = save({name: np.ascontiguousarray(values) for name, values in arrays.items()}, metadata=header)
        draft = self.path.with_name(f".{self.path.name}.draft")
        with draft.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(self.path)

    def read(self) -> tuple[dict[str, AnyArray], dict[str, Any]] | None:
        """Return (arrays, facts); None where nothing has been written yet."""
        try:
            with safe_open(self.path, framework="np") as opened:
                header = opened.metadata() or {}
                names = opened.keys()
                arrays = {name: opened.get_tensor(name) for name in names}
        except FileNotFoundError:
            return None
        except SafetensorError:
            raise ModelFileError(f"{self.path} is damaged; delete it to train from the start") from None
        if header.get("format") != _FORMAT:
            raise ModelFileError(f"{self.path} is no checkpoint of this Diptych; delete it to train from the start")
        if header["identity"] != self.identity:
            raise InvalidInputError(
                f"{self.path} is of another training: parameters or data differ; choose another folder or delete it"
            )
        return arrays, json.loads(header["facts"])


def training_identity(
    parameters: Mapping[str, object], *data: AnyArray | None, may_change: Collection[str] = _MAY_CHANGE
) -> str:
    """Return a digest of parameters and data, equal for two trainings only if these are.

    What ``may_change`` from one call to the next is left out: by default how long to train and where to keep the state.

    >>> import numpy as np
    >>> from diptych.models.neural.checkpoint_file import training_identity
    >>> rows = np.ones((3, 2))
    >>> training_identity({"seed": 0}, rows) == training_identity({"seed": 1}, rows)
    False
    """
    deciding = {name: repr(value) for name, value in parameters.items() if name not in may_change}
    digest = hashlib.sha256(json.dumps(deciding).encode())
    for rows in data:
        if rows is None:
            digest.update(b"none")
            continue
        digest.update(f"{rows.dtype.str}{rows.shape}".encode())
        for block in row_blocks(len(rows), _BLOCK_ROWS):
            digest.update(np.ascontiguousarray(rows[block]).tobytes())
    return digest.hexdigest()
