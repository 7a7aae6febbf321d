"""What the tests of the command line share."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

from typer.testing import Result

Run = Callable[..., Result]
Program = Callable[..., "subprocess.CompletedProcess[str]"]

# As small as a data set can be and still have something to learn.
SMALL_SCENES = (
    "--dataset=scenes",
    "--dataset-option=n_train=60",
    "--dataset-option=n_test=24",
    "--dataset-option=size=32",
)
