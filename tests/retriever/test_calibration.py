from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diptych.arrays import BoolArray, FloatArray
from diptych.data import Pairs
from diptych.errors import InvalidInputError, UnknownNameError
from diptych.retriever import SEARCH_DIRECTIONS, Calibration
from diptych.retriever.calibration import HeldOutScores, calibrate, pictures_with, short_queries
from diptych.space import Space


def drawn(n: int, share: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    relevant = rng.random(n) < share
    return rng.normal(size=n) + 2.5 * relevant, relevant.astype(float)


@pytest.mark.parametrize("share", [0.5, 0.1, 0.02])
def test_probabilities_are_frequencies_under_the_stated_prior(share: float) -> None:
    """Learned from balanced pairs, asked where relevant answers have another share."""
    calibration = Calibration(prior=share).fit({"text_to_image": drawn(400_000, 0.5)})
    scores, relevant = drawn(400_000, share, seed=1)
    probabilities = calibration.probability(scores, "text_to_image")
    for low, high in ((0.05, 0.2), (0.2, 0.5), (0.5, 0.8), (0.8, 1.0)):
        chosen = (probabilities >= low) & (probabilities < high)
        if chosen.sum() > 500:
            assert relevant[chosen].mean() == pytest.approx(probabilities[chosen].mean(), abs=0.04)


def test_without_a_prior_the_data_say_how_common_relevant_answers_are() -> None:
    calibration = Calibration(prior=None).fit({"text_to_image": drawn(50_000, 0.2)})
    assert calibration.probability(drawn(50_000, 0.2, seed=3)[0], "text_to_image").mean() == pytest.approx(
        0.2, abs=0.01
    )


def test_the_slope_is_that_of_the_logarithm_of_the_odds() -> None:
    calibration = Calibration().fit({"text_to_image": drawn(500, 0.3), "image_to_image": drawn(500, 0.3, seed=1)})
    for direction in SEARCH_DIRECTIONS:
        odds = calibration.probability([0.0, 1.0], direction)
        odds = np.log(odds / (1 - odds))
        assert calibration.slope(direction) == pytest.approx(odds[1] - odds[0])
    assert calibration.slope("image_to_image") != calibration.slope("text_to_image")
    with pytest.raises(UnknownNameError):
        calibration.slope("sideways")


@given(st.lists(st.floats(-50, 50), min_size=2, max_size=20), st.sampled_from(SEARCH_DIRECTIONS))
def test_a_larger_score_is_never_less_probable(scores: list[float], direction: str) -> None:
    calibration = Calibration().fit({"text_to_text": drawn(500, 0.3)})
    values = calibration.probability(sorted(scores), direction)
    assert (np.diff(values) >= 0).all()
    assert ((values >= 0) & (values <= 1)).all()


def test_scores_that_mislead_give_a_flat_line_not_a_falling_one() -> None:
    scores, relevant = drawn(5000, 0.5)
    calibration = Calibration(prior=0.5).fit({"text_to_image": (-scores, relevant)})
    assert calibration.slopes_[0] >= 0
    assert calibration.probability([-3.0, 3.0], "text_to_image") == pytest.approx([0.5, 0.5], abs=0.01)


def test_what_cannot_be_learned_from_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="at least one direction"):
        Calibration().fit({})
    with pytest.raises(InvalidInputError, match="relevant and of irrelevant"):
        Calibration().fit({"text_to_image": ([1.0, 2.0], [1, 1])})
    with pytest.raises(InvalidInputError, match="prior"):
        Calibration(prior=1.5).fit({"text_to_image": drawn(10, 0.5)})
    with pytest.raises(UnknownNameError, match="did you mean"):
        Calibration().fit({"text_to_image": drawn(100, 0.5)}).probability([0.0], "text_to_imag")


def held_out(labels: bool) -> tuple[np.ndarray, np.ndarray, Pairs]:
    rng = np.random.default_rng(0)
    classes = np.repeat(np.arange(6), 10)
    centres = rng.normal(size=(6, 8))
    images = centres[classes] + 0.7 * rng.normal(size=(60, 8))
    owners = np.repeat(np.arange(60), 2)
    texts = images[owners] + 0.4 * rng.normal(size=(120, 8))
    return images, texts, Pairs(images, texts, owners=owners, labels=classes if labels else None)


@pytest.mark.parametrize("labels", [True, False])
def test_every_direction_is_learned_from_held_out_pairs(labels: bool) -> None:
    images, texts, pairs = held_out(labels)
    calibration = calibrate([HeldOutScores.of(Space("cosine"), images, texts, pairs)], 0.05)
    assert (calibration.slopes_ > 0.5).all()
    own = Space("cosine").compare(images, texts)[pairs.owners, np.arange(120)]
    assert calibration.probability(own, "image_to_text").mean() > 0.3
    assert calibration.probability([-0.5], "image_to_image")[0] < 0.1


