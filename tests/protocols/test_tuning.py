"""Choosing parameters: on training data alone, every trial recorded, repeatable."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from diptych.data import Pairs
from diptych.errors import InvalidInputError
from diptych.metrics import AP, CMC
from diptych.models import CCA, SM
from diptych.protocols import ClassHoldOut, CrossValidation, HoldOut, evaluate_model, tune


@pytest.fixture(scope="module")
def pairs():
    rng = np.random.default_rng(1)
    labels = np.arange(80) % 4
    meaning = rng.normal(size=(4, 3))[labels] + 0.5 * rng.normal(size=(80, 3))
    images = meaning @ rng.normal(size=(3, 8)) + 0.3 * rng.normal(size=(80, 8))
    return Pairs(images, meaning @ rng.normal(size=(3, 5)) + 0.3 * rng.normal(size=(80, 5)), labels=labels)


def test_hold_outs_partition_the_training_pairs_and_differ(pairs):
    drawn = [
        (set(train.ids.tolist()), set(held_out.ids.tolist())) for train, held_out in HoldOut(repeats=5).splits(pairs)
    ]
    assert len(drawn) == 5
    for train, held_out in drawn:
        assert train.isdisjoint(held_out)
        assert len(train | held_out) == 80
        assert len(held_out) == 20
    assert len({frozenset(held_out) for _, held_out in drawn}) == 5
    again = [set(held_out.ids.tolist()) for _, held_out in HoldOut(repeats=5).splits(pairs)]
    assert again == [held_out for _, held_out in drawn]


@pytest.mark.parametrize("bad", [{"repeats": 0}, {"share": 0.0}, {"share": 1.0}])
def test_impossible_hold_outs_are_refused(bad):
    with pytest.raises(InvalidInputError, match=r"must (be at least|lie between)"):
        HoldOut(**bad)


def test_every_trial_is_the_score_of_its_setting(pairs):
    protocol = HoldOut(repeats=3, seed=5)
    result = tune(CCA(), pairs, {"n_components": [1, 2, 4]}, protocol)
    assert [trial.parameters for trial in result.trials] == [{"n_components": k} for k in (1, 2, 4)]
    for trial in result.trials:
        expected = [
            evaluate_model(clone(CCA()).set_params(**trial.parameters).fit(*train.aligned()), held_out).average(AP())
            for train, held_out in protocol.splits(pairs)
        ]
        assert trial.scores == pytest.approx(expected)
        assert trial.mean == pytest.approx(np.mean(expected))
        assert trial.deviation == pytest.approx(np.std(expected))
    assert result.best.mean == max(trial.mean for trial in result.trials)


def test_the_mean_over_all_hold_outs_decides_and_the_first_of_equals_wins(pairs, monkeypatch):
    scores = {1: [0.9, 0.1], 2: [0.4, 0.8], 3: [0.8, 0.4]}
    drawn = {k: iter(values) for k, values in scores.items()}
    monkeypatch.setattr(
        "diptych.protocols.tuning._run", lambda model, setting, *rest: (next(drawn[setting["n_components"]]), 0.0)
    )
    result = tune(CCA(), pairs, {"n_components": [1, 2, 3]}, HoldOut(repeats=2))
    assert result.best.parameters == {"n_components": 2}


def test_other_seeds_draw_other_hold_outs(pairs):
    drawn = [
        {frozenset(held_out.ids.tolist()) for _, held_out in HoldOut(seed=seed).splits(pairs)} for seed in range(4)
    ]
    assert len(set.union(*drawn)) == 20


def test_the_best_setting_is_refitted_on_all_training_pairs(pairs):
    result = tune(SM(), pairs, {"C": [1e-6, 1.0]}, HoldOut(repeats=2))
    assert result.best.parameters == {"C": 1.0}
    direct = SM(C=1.0).fit(*pairs.aligned())
    np.testing.assert_array_equal(result.model.encode_images(pairs.images), direct.encode_images(pairs.images))


def test_the_measure_decides(pairs):
    result = tune(SM(), pairs, {"C": [1.0]}, HoldOut(repeats=1), measure=CMC(1))
    train, held_out = next(HoldOut(repeats=1).splits(pairs))
    fitted = SM(C=1.0).fit(*train.aligned())
    assert result.best.mean == pytest.approx(evaluate_model(fitted, held_out, [CMC(1)]).average(CMC(1)))


def test_processes_change_nothing_and_progress_counts_up(pairs):
    seen = []
    grid = [{"n_components": [1]}, {"n_components": [2, 3], "regularization": [0.1]}]
    alone = tune(CCA(), pairs, grid, HoldOut(repeats=2), progress=lambda done, total: seen.append((done, total)))
    together = tune(CCA(), pairs, grid, HoldOut(repeats=2), n_jobs=2)
    assert seen == [(done, 6) for done in range(1, 7)]
    assert [trial.parameters for trial in alone.trials] == [trial.parameters for trial in together.trials]
    np.testing.assert_allclose([t.scores for t in alone.trials], [t.scores for t in together.trials])


def test_the_given_model_stays_unfitted_and_empty_grids_are_refused(pairs):
    model = CCA()
    tune(model, pairs, {"n_components": [2]}, HoldOut(repeats=1))
    assert not hasattr(model, "correlations_")
    with pytest.raises(InvalidInputError, match="no setting"):
        tune(model, pairs, [])


def test_class_hold_outs_never_share_a_class_and_leave_two_on_each_side(pairs):
    drawn = [
        (frozenset(train.labels.tolist()), frozenset(held_out.labels.tolist()))
        for train, held_out in ClassHoldOut(repeats=6, share=0.1).splits(pairs)
    ]
    assert all(train.isdisjoint(held_out) and len(held_out) == len(train) == 2 for train, held_out in drawn)
    assert len(set(drawn)) == len(drawn) == 6
    with pytest.warns(UserWarning, match="in 6 ways, so 6 hold-outs are made and not repeats=9"):
        assert len(list(ClassHoldOut(repeats=9, share=0.1).splits(pairs))) == 6
    with pytest.raises(InvalidInputError, match="at least 4 classes"):
        next(ClassHoldOut().splits(Pairs(pairs.images, pairs.texts, labels=np.arange(80) % 3)))


def test_a_search_over_classes_scores_classes_that_were_not_learned(pairs):
    protocol = ClassHoldOut(repeats=2, share=0.5)
    trial = tune(CCA(), pairs, {"n_components": [2]}, protocol).best
    expected = [
        evaluate_model(CCA(n_components=2).fit(*train.aligned()), held_out).average(AP())
        for train, held_out in protocol.splits(pairs)
    ]
    assert trial.scores == pytest.approx(expected)


def test_rescaled_components_grow_with_the_training_pairs(pairs):
    tuning = tune(CCA(), pairs, {"n_components": [2]}, HoldOut(repeats=1, share=0.2), rescaled=["n_components"])
    assert tuning.best.parameters == {"n_components": 2}
    # 80 pairs instead of 64: 2 × 1.25 = 2.5, and halves go up, as 10 became 13 in the paper.
    assert tuning.model.n_components == 3
    with pytest.raises(InvalidInputError, match="only whole numbers"):
        tune(CCA(), pairs, {"regularization": [0.1]}, HoldOut(repeats=1), rescaled=["regularization"])


def test_a_journal_resumes_a_search_that_was_stopped_anywhere(pairs, tmp_path):
    grid, protocol = {"n_components": [1, 2, 3]}, HoldOut(repeats=2)
    whole = tune(CCA(), pairs, grid, protocol)

    class StoppedError(Exception):
        pass

    def stop(done, total):
        if done == 4:
            raise StoppedError

    with pytest.raises(StoppedError):
        tune(CCA(), pairs, grid, protocol, folder=tmp_path, progress=stop)
    (journal,) = tmp_path.iterdir()
    assert len(journal.read_text().splitlines()) == 4
    with journal.open("a") as stream:
        stream.write('{"setting": "cut o')
    calls = []
    resumed = tune(CCA(), pairs, grid, protocol, folder=tmp_path, progress=lambda *step: calls.append(step))
    assert calls == [(5, 6), (6, 6)]
    assert [trial.scores for trial in resumed.trials] == [trial.scores for trial in whole.trials]
    again = tune(CCA(), pairs, grid, protocol, folder=tmp_path, progress=lambda *step: calls.append(step))
    assert len(calls) == 2
    assert again.best == resumed.best


@pytest.mark.parametrize(
    "change", ["pairs", "labels", "model", "protocol", "measure"], ids=lambda change: f"other {change}"
)
def test_a_journal_is_used_for_the_very_same_search_only(pairs, tmp_path, change):
    tune(CCA(), pairs, {"n_components": [1]}, HoldOut(repeats=1), folder=tmp_path)
    images = np.array(pairs.images)
    images[0, 0] += 1e-9
    searches = {
        "pairs": (CCA(), Pairs(images, pairs.texts, labels=pairs.labels), HoldOut(repeats=1), AP()),
        "labels": (CCA(), Pairs(pairs.images, pairs.texts, labels=(np.arange(80) + 1) % 4), HoldOut(repeats=1), AP()),
        "model": (CCA(regularization=0.5), pairs, HoldOut(repeats=1), AP()),
        "protocol": (CCA(), pairs, HoldOut(repeats=1, seed=1), AP()),
        "measure": (CCA(), pairs, HoldOut(repeats=1), CMC(1)),
    }
    model, data, protocol, measure = searches[change]
    calls = []
    tune(
        model,
        data,
        {"n_components": [1]},
        protocol,
        measure=measure,
        folder=tmp_path,
        progress=lambda *step: calls.append(step),
    )
    assert calls == [(1, 1)]


def test_cross_validation_holds_every_pair_out_once() -> None:
    pairs = Pairs(np.eye(11), np.eye(11), ids=[str(row) for row in range(11)])
    folds = list(CrossValidation(repeats=4, seed=3).splits(pairs))
    assert sorted(name for _, held_out in folds for name in held_out.ids) == sorted(pairs.ids)
    assert all(set(train.ids) == set(pairs.ids) - set(held_out.ids) for train, held_out in folds)
    assert [list(held_out.ids) for _, held_out in folds] == [
        list(held_out.ids) for _, held_out in CrossValidation(repeats=4, seed=3).splits(pairs)
    ]
    with pytest.raises(InvalidInputError, match="repeats must be at least 2"):
        CrossValidation(repeats=1)
