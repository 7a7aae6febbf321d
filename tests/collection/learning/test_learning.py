"""The loop of bench/click_loop.py, small: clicks of simulated visitors teach a retriever that knows nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from diptych import Retriever
from diptych.collection import Collection
from diptych.collection.learning import (
    Learning,
    LearningReport,
    SearchLog,
    Training,
    rollback,
)
from diptych.collection.learning.click_learning import spent_alpha
from diptych.collection.learning.search_log import word_groups
from diptych.data import load_dataset
from diptych.data.clicks import ClickLog
from diptych.data.datasets.scenes import BACKGROUNDS, CLASS_NAMES, COLOURS
from diptych.encoders import ColourEdgeHistograms, TfidfTopics
from diptych.errors import InvalidInputError
from diptych.models import CCA
from diptych.space import Space
from tests.doubles.visitors import (
    CLICK_MODELS,
    Truth,
    Visitors,
    Wish,
    scenes_collection,
    scenes_world,
    shuffled,
)

N_SCENES, SEARCHES = 250, 12_000


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collection]:
    """Scenes with a retriever that has seen forty captions."""
    pairs = load_dataset("scenes", n_train=40, n_test=1, size=32).train
    encoders = {"image_encoder": ColourEdgeHistograms(size=32), "text_encoder": TfidfTopics(min_documents=1)}
    weak = Retriever(model=CCA(n_components=6, regularization=0.1), name="weak", cache=False, **encoders).fit(
        pairs, baseline=None
    )
    folder = tmp_path_factory.mktemp("loop")
    with scenes_collection(folder, N_SCENES, weak, size=32) as made:
        yield made


@pytest.fixture(scope="module")
def world(collection: Collection) -> Any:
    """What they ask for are places, with things of some kind or colour: histograms of colours tell places apart."""
    places = [Wish(place=place) for place in BACKGROUNDS]
    kinds = [Wish(kind=kind, place=place) for kind in CLASS_NAMES for place in BACKGROUNDS]
    colours = [Wish(colour=colour, place=place) for colour in COLOURS for place in BACKGROUNDS]
    return scenes_world(collection, [*places, *kinds, *colours]).dealt(0)


@pytest.fixture(scope="module")
def truth(collection: Collection, world: Any) -> Any:
    return Truth(collection, world)


@pytest.fixture(scope="module")
def seen(collection: Collection, world: Any, truth: Any) -> SearchLog:
    return Visitors(world, 0, eta=1.0).log(truth.scores(collection.retriever), SEARCHES)


@pytest.fixture(scope="module")
def report(collection: Collection, seen: SearchLog) -> LearningReport:
    return Learning(collection).compare(seen)


def test_what_is_learned_is_truly_better_for_what_people_ask(
    collection: Collection, world: Any, truth: Any, report: LearningReport
) -> None:
    assert report.is_better, report.record
    assert report.positions is not None
    np.testing.assert_allclose(report.positions.propensities_[:4], 1 / np.arange(1, 5), rtol=0.25)
    assert report.positions.after_click_ == pytest.approx(1, abs=0.1)
    old, new = (truth.values(each, world) for each in (collection.retriever, report.retriever))
    assert new["asked"] > 1.25 * old["asked"]
    assert new["never asked"] >= 0.99 * old["never asked"]
    gate = report.record.gate
    assert gate["repeated"]["relative"] > 0.1
    assert gate["repeated"]["n_people"] > 500
    assert report.record.alpha == pytest.approx(spent_alpha(0.01, 0))


def test_the_truth_reads_queries_as_a_search_does(
    collection: Collection, world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def last_word(_: Retriever, texts: list[str]) -> Any:
        return collection.retriever.text_features([text.split()[-1] for text in texts])

    monkeypatch.setattr(Retriever, "query_features", last_word)
    scores = Truth(collection, world).scores(collection.retriever)
    for query in (world.queries[0], world.queries[-1]):
        found = [answer.item.id for answer in collection.search(query, k=5)]
        best = np.argsort(-scores[world.queries.index(query)], kind="stable")[:5]
        assert sorted(found) == sorted(world.items[row] for row in best)


@pytest.mark.parametrize("name", ["cascade", "trust in the top"])
def test_clicks_of_other_kinds_teach_as_well(collection: Collection, world: Any, truth: Any, name: str) -> None:
    other = world.dealt(7)
    log = Visitors(other, 7, **CLICK_MODELS[name]).log(truth.scores(collection.retriever), SEARCHES)
    found = Learning(collection).compare(log)
    assert found.is_better, found.record
    old, new = (truth.values(each, other) for each in (collection.retriever, found.retriever))
    assert new["asked"] > 1.15 * old["asked"]
    assert new["never asked"] >= 0.99 * old["never asked"]


def test_clicks_without_meaning_promote_nothing(
    collection: Collection, seen: SearchLog, world: Any, truth: Any
) -> None:
    seed = 0
    scores = truth.scores(collection.retriever)
    dealt = shuffled(seen, seed)
    assert dealt.n_clicks == seen.n_clicks
    assert not Learning(collection).compare(dealt).is_better
    whims = Visitors(world.at_a_whim(seed), seed, eta=1.0).log(scores, SEARCHES)
    refused = Learning(collection).compare(whims)
    assert not refused.is_better
    # They do come back for the same items, which alone is no reason.
    assert refused.record.gate["repeated"]["p_value"] < 0.001
    assert "nothing in common" in refused.record.reason
    nothing = replace(world, wanted=np.zeros_like(world.wanted))
    obsessed = Visitors(nothing, seed, eta=1.0, spam=0.2)
    obsessed.kind = world.wanted[seed]
    assert not Learning(collection).compare(obsessed.log(scores, SEARCHES)).is_better


def test_one_visitor_with_many_searches_has_one_voice(
    collection: Collection, world: Any, truth: Any, report: LearningReport
) -> None:
    spammed = Visitors(world, 0, eta=1.0, spam=0.2)
    found = Learning(collection).compare(spammed.log(truth.scores(collection.retriever), SEARCHES))
    assert found.is_better
    before, without, with_spam = (
        truth.share_of(spammed.kind, each, world) for each in (collection.retriever, report.retriever, found.retriever)
    )
    assert with_spam - without < 0.02 + 0.1 * before
    asked = [truth.values(each, world)["asked"] for each in (report.retriever, found.retriever)]
    assert asked[1] > 0.95 * asked[0]


def test_queries_of_one_visitor_weigh_one_together() -> None:
    rows = [(n, "one", float(n), "dog", 1, ("a", "b"), {1}) for n in range(9)]
    rows += [(9 + n, f"other {n}", 10.0, "dogs", 1, ("a", "b"), {2}) for n in range(2)]
    log = SearchLog.from_searches([*rows, (20, None, 11.0, "dog", 1, ("b",), ())])
    seen = log.impressions()
    first = (seen.positions == 1) & ~seen.after_click
    items = [log.items[pair % len(log.items)] for pair in seen.pairs[first]]
    shown = dict(zip(items, seen.shown[first], strict=True))
    clicked = dict(zip(items, seen.clicked[first], strict=True))
    assert shown == pytest.approx({"a": 3, "b": 1})
    assert clicked == pytest.approx({"a": 1, "b": 0})


def test_a_fusion_is_saved_searched_and_taken_back(
    collection: Collection, seen: SearchLog, world: Any, tmp_path: Path
) -> None:
    before = collection.retriever
    assert collection.retriever_history() == []
    told: list[str] = []
    done = Learning(collection).run(seen, progress=lambda doing, *_: told.append(doing))
    assert done.record.action == "promoted"
    assert "reading every item with the new search model" in told
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
    assert Learning(collection)._base.fingerprint == before.fingerprint
    trained = Training(collection, method="cca", parameters={})
    assert trained._new.text_encoder.fingerprint == before.text_encoder_.fingerprint
    # It must beat the one in force, on searches that neither has seen: there are none.
    refused = Learning(collection).compare(seen).record
    assert "0 queries were asked again by others since the present search model was learned" in refused.reason
    more = Visitors(world, 1, eta=1.0).log(Truth(collection, world).scores(done.retriever), SEARCHES)
    later = Learning(collection).compare(replace(more, times=more.times + len(seen))).record
    assert later.compared_with == "learned from clicks"
    assert later.p_value is not None
    rollback(collection)
    assert collection.retriever.fingerprint == before.fingerprint
    assert [record.action for record in collection.retriever_history()] == ["promoted", "rolled back"]


def test_what_is_tried_again_gets_less_of_the_budget(collection: Collection, seen: SearchLog) -> None:
    shares = []
    for seed in range(3):
        record = Learning(collection).run(shuffled(seen.select(np.arange(len(seen)) < 2400 + seed), seed)).record
        shares.append(record.alpha)
        assert record.action == "kept"
    np.testing.assert_allclose(shares, [spent_alpha(0.01, 0), spent_alpha(0.01, 1), spent_alpha(0.01, 2)])
    # The same log is no new comparison.
    again = Learning(collection).compare(shuffled(seen.select(np.arange(len(seen)) < 2402), 2)).record
    assert again.alpha == pytest.approx(shares[-1])
    assert sum(spent_alpha(0.01, tried) for tried in range(100_000)) < 0.01
    few = seen.select(np.arange(len(seen)) < 2403)
    without = replace(few, visitors=np.full(len(few), -1))
    unknown = Learning(collection).compare(without)
    assert unknown.record.alpha == pytest.approx(spent_alpha(0.01, 3) / 10)
    assert "does not tell visitors apart" in unknown.notes[0]
    assert unknown.record.gate["repeated"]["n_people"] is None


def test_spellings_of_one_query_count_as_one() -> None:
    assert word_groups(["red boat", "boats, red", "a house"]).tolist() == [0, 0, 1]


def test_a_query_that_nobody_asked_is_answered_as_before(collection: Collection, report: LearningReport) -> None:
    present, fused = collection.retriever, report.retriever
    assert isinstance(present, Retriever)
    assert fused is not None
    assert not report.record.gate["reach"]
    _, features = collection.features("image")
    queries = ["snowy weather", "a big red house at night near the sea with a boat"]
    scores = [
        each.space.compare(each.encode_texts(queries), each.images_to_points(features), "text_query")
        for each in (present, fused)
    ]
    np.testing.assert_allclose(*scores, atol=1e-5)
    chances = [each.probability(found, "text_to_image") for each, found in zip((present, fused), scores, strict=True)]
    np.testing.assert_allclose(*chances, atol=1e-4)


def test_too_few_queries_change_nothing_and_say_how_many_are_needed(collection: Collection, seen: SearchLog) -> None:
    record = Learning(collection).run(seen.select(seen.query_ids < 8), dry_run=True).record
    assert record.action == "kept"
    assert "30 are needed to decide; collect clicks on" in record.reason


def test_a_table_of_clicks_without_positions_teaches_too(collection: Collection, world: Any) -> None:
    wanted = [
        (query, world.items[item], 3)
        for row, query in enumerate(world.queries)
        for item in np.flatnonzero(world.wanted[row])[:12]
    ]
    queries, items, clicks = zip(*wanted, strict=True)
    log = ClickLog.from_triads([*queries, "a lost one"], [*items, "no-such-item"], [*clicks, 1])
    # Earlier comparisons here have used most of the budget.
    found = Learning(collection, alpha=0.5).compare(log)
    assert found.positions is None
    assert found.is_better, found.record
    with pytest.raises(InvalidInputError, match="no item of the log is a picture of this collection"):
        Learning(collection).compare(ClickLog.from_triads(["dog"], ["elsewhere"], [1]))


def test_spaces_that_models_of_clicks_cannot_join_are_refused_at_once(
    collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Retriever, "space", property(lambda _: Space("hamming")))
    with pytest.raises(InvalidInputError, match=r"compares by hamming.*cosine or dot"):
        Learning(collection)
