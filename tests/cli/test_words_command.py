"""`diptych words`: from whatever has words to the words beside a word."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from diptych.encoders import Concatenated, MeanWordVectors, TfidfTopics, nearest_words
from diptych.models import CCA, MNiL
from diptych.models.neural.mnil.word_space import learned_words
from tests.cli.command_line import Run, World


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    sizes = {"word_size": 6, "hidden_size": 5, "n_components": 4}
    model = MNiL(image_tower="features", epochs=1, batch_size=8, device="cpu", **sizes)
    model.fit(rng.normal(size=(16, 3)), ["a calm sea", "a wide ocean", "an old house", "the small cottage"] * 4)
    folder = tmp_path_factory.mktemp("words") / "mnil"
    model.save(folder)
    return folder


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.txt"
    path.write_text("boat 1.0 0.1\nship 1.0 0.2\ncat 0.0 1.0\ndog 0.1 1.0\n")
    return path


@pytest.mark.parametrize("layer", ["memory", "embedding"])
def test_a_saved_network_shows_its_own_words(run: Run, network: Path, tmp_path: Path, layer: str) -> None:
    result = run("words", network, "sea", "-k", "3", "--layer", layer, "-o", tmp_path / "near.json")
    expected = nearest_words(learned_words(MNiL.load(network), layer), "sea", 3)
    assert [line.split()[0] for line in result.stdout.splitlines()[2:]] == [near.word for near in expected]
    written = json.loads((tmp_path / "near.json").read_text())
    assert [near["word"] for near in written["sea"]] == [near.word for near in expected]
    assert written["sea"][0]["similarity"] == pytest.approx(expected[0].similarity)


def test_several_words_make_a_table_with_a_line_each(run: Run, vectors: Path) -> None:
    lines = run("words", vectors, "boat", "cat", "--k", "2").stdout.splitlines()
    assert [line.strip().split(maxsplit=1) for line in lines[2:]] == [["boat", "ship, dog"], ["cat", "dog, ship"]]
    told = json.loads(run("words", vectors, "boat", "cat", "--k", "2", "--json").stdout)
    assert [near["word"] for near in told["cat"]] == ["dog", "ship"]


def test_a_retriever_on_word_vectors_shows_them(run: Run, scenery: World, tmp_path: Path, vectors: Path) -> None:
    from diptych import Retriever

    retriever = Retriever.load(scenery.retriever)
    without = run("words", scenery.retriever, "boat")
    assert without.exit_code == 2
    assert "has no vectors of single words to look at; name a saved MNiL" in without.stderr
    both = Concatenated(encoders=(TfidfTopics(), MeanWordVectors(vectors=str(vectors))))
    retriever.text_encoder = retriever.text_encoder_ = both
    retriever.save(tmp_path / "with")
    assert run("words", tmp_path / "with", "boat", "-k", "1").stdout.splitlines()[-1].split()[0] == "ship"


def test_a_retriever_that_reads_with_a_network_shows_its_words(
    run: Run, scenery: World, network: Path, tmp_path: Path
) -> None:
    from diptych import Retriever
    from diptych.retriever import TextTower

    retriever = Retriever.load(scenery.retriever)
    retriever.text_encoder = retriever.text_encoder_ = TextTower.of(MNiL.load(network))
    retriever.save(tmp_path / "tower")
    assert run("words", tmp_path / "tower", "sea").stdout == run("words", network, "sea").stdout


def test_a_collection_is_asked_for_its_retriever(run: Run, indexed: World) -> None:
    assert "no vectors of single words" in run("words", indexed.pictures, "boat").stderr


def test_what_is_not_known_is_helped(run: Run, vectors: Path, tmp_path: Path) -> None:
    assert "did you mean 'boat'?" in run("words", vectors, "baot").stderr
    assert "there is no" in run("words", tmp_path / "nothing", "boat").stderr
    CCA().fit(np.eye(4), np.eye(4)).save(tmp_path / "cca")
    assert "no vectors of single words" in run("words", tmp_path / "cca", "boat").stderr
