from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import diptych
from diptych import Retriever
from diptych.data import Pairs, load_dataset
from diptych.data.datasets.scenes import write_folder
from diptych.encoders import (
    ColourEdgeHistograms,
    Concatenated,
    Encoder,
    LdaTopics,
    MultilingualSentences,
    SentenceEncoder,
    TfidfTopics,
    UniversalSentenceEncoder,
)
from diptych.errors import InvalidInputError, ModelFileError
from diptych.metrics import AP
from diptych.models import CCA, SCM, CrossModalModel, Preprocessed, Random, load_model
from diptych.models.files import known_classes
from diptych.retriever import SEARCH_DIRECTIONS

PARTS = {"image_encoder": ColourEdgeHistograms(size=32), "text_encoder": TfidfTopics(n_components=40), "cache": False}


@pytest.fixture(scope="module", autouse=True)
def features_kept(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The same pictures are learned from again and again."""
    PARTS["cache"] = str(tmp_path_factory.mktemp("features"))


@pytest.fixture(scope="module")
def pairs() -> Pairs:
    lazy = load_dataset("scenes", n_train=200, n_test=20, size=32).train
    # Drawn once, not again for every fit.
    return replace(lazy, images=[np.asarray(image) for image in lazy.images])


@pytest.fixture(scope="module")
def few(pairs: Pairs) -> Pairs:
    """Enough where a model is worse by far, or not compared."""
    return pairs.select(range(80))


@pytest.fixture(scope="module")
def fitted(pairs: Pairs) -> Retriever:
    return Retriever(model=CCA(n_components=16), name="scenes", **PARTS).fit(pairs, baseline=None)


def test_both_steps_agree_with_the_contract(fitted: Retriever, pairs: Pairs) -> None:
    images, texts = pairs.images[:3], ["a red ball", "a green house"]
    points = fitted.encode_images(images), fitted.encode_texts(texts)
    np.testing.assert_allclose(points[0], fitted.images_to_points(fitted.image_features(images)))
    np.testing.assert_allclose(points[0][1:2], fitted.encode_images(images[1:2]), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(fitted.similarity(images, texts), fitted.space.compare(*points))
    features = np.asarray(fitted.image_features(images))
    np.testing.assert_allclose(fitted.encode_images(features), points[0])


def test_a_saved_retriever_is_the_same_one(fitted: Retriever, pairs: Pairs, tmp_path: Path) -> None:
    fitted.save(tmp_path / "saved")
    loaded = Retriever.load(tmp_path / "saved")
    assert (loaded.name, loaded.fingerprint) == ("scenes", fitted.fingerprint)
    assert (loaded.image_fingerprint, loaded.text_fingerprint) == (fitted.image_fingerprint, fitted.text_fingerprint)
    texts = ["a red ball"]
    np.testing.assert_array_equal(loaded.encode_texts(texts), fitted.encode_texts(texts))
    np.testing.assert_array_equal(loaded.encode_images(pairs.images[:2]), fitted.encode_images(pairs.images[:2]))
    for direction in SEARCH_DIRECTIONS:
        assert loaded.probability([0.3], direction) == fitted.probability([0.3], direction)
    assert str(loaded.comparison_) == str(fitted.comparison_)
    assert {path.name for path in (tmp_path / "saved").iterdir()} == {"model.json", "arrays.safetensors"}


def test_encoders_made_of_others_and_topics_are_saved_too(pairs: Pairs, tmp_path: Path) -> None:
    texts = Concatenated(encoders=(TfidfTopics(n_components=20), LdaTopics(n_topics=5, max_iter=2)))
    retriever = Retriever(model=CCA(n_components=8), **{**PARTS, "text_encoder": texts})
    retriever.fit(pairs.select(range(60)), baseline=None).save(tmp_path / "saved")
    loaded = Retriever.load(tmp_path / "saved")
    np.testing.assert_allclose(loaded.encode_texts(["a red ball"]), retriever.encode_texts(["a red ball"]))
    assert loaded.fingerprint == retriever.fingerprint


def test_whatever_shapes_points_changes_the_fingerprint(fitted: Retriever, pairs: Pairs) -> None:
    other = Retriever(model=CCA(n_components=15), name="scenes", **PARTS).fit(pairs, baseline=None)
    assert other.fingerprint != fitted.fingerprint
    assert other.image_fingerprint == fitted.image_fingerprint
    again = Retriever(model=CCA(n_components=16), name="other name", **PARTS).fit(pairs, baseline=None)
    assert again.fingerprint == fitted.fingerprint


def test_a_worse_model_is_refused_unless_forced(fitted: Retriever, few: Pairs) -> None:
    worse = Retriever(model=Random(), **PARTS).fit(few, baseline=fitted)
    assert not worse.comparison_.is_better
    assert not worse.comparison_.replaced
    assert worse.comparison_.is_significant()
    assert worse.fingerprint == fitted.fingerprint
    assert "worse by" in str(worse.comparison_)
    forced = Retriever(model=Random(), **PARTS).fit(few, baseline=fitted, force=True)
    assert forced.comparison_.replaced
    assert isinstance(forced.model_, Random)


def test_a_better_model_replaces_and_says_by_how_much(pairs: Pairs) -> None:
    chance = Retriever(model=Random(), name="chance", **PARTS).fit(pairs, baseline=None)
    better = Retriever(model=CCA(n_components=16), **PARTS).fit(pairs, baseline=chance)
    comparison = better.comparison_
    assert comparison.replaced
    assert comparison.is_better
    assert comparison.is_significant()
    # Few pictures are all held out, once each.
    assert comparison.n_held_out == 200
    # Luck knows nothing of other photographs that could be forgotten, however these two happen to rank them.
    assert comparison.rest_low == pytest.approx(0, abs=0.02)
    assert "chance 0." in str(comparison)
    assert comparison.old is not None
    assert comparison.old < comparison.new


def test_a_fitted_retriever_is_its_own_baseline(fitted: Retriever, few: Pairs) -> None:
    again = clone(fitted).fit(few, baseline=None)
    before = again.fingerprint
    again.set_params(model=Random())
    again.fit(few)
    assert again.fingerprint == before
    assert again.comparison_.baseline == "scenes"


def test_a_baseline_that_saw_the_held_out_pairs_has_no_advantage(pairs: Pairs) -> None:
    """A model that fits noise perfectly must not keep out one that does not, because it was asked what it had seen."""
    noisy = Retriever(model=CCA(n_components=60, regularization=1e-8), name="noisy", **PARTS).fit(pairs, baseline=None)
    seen = noisy.evaluate(pairs).average(AP())
    noisy.set_params(model=CCA(n_components=16, regularization=0.3))
    noisy.fit(pairs)
    compared = noisy.comparison_
    assert compared.old is not None
    assert compared.p_value is not None
    # Though each picture had fewer others around it when it was held out.
    assert compared.old < seen - 0.1
    assert compared.new > compared.old
    assert compared.p_value < compared.alpha


def test_one_label_for_all_is_no_label(few: Pairs) -> None:
    favourite = Pairs(few.images, few.texts, owners=few.owners, labels=["favourite"] * few.n_images)
    fitted = Retriever(model=CCA(n_components=16), **PARTS).fit(favourite, baseline=None)
    assert fitted.comparison_.chance < 0.2
    assert fitted.comparison_.new < 1


def test_without_a_model_one_is_chosen(pairs: Pairs) -> None:
    chosen = Retriever(**PARTS).fit(pairs, baseline=None)
    assert isinstance(chosen.model_, Preprocessed)
    assert chosen.comparison_.new > 2 * chosen.comparison_.chance


def test_features_alone_have_no_default_to_beat() -> None:
    rng = np.random.default_rng(0)
    meaning = rng.normal(size=(60, 3))
    features = Pairs(meaning @ rng.normal(size=(3, 7)), meaning @ rng.normal(size=(3, 5)))
    fitted = Retriever(model=CCA(n_components=3), **PARTS).fit(features)
    assert fitted.comparison_.old is None
    assert fitted.encode_images(np.asarray(features.images)[:2]).shape == (2, 3)


def test_labels_are_learned_from_and_judged_by(pairs: Pairs) -> None:
    labelled = Retriever(model=SCM(), **PARTS).fit(pairs, baseline=None)
    assert labelled.comparison_.new > 2 * labelled.comparison_.chance


def test_files_arrays_and_strings(fitted: Retriever, tmp_path: Path) -> None:
    write_folder(tmp_path, 3, size=32)
    paths = sorted(tmp_path.rglob("*.png"))[:3]
    points = fitted.encode_images(paths)
    np.testing.assert_allclose(points, fitted.encode_images([str(path) for path in paths]))
    (tmp_path / "broken.png").write_bytes(b"nothing")
    batches = list(fitted.stream_image_features([*paths, tmp_path / "broken.png"]))
    assert {row for batch in batches for row in batch.failures} == {3}


def test_clear_errors(fitted: Retriever, pairs: Pairs, tmp_path: Path) -> None:
    with pytest.raises(NotFittedError, match=r"call fit\(pairs\)"):
        Retriever(**PARTS).encode_texts(["a"])
    with pytest.raises(InvalidInputError, match="pass it in a list"):
        fitted.encode_texts("a red ball")
    with pytest.raises(InvalidInputError, match=r"one path photo\.jpg; pass it in a list"):
        fitted.encode_images("photo.jpg")
    with pytest.raises(InvalidInputError, match="at least 10 pictures"):
        Retriever(**PARTS).fit(pairs.select(range(5)), baseline=None)
    fitted.model_.save(tmp_path / "model")
    with pytest.raises(ModelFileError, match="not a retriever"):
        Retriever.load(tmp_path / "model")
    fitted.save(tmp_path / "retriever")
    with pytest.raises(ModelFileError):
        load_model(tmp_path / "retriever")


@pytest.mark.parametrize(
    ("encoder", "noted"),
    [
        (SentenceEncoder(), ["dva psi na pláži", "zwei Hunde am Strand"]),
        (MultilingualSentences(), ["dva psi na pláži"]),
        (UniversalSentenceEncoder(), ["dva psi na pláži"]),
        (TfidfTopics(), []),
    ],
    ids=str,
)
def test_queries_in_languages_that_the_encoder_does_not_know_get_a_note(encoder: Encoder, noted: list[str]) -> None:
    retriever = Retriever()
    with pytest.raises(NotFittedError):
        retriever.language_note("two dogs")
    retriever.text_encoder_ = encoder
    texts = ("dva psi na pláži", "zwei Hunde am Strand", "two dogs on a beach")
    assert [text for text in texts if retriever.language_note(text) is not None] == noted


def test_whatever_can_be_saved_is_known_to_whoever_loads_it() -> None:
    """A process that has imported nothing but this loads what another one learned."""
    # The benchmark has a model of its own, which nobody saves.
    saved = ("diptych.encoders", "diptych.models", "diptych.retriever", "diptych.collection")
    for module in pkgutil.walk_packages(diptych.__path__, "diptych."):
        if module.name.startswith(saved):
            importlib.import_module(module.name)
    known = [cls for classes in known_classes(Encoder, CrossModalModel).values() for cls in classes]
    ours = [cls for cls in known if cls.__module__.startswith(saved) and cls.__name__[0] != "_"]
    # What an example defines is in no module.
    public = {cls for cls in ours if hasattr(sys.modules[cls.__module__], cls.__name__)}
    program = (
        "import sys\n"
        "from diptych import Retriever\n"
        "from diptych.encoders import Encoder\n"
        "from diptych.models import CrossModalModel\n"
        "from diptych.models.files import KnownClasses\n"
        "for line in sys.stdin:\n"
        "    found = KnownClasses(Retriever, Encoder, CrossModalModel).find(*line.split())\n"
        "    print(found and found.__module__)\n"
    )
    for first in (min, max):
        # Whichever comes first may be one that is imported already, or not.
        order = sorted(public, key=lambda cls: cls != first(public, key=lambda cls: cls.__module__))
        asked = "".join(f"{cls.__name__} {cls.__module__}\n" for cls in order)
        answer = subprocess.run(
            [sys.executable, "-c", program], input=asked, check=True, capture_output=True, text=True
        )
        assert answer.stdout.split() == [cls.__module__ for cls in order]
