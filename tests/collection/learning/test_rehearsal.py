from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from diptych import Retriever
from diptych.collection import Collection, Record
from diptych.collection.learning import (
    LearningRecord,
    Rehearsal,
    RehearsalReport,
    RehearsedQuestion,
    SearchLog,
)
from diptych.collection.learning.rehearsal_report import RehearsedQuestions
from diptych.collection.learning.retriever_training import promote
from diptych.data import Pairs, load_dataset, read_captions
from diptych.data.datasets.scenes import write_folder
from diptych.encoders import ColourEdgeHistograms, TfidfTopics
from diptych.errors import InvalidInputError
from diptych.metrics import randomisation_test
from diptych.models import CCA

N_SCENES = 48


@cache
def fitted(size: int) -> tuple[Retriever, Pairs]:
    """Return a retriever that reads pictures of a size, and what it was learned from as features."""
    pairs = load_dataset("scenes", n_train=60, n_test=1, size=32).train
    unlabelled = Pairs(pairs.images, pairs.texts, owners=pairs.owners)
    encoders = {"image_encoder": ColourEdgeHistograms(size=size), "text_encoder": TfidfTopics()}
    made = Retriever(model=CCA(n_components=12, regularization=0.1), cache=False, **encoders).fit(
        unlabelled, baseline=None
    )
    return made, made.featured(unlabelled)


def learned(n_components: int, name: str, size: int = 32, kept: bool | str = False) -> Retriever:
    made, features = fitted(size)
    retriever = copy(made).set_params(name=name, cache=kept)
    retriever.model_ = CCA(n_components=n_components, regularization=0.1).fit(*features.aligned())
    return retriever


@pytest.fixture(scope="module")
def weak() -> Retriever:
    return learned(2, "weak")


@pytest.fixture(scope="module")
def better() -> Retriever:
    """It reads pictures otherwise, so that they have to be encoded."""
    return learned(12, "better", size=24)


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("rehearsal") / "scenes", N_SCENES, size=32)


@pytest.fixture(scope="module")
def collection(scenes: Path, weak: Retriever) -> Iterator[Collection]:
    with Collection.create(scenes.parent / "c", weak, root=scenes) as made:
        made.add(read_captions(scenes / "captions.json", scenes).values())
        yield made


@pytest.fixture(scope="module")
def report(collection: Collection, better: Retriever) -> RehearsalReport:
    return Rehearsal(collection, better).run()


def searches(*counted: tuple[str, list[str], int, dict[int, int]]) -> SearchLog:
    """Return a log of queries, what was shown, how often, and how many clicked each position."""
    rows = [
        (100 * number + turn, None, 0.0, query, 1, shown, [place for place, count in clicks.items() if turn < count])
        for number, (query, shown, times, clicks) in enumerate(counted)
        for turn in range(times)
    ]
    return SearchLog.from_searches(rows)


def ranks(retriever: Retriever, files: list[Path], captions: list[str], owners: list[int]) -> np.ndarray:
    scores = retriever.similarity(files, captions).T
    return np.array([1 + (line > line[owner]).sum() for line, owner in zip(scores, owners, strict=True)])


def test_a_better_retriever_wins_by_as_much_as_counting_says(
    collection: Collection, report: RehearsalReport, weak: Retriever, better: Retriever
) -> None:
    items = list(collection)
    captions = [text for item in items for text in item.captions]
    owners = [row for row, item in enumerate(items) for _ in item.captions]
    files = [Path(str(collection.path_of(item))) for item in items]
    old, new = (1 / ranks(each, files, captions, owners) for each in (weak, better))
    (group,) = report.questions
    main, first, ten = group.differences
    assert [main.measure, first.measure, ten.measure] == ["reciprocal rank", "R@1", "R@10"]
    # Stored points have 16 bits, by which neighbours may change places.
    assert main.old == pytest.approx(old.mean(), abs=2e-3)
    assert main.new == pytest.approx(new.mean(), abs=2e-3)
    assert first.new == pytest.approx((new == 1).mean())
    # One value for a picture, whatever the number of its captions: they are asked about the same thing.
    sums = [np.bincount(owners, values) * len(items) / len(captions) for values in (new, old)]
    test = randomisation_test(*sums, trials=20_000)
    assert main.p_value == pytest.approx(test.p_value, abs=1e-3)
    assert main.p_value < 0.01
    assert main.difference == pytest.approx(test.difference, abs=2e-3)
    assert main.low < main.difference < main.high
    assert (group.n_questions, group.n_units) == (len(captions), N_SCENES)
    assert (group.n_won, group.n_lost) == ((new > old).sum(), (new < old).sum())
    assert report.outcome == "better"
    assert report.verdict[0].startswith("better is better: reciprocal rank 0.")
    assert report.reads_pictures
    assert report.reencode_seconds > 0


