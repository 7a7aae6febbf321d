"""Which part of a fused model brought an answer up."""

from __future__ import annotations

import numpy as np
import pytest

from diptych import Retriever
from diptych.data import load_dataset
from diptych.encoders import ColourEdgeHistograms, TfidfTopics
from diptych.models import CCA, PLS, FusedModel, Preprocessed
from diptych.retriever import explain, explanation_kind


@pytest.fixture(scope="module")
def pairs():
    return load_dataset("scenes", n_train=60, n_test=10, size=32).train


@pytest.fixture(scope="module")
def retriever(pairs):
    model = FusedModel(
        parts=(CCA(n_components=6), PLS(n_components=4)), names=("correlation", "covariance"), weights=(0.75, 0.25)
    )
    encoders = {"image_encoder": ColourEdgeHistograms(size=32), "text_encoder": TfidfTopics()}
    return Retriever(model=model, cache=False, **encoders).fit(pairs, baseline=None)


def test_bars_are_the_parts_and_sum_to_the_score(retriever, pairs):
    explanation = explain(retriever, "a red ball", pairs.images[0])
    assert explanation.kind == explanation_kind(retriever) == "parts"
    assert {bar.name for bar in explanation.bars} == {"correlation", "covariance"}
    assert sum(bar.contribution for bar in explanation.bars) == pytest.approx(explanation.score)
    view = explanation.views[0]
    assert view.additive
    assert "correlation 0.75" in view.note
    assert "“correlation”" in explanation.summary
    weights = [abs(bar.contribution) for bar in explanation.bars]
    assert weights == sorted(weights, reverse=True)


def test_a_part_brings_its_weighted_score(retriever, pairs):
    words, picture = "a red ball", pairs.images[3]
    images, texts = retriever.image_features([picture]), retriever.text_features([words])
    own = retriever.model_.part_scores(images, texts)
    expected = {
        name: weight * float(own[name][0, 0]) / scale
        for name, weight, scale in zip(
            retriever.model_.part_names_, retriever.model_.weights_, retriever.model_.scales_, strict=True
        )
    }
    bars = {bar.name: bar.contribution for bar in explain(retriever, words, picture).bars}
    assert bars == pytest.approx(expected, rel=1e-4)


def test_words_are_told_as_a_further_view_and_pictures_explain_pictures(retriever, pairs):
    assert "words" in [view.kind for view in explain(retriever, "a red ball", pairs.images[0]).views]
    alike = explain(retriever, pairs.images[1], pairs.images[2])
    assert alike.kind == "parts"
    assert sum(bar.contribution for bar in alike.bars) == pytest.approx(alike.score)


def test_combined_queries_add_up(retriever, pairs):
    explanation = explain(retriever, ["a red ball", pairs.images[1]], pairs.images[0], weights=[2, -1])
    assert len(explanation.bars) == 4
    assert sum(bar.contribution for bar in explanation.bars) == pytest.approx(explanation.score)


def test_a_part_of_weight_zero_is_shown_as_bringing_nothing(retriever, pairs):
    silent = FusedModel.of(retriever.model_.parts_, weights=[1.0, 0.0])
    changed = Retriever(cache=False)
    changed.image_encoder_, changed.text_encoder_ = retriever.image_encoder_, retriever.text_encoder_
    changed.model_ = silent
    bars = explain(changed, "a red ball", pairs.images[0]).bars
    assert [bar.name for bar in bars] == ["cca", "pls"]
    assert bars[1].contribution == 0.0


def test_scaling_in_front_of_a_fusion_changes_nothing_about_its_parts():
    rng = np.random.default_rng(0)
    model = Preprocessed(model=FusedModel(parts=(CCA(n_components=2), PLS(n_components=2))))
    assert explanation_kind(model) == explanation_kind(model.fit(rng.random((40, 5)), rng.random((40, 4)))) == "parts"