def test_one_text_per_picture_still_calibrates_all_directions() -> None:
    images, texts, _ = held_out(labels=False)
    calibration = calibrate([HeldOutScores.of(Space("cosine"), images, texts[::2], Pairs(images, texts[::2]))], 0.05)
    assert len(set(calibration.slopes_.tolist())) == 1


def test_short_queries_lower_the_cut_off_until_most_of_both_kinds_are_answered() -> None:
    images, texts, pairs = held_out(labels=False)
    space = Space("cosine")
    # Half as near to their pictures as the captions are.
    short = 0.5 * images + 1.5 * np.random.default_rng(1).normal(size=images.shape)
    plain = calibrate([HeldOutScores.of(space, images, texts, pairs)], 0.05)
    both = calibrate([HeldOutScores.of(space, images, texts, pairs, short_points=short)], 0.05)
    assert both.cutoff_ < plain.cutoff_
    shares = [
        (both.probability(space.compare(kind, images).max(axis=1), "text_to_image") >= both.cutoff_).mean()
        for kind in (texts, short)
    ]
    assert np.mean(shares) == pytest.approx(0.95, abs=0.02)


def test_words_that_find_nothing_do_not_lower_the_cut_off() -> None:
    rng = np.random.default_rng(0)
    images = 1 + rng.normal(size=(500, 8))
    texts, space = images + 0.4 * rng.normal(size=images.shape), Space("cosine")
    found = images[:40] + 0.2 * rng.normal(size=(40, 8))
    nearness = space.compare(found, images)
    belong = nearness >= np.sort(nearness, axis=1)[:, -20:-19]
    # Words that stand for nothing in the pictures that have them, and lie far from all.
    lost = 0.1 * rng.normal(size=(40, 8)) - 5
    both, has = np.vstack([found, lost]), np.vstack([belong, rng.random((40, 500)) < 0.5])

    def cutoff(short: FloatArray, known: BoolArray | None, count: int = 500) -> float:
        part = images[:count], texts[:count], Pairs(images[:count], texts[:count])
        known = None if known is None else known[:, :count]
        scores = HeldOutScores.of(space, *part, short_points=short, short_belong=known)
        return calibrate([scores], 0.01).cutoff_

    of_both = cutoff(both, has)
    assert of_both == pytest.approx(cutoff(found, belong))
    assert cutoff(both, None) < of_both
    # Of few pictures nobody can tell.
    assert cutoff(both, has, 90) == cutoff(both, None, 90)


def test_the_cut_off_is_lower_among_fewer_pictures() -> None:
    rng = np.random.default_rng(0)
    images = rng.normal(size=(600, 8))
    texts, short = images + 0.4 * rng.normal(size=images.shape), images[:200] + 2.0 * rng.normal(size=(200, 8))
    space = Space("cosine")
    fitted = calibrate([HeldOutScores.of(space, images, texts, Pairs(images, texts), short_points=short)], 0.05)
    assert fitted.cutoff_among(600) == pytest.approx(fitted.cutoff_) == pytest.approx(fitted.cutoff_among(10**6))
    tried = [fitted.cutoff_among(count) for count in (0, 120, 200, 400, 600)]
    assert tried == sorted(tried)
    assert tried[0] == pytest.approx(tried[1])
    assert tried[1] < tried[2] < tried[3] < tried[4]
    # Too few held-out pictures to ask among parts of them: one cut-off.
    part = images[:90], texts[:90], Pairs(images[:90], texts[:90])
    few = calibrate([HeldOutScores.of(space, *part, short_points=short)], 0.05)
    assert few.cutoff_among(10) == few.cutoff_


def test_words_have_probabilities_of_their_own_and_the_same_decisions() -> None:
    rng = np.random.default_rng(0)
    images, texts, pairs = held_out(labels=False)
    # A word fits one picture in ten, all of them less than a caption fits its own.
    belong = rng.random((40, len(images))) < 0.1
    short = np.array([images[row].mean(axis=0) for row in belong]) + 0.2 * rng.normal(size=(40, images.shape[1]))
    space = Space("cosine")
    fitted = calibrate([HeldOutScores.of(space, images, texts, pairs, short_points=short, short_belong=belong)], 0.01)
    scores = space.compare(short, images)
    said = fitted.probability(scores, "text_to_image", is_short=True)
    for low, high in ((0.0, 0.1), (0.1, 1.0)):
        among = (said >= low) & (said < high)
        assert said[among].mean() == pytest.approx(belong[among].mean(), abs=0.05)
    as_captions = fitted.probability(scores, "text_to_image")
    assert as_captions[belong].mean() < said[belong].mean()
    assert np.array_equal(as_captions >= fitted.cutoff_among(100), said >= fitted.cutoff_among(100, is_short=True))
    assert np.array_equal(
        fitted.probability(scores, "image_to_image", is_short=True), fitted.probability(scores, "image_to_image")
    )
    halved = fitted.rescaled(2.0)
    assert np.allclose(halved.probability(scores / 2, "text_to_image", is_short=True), said)
    assert np.allclose(halved.probability(scores / 2, "text_to_image"), as_captions)


