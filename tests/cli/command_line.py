"""What the tests of the command line share."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from typer.testing import Result

from diptych.collection.root import trust_root

Run = Callable[..., Result]
Program = Callable[..., "subprocess.CompletedProcess[str]"]

# As small as a data set can be and still have something to learn.
SMALL_SCENES = (
    "--dataset=scenes",
    "--dataset-option=n_train=60",
    "--dataset-option=n_test=24",
    "--dataset-option=size=32",
)


@dataclass(frozen=True)
class World:
    """A folder of scenes, what a caption file says about them, and a retriever that takes no time."""

    pictures: Path
    captions: Path
    retriever: Path

    @property
    def collection(self) -> Path:
        return self.pictures / ".diptych"

    def copied(self, target: Path) -> World:
        shutil.copytree(self.pictures, target)
        trust_root(target / ".diptych", target)
        return World(target, self.captions, self.retriever)
