"""The gate of training: luck does not pass, what was really learned does, and nonsense is refused as before."""

from __future__ import annotations

from copy import copy
from pathlib import Path

import numpy as np
import pytest

from diptych import Retriever
from diptych.data import Pairs, load_dataset
from diptych.encoders import ColourEdgeHistograms, SentenceEncoder, TfidfTopics
from diptych.metrics import AP
from diptych.models import CCA, PLS, QueryBankNormalized
from diptych.retriever import Comparison
from diptych.retriever.adapted_model import AdaptedModel
from diptych.retriever.held_out_pairs import evaluate_among, held_out_parts, telling_rows
from diptych.retriever.held_out_trial import HeldOutTrial, absent_queries

# Encoders that learn nothing, and that pairs of features do not use.
UNUSED = {"image_encoder": ColourEdgeHistograms(size=32), "text_encoder": SentenceEncoder(), "cache": False}
BENCHMARK = Path(__file__).parents[2] / "bench" / "absent_queries.txt"


def described(n: int, seed: int, drift: float = 0.0) -> Pairs:
    """Features of pictures with two texts each, of a world that is the same for every seed but for a drift."""
    world = np.random.default_rng(0)
    views = world.normal(size=(4, 12)), world.normal(size=(4, 8)) + drift * world.normal(size=(4, 8))
    rng = np.random.default_rng(seed)
    meaning = rng.normal(size=(n, 4))
    owners = np.repeat(np.arange(n), 2)
    texts = meaning[owners] @ views[1] + 0.5 * rng.normal(size=(2 * n, 8))
    return Pairs(meaning @ views[0] + 0.5 * rng.normal(size=(n, 12)), texts, owners=owners)


@pytest.fixture(scope="module")
def present() -> Retriever:
    """What a collection uses: it has learned from other pictures, in a world that has changed since."""
    retriever = Retriever(model=CCA(n_components=4), name="present", **UNUSED).fit(described(80, 1), baseline=None)
    del retriever.comparison_
    return retriever


def test_what_is_really_learned_is_taken_beside_what_was_known(present: Retriever) -> None:
    own = described(80, 2, drift=1.0)
    trained = Retriever(name="trained", **UNUSED).fit(own, baseline=present)
    found = trained.comparison_
    assert found.passes, found.reason
    assert (found.replaced, found.forced, found.n_held_out) == (True, False, 80)
    assert found.low is not None
    assert found.low > 0
    assert isinstance(trained.model_, AdaptedModel)
    assert trained.model_.kept_ is present.model_
    # The same again, draw by draw.
    again = Retriever(name="again", **UNUSED).fit(own, baseline=present)
    assert (again.fingerprint, again.comparison_.get_params()) == (trained.fingerprint, found.get_params())
    # What is learned later stands beside what was known first, not on top of what was learned.
    del again.comparison_
    third = Retriever(name="third", **UNUSED).fit(own, baseline=again, force=True)
    assert isinstance(third.model_, AdaptedModel)
    assert third.model_.kept_ is present.model_


def test_meaningless_captions_are_never_taken(present: Retriever) -> None:
    own = described(50, 3)
    for seed in range(6):
        order = np.random.default_rng(seed).permutation(own.n_images)
        shuffled = Pairs(own.images, own.texts, owners=order[own.owners])
        new = Retriever(**UNUSED).fit(shuffled, baseline=present)
        assert not new.comparison_.replaced
        assert new.fingerprint == present.fingerprint


def test_a_handful_is_refused_with_the_reason(present: Retriever) -> None:
    handful = described(15, 2, drift=1.0)
    few = Retriever(**UNUSED).fit(handful, baseline=present)
    assert not few.comparison_.replaced
    assert few.comparison_.reason.startswith("only 15 pictures have captions or labels, and 20 are needed")
    assert few.comparison_.advice == "describe at least 5 more pictures"
    forced = Retriever(**UNUSED).fit(handful, baseline=present, force=True).comparison_
    assert (forced.replaced, forced.forced) == (True, True)


