"""The gate of training: luck does not pass, what was really learned does, and nonsense is refused as before."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from diptych import Retriever
from diptych.data import Pairs, load_dataset
from diptych.encoders import ColourEdgeHistograms, SentenceEncoder, TfidfTopics
from diptych.models import CCA, PLS, QueryBankNormalized
from diptych.retriever.held_out_trial import HeldOutTrial, absent_queries, held_out_parts
from diptych.retriever.model_selection import JoinedModel

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
    assert isinstance(trained.model_, JoinedModel)
    assert trained.model_.kept_ is present.model_
    # The same again, draw by draw.
    again = Retriever(name="again", **UNUSED).fit(own, baseline=present)
    assert (again.fingerprint, again.comparison_.get_params()) == (trained.fingerprint, found.get_params())
    # What is learned later stands beside what was known first, not on top of what was learned.
    del again.comparison_
    third = Retriever(name="third", **UNUSED).fit(own, baseline=again, force=True)
    assert isinstance(third.model_, JoinedModel)
    assert third.model_.kept_ is present.model_


def test_meaningless_captions_are_never_taken(present: Retriever) -> None:
    own = described(60, 3)
    for seed in range(20):
        order = np.random.default_rng(seed).permutation(own.n_images)
        shuffled = Pairs(own.images, own.texts, owners=order[own.owners])
        new = Retriever(**UNUSED).fit(shuffled, baseline=present)
        assert not new.comparison_.replaced
        assert new.fingerprint == present.fingerprint


def test_a_handful_is_refused_with_the_reason(present: Retriever) -> None:
    handful = described(20, 2, drift=1.0)
    few = Retriever(**UNUSED).fit(handful, baseline=present)
    assert not few.comparison_.replaced
    assert few.comparison_.reason.startswith("only 20 pictures have captions or labels, and 50 are needed")
    assert few.comparison_.advice == "describe at least 30 more pictures"
    forced = Retriever(**UNUSED).fit(handful, baseline=present, force=True).comparison_
    assert (forced.replaced, forced.forced) == (True, True)


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
    trained = Retriever(**parts).fit(scenes.select(range(60, 140)), baseline=present, force=True)
    assert isinstance(trained.model_, JoinedModel)
    asked = scenes.texts[:40]
    points, before = trained.encode_texts(asked), present.encode_texts(asked)
    np.testing.assert_allclose(trained.familiarity(points), present.familiarity(before), atol=1e-5)
    # The same evidence counts as much, at the scale of the joined scores.
    learned, known = trained.calibration_.presence_, present.calibration_.presence_
    np.testing.assert_allclose(learned[1:], known[1:] * trained.model_.factors_[0], rtol=0.3)
    least = np.column_stack([np.ones(40), np.full(40, np.log(80)), np.zeros(40), trained.familiarity(points)]) @ learned
    expected = [float(trained.probability(score, "text_to_image")) for score in least]
    assert [trained.cutoff_of(points[[row]], 80) for row in range(40)] == pytest.approx(expected)
    found = trained.comparison_
    assert found.refused_new >= found.refused_old


def test_queries_for_nothing_are_others_than_those_that_are_measured_with() -> None:
    asked = absent_queries(Pairs(["1.jpg"], ["a red ball"]))
    assert len(asked) > 100
    assert not set(asked) & set(BENCHMARK.read_text(encoding="utf-8").splitlines())


def test_a_joined_model_scores_as_the_sum_of_its_parts_and_corrects_answers_alone() -> None:
    pairs = described(60, 0)
    images, texts = np.asarray(pairs.images), np.asarray(pairs.texts)[::2]
    kept = QueryBankNormalized(model=CCA(n_components=4), n_nearest=5).fit(images, texts)
    learned = PLS(n_components=3).fit(images, texts)
    model = JoinedModel.of(kept, learned, images, texts, share=0.3)
    factors = 0.7 / kept.similarity(images, texts).std(), 0.3 / learned.similarity(images, texts).std()

    def by_texts(part):
        return part.space.compare(part.encode_texts(texts), part.encode_images(images), "text_query")

    np.testing.assert_allclose(by_texts(model), factors[0] * by_texts(kept) + factors[1] * by_texts(learned), atol=1e-5)
