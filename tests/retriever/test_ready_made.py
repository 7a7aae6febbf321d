from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from diptych import Retriever
from diptych.collection import Collection
from diptych.data import load_dataset
from diptych.data.sample_photographs import PHOTOGRAPHS_FOLDER
from diptych.errors import InvalidInputError, UnknownNameError
from diptych.models import SharedSpace
from diptych.retriever import explain
from diptych.retriever.ready_made import READY_MADE, SHIPPED_FOLDER

FIXTURES = Path(__file__).parents[1] / "encoders" / "joint" / "fixtures"
ROOT = Path(__file__).parents[2]


def test_the_default_needs_nothing_but_the_packages() -> None:
    retriever = Retriever.default()
    assert retriever.name == "default"
    points = retriever.encode_texts(["a dog runs on the beach", "two people play football"])
    assert points.shape == (2, retriever.images_to_points(np.ones((1, 1280), dtype=np.float32)).shape[1])
    within = retriever.space.compare(points, retriever.encode_texts(["a puppy at the seaside"]))[:, 0]
    assert within[0] > within[1]


@pytest.mark.data("flickr8k")
@pytest.mark.parametrize("name", READY_MADE)
def test_photographs_are_found_by_their_captions(name: str) -> None:
    """Ten development photographs and their fifty captions, which no projection was learned from."""
    pairs = load_dataset("flickr8k").dev.select(range(10))
    retriever = Retriever.ready_made(name)
    points = retriever.encode_texts(list(pairs.texts)), retriever.encode_images(pairs.images)
    scores = retriever.space.compare(*points, "text_query")
    found = scores.argmax(axis=1) == pairs.owners
    assert found.mean() > 0.6


@pytest.mark.data("flickr8k")
def test_photographs_are_found_in_many_languages() -> None:
    """Each query finds a photograph whose captions say the same, among twenty."""
    pairs = load_dataset("flickr8k").dev.select(range(20))
    retriever = Retriever.ready_made("default")
    wanted = [row for row in range(20) if any("dog" in text for text in np.array(pairs.texts)[pairs.owners == row])]
    queries = ["a dog", "ein Hund", "un chien", "un perro", "een hond", "собака", "一只狗", "犬", "개", "كلب"]
    scores = retriever.space.compare(
        retriever.encode_texts(queries), retriever.encode_images(pairs.images), "text_query"
    )
    assert np.isin(scores.argmax(axis=1), wanted).mean() >= 0.8


def test_a_word_finds_photographs_whatever_stands_before_it(tmp_path: Path) -> None:
    """A search, its reasons and its probability take "a cat" for "cat"; a caption says what it says."""
    retriever = Retriever.ready_made("default")
    retriever.cache = False
    photographs = [PHOTOGRAPHS_FOLDER / f"{name}.jpg" for name in ("cat", "mountains")]
    with Collection.create(tmp_path / "c", retriever, root=PHOTOGRAPHS_FOLDER) as collection:
        for path in photographs:
            collection.add(path)
        first = {query: collection.search(query)[0] for query in ("cat", "a cat", "a photo of a cat")}
        assert {answer.path for answer in first.values()} == {photographs[0]}
        assert len({round(answer.score, 5) for answer in first.values()}) == 1
        assert first["a cat"].probability > retriever.cutoff_among(2, is_short=True)
    as_caption = retriever.similarity(photographs[:1], ["a cat"])[0, 0]
    explanation = explain(retriever, "a cat", photographs[0])
    assert explanation.score == pytest.approx(first["cat"].score, abs=1e-4)
    assert first["cat"].score > as_caption + 0.02
    left_out = {bar.name: bar.contribution for bar in explanation.bars}
    assert left_out["cat"] > 0.1
    assert left_out.get("a", 0.0) == pytest.approx(0.0, abs=1e-4)


def test_a_ready_made_retriever_is_known_by_name() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'strong'"):
        Retriever.ready_made("stron")


def test_shipped_files_stay_small_and_hold_no_pictures() -> None:
    sizes = {
        path.relative_to(SHIPPED_FOLDER).as_posix(): path.stat().st_size
        for path in SHIPPED_FOLDER.rglob("*")
        if path.is_file()
    }
    assert set(sizes) == {
        "MODEL_CARD.md",
        *(f"{name}/{file}" for name in READY_MADE for file in ("arrays.safetensors", "model.json")),
    }
    assert sum(sizes.values()) < 24_000_000


def test_the_card_on_the_site_is_that_of_the_package() -> None:
    card = (SHIPPED_FOLDER / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert card == (ROOT / "docs" / "results" / "model-card.md").read_text(encoding="utf-8")
    assert "## Limits" in card


def test_the_card_is_what_its_record_says(tmp_path: Path) -> None:
    command = [sys.executable, ROOT / "scripts" / "build_shipped_retrievers.py", "--card", tmp_path / "card.md"]
    subprocess.run(command, check=True)
    assert (tmp_path / "card.md").read_text("utf-8") == (ROOT / "docs" / "results" / "model-card.md").read_text("utf-8")


def picture(path: Path) -> Path:
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (40, 50, 3), dtype=np.uint8)).save(path)
    return path


def test_a_joint_model_takes_precedence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = FIXTURES / "exported"
    monkeypatch.setenv("DIPTYCH_JOINT_MODEL", str(folder))
    retriever = Retriever.default()
    assert retriever.name == folder.name
    assert isinstance(retriever.model_, SharedSpace)
    scores = retriever.similarity([picture(tmp_path / "a.png")], ["a red ball", "a cat"])
    assert scores.shape == (1, 2)
    probabilities = retriever.probability(scores, "image_to_text")
    assert ((probabilities >= 0) & (probabilities <= 1)).all()
    retriever.save(tmp_path / "saved")
    np.testing.assert_allclose(
        Retriever.load(tmp_path / "saved").encode_texts(["a cat"]), retriever.encode_texts(["a cat"])
    )


def test_two_sides_of_different_width_share_no_space() -> None:
    with pytest.raises(InvalidInputError, match="share no space"):
        SharedSpace().fit(np.eye(3), np.eye(3)[:, :2])