def test_texts_have_to_find_their_pictures_among_those_without_texts_too() -> None:
    pairs, more = described(20, 2), np.asarray(described(300, 3).images)
    model = CCA(n_components=4).fit(*described(80, 1).aligned()[:2])
    among = evaluate_among(model, pairs, more)
    scores = model.similarity(np.vstack([pairs.images, more]), pairs.texts).T
    ranks = (scores >= scores[np.arange(40), pairs.owners][:, None]).sum(axis=1)
    assert among.text_query.mean[AP()] == pytest.approx((1 / ranks).mean())
    assert among.image_query.mean[AP()] == pytest.approx(evaluate_among(model, pairs, more[:0]).image_query.mean[AP()])


def test_too_few_captions_name_the_pictures_to_describe_next(present: Retriever) -> None:
    found = Comparison(n_held_out=40, new=0.5, chance=0.1, old=0.48, p_value=0.4, low=-0.02, high=0.06)
    assert found.is_undecided
    assert "changes by -0.020 to +0.060, 95 % sure" in found.reason
    assert not Comparison(n_held_out=40, new=0.4, chance=0.1, old=0.5, p_value=1e-4, low=-0.1, high=-0.05).is_undecided
    rows = np.random.default_rng(0).normal(size=(6, 4))
    chosen = telling_rows(rows[:2], np.repeat(rows, 3, axis=0), 4)
    # One of each that nothing described is like.
    assert sorted(row // 3 for row in chosen) == [2, 3, 4, 5]


def test_pictures_are_held_out_whole_and_once() -> None:
    pairs = described(33, 0)
    parts = list(held_out_parts(pairs, 0.2, seed=3))
    for train, test in parts:
        assert not set(train.ids) & set(test.ids)
        assert not set(train.text_ids) & set(test.text_ids)
    assert sorted(name for _, test in parts for name in test.ids) == sorted(pairs.ids)
    many = Pairs(np.eye(1000), np.eye(1000))
    assert [test.n_images for _, test in held_out_parts(many, 0.2, seed=0)] == [200]


def test_the_cut_off_refuses_as_much_nonsense_as_before() -> None:
    lazy = load_dataset("scenes", n_train=80, n_test=20, size=32).train
    scenes = Pairs([np.asarray(image) for image in lazy.images], lazy.texts, owners=lazy.owners)
    parts = {"image_encoder": ColourEdgeHistograms(size=32), "text_encoder": TfidfTopics(n_components=20)}
    learn = {"model": CCA(n_components=8), "cache": False, **parts}
    present = Retriever(**learn).fit(scenes.select(range(40)), baseline=None)
    # One that refuses much.
    present.calibration_.cutoff_ *= 3
    own = scenes.select(range(40, 80))
    trial = HeldOutTrial(own, present)
    ((train, test), *_) = held_out_parts(own, 0.5, seed=0)
    new = Retriever(**learn).fit(train, baseline=None)
    trial.add(new, present, test, new.featured(test))
    found = trial.comparison()
    assert found.refused_old is not None
    assert found.refused_new is not None
    assert found.refused_new >= found.refused_old > 0.1
    assert (found.n_rest, found.n_absent > 100) == (42, True)


def test_a_model_beside_one_with_a_bank_decides_by_what_the_bank_knows() -> None:
    lazy = load_dataset("scenes", n_train=140, n_test=20, size=32).train
    scenes = Pairs([np.asarray(image) for image in lazy.images], lazy.texts, owners=lazy.owners)
    parts = {"image_encoder": ColourEdgeHistograms(size=32), "text_encoder": SentenceEncoder(), "cache": False}
    bank = QueryBankNormalized(model=CCA(n_components=8, regularization=1.0), n_nearest=5)
    present = Retriever(model=bank, **parts).fit(scenes.select(range(60)), baseline=None)
    del present.comparison_
    present.calibration_.presence_ = np.array([0.1, 0.02, 0.0, *np.linspace(-0.2, 0.2, 10)])
    own = scenes.select(range(60, 140))
    ((train, test), *_) = held_out_parts(own, 0.5, seed=0)
    featured = present.featured(train)
    learned = CCA(n_components=8).fit(*featured.aligned())
    asked = scenes.texts[:40]
    for is_centred in (False, True):
        new = copy(present)
        base = AdaptedModel.of(present.model_, featured, is_centred=is_centred)
        new.model_ = base.joined(learned, 0.5, featured)
        trial = HeldOutTrial(own, present)
        trial.add(new, present, test, new.featured(test))
        new.calibration_, found = trial.calibration(), trial.comparison()
        assert found.refused_new >= found.refused_old
        points = new.encode_texts(asked)
        if is_centred:
            # Points of the bank cannot be told from directions from the means of a collection.
            assert new.familiarity(points) is None
            assert not hasattr(new.calibration_, "presence_")
            continue
        np.testing.assert_allclose(new.familiarity(points), present.familiarity(present.encode_texts(asked)), atol=1e-5)
        # The same evidence counts as much, at the scale of the joined scores.
        weights, before = new.calibration_.presence_, present.calibration_.presence_
        np.testing.assert_allclose(weights[1:], before[1:] * new.model_.factors_[0])
        constant = np.column_stack([np.ones(40), np.full(40, np.log(80)), np.zeros(40)])
        least = np.hstack([constant, new.familiarity(points)]) @ weights
        expected = [float(new.probability(score, "text_to_image")) for score in least]
        assert [new.cutoff_of(points[[row]], 80) for row in range(40)] == pytest.approx(expected)


def test_queries_for_nothing_are_others_than_those_that_are_measured_with() -> None:
    asked = absent_queries(Pairs(["1.jpg"], ["a red ball"]))
    assert len(asked) > 100
    assert not set(asked) & set(BENCHMARK.read_text(encoding="utf-8").splitlines())


def test_an_adapted_model_scores_as_the_sum_of_its_parts_and_corrects_answers_alone() -> None:
    pairs = described(60, 0)
    images, texts = np.asarray(pairs.images), np.asarray(pairs.texts)[::2]
    kept = QueryBankNormalized(model=CCA(n_components=4), n_nearest=5).fit(images, texts)
    learned = PLS(n_components=3).fit(images, texts)
    known = AdaptedModel.of(kept, pairs)
    model = known.joined(learned, 0.3, pairs)

    def by_texts(part):
        return part.space.compare(part.encode_texts(texts), part.encode_images(images), "text_query")

    np.testing.assert_allclose(by_texts(known), by_texts(kept), atol=1e-6)
    expected = model.factors_[0] * by_texts(kept) + model.factors_[1] * by_texts(learned)
    np.testing.assert_allclose(by_texts(model), expected, atol=1e-5)
    assert model.factors_[1] / model.factors_[0] == pytest.approx(
        0.3 / 0.7 * kept.model_.similarity(images, texts).std() / learned.similarity(images, texts).std(), rel=0.2
    )


def test_a_model_centred_on_a_collection_needs_no_pairs_to_forget_where_the_collection_lies() -> None:
    pairs, more = described(60, 0), described(200, 5)
    kept = CCA(n_components=4, metric="dot").fit(*described(80, 1).aligned()[:2])
    moved = pairs.with_features(images=np.asarray(pairs.images) + 3.0, texts=np.asarray(pairs.texts) - 2.0)
    unpaired = np.asarray(more.images), np.asarray(more.texts)
    one = AdaptedModel.of(kept, pairs, unpaired=unpaired, is_centred=True)
    other = AdaptedModel.of(kept, moved, unpaired=(unpaired[0] + 3.0, unpaired[1] - 2.0), is_centred=True)
    np.testing.assert_allclose(
        one.similarity(pairs.images, pairs.texts), other.similarity(moved.images, moved.texts), atol=1e-3
    )
    assert one.score(*pairs.aligned()[:2]) > 1.2 * kept.score(*moved.aligned()[:2])
