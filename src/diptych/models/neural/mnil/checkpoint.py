"""Training that can be taken up again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from diptych.arrays import AnyArray
from diptych.models.neural.checkpoint_file import CheckpointFile
from diptych.models.neural.mnil.epoch_record import EpochRecord

_NAME = "mnil"


@dataclass(frozen=True)
class Checkpoint:
    """The state after some epochs, in a `CheckpointFile`: plain arrays, the epochs' records, and what it was of."""

    identity: str
    epoch: int
    n_steps: int
    records: tuple[EpochRecord, ...]
    arrays: Mapping[str, AnyArray]

    def write(self, folder: Path) -> None:
        """Write it into ``folder``; a crash leaves the one before."""
        facts = {"epoch": self.epoch, "n_steps": self.n_steps, "records": [asdict(record) for record in self.records]}
        CheckpointFile.within(folder, _NAME, identity=self.identity).write(self.arrays, facts)

    @classmethod
    def read(cls, folder: Path, identity: str) -> Checkpoint | None:
        """Read the checkpoint in ``folder``; None where there is none yet, and an error where it is of another."""
        found = CheckpointFile.within(folder, _NAME, identity=identity).read()
        if found is None:
            return None
        arrays, facts = found
        records = tuple(EpochRecord(**record) for record in facts["records"])
        return cls(identity, int(facts["epoch"]), int(facts["n_steps"]), records, arrays)
