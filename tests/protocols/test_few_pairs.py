"""Few pairs: nested draws, and unpaired rows without hidden pairs."""

from __future__ import annotations

import numpy as np
import pytest

from diptych.data import DatasetSplits, Pairs
from diptych.errors import InvalidInputError
from diptych.protocols import FewPairs


@pytest.fixture
def splits():
    rows = np.arange(60.0)[:, None] * [1, 1]
    train, dev, test = (Pairs(part, part, ids=part[:, 0].astype(int)) for part in np.split(rows, [40, 50]))
    return DatasetSplits(train=train, dev=dev, test=test)


def test_smaller_numbers_of_a_draw_are_parts_of_larger_ones(splits):
    few, more = (FewPairs(count).fold(splits, 1).training.pairs.ids.tolist() for count in (5, 12))
    assert few == more[:5]
    assert FewPairs(5).fold(splits, 2).training.pairs.ids.tolist() != few


@pytest.mark.parametrize("pairs", [0, 7])
def test_unpaired_rows_are_of_other_pictures_on_both_sides(splits, pairs):
    training = FewPairs(pairs, unpaired=True).fold(splits, 0).training
    chosen = set() if training.pairs is None else set(training.pairs.images[:, 0])
    images, texts = (set(training.more[name][:, 0]) for name in ("more_images", "more_texts"))
    assert len(chosen) == pairs
    assert len(images) == len(texts) == (40 - pairs) // 2
    assert chosen.isdisjoint(images | texts)
    assert images.isdisjoint(texts)


def test_parameters_are_chosen_on_the_development_part(splits):
    fold = FewPairs(5).fold(splits, 0)
    ((train, held_out),) = fold.training.hold_outs.splits(fold.training.pairs)
    assert train is fold.training.pairs
    assert held_out is splits.dev
    assert fold.retrieval.queries is splits.test
    assert FewPairs(5).redrawn(3, 7).n_folds == 3
    assert repr(FewPairs(5)) != repr(FewPairs(5).redrawn(None, 7))


def test_more_pairs_than_there_are_is_an_error(splits):
    with pytest.raises(InvalidInputError, match="41 training pictures"):
        FewPairs(41).fold(splits, 0)
