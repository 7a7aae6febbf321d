"""Trained networks served as encoders: the same points, whole folders, and no PyTorch."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sklearn.base import clone

from diptych.data import DatasetSplits, Pairs, load_dataset
from diptych.encoders import ColourEdgeHistograms, FeatureCache
from diptych.errors import InvalidInputError, ModelFileError
from diptych.models import CCA, MNiL, SharedSpace
from diptych.retriever import ImageTower, Retriever, TextTower, explain

SIDE = 16


def small(**changes: object) -> MNiL:
    settings: dict[str, object] = {
        "image_side": SIDE,
        "image_widths": (8,),
        "word_size": 8,
        "hidden_size": 8,
        "n_components": 6,
        "epochs": 2,
        "batch_size": 32,
        "learning_rate": 3e-3,
        "margin": 0.1,
        "device": "cpu",
    }
    return MNiL(**{**settings, **changes})


@pytest.fixture(scope="module")
def splits() -> DatasetSplits:
    return load_dataset("scenes", n_train=60, n_test=20, size=2 * SIDE, captions=0)


@pytest.fixture(scope="module")
def model(splits: DatasetSplits) -> MNiL:
    return small().fit(*splits.train.aligned())


@pytest.fixture(scope="module")
def retriever(model: MNiL, splits: DatasetSplits) -> Retriever:
    return Retriever.from_model(model, held_out=splits.test, name="scenes", cache=False)


def test_a_tower_gives_the_points_of_its_model(model: MNiL, splits: DatasetSplits) -> None:
    pictures, texts = list(splits.test.images), list(splits.test.texts)
    image_tower, text_tower = ImageTower.of(model), TextTower.of(model)
    np.testing.assert_array_equal(image_tower.transform(pictures[:5]), model.encode_images(pictures[:5]))
    np.testing.assert_array_equal(text_tower.transform(texts), model.encode_texts(texts))
    alone = np.vstack([text_tower.transform([text]) for text in texts[:5]])
    np.testing.assert_allclose(alone, text_tower.transform(texts[:5]), rtol=1e-4, atol=2e-6)
    batches = list(image_tower.set_params(batch_size=3).stream(pictures[:8]))
    assert [batch.rows for batch in batches] == [[0, 1, 2], [3, 4, 5], [6, 7]]
    np.testing.assert_allclose(
        np.vstack([batch.features for batch in batches]), model.encode_images(pictures[:8]), rtol=1e-4, atol=2e-6
    )
    for tower in (image_tower, text_tower):
        with pytest.raises(InvalidInputError, match="no "):
            tower.transform([])


def test_any_kind_of_picture_file_is_read_and_a_damaged_one_is_told_by_its_row(model: MNiL, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    # Smooth, so that what a JPEG loses hardly matters.
    coarse = Image.fromarray(rng.integers(255, size=(3, 4, 3), dtype=np.uint8))
    upright = coarse.resize((64, 48), Image.Resampling.BICUBIC)
    grey = upright.convert("L")
    turned = Image.Exif()
    turned[0x0112] = 6
    upright.save(tmp_path / "plain.png")
    upright.transpose(Image.Transpose.ROTATE_90).save(tmp_path / "turned.jpg", exif=turned, quality=95)
    upright.convert("CMYK").save(tmp_path / "cmyk.jpg", quality=95)
    grey.save(tmp_path / "grey.png")
    (tmp_path / "damaged.jpg").write_bytes(b"\xff\xd8 nothing")
    names = ("plain.png", "damaged.jpg", "turned.jpg", "cmyk.jpg", "grey.png")
    (batch,) = ImageTower.of(model).stream([str(tmp_path / name) for name in names])
    assert batch.rows == [0, 2, 3, 4]
    assert "damaged.jpg" in batch.failures[1]
    wanted = model.encode_images([np.asarray(upright)] * 3 + [np.asarray(grey.convert("RGB"))])
    np.testing.assert_allclose(batch.features, wanted, atol=0.03)
    with pytest.raises(InvalidInputError, match="damaged"):
        ImageTower.of(model).transform([tmp_path / "damaged.jpg"])


def test_the_fingerprint_tells_what_was_learned_and_survives_copies(model: MNiL, splits: DatasetSplits) -> None:
    other = small(random_state=1, epochs=1).fit(*splits.train.aligned())
    for tower in (ImageTower, TextTower):
        own = tower.of(model)
        assert own.fingerprint == tower.of(model).fingerprint == clone(own).fingerprint
        assert own.fingerprint != tower.of(other).fingerprint
        told_otherwise = tower.of(own.model.side(own.modality).set_params(epochs=99, device="auto", random_state=7))
        assert own.fingerprint == told_otherwise.fingerprint
        assert own.fingerprint != tower.of(own.model.side(own.modality).set_params(max_words=1)).fingerprint
    assert ImageTower(model, batch_size=1).fingerprint == ImageTower(model, n_threads=2).fingerprint
    texts = ["a red car"]
    np.testing.assert_array_equal(clone(TextTower.of(model)).transform(texts), model.encode_texts(texts))


def test_a_retriever_holds_each_network_once(model: MNiL, retriever: Retriever, tmp_path: Path) -> None:
    retriever.save(tmp_path / "kept")
    n_numbers = sum(values.size for values in model.image_arrays_ + model.text_arrays_)
    assert (tmp_path / "kept" / "arrays.safetensors").stat().st_size < 1.2 * 4 * n_numbers + 12_000
    again = Retriever.load(tmp_path / "kept")
    assert again.fingerprint == retriever.fingerprint
    assert again.name == "scenes"
    assert isinstance(again.model_, SharedSpace)
    assert again.space == model.space


def test_a_saved_model_is_a_retriever_to_be(model: MNiL, retriever: Retriever, tmp_path: Path) -> None:
    model.save(tmp_path / "my-network")
    made = Retriever.load(tmp_path / "my-network")
    assert made.name == "my-network"
    assert made.fingerprint == retriever.fingerprint
    CCA().fit(np.eye(5), np.eye(5)).save(tmp_path / "cca")
    with pytest.raises(ModelFileError, match="not a retriever"):
        Retriever.load(tmp_path / "cca")


def test_probabilities_are_calibrated_on_pairs_where_there_are_some(model: MNiL, retriever: Retriever) -> None:
    assumed = Retriever.from_model(model)
    assert assumed.probability([0.5], "text_to_image") == pytest.approx(0.5)
    assert retriever.calibration_.slopes_[0] != assumed.calibration_.slopes_[0]
    assert 0 < retriever.cutoff < 1


def test_fit_learns_towers_compares_them_and_learns_again_from_all(splits: DatasetSplits, tmp_path: Path) -> None:
    epochs: list[int] = []
    recipe = small(checkpoint=str(tmp_path / "kept"))
    retriever = Retriever(model=recipe, cache=False)
    retriever.fit(splits.train, baseline=None, epochs=lambda record: epochs.append(record.epoch))
    assert epochs == [1, 2, 1, 2]
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == ["trial", "whole"]
    assert isinstance(retriever.image_encoder_, ImageTower)
    assert retriever.image_encoder_.model.checkpoint == recipe.checkpoint
    assert retriever.comparison_.n_held_out == 12
    whole = small().fit(*splits.train.aligned())
    np.testing.assert_array_equal(retriever.encode_texts(["a red car"]), whole.encode_texts(["a red car"]))
    # Now it is the one to beat, learned again from what the new one sees; both are the same.
    retriever.set_params(model=small()).fit(splits.train)
    assert retriever.comparison_.new == pytest.approx(retriever.comparison_.old)


def test_a_model_on_features_keeps_the_encoder_before_it(splits: DatasetSplits, tmp_path: Path) -> None:
    encoder = ColourEdgeHistograms(size=2 * SIDE)
    pairs = Pairs(
        [np.asarray(picture) for picture in splits.train.images], splits.train.texts, owners=splits.train.owners
    )
    recipe = small(image_tower="features", epochs=1)
    retriever = Retriever(image_encoder=encoder, model=recipe, cache=str(tmp_path / "features"))
    retriever.fit(pairs, baseline=None)
    pictures = list(pairs.images[:4])
    tower = retriever.image_encoder_
    wanted = tower.model.encode_images(encoder.transform(pictures))
    np.testing.assert_allclose(retriever.encode_images(pictures), wanted, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(tower.transform(pictures), wanted, rtol=1e-4, atol=1e-6)
    assert not list((tmp_path / "features").glob("ImageTower*"))
    cached = FeatureCache(tmp_path / "features").encode(tower, pictures)
    np.testing.assert_array_equal(cached, retriever.image_features(pictures))
    retriever.save(tmp_path / "kept")
    assert Retriever.load(tmp_path / "kept").fingerprint == retriever.fingerprint
    with pytest.raises(InvalidInputError, match="image_encoder"):
        Retriever.from_model(tower.model)
    with pytest.raises(InvalidInputError, match="not from features"):
        Retriever(model=recipe).fit(pairs.with_features(images=np.eye(pairs.n_images)), baseline=None)


def test_only_models_of_items_have_towers() -> None:
    with pytest.raises(InvalidInputError, match=r"such as MNiL, not CCA; methods of features"):
        Retriever.from_model(CCA().fit(np.eye(5), np.eye(5)))


def test_left_out_words_explain_an_answer(retriever: Retriever, splits: DatasetSplits) -> None:
    picture = splits.test.images[0]
    explanation = explain(retriever, "a red car", picture)
    assert explanation.kind == "words"
    whole, without = retriever.similarity([picture], ["a red car", "a car"])[0]
    (red,) = (bar.contribution for bar in explanation.bars if bar.name == "red")
    assert red == pytest.approx(whole - without, abs=1e-5)


WITHOUT_TORCH = """
import sys
from pathlib import Path
import numpy as np
from diptych.collection import Collection, Record
from diptych.models import load_model
from diptych.retriever import Retriever, explain

