"""Training that can be taken up again."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from diptych.arrays import AnyArray
from diptych.errors import InvalidInputError, ModelFileError
from diptych.models.neural.mnil.epoch_record import EpochRecord

_STATE, _ARRAYS = "checkpoint.json", "checkpoint-{}.safetensors"


@dataclass(frozen=True)
class Checkpoint:
    """The state after some epochs: plain arrays, the epochs' records, and what the training was of.

    ``identity`` names parameters and data; a checkpoint of another training is refused instead of continued.
    """

    identity: str
    epoch: int
    n_steps: int
    records: tuple[EpochRecord, ...]
    arrays: Mapping[str, AnyArray]

    def write(self, folder: Path) -> None:
        """Write it into ``folder``; a crash leaves the one before."""
        folder.mkdir(parents=True, exist_ok=True)
        name = _ARRAYS.format(self.epoch)
        save_file({key: np.ascontiguousarray(values) for key, values in self.arrays.items()}, folder / name)
        # On the disk before the state names it, so that a power cut leaves a whole checkpoint, this or the one before.
        with (folder / name).open("rb") as stream:
            os.fsync(stream.fileno())
        state = {
            "identity": self.identity,
            "epoch": self.epoch,
            "n_steps": self.n_steps,
            "records": [asdict(record) for record in self.records],
            "arrays": name,
        }
        draft = folder / f"{_STATE}.part"
        with draft.open("w", encoding="utf-8") as text:
            json.dump(state, text, indent=1)
            text.flush()
            os.fsync(text.fileno())
        draft.replace(folder / _STATE)
        for older in folder.glob(_ARRAYS.format("*")):
            if older.name != name:
                older.unlink()

    @classmethod
    def read(cls, folder: Path, identity: str) -> Checkpoint | None:
        """Read the checkpoint in ``folder``; None where there is none yet."""
        try:
            state: dict[str, Any] = json.loads((folder / _STATE).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except ValueError:
            raise ModelFileError(f"{folder / _STATE} is damaged; delete the folder to train from the start") from None
        if state["identity"] != identity:
            raise InvalidInputError(
                f"{folder} holds a checkpoint of another training (parameters or data differ); choose another folder"
            )
        try:
            arrays = dict(load_file(folder / str(state["arrays"])))
        except (OSError, SafetensorError):
            raise ModelFileError(f"{folder} lacks its arrays; delete the folder to train from the start") from None
        records = tuple(EpochRecord(**record) for record in state["records"])
        return cls(identity, int(state["epoch"]), int(state["n_steps"]), records, arrays)
