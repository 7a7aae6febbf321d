"""Classes that were learned and classes that were not: who sees what."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from diptych.data import DatasetSplits, Pairs
from diptych.errors import InvalidInputError
from diptych.metrics import AP, NDCG, GradedRelevance, SameLabel, evaluate
from diptych.models import CCA, CVH
from diptych.protocols import (
    ClassQueryHoldOut,
    Extendable,
    QueryGroups,
    QueryHoldOut,
    RandomDraws,
    Retrieval,
    SeenClasses,
    StandardSplit,
    UnseenClasses,
    evaluate_model,
    evaluate_retrieval,
    with_noise,
)
from diptych.space import Space


def make_pairs(n, seed, labels, prefix):
    rng = np.random.default_rng(seed)
    meaning = np.eye(10)[labels] + 0.3 * rng.normal(size=(n, 10))
    names = np.array([f"class {label}" for label in labels])
    return Pairs(meaning @ rng.normal(size=(10, 7)), meaning, labels=names, ids=[f"{prefix}{row}" for row in range(n)])


@pytest.fixture(scope="module")
def splits():
    return DatasetSplits(
        train=make_pairs(120, 0, np.arange(120) % 10, "train"), test=make_pairs(60, 1, np.arange(60) % 10, "test")
    )


def test_a_fold_divides_classes_and_pairs_as_the_paper_says(splits):
    for fold in Extendable(folds=5).class_folds(splits):
        assert len(fold.train_classes) == len(fold.test_classes) == 5
        assert not set(fold.train_classes) & set(fold.test_classes)
        assert set(fold.train.labels) == set(fold.train_classes)
        assert fold.seen.gallery is fold.train
        assert set(fold.seen.queries.labels) == set(fold.train_classes)
        assert set(fold.unseen.queries.labels) == set(fold.unseen.gallery.labels) == set(fold.test_classes)
        in_both_halves = [*fold.train.ids, *fold.unseen.gallery.ids]
        assert sorted(in_both_halves) == sorted(splits.train.ids)
        assert sorted([*fold.seen.queries.ids, *fold.unseen.queries.ids]) == sorted(splits.test.ids)


def test_folds_differ_and_come_back_with_the_seed(splits):
    drawn = [fold.train_classes for fold in Extendable(folds=5).class_folds(splits)]
    assert len({frozenset(classes) for classes in drawn}) > 1
    assert drawn[:2] == [fold.train_classes for fold in Extendable(folds=2).class_folds(splits)]
    assert drawn != [fold.train_classes for fold in Extendable(folds=5, seed=1).class_folds(splits)]


def test_integer_labels_and_indicators_divide_alike(splits):
    numbers = {name: number for number, name in enumerate(splits.train.class_names)}

    def relabelled(pairs, indicator):
        codes = np.array([numbers[label] for label in pairs.labels])
        labels = np.eye(10, dtype=int)[codes] if indicator else codes
        return Pairs(pairs.images, pairs.texts, labels=labels, ids=pairs.ids, class_names=splits.train.class_names)

    wanted = Extendable().class_fold(splits, 3)
    for indicator in (False, True):
        parts = {part: relabelled(pairs, indicator) for part, pairs in splits.parts.items()}
        fold = Extendable().class_fold(DatasetSplits(**parts), 3)
        assert fold.train_classes == wanted.train_classes
        assert fold.train.ids.tolist() == wanted.train.ids.tolist()
        assert fold.unseen.queries.ids.tolist() == wanted.unseen.queries.ids.tolist()


def test_too_few_classes_are_refused():
    pairs = Pairs(np.eye(6), np.eye(6), labels=list("aabbcc"))
    with pytest.raises(InvalidInputError, match="at least 4 classes"):
        Extendable().class_fold(DatasetSplits(train=pairs, test=pairs), 0)


def test_seen_and_unseen_learn_from_the_same_pairs(splits):
    seen, unseen = SeenClasses().fold(splits, 2), UnseenClasses().fold(splits, 2)
    assert seen.training.pairs.ids.tolist() == unseen.training.pairs.ids.tolist()
    assert set(seen.retrieval.queries.labels).isdisjoint(unseen.retrieval.queries.labels)


def test_training_is_all_that_a_method_may_see(splits):
    fold = UnseenClasses().fold(splits, 0)
    assert set(vars(fold.training)) == {"pairs", "hold_outs", "more"}
    assert fold.training.more == {}
    assert set(fold.training.pairs.labels).isdisjoint(fold.test_classes)
    for train, retrieval in fold.training.hold_outs.splits(fold.training.pairs):
        held_out = [*train.ids, *retrieval.queries.ids, *retrieval.gallery.ids]
        assert sorted(held_out) == sorted(fold.training.pairs.ids)
        assert set(train.labels).isdisjoint(retrieval.queries.labels)
        assert set(retrieval.queries.labels) == set(retrieval.gallery.labels)


def test_no_two_hold_outs_of_five_classes_are_the_same_and_folds_draw_anew(splits):
    places = set()
    for number in range(5):
        fold = UnseenClasses().fold(splits, number)
        held_out = [
            tuple(sorted(set(retrieval.queries.labels.tolist())))
            for _, retrieval in fold.training.hold_outs.splits(fold.training.pairs)
        ]
        assert len(set(held_out)) == len(held_out) == 3
        order = sorted(fold.train_classes)
        places.add(tuple(tuple(order.index(name) for name in classes) for classes in held_out))
    assert len(places) > 1


def test_queries_of_held_out_classes_are_drawn_anew_each_time():
    labels = np.repeat(np.arange(4), 30)
    pairs = Pairs(np.eye(120), np.eye(120), labels=labels)
    asked = [set(map(int, retrieval.queries.ids)) for _, retrieval in ClassQueryHoldOut(repeats=6).splits(pairs)]
    of_class_0 = {frozenset(ids & set(range(30))) for ids in asked} - {frozenset()}
    assert len(of_class_0) > 1


def test_hold_outs_of_queries_search_what_was_learned_from(splits):
    for train, retrieval in QueryHoldOut(repeats=2).splits(splits.train):
        assert retrieval.gallery is train
        assert set(retrieval.queries.ids).isdisjoint(train.ids)
    assert len(list(ClassQueryHoldOut(repeats=4).splits(splits.train))) == 4


def test_queries_against_a_gallery_of_their_own_equal_a_direct_evaluation(splits):
    fold = UnseenClasses().fold(splits, 0)
    model = CCA().fit(*fold.training.pairs.aligned())
    queries, gallery = fold.retrieval.queries, fold.retrieval.gallery
    result = evaluate_retrieval(model, fold.retrieval)
    for way, asked, found in (
        ("image_query", model.encode_images(queries.images), model.encode_texts(gallery.texts)),
        ("text_query", model.encode_texts(queries.texts), model.encode_images(gallery.images)),
    ):
        relevance = SameLabel(queries.labels, gallery.labels)
        direct = evaluate(asked, found, model.space, relevance, [AP()], direction=way)
        assert result[way][AP()] == direct[AP()]


def test_the_standard_split_is_the_old_evaluation(splits):
    fold = StandardSplit().fold(splits, 0)
    model = CCA().fit(*fold.training.pairs.aligned())
    ours, old = evaluate_retrieval(model, fold.retrieval), evaluate_model(model, splits.test)
    assert ours.average(AP()) == old.average(AP())
    with pytest.raises(InvalidInputError, match="fold 0 alone"):
        StandardSplit().fold(splits, 1)


def test_instances_are_told_apart_by_id_across_query_and_gallery(splits):
    pairs = splits.train.select(range(10))
    shuffled = pairs.select([3, 1, 4, 0, 9, 2, 6, 5, 8, 7])
    model = CCA().fit(*splits.train.aligned())
    same = evaluate_model(model, pairs, relevant="instance")
    apart = evaluate_retrieval(model, Retrieval(pairs, shuffled), relevant="instance")
    assert apart.average(AP()) == pytest.approx(same.average(AP()))


def test_unified_codes_use_both_sides(splits):
    model = CVH(n_bits=8).fit(*splits.train.aligned())
    retrieval = Retrieval(splits.test, splits.train)
    result = evaluate_retrieval(model, retrieval, gallery="unified")
    codes = model.encode_pairs(splits.train.images, splits.train.texts)
    relevance = SameLabel(splits.test.labels, splits.train.labels)
    direct = evaluate(model.encode_texts(splits.test.texts), codes, model.space, relevance, [AP()])
    assert result.text_query[AP()] == pytest.approx(direct[AP()])
    with pytest.raises(InvalidInputError, match="gallery='view'"):
        evaluate_retrieval(CCA().fit(*splits.train.aligned()), retrieval, gallery="unified")


def test_random_draws_keep_every_pair_once(splits):
    first, second = (RandomDraws(draws=2, stratify=True).fold(splits, number) for number in (0, 1))
    for fold in (first, second):
        drawn = [*fold.training.pairs.ids, *fold.retrieval.queries.ids]
        assert sorted(drawn) == sorted([*splits.train.ids, *splits.test.ids])
        assert fold.retrieval.queries.n_images == 60
    assert set(first.retrieval.queries.ids) != set(second.retrieval.queries.ids)
    by_id = {name: row for pairs in splits.parts.values() for name, row in zip(pairs.ids, pairs.texts, strict=True)}
    for name, row in zip(first.training.pairs.ids, first.training.pairs.texts, strict=True):
        assert np.array_equal(row, by_id[name])


def test_noise_adds_as_many_foreign_pictures_and_nothing_else():
    rng = np.random.default_rng(0)
    rows = np.repeat(np.arange(6), 4)
    columns = np.concatenate([rng.permutation(40)[:4] for _ in range(6)])
    judged = sparse.csr_array((rng.integers(1, 4, size=24), (rows, columns)), shape=(6, 40))
    clean, once, twice = (GradedRelevance(with_noise(judged, fold), judged_only=True) for fold in (0, 1, 2))
    anywhere = set(columns.tolist())
    for query in range(6):
        own, more, most = (set(one.judge(query).candidates.tolist()) for one in (clean, once, twice))
        assert own < more < most <= anywhere
        assert (len(own), len(more), len(most)) == (4, 8, 12)
        assert set(once.judge(query).items.tolist()) == own
    scores = rng.normal(size=(6, 40))
    points = np.eye(6)
    values = [evaluate(points, scores.T, Space("dot"), one, [NDCG(4)])[NDCG(4)] for one in (clean, twice)]
    assert values[1] <= values[0]


def test_groups_of_queries_partition_them():
    rng = np.random.default_rng(1)
    values, scores = rng.random(200).round(1), rng.random(200)
    groups = QueryGroups()
    of = groups.of(values)
    for group in range(5):
        low, high = group / 5, (group + 1) / 5
        members = (values > low + 1e-9) & (values <= high + 1e-9) | ((group == 0) & (values == 0))
        assert np.array_equal(of == group, members)
    sizes = np.bincount(of, minlength=5)
    assert (groups.means(values, scores) * sizes).sum() / 200 == pytest.approx(scores.mean())
    with pytest.raises(InvalidInputError, match="wider edges"):
        groups.of([1.2])
