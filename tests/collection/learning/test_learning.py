"""The loop of benchmarks/click_loop.py, small: clicks of a simulated person teach a retriever that knows nothing."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from diptych import Retriever
from diptych.collection import Collection
from diptych.collection.learning import Impressions, Learning, LearningReport, Training, learning_history, rollback
from diptych.collection.learning.click_learning import _group_means, word_groups
from diptych.data import load_dataset
from diptych.data.clicks import ClickLog
from diptych.data.datasets.scenes import BACKGROUNDS, CLASS_NAMES, COLOURS
from diptych.encoders import ColourEdgeHistograms, TfidfTopics
from diptych.errors import InvalidInputError
from diptych.metrics import randomisation_test
from diptych.models import CCA, Text2Image
from diptych.space import Space

N_SCENES = 200


@pytest.fixture(scope="module")
def loop() -> ModuleType:
    script = Path(__file__).parents[3] / "benchmarks" / "click_loop.py"
    spec = importlib.util.spec_from_file_location("click_loop", script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["click_loop"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def collection(loop: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collection]:
    """Scenes with a retriever that ranks nearly by luck: it has seen twenty captions."""
    pairs = load_dataset("scenes", n_train=20, n_test=1, size=32).train
    encoders = {"image_encoder": ColourEdgeHistograms(size=32), "text_encoder": TfidfTopics(min_documents=1)}
    weak = Retriever(model=CCA(n_components=4), name="weak", cache=False, **encoders).fit(pairs, baseline=None)
    folder = tmp_path_factory.mktemp("loop")
    with loop.scenes_collection(folder, N_SCENES, weak, size=32) as made:
        yield made


@pytest.fixture(scope="module")
def world(loop: ModuleType, collection: Collection) -> Any:
    """What she asks for are places, with things of some kind or colour: histograms of colours tell places apart."""
    places = [loop.Wish(place=place) for place in BACKGROUNDS]
    kinds = [loop.Wish(kind=kind, place=place) for kind in CLASS_NAMES for place in BACKGROUNDS]
    colours = [loop.Wish(colour=colour, place=place) for colour in COLOURS for place in BACKGROUNDS]
    return loop.World.of(collection, [*places, *kinds, *colours])


@pytest.fixture(scope="module")
def seen(loop: ModuleType, collection: Collection, world: Any) -> Impressions:
    return loop.SimulatedUser(world, 0).impressions(collection, 20_000)


def learning(collection: Collection) -> Learning:
    return Learning(collection, parts=[Text2Image()], fewest_queries=30)


@pytest.fixture(scope="module")
def report(collection: Collection, seen: Impressions) -> LearningReport:
    return learning(collection).compare(seen)


def test_what_is_learned_is_truly_better_on_queries_nobody_asked(
    loop: ModuleType, collection: Collection, world: Any, report: LearningReport
) -> None:
    assert report.is_better, report.record
    assert report.record.new is not None
    assert report.record.old is not None
    assert report.record.new > report.record.old
    assert report.positions is not None
    np.testing.assert_allclose(report.positions.propensities_[:4], 1 / np.arange(1, 5), rtol=0.25)
    old, new = (loop.true_values(collection, world, each) for each in (collection.retriever, report.retriever))
    outcome = randomisation_test(new["MAP"], old["MAP"])
    assert outcome.difference > 0
    assert outcome.p_value < 0.01


@pytest.mark.parametrize("seed", [0, 1])
def test_shuffled_clicks_promote_nothing(
    loop: ModuleType, collection: Collection, seen: Impressions, world: Any, seed: int
) -> None:
    dealt = loop.shuffled(seen, seed)
    assert dealt.n_clicks == seen.n_clicks
    assert not learning(collection).compare(dealt).is_better
    whims = loop.SimulatedUser(loop.whimsical(world, seed), seed).impressions(collection, 20_000)
    report = learning(collection).compare(whims)
    assert report.record.p_value is not None, report.record.reason
    assert not report.is_better


def test_a_fusion_is_saved_searched_and_taken_back(collection: Collection, seen: Impressions, tmp_path: Path) -> None:
    before = collection.retriever
    assert learning_history(collection) == []
    told: list[str] = []
    done = learning(collection).run(seen, progress=lambda doing, *_: told.append(doing))
    assert done.record.action == "promoted"
    assert "giving every item its new point" in told
    assert collection.retriever.fingerprint == done.record.after_fingerprint
    query = done.record.gained[0][0]
    found = collection.search(query, k=5)
    assert isinstance(done.retriever, Retriever)
    done.retriever.save(tmp_path / "saved")
    again = Retriever.load(tmp_path / "saved")
    assert again.fingerprint == done.retriever.fingerprint
    ids, features = collection.features("image")
    scores = again.space.compare(again.encode_texts([query]), again.images_to_points(features), "text_query")[0]
    assert [answer.item.id for answer in found] == [ids[row] for row in np.argsort(-scores)[:5]]
    # What is learned next starts from the first retriever again: fusions do not pile up.
    assert learning(collection)._base.fingerprint == before.fingerprint
    trained = Training(collection, method="cca", parameters={})
    assert trained._new.text_encoder.fingerprint == before.text_encoder_.fingerprint
    poor = ClickLog.from_triads([query, "another"], ids[:2], [1, 1])
    assert "far fewer" in Learning(collection, fewest_queries=1).compare(poor).record.reason
    rollback(collection)
    assert collection.retriever.fingerprint == before.fingerprint
    assert [record.action for record in learning_history(collection)] == ["promoted", "rolled back"]


def test_spellings_of_one_query_count_as_one() -> None:
    groups = word_groups(["red boat", "boats, red", "a house"])
    np.testing.assert_array_equal(_group_means(np.array([1.0, 0.0, 5.0]), groups), [0.5, 5.0])


def test_a_log_that_says_nothing_about_a_query_leaves_its_probabilities(
    collection: Collection, report: LearningReport
) -> None:
    present, fused = collection.retriever, report.retriever
    assert isinstance(present, Retriever)
    assert fused is not None
    _, features = collection.features("image")
    chances = [
        each.probability(
            each.space.compare(each.encode_texts(["snowy weather"]), each.images_to_points(features), "text_query"),
            "text_to_image",
        )
        for each in (present, fused)
    ]
    np.testing.assert_allclose(*chances, atol=1e-4)


def test_too_few_queries_change_nothing_and_say_how_many_are_needed(collection: Collection, seen: Impressions) -> None:
    few = seen.select(seen.query_ids < 12)
    record = Learning(collection, parts=[Text2Image()]).run(few, dry_run=True).record
    assert record.action == "kept"
    assert "50 are needed to decide; collect clicks on" in record.reason


def test_a_table_of_clicks_without_positions_teaches_too(loop: ModuleType, collection: Collection, world: Any) -> None:
    wanted = [
        (wish.words, world.items[item], 3)
        for row, wish in enumerate(world.wishes[:40])
        for item in np.flatnonzero(world.met[row])
    ]
    queries, items, clicks = zip(*wanted, strict=True)
    log = ClickLog.from_triads([*queries, "a lost one"], [*items, "no-such-item"], [*clicks, 1])
    found = learning(collection).compare(log)
    assert found.positions is None
    assert found.is_better
    with pytest.raises(InvalidInputError, match="no item of the log is a picture of this collection"):
        learning(collection).compare(ClickLog.from_triads(["dog"], ["elsewhere"], [1]))


def test_spellings_of_one_query_keep_nothing_back(collection: Collection) -> None:
    ids = [item.id for item in collection]
    spelled = [
        ("red ball" + "!" * k, ids[(7 * k + p) % 60], p, 99, 60 if p == 1 + k % 4 else 1)
        for k in range(40)
        for p in range(1, 7)
    ]
    others = [("big red ball" + "!" * k, ids[k], 1, 99, 60) for k in range(9)]
    found = learning(collection).compare(Impressions.from_rows([*spelled, *others]))
    assert not found.is_better
    assert "have the same words" in found.record.reason


def test_a_retriever_that_knows_no_word_of_the_log_learns_all_the_same(
    collection: Collection, seen: Impressions, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = collection.retriever.encode_texts
    monkeypatch.setattr(Retriever, "encode_texts", lambda _, texts: np.zeros_like(known(texts)))
    found = learning(collection).compare(seen)
    assert found.is_better
    assert found.retriever is not None
    assert np.isfinite(found.retriever.calibration_.slopes_).all()


def test_spaces_that_models_of_clicks_cannot_join_are_refused_at_once(
    collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Retriever, "space", property(lambda _: Space("hamming")))
    with pytest.raises(InvalidInputError, match=r"compares by hamming.*cosine or dot"):
        learning(collection)
