"""Another package, made here, brings a method and an encoder."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from diptych.cli import app
from diptych.models import find_model, model_classes

MODULE = '''
from diptych.encoders import ColourEdgeHistograms
from diptych.models import CCA

class MirroredCCA(CCA):
    """CCA with its components the other way round."""

    when_to_use = "To see that methods of other packages are found."

    def _encode_side(self, side, rows):
        return super()._encode_side(side, rows)[:, ::-1]

class OtherColours(ColourEdgeHistograms):
    """Colours of another package."""
'''
POINTS = """[diptych.methods]
mirrored = elsewhere_of_tests:MirroredCCA
gone = elsewhere_of_tests:NotThere
wrong = elsewhere_of_tests:OtherColours
[diptych.encoders]
OtherColours = elsewhere_of_tests:OtherColours
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "elsewhere_of_tests.py").write_text(MODULE)
    about = tmp_path / "elsewhere_of_tests-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: elsewhere-of-tests\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(POINTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop("elsewhere_of_tests", None)


def test_an_installed_method_is_found_fitted_and_loaded(installed: None, tmp_path: Path) -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        method = find_model("Mirrored-CCA")
    assert {"gone of elsewhere-of-tests" in str(each.message) for each in told} == {True, False}
    assert "mirrored-cca" not in model_classes()
    rng = np.random.default_rng(0)
    images, texts = rng.normal(size=(30, 4)), rng.normal(size=(30, 5))
    model = method(n_components=2).fit(images, texts)
    model.save(tmp_path / "model")
    # A program that has not imported the package yet.
    ask = "import sys; from diptych.models import load_model; print(type(load_model(sys.argv[1])).__module__)"
    command = [sys.executable, "-W", "ignore", "-c", ask, str(tmp_path / "model")]
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    run = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}, check=False)
    assert run.stdout.strip() == "elsewhere_of_tests", run.stderr


@pytest.mark.filterwarnings("ignore:.*elsewhere-of-tests")
@pytest.mark.parametrize(("command", "name"), [("methods", "mirrored-cca"), ("encoders", "OtherColours")])
def test_the_command_line_lists_and_explains_it(installed: None, command: str, name: str) -> None:
    listed = CliRunner().invoke(app, [command])
    assert name in listed.stdout
    assert CliRunner().invoke(app, [command, name]).exit_code == 0
