from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from diptych.cli import app
from tests.cli.command_line import Program, Run, World
from tests.hub.conftest import hub as hub
from tests.hub.conftest import models as models

N_PICTURES = 60


@pytest.fixture
def run() -> Run:
    """Run a command inside this process; anything that is not a foreseen error fails the test."""

    def invoke(*words: str | Path) -> Result:
        result = CliRunner().invoke(app, [str(word) for word in words], prog_name="diptych")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return invoke


@pytest.fixture
def program() -> Program:
    """Run the real program in a process of its own, its output piped."""

    def start(*words: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "diptych", *map(str, words)],
            capture_output=True,
            text=True,
            env={**os.environ, **environment},
            check=False,
        )

    return start


@pytest.fixture(scope="session")
def scenery(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Scenes that nobody has indexed; tests that change them take a copy."""
    from diptych import Retriever
    from diptych.data import Pairs, load_dataset
    from diptych.data.datasets.scenes import write_folder
    from diptych.encoders import ColourEdgeHistograms, TfidfTopics
    from diptych.models import CCA

    base = tmp_path_factory.mktemp("scenery")
    pictures = write_folder(base / "pictures", N_PICTURES, size=32)
    written = json.loads((pictures / "captions.json").read_text())["pictures"]
    (pictures / "captions.json").unlink()
    records = [{name: entry[name] for name in ("file", "captions", "label", "background")} for entry in written]
    (base / "captions.json").write_text(json.dumps(records))
    retriever = Retriever(
        image_encoder=ColourEdgeHistograms(size=32),
        text_encoder=TfidfTopics(n_components=40),
        model=CCA(n_components=16),
        name="cheap",
        cache=str(base / "features"),
    )
    pairs = load_dataset("scenes", n_train=N_PICTURES, n_test=10, size=32).train
    # Without labels only a picture's own captions are right, so that probabilities are small and a cut-off cuts.
    unlabelled = Pairs(pairs.images, pairs.texts, owners=pairs.owners)
    retriever.fit(unlabelled, baseline=None).save(base / "retriever")
    return World(pictures, base / "captions.json", base / "retriever")


@pytest.fixture(scope="session")
def indexed(scenery: World, tmp_path_factory: pytest.TempPathFactory) -> World:
    """The same scenes as a collection with captions; tests that change it take a copy."""
    world = scenery.copied(tmp_path_factory.mktemp("indexed") / "pictures")
    words = ["index", world.pictures, "--captions", world.captions, "--retriever", world.retriever]
    result = CliRunner().invoke(app, [str(word) for word in words], prog_name="diptych")
    assert result.exit_code == 0, result.output
    return world


@pytest.fixture
def nothing_indexed(tmp_path: Path, cache_of_worker: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder, and no memory of earlier collections; networks and words need not be written again."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("networks", "words"):
        written, own = (cache / "diptych" / name for cache in (cache_of_worker, tmp_path / "cache"))
        for folder in (written, own.parent):
            folder.mkdir(parents=True, exist_ok=True)
        own.symlink_to(written)
    monkeypatch.delenv("DIPTYCH_COLLECTION", raising=False)
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    return here