def test_won_and_lost_name_the_first_answers_of_both(
    collection: Collection, report: RehearsalReport, weak: Retriever, better: Retriever
) -> None:
    (group,) = report.questions
    assert len(group.won) == 10
    gains = [question.old_rank / question.new_rank for question in group.won]
    assert gains == sorted(gains, reverse=True)
    assert all(question.new_rank > question.old_rank for question in group.lost)
    owners = [question.right for question in group.won]
    assert len(set(owners)) == len(owners), "a picture is shown once"
    question = group.won[0]
    ids = [item.id for item in collection]
    files = [Path(str(collection.path_of(item))) for item in collection]
    for retriever, answers in ((weak, question.old_answers), (better, question.new_answers)):
        order = np.argsort(-retriever.similarity(files, [question.text])[:, 0], kind="stable")[:10]
        assert answers == tuple(ids[row] for row in order)


def test_the_other_way_round_the_same_is_lost(
    scenes: Path, tmp_path: Path, report: RehearsalReport, weak: Retriever, better: Retriever
) -> None:
    with Collection.create(tmp_path / "c", better, root=scenes) as made:
        made.add(read_captions(scenes / "captions.json", scenes).values())
        back = Rehearsal(made, weak).run()
    assert back.outcome == "worse"
    (group,), (there,) = back.questions, report.questions
    assert (group.n_won, group.n_lost) == (there.n_lost, there.n_won)
    assert group.differences[0].difference == pytest.approx(-there.differences[0].difference)
    assert (group.no_match_old, group.no_match_new) == (there.no_match_new, there.no_match_old)


def contents(folder: Path) -> dict[str, str]:
    # The files of SQLite change when they are read: the log is brought into the database.
    files = (path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("collection.sqlite"))
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_nothing_is_written(scenes: Path, tmp_path: Path, weak: Retriever) -> None:
    candidate = learned(12, "other", size=24, kept=str(tmp_path / "features"))
    with Collection.create(tmp_path / "c", weak, root=scenes) as made:
        made.add(read_captions(scenes / "captions.json", scenes).values())
        before = contents(tmp_path)
        report = Rehearsal(made, candidate).run(searches(("a private wish", ["x"], 1, {})))
        assert report.n_unjudged == 1
    # Not even in the cache of features: what people searched for stays in the log.
    assert contents(tmp_path) == before


def test_the_same_draw_comes_again_and_captions_are_preferred(
    scenes: Path, tmp_path: Path, weak: Retriever, better: Retriever
) -> None:
    captioned = read_captions(scenes / "captions.json", scenes)
    with Collection.create(tmp_path / "c", weak, root=scenes) as made:
        made.add([*captioned.values()][:20])
        made.add([Record(path) for path in captioned][20:])
        same, again, other = (Rehearsal(made, better, sample=15, random_state=seed).run() for seed in (1, 1, 2))
        assert same.questions == again.questions != other.questions
        assert (same.n_sample, same.n_captioned, same.n_pictures) == (15, 15, N_SCENES)
        assert "15 of 48 pictures" in same.sampled
        assert any("among the 15 pictures" in note for note in same.notes)
        few = Rehearsal(made, better, n_queries=7).run()
        assert (few.n_sample, few.n_captioned, few.questions[0].n_questions) == (N_SCENES, 20, 7)


def test_clicked_pictures_are_right_and_frequent_queries_weigh_more(
    scenes: Path, tmp_path: Path, weak: Retriever, better: Retriever
) -> None:
    with Collection.create(tmp_path / "c", weak, root=scenes) as made:
        made.add([Record(path) for path in sorted(scenes.glob("*.png"))])
        ids = [item.id for item in made]
        files = [Path(str(made.path_of(item))) for item in made]
        seen = searches(
            ("a red ball", [ids[3], ids[5]], 30, {1: 20}),
            ("a house at night", [ids[7], ids[9]], 10, {2: 6}),
            ("a boat", [ids[1]], 5, {}),
            ("gone since", ["no-such-item"], 2, {1: 2}),
        )
        report = Rehearsal(made, better, sample=40).run(seen)
        assert report.n_clicked == 2
        (group,) = report.questions
        assert (group.kind, group.n_questions, report.n_unjudged) == ("queries", 2, 2)
        assert 0 <= (report.overlap or 0) <= 1
        assert any("clicks favour it" in note for note in report.notes)
        whole = Rehearsal(made, better).run(seen)
        expected = []
        for retriever in (weak, better):
            red, house = retriever.similarity(files, ["a red ball", "a house at night"]).T
            values = 1 / (1 + (red > red[3]).sum()), 1 / (1 + (house > house[9]).sum())
            expected.append((30 * values[0] + 10 * values[1]) / 40)
        main = whole.questions[0].differences[0]
        assert [main.old, main.new] == pytest.approx(expected)