base = Path(sys.argv[1])
retriever = Retriever.load(base / "kept")
files = sorted((base / "pictures").iterdir())
with Collection.create(base / "collection", retriever) as collection:
    report = collection.add([Record(path) for path in files])
    answers = collection.search("a red car", k=3, min_probability=0.0)
    print(len(report.skipped), *(Path(answer.item.path).stem for answer in answers))
print(explain(retriever, "a red car", files[0]).kind)
model = load_model(base / "model")
np.savez(base / "points.npz", images=model.encode_images(files[:3]), texts=model.encode_texts(["a red car"]))
"""


def test_a_collection_is_indexed_searched_and_explained_without_pytorch(
    model: MNiL, retriever: Retriever, splits: DatasetSplits, tmp_path: Path
) -> None:
    (tmp_path / "pictures").mkdir()
    pictures = [np.asarray(picture) for picture in splits.test.images]
    for number, picture in enumerate(pictures):
        Image.fromarray(picture).save(tmp_path / "pictures" / f"{number:02}.png")
    retriever.save(tmp_path / "kept")
    model.save(tmp_path / "model")
    unusable = tmp_path / "unusable" / "torch"
    unusable.mkdir(parents=True)
    (unusable / "__init__.py").write_text("raise ImportError('there is no PyTorch here')\n")
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, "PYTHONPATH": str(unusable.parent)},
    )
    assert run.returncode == 0, run.stderr
    found, kind = run.stdout.splitlines()
    scores = retriever.similarity(pictures, ["a red car"])[:, 0]
    code, *best = found.split()
    assert code == "0"
    assert scores[[int(name) for name in best]] == pytest.approx(np.sort(scores)[:-4:-1], abs=1e-5)
    assert kind == "words"
    points = np.load(tmp_path / "points.npz")
    np.testing.assert_allclose(points["texts"], model.encode_texts(["a red car"]), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(points["images"], model.encode_images(pictures[:3]), rtol=1e-5, atol=1e-6)
