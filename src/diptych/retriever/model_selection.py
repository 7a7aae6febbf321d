"""Which model a retriever learns, with which checkpoints, and how it stands beside the one it starts from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from diptych.arrays import FloatArray
from diptych.data import Pairs
from diptych.errors import InvalidInputError
from diptych.estimators import clone
from diptych.models import ContrastiveProjection, CrossModalModel, Preprocessed, QueryBankNormalized
from diptych.models.fusion.score_fusion import LinearForm
from diptych.retriever.adapted_model import AdaptedModel
from diptych.retriever.held_out_pairs import UnpairedRows, evaluate_among, held_out_parts, precision_per_picture

if TYPE_CHECKING:
    from diptych.retriever.base import RetrieverBase

SELECTION_FOLDS = 3
SELECTION_IMAGES = 300
SHARES = (0.0, 0.1, 0.2, 0.4, 0.7)
MOST_MATCHED_PAIRS = 200
LEAST_UNPAIRED = 60


def chosen_model(features: Pairs, unpaired: UnpairedRows) -> CrossModalModel:
    """Return the fitted model that does best on held-out pairs: CCA, its contrastive continuation, or by labels.

    The continuation is corrected by a bank of the training pairs, which costs nothing beside the fit. Up to 200 pairs
    beside which both sides have unpaired rows, Wasserstein Procrustes is tried as well: from 300 on it gains nothing.
    """
    from diptych.models import CCA, MarginalSM, WassersteinProcrustes

    candidates: list[CrossModalModel] = [
        Preprocessed(model=CCA(n_components=256), images="l2"),
        Preprocessed(model=QueryBankNormalized(model=ContrastiveProjection(temperature=0.03)), images="l2"),
    ]
    if features.labels is not None:
        candidates.append(Preprocessed(model=MarginalSM(C=3.0), images="l2"))
    if features.n_images <= MOST_MATCHED_PAIRS and min(map(len, unpaired)) >= LEAST_UNPAIRED:
        candidates.append(WassersteinProcrustes())

    def learned(model: CrossModalModel, pairs: Pairs) -> CrossModalModel:
        if isinstance(model, WassersteinProcrustes):
            images, texts, _ = pairs.aligned()
            return clone(model).fit(images, texts, more_images=unpaired[0], more_texts=unpaired[1])
        return clone(model).fit(*pairs.aligned())

    parts = list(held_out_parts(features, 0.25, seed=0, once=features.n_images > MOST_MATCHED_PAIRS))

    def value(model: CrossModalModel) -> float:
        found = [(evaluate_among(learned(model, train), test, unpaired[0]), test.owners) for train, test in parts]
        return float(np.nanmean(np.concatenate([precision_per_picture(*each) for each in found])))

    return learned(max(candidates, key=value), features)


def can_adapt(before: RetrieverBase, new: RetrieverBase) -> bool:
    """Return True if what is learned can stand beside what was known: same encoders, inner products for scores."""
    is_same = before.image_fingerprint == new.image_fingerprint and before.text_fingerprint == new.text_fingerprint
    try:
        LinearForm.of(known_before(before).space, before.name)
    except InvalidInputError:
        return False
    return is_same


def known_before(retriever: RetrieverBase) -> CrossModalModel:
    """Return the model of a retriever beneath what captions taught; nothing is learned on top of that."""
    return retriever.model_.kept_ if isinstance(retriever.model_, AdaptedModel) else retriever.model_


def adapted(kept: CrossModalModel, features: Pairs, unpaired: UnpairedRows) -> AdaptedModel:
    """Return a model fitted to a collection, as far as that pays on pairs that are held out from the given ones.

    Whether it is centred on the collection, and what share the captions' own model gets, is chosen by cross-validation.
    """
    few = unpaired[0][:: max(1, len(unpaired[0]) // SELECTION_IMAGES)]
    precisions: dict[tuple[bool, float], list[FloatArray]] = {}
    for train, test in held_out_parts(features, 1 / SELECTION_FOLDS, seed=1):
        learned = model_of_captions().fit(*train.aligned())
        for is_centred in (False, True):
            base = AdaptedModel.of(kept, train, unpaired=unpaired, is_centred=is_centred)
            for share in SHARES:
                model = base.joined(learned, share, train) if share else base
                values = precision_per_picture(evaluate_among(model, test, few), test.owners)
                precisions.setdefault((is_centred, share), []).append(values)
    means = {setting: float(np.nanmean(np.concatenate(parts))) for setting, parts in precisions.items()}
    # Of equals the one that changes least comes first.
    is_centred, share = max(means, key=lambda setting: means[setting])
    base = AdaptedModel.of(kept, features, unpaired=unpaired, is_centred=is_centred)
    return base.joined(model_of_captions().fit(*features.aligned()), share, features) if share else base


def model_of_captions() -> CrossModalModel:
    """Return the model of captions that stands beside what was known before: quick, its ridge chosen by the pairs."""
    from diptych.models import CCA

    return Preprocessed(model=CCA(n_components=256), images="l2")


_Model = TypeVar("_Model", bound=CrossModalModel)


@contextmanager
def separate_checkpoint(model: _Model, part: str) -> Iterator[_Model]:
    """Give an unfitted copy of ``model`` whose checkpoints, while it is fitted, lie in the folder ``part`` of its own.

    A retriever learns from most pairs and then from all: neither training may take up the other's state.

    >>> from diptych.models import LDSP
    >>> with separate_checkpoint(LDSP(checkpoint="kept"), "trial") as model:
    ...     during = model.checkpoint
    >>> during, model.checkpoint
    ('kept/trial', 'kept')
    """
    copied: _Model = clone(model)
    given = {name: value for name, value in copied.get_params().items() if value is not None}
    kept = {name: value for name, value in given.items() if name.rpartition("__")[2] == "checkpoint"}
    copied.set_params(**{name: (Path(value) / part).as_posix() for name, value in kept.items()})
    yield copied
    copied.set_params(**kept)