def test_queries_without_clicks_tell_only_how_much_is_the_same(collection: Collection, better: Retriever) -> None:
    item_id = next(iter(collection)).id
    report = Rehearsal(collection, better).run(searches(("a boat", [item_id], 4, {})))
    assert [group.kind for group in report.questions] == ["captions"]
    files = [Path(str(collection.path_of(item))) for item in collection]
    tops = [
        set(np.argsort(-each.similarity(files, ["a boat"])[:, 0], kind="stable")[:10])
        for each in (collection.retriever, better)
    ]
    assert report.overlap == pytest.approx(len(tops[0] & tops[1]) / 10)


def test_stored_features_serve_where_the_encoders_are_the_same(collection: Collection) -> None:
    report = Rehearsal(collection, learned(12, "weak")).run()
    assert not report.reads_pictures
    assert report.reencode_seconds == 0
    assert (report.old, report.new) == ("weak", "weak (new)")


def test_what_cannot_be_compared_is_said_at_once(
    collection: Collection, scenes: Path, tmp_path: Path, weak: Retriever, better: Retriever
) -> None:
    with pytest.raises(InvalidInputError, match="uses this search model already, as 'weak'"):
        Rehearsal(collection, weak)
    with pytest.raises(InvalidInputError, match="sample must be at least 2"):
        Rehearsal(collection, better, sample=1)
    moved = tmp_path / "moved"
    shutil.copytree(scenes, moved)
    with Collection.create(tmp_path / "c", weak, root=moved) as made:
        made.add([Record(path) for path in sorted(moved.glob("*.png"))])
        with pytest.raises(InvalidInputError, match="--captions FILE"):
            Rehearsal(made, better).run()
        made.update(next(iter(made)).id, captions=["a lonely caption"])
        first, second, third, *_ = (Path(str(made.path_of(item))) for item in made)
        second.write_bytes(first.read_bytes())
        third.unlink()
        report = Rehearsal(made, better).run()
        assert report.n_sample == N_SCENES - 2
        assert any("2 pictures could not be read" in note for note in report.notes)
        shutil.rmtree(moved)
        with pytest.raises(InvalidInputError, match="no picture of the collection can be read"):
            Rehearsal(made, better).run()


def test_a_retriever_that_has_seen_the_answers_is_named(
    scenes: Path, tmp_path: Path, weak: Retriever, better: Retriever
) -> None:
    with Collection.create(tmp_path / "c", weak, root=scenes) as made:
        made.add(read_captions(scenes / "captions.json", scenes).values())
        clicked = searches(("a boat", [next(iter(made)).id], 4, {1: 4}))
        notes = " ".join(Rehearsal(made, better).run(clicked).notes)
        assert "weak was learned from captions, most likely from these" in notes
        assert "better was learned from captions; if these are among them" in notes
        assert "even learned from clicks" not in notes
        now = made.retrievers()[0]
        promote(made, learned(3, "clicked"), LearningRecord("", "kept", *(now.name, now.fingerprint) * 2))
        notes = " ".join(Rehearsal(made, better).run(clicked).notes)
        assert "clicked was even learned from clicks" in notes


def test_kinds_that_contradict_each_other_are_mixed(report: RehearsalReport) -> None:
    (group,) = report.questions
    main = group.differences[0]
    worse = replace(main, old=main.new, new=main.old)
    queries = replace(group, kind="queries", differences=(worse,))
    assert replace(report, questions=(group, queries)).outcome == "mixed"
    luck = replace(group, differences=(replace(main, p_value=0.2),))
    undecided = replace(report, questions=(luck,))
    assert undecided.outcome == "undecided"
    assert undecided.verdict[0].startswith("No difference between weak and better that luck may not bring")
    assert replace(report, questions=(group, luck)).outcome == "better"


def test_one_question_alone_is_luck() -> None:
    question = RehearsedQuestion("a boat", 1.0, 9.0, 1.0, ("a",), ("b",), ("a",))
    values = [("reciprocal rank", np.array([1 / 9]), np.array([1.0]))]
    no_match = np.array([True]), np.array([False])
    found = RehearsedQuestions.measured("captions", [question], np.array([0]), no_match, values, random_state=0)
    assert found.outcome(0.05) == "undecided"
    assert (found.no_match_old, found.no_match_new) == (1.0, 0.0)
