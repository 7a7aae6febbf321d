from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from diptych import Retriever
from diptych.data import load_dataset
from diptych.errors import InvalidInputError
from diptych.models import SharedSpace
from diptych.retriever.ready_made import SHIPPED_FOLDER

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
@pytest.mark.parametrize("make", [Retriever.default, Retriever.conse], ids=["default", "conse"])
def test_photographs_are_found_by_their_captions(make: object) -> None:
    """Twenty development photographs and their hundred captions, which no projection was learned from."""
    pairs = load_dataset("flickr8k").dev.select(range(20))
    retriever = make()  # type: ignore[operator]
    scores = retriever.similarity(pairs.images, list(pairs.texts))
    found = scores.argmax(axis=0) == pairs.owners
    assert found.mean() > (0.6 if retriever.name == "default" else 0.25)


def test_shipped_files_stay_small_and_hold_no_pictures() -> None:
    sizes = {
        path.relative_to(SHIPPED_FOLDER).as_posix(): path.stat().st_size
        for path in SHIPPED_FOLDER.rglob("*")
        if path.is_file()
    }
    assert set(sizes) == {
        "MODEL_CARD.md",
        *(f"{name}/{file}" for name in ("conse", "default") for file in ("arrays.safetensors", "model.json")),
    }
    assert sum(sizes.values()) < 6_000_000


def test_the_card_on_the_site_is_that_of_the_package() -> None:
    card = (SHIPPED_FOLDER / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert card == (ROOT / "docs" / "model-card.md").read_text(encoding="utf-8")
    assert "Known weaknesses" in card


def picture(path: Path) -> Path:
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (40, 50, 3), dtype=np.uint8)).save(path)
    return path


@pytest.mark.parametrize("name", ["clip", "siglip"])
def test_a_joint_model_takes_precedence(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = next(path for path in sorted(FIXTURES.iterdir()) if path.is_dir() and path.name.endswith(name))
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
