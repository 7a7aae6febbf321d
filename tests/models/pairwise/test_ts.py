"""The trivial solution: decisions alone, ties counted exactly, and any classifier in its place."""

from __future__ import annotations

import numpy as np
import pytest

from diptych.errors import InvalidInputError
from diptych.metrics import AP, SameLabel, evaluate
from diptych.models import CCA, SCM, SM, TS, MarginalSM, Preprocessed, load_model

LABELS = np.array(["art", "birds", "cars"])


@pytest.fixture(scope="module")
def noisy():
    """Three classes that the classifiers often confuse, so that the order after the first class matters."""
    rng = np.random.default_rng(0)
    codes = rng.integers(3, size=150)
    images = rng.normal(size=(3, 5))[codes] + rng.normal(size=(150, 5))
    texts = rng.normal(size=(3, 4))[codes] + rng.normal(size=(150, 4))
    return images, texts, LABELS[codes]


def decisions(model, images, texts):
    return model.encode_images(images).argmax(axis=1), model.encode_texts(texts).argmax(axis=1)


def test_tied_scores_say_whether_the_predicted_classes_agree(noisy):
    images, texts, labels = noisy
    model = TS(classifier=MarginalSM(C=1.0)).fit(images, texts, labels)
    image_class, text_class = decisions(MarginalSM(C=1.0).fit(images, texts, labels), images, texts)
    np.testing.assert_array_equal(model.similarity(images, texts), image_class[:, None] == text_class)


def test_by_prob_orders_the_gallery_classes_by_the_querys_probabilities(noisy):
    images, texts, labels = noisy
    classifier = MarginalSM(C=1.0).fit(images, texts, labels)
    model = TS(classifier=MarginalSM(C=1.0), rest="by_prob").fit(images, texts, labels)
    image_points, text_points = model.encode_images(images), model.encode_texts(texts)
    image_class, text_class = decisions(classifier, images, texts)
    by_image = classifier.encode_images(images)[:, text_class]
    by_text = classifier.encode_texts(texts)[:, image_class]
    np.testing.assert_allclose(model.space.compare(image_points, text_points, "image_query"), by_image)
    np.testing.assert_allclose(model.space.compare(text_points, image_points, "text_query"), by_text)
    assert model.space.indexable("text_query") is not None


@pytest.mark.parametrize("rest", ["tied", "by_prob"])
def test_average_precision_is_the_expectation_over_random_orders_of_ties(noisy, rest):
    images, texts, labels = noisy
    model = TS(rest=rest).fit(images[:100], texts[:100], labels[:100])
    points = model.encode_images(images[100:]), model.encode_texts(texts[100:])
    truth = SameLabel(labels[100:], labels[100:])
    exact = evaluate(*points, model.space, truth, [AP()]).values[AP()]
    scores = model.space.compare(*points)
    relevant = labels[100:][:, None] == labels[100:]
    rng = np.random.default_rng(0)
    total = np.zeros(len(scores))
    for _ in range(400):
        order = np.lexsort((rng.random(scores.shape), -scores), axis=1)
        hits = np.take_along_axis(relevant, order, axis=1)
        precision = hits.cumsum(axis=1) / np.arange(1, 51)
        total += (precision * hits).sum(axis=1) / hits.sum(axis=1)
    np.testing.assert_allclose(exact, total / 400, atol=0.03)


def test_an_order_of_the_gallery_cannot_help(noisy):
    images, texts, labels = noisy
    model = TS().fit(images, texts, labels)
    order = np.argsort(labels)
    score = model.score(images, texts, labels)
    assert model.score(images[order], texts[order], labels[order]) == pytest.approx(score)


def test_another_classifier_stands_in(noisy, tmp_path):
    images, texts, labels = noisy
    for classifier in (SM(C=0.5), SCM(correlation=CCA(n_components=2)), Preprocessed(model=SM(), images="l2")):
        if isinstance(classifier, Preprocessed):
            model = Preprocessed(model=TS(classifier=classifier.model), images="l2")
        else:
            model = TS(classifier=classifier)
        model.fit(images, texts, labels)
        image_class, text_class = decisions(classifier.fit(images, texts, labels), images, texts)
        np.testing.assert_array_equal(model.similarity(images, texts), image_class[:, None] == text_class)
        model.save(tmp_path / "model")
        np.testing.assert_array_equal(load_model(tmp_path / "model").encode_texts(texts), model.encode_texts(texts))


def test_a_method_without_classes_cannot_stand_in(noisy):
    with pytest.raises(InvalidInputError, match="CCA does not; use SM"):
        TS(classifier=CCA()).fit(*noisy)
    with pytest.raises(InvalidInputError, match="rest must be"):
        TS(rest="random").fit(*noisy)


@pytest.mark.parametrize("rest", ["tied", "by_prob"])
def test_a_labelled_gallery_uses_its_true_classes(noisy, rest):
    images, texts, labels = noisy
    model = TS(rest=rest).fit(images, texts, labels)
    gallery = model.encode_labels(labels)
    queries = model.encode_images(images)
    codes = np.searchsorted(LABELS, labels)
    known = np.eye(3)[codes]
    np.testing.assert_array_equal(model.encode_labels(known), gallery)
    probabilities = model.classifier_.encode_images(images)
    expected = probabilities.argmax(axis=1)[:, None] == codes if rest == "tied" else probabilities[:, codes]
    np.testing.assert_allclose(model.space.compare(queries, gallery, "image_query"), expected)
    truth = SameLabel(labels, labels)
    from_true = evaluate(queries, gallery, model.space, truth, [AP()]).mean[AP()]
    from_predicted = evaluate(queries, model.encode_texts(texts), model.space, truth, [AP()]).mean[AP()]
    assert from_true > from_predicted
    with pytest.raises(InvalidInputError, match="art, birds, cars"):
        model.encode_labels(["dogs"])
    with pytest.raises(InvalidInputError, match="art, birds, cars"):
        model.encode_labels(np.eye(4))