def test_pictures_are_found_by_a_word_in_either_number() -> None:
    pairs = Pairs(["1.jpg", "2.jpg", "3.jpg"], ["Two dogs.", "a dog and a boat", "the beach"])
    assert pictures_with(["dog", "boats", "cat"], pairs).tolist() == [
        [True, True, False],
        [False, True, False],
        [False, False, False],
    ]


def test_words_of_captions_that_name_things_stand_for_short_queries() -> None:
    captions = ["A dog runs on the beach.", "Two dogs play; it is nice", "the THE of and", "a dog again"]
    words = short_queries(Pairs([f"{row}.jpg" for row in range(4)], captions))
    assert {"dog", "dogs", "beach"} <= set(words)
    assert not {"the", "nice", "and", "again"} & set(words)
    many = Pairs([f"{row}.jpg" for row in range(400)], ["a dog"] * 399 + ["a zebra"])
    assert short_queries(many) == ["dog"]


def test_joined_words_pass_where_pictures_show_both_and_fail_where_none_does() -> None:
    rng = np.random.default_rng(0)
    concepts = np.linalg.qr(rng.normal(size=(64, 40)))[0].T
    shown = rng.random((600, 30)) < 0.1
    images = shown @ concepts[:30] + 0.1 * rng.normal(size=(600, 64))
    texts = images + 0.1 * rng.normal(size=images.shape)
    space = Space("cosine")
    held = HeldOutScores.of(
        space, images, texts, Pairs(images, texts), short_points=concepts[:30], short_belong=shown.T
    )
    fitted = calibrate([held], 0.01)

    def best(one: int, other: int) -> float:
        each = fitted.probability(space.compare(concepts[[one, other]], images), "text_to_image", is_short=True)
        return float(np.sqrt(each.prod(axis=0)).max())

    cutoff = fitted.cutoff_among(600, is_short=True, is_joined=True)
    assert cutoff == pytest.approx(fitted.joined_share_ * fitted.cutoff_among(600, is_short=True))
    assert 0 < fitted.joined_share_ <= 1
    pairs = [(one, other) for one in range(30) for other in range(one) if shown[:, [one, other]].all(axis=1).sum() >= 3]
    # At least half of these have been seen in calibrating; the rest is drawn alike.
    assert np.mean([best(*pair) >= cutoff for pair in pairs]) == pytest.approx(0.95, abs=0.03)
    assert not any(best(one, other) >= cutoff for one in range(30, 40) for other in range(30, one))
    assert fitted.cutoff_among(600, is_joined=True) == fitted.cutoff_among(600)


def test_a_joined_cut_off_needs_words_that_pictures_show_together() -> None:
    images, texts, pairs = held_out(labels=False)
    alone = np.eye(12, len(images), dtype=bool)
    fitted = calibrate(
        [HeldOutScores.of(Space("cosine"), images, texts, pairs, short_points=images[:12], short_belong=alone)], 0.01
    )
    assert not hasattr(fitted, "joined_share_")
    both = fitted.cutoff_among(100, is_short=True, is_joined=True)
    assert both == fitted.cutoff_among(100, is_short=True)


def test_what_the_bank_knows_nothing_of_needs_a_higher_score() -> None:
    fitted = Calibration.assumed(10.0, -2.0)
    assert fitted.line_share(is_short=True) == fitted.line_share(is_short=False) == 0.5
    # More among more pictures, less for a word, less for what is known.
    fitted.presence_ = np.array([0.5, 0.1, -0.2, -0.3])
    strange, known = (fitted.cutoff_of(np.array([near]), 100, is_short=False) for near in (0.0, 1.0))
    assert known < strange
    assert fitted.cutoff_of(np.array([0.0]), 1000, is_short=False) > strange
    score = 0.5 + 0.1 * np.log(100) - 0.2
    expected = fitted.probability(score, "text_to_image")
    assert fitted.cutoff_of(np.array([0.0]), 100, is_short=True) == pytest.approx(float(expected))
