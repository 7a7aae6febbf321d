"""What a network sees in a picture, beside what was asked."""

from __future__ import annotations

from functools import singledispatch
from typing import ClassVar

import numpy as np

from diptych.arrays import AnyArray, FloatArray
from diptych.encoders import Encoder, imagenet_labels
from diptych.encoders.image.convolutional_encoder import ConvolutionalEncoder
from diptych.models import ConSE, CrossModalModel, Random
from diptych.retriever.explaining.contribution import Contribution
from diptych.retriever.explaining.explainer import Explainer
from diptych.retriever.explaining.inner_model import inner_model
from diptych.retriever.explaining.match import Match
from diptych.retriever.explaining.phrases import listed, per_cent
from diptych.retriever.explaining.subject import Subject
from diptych.retriever.explaining.view import View, ViewKind

_MOST_LABELS = 8
_NAMED = 3
_LIKELY = 0.01


class SeenLabels(Explainer):
    """For features of a network with a classifier: its likeliest labels, and how near their words lie to the text.

    The labels are those of the layer that was trained on top of the same features; the words of each label are encoded
    as a text and compared with the text of the match, in the space of the retriever. A bar is the probability of the
    label times this score. Between two pictures it is the product of the two probabilities. The score was not computed
    in this way, so the bars do not add up to it: they say what is in the picture.
    """

    kind: ClassVar[ViewKind] = "labels"

    def reads_model(self, model: CrossModalModel) -> bool:
        """Say no: whether there are labels depends on the encoder alone."""
        del model
        return False

    def views(self, match: Match) -> list[View]:
        """Return the labels of the picture, or those that two pictures share."""
        # Points of ConSE are made of these labels, which is told elsewhere; random points of nothing.
        if isinstance(inner_model(match.retriever.model_), (ConSE, Random)):
            return []
        if match.query.side == match.answer.side == "image":
            return self._shared(match)
        return [
            view
            for picture, text in ((match.query, match.answer), (match.answer, match.query))
            if picture.side == "image" and text.side == "text"
            for view in self._beside_words(match, picture, text)
        ]

    def _beside_words(self, match: Match, picture: Subject, text: Subject) -> list[View]:
        probabilities = _seen(match, picture)
        if probabilities is None:
            return []
        rows = np.argsort(-probabilities, kind="stable")[:_MOST_LABELS]
        names = [imagenet_labels()[row].lemmas[0] for row in rows]
        near = match.space.compare(text.point, match.retriever.encode_texts(names), "text_query")[0]
        bars = []
        for name, probability, score in zip(names, probabilities[rows].tolist(), near.tolist(), strict=True):
            values = (score, probability) if picture is match.answer else (probability, score)
            bars.append(Contribution(name, *values, probability * score))
        bars.sort(key=lambda bar: -abs(bar.contribution))
        seen = listed(
            [f"{name} ({per_cent(float(probabilities[row]))})" for name, row in zip(names, rows, strict=True)][:_NAMED]
        )
        note = (
            "Labels of the network that the picture's features come from, each with the score of its words and the "
            "text; a bar is the product. They tell what is seen, not how the score was computed."
        )
        return [View(self.kind, "Seen in the picture", f"The network sees {seen}.", tuple(bars), note)]

    def _shared(self, match: Match) -> list[View]:
        asked, found = _seen(match, match.query), _seen(match, match.answer)
        if asked is None or found is None:
            return []
        rows = np.argsort(-asked * found, kind="stable")[:_MOST_LABELS]
        bars = tuple(
            Contribution(
                imagenet_labels()[row].lemmas[0], float(asked[row]), float(found[row]), float(asked[row] * found[row])
            )
            for row in rows
        )
        common = [bar.name for bar in bars if min(bar.query or 0, bar.answer or 0) >= _LIKELY][:_NAMED]
        sentence = f"Both pictures look like {listed(common)}." if common else "The pictures share no likely label."
        note = (
            "Labels of the network that the features come from; a bar is the product of the label's probabilities in "
            "the two pictures. They tell what is seen, not how the score was computed."
        )
        return [View(self.kind, "Seen in both pictures", sentence, bars, note)]


def _seen(match: Match, picture: Subject) -> FloatArray | None:
    features = picture.features
    return None if features is None else label_probabilities(match.retriever.image_encoder_, features)


@singledispatch
def label_probabilities(encoder: Encoder, features: AnyArray) -> FloatArray | None:
    """Return the probability of each ImageNet label from one row of features; None where there is no classifier."""
    del encoder, features
    return None


@label_probabilities.register
def _(encoder: ConvolutionalEncoder, features: AnyArray) -> FloatArray | None:
    return np.asarray(encoder.probabilities(features)[0], dtype=np.float64)
