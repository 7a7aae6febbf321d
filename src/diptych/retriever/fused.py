"""A retriever and models of clicks, as one retriever."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from diptych.encoders import SideBySide
from diptych.errors import InvalidInputError
from diptych.models.clicks import ClickModel
from diptych.models.fusion import FusedModel
from diptych.retriever.retriever import Retriever
from diptych.retriever.tower_encoders import CentredSide, TextTower


def fused_retriever(
    present: Retriever,
    parts: Sequence[ClickModel],
    *,
    weights: Sequence[float],
    scales: Sequence[float],
    pictures: ArrayLike,
    name: str = "fused",
) -> Retriever:
    """Return the fusion of a retriever with models of a click log: an ordinary retriever.

    The score is λ₀ s₀/σ₀ + Σ λᵢ sᵢ/σᵢ, with ``weights`` λ and ``scales`` σ of the retriever first and then of the parts
    (Dong et al., "Cross-media similarity evaluation for web image retrieval in the wild", IEEE TMM 2018). The image
    encoder is the retriever's, so stored features stay good; a text is encoded by it and by each part, side by side.
    The scores of a part are centred on ``pictures``, features of some pictures of the collection, so that probabilities
    stay those of the retriever where the parts say nothing.

    Use it to serve what was learned from clicks; `diptych.collection.learning.Learning` decides whether it is better.

    >>> import numpy as np
    >>> from diptych import Retriever
    >>> from diptych.data import load_dataset
    >>> from diptych.data.clicks import ClickLog
    >>> from diptych.encoders import ColourEdgeHistograms, TfidfTopics
    >>> from diptych.models import CCA, Text2Image
    >>> from diptych.retriever import fused_retriever
    >>> pairs = load_dataset("scenes", n_train=60, n_test=20, size=32).train
    >>> encoders = {"image_encoder": ColourEdgeHistograms(size=32), "text_encoder": TfidfTopics()}
    >>> present = Retriever(model=CCA(n_components=8), cache=False, **encoders).fit(pairs, baseline=None)
    >>> features = present.image_features(pairs.images)
    >>> part = Text2Image().fit_clicks(ClickLog.from_triads(["an odd one"], ["scene 3"], [5]), features[3:4])
    >>> fused = fused_retriever(present, [part], weights=[0.1, 0.9], scales=[0.3, 0.1], pictures=features)
    >>> int(np.argmax(fused.similarity(features, ["an odd one"])[:, 0]))
    3
    """
    if len(weights) != len(parts) + 1 or len(scales) != len(parts) + 1:
        raise InvalidInputError(
            f"give a weight and a scale for the retriever and for each of {len(parts)} parts, "
            f"got {len(weights)} and {len(scales)}"
        )
    if not weights[0] > 0:
        raise InvalidInputError("the retriever needs a weight above 0: it answers what the log says nothing about")
    sides = [CentredSide.around(part, pictures) for part in parts]
    fused = Retriever(name=name, cache=present.cache)
    fused.image_encoder_ = present.image_encoder_
    fused.text_encoder_ = SideBySide(encoders=(present.text_encoder_, *map(TextTower.of, parts)))
    ends = np.cumsum([present.model_.n_text_features_, *(side.n_text_features_ for side in sides)]).tolist()
    fused.model_ = FusedModel.of(
        [present.model_, *sides],
        weights=list(weights),
        scales=list(scales),
        names=_names(present, parts),
        text_columns=list(zip([0, *ends[:-1]], ends, strict=True)),
    )
    fused.calibration_ = present.calibration_.rescaled(scales[0] / weights[0])
    return fused


def _names(present: Retriever, parts: Sequence[ClickModel]) -> list[str]:
    kinds = [type(part).__name__ for part in parts]
    numbered = [f"{kind} {1 + kinds[:place].count(kind)}" for place, kind in enumerate(kinds)]
    unique = [kind if kinds.count(kind) == 1 else number for kind, number in zip(kinds, numbered, strict=True)]
    return [present.name if present.name not in unique else f"{present.name} (retriever)", *unique]
