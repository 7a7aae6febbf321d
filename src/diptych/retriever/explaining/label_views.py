"""Explanations by labels: class probabilities, and what a network sees in a picture."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from diptych.arrays import FloatArray
from diptych.encoders import ImageNetLabels, SideBySide, imagenet_labels
from diptych.encoders.image.image_encoder import ConvolutionalEncoder
from diptych.errors import InvalidInputError, counted
from diptych.models import CrossModalModel, Random
from diptych.models.semantic.classifier_pair import ClassifierPairModel
from diptych.retriever.explaining.explanation import Contribution, View, ViewKind, listed, per_cent
from diptych.retriever.explaining.match import (
    Explainer,
    Match,
    Subject,
    coordinate_contributions,
    inner_model,
    is_linear,
)


def class_names(match: Match, model: ClassifierPairModel) -> list[str]:
    """Return the names that were given for a model's classes, else the classes as it learned them."""
    given = match.class_names
    if given is None:
        is_number = model.classes_.dtype.kind in "iuf"
        return [f"class {value}" if is_number else str(value) for value in model.classes_.tolist()]
    if len(given) != len(model.classes_):
        raise InvalidInputError(f"give one name for each of the {len(model.classes_)} classes, got {len(given)}")
    return list(given)


_MOST_CLASSES = 12


class ClassProbabilities(Explainer):
    """For semantic models: class probabilities (figures 12 and 13 of Costa Pereira et al., 2014) and what each adds."""

    kind: ClassVar[ViewKind] = "classes"

    def reads_model(self, model: CrossModalModel) -> bool:
        """Return True if points are class probabilities."""
        return isinstance(inner_model(model), ClassifierPairModel)

    def views(self, match: Match) -> list[View]:
        """Return the classes that add most."""
        model = inner_model(match.retriever.model_)
        if not isinstance(model, ClassifierPairModel):
            return []
        names = class_names(match, model)
        asked, found = match.query.point[0], match.answer.point[0]
        added = coordinate_contributions(match.space, match.query.point, match.answer.point, match.direction)
        # What differs makes a distance, but what is shared is why the answer is there.
        weight = np.abs(added) if is_linear(match.space) else asked * found
        order = np.argsort(-weight, kind="stable")[:_MOST_CLASSES]
        bars = tuple(Contribution(names[row], float(asked[row]), float(found[row]), float(added[row])) for row in order)
        rest = float(added.sum() - sum(bar.contribution for bar in bars))
        hidden = len(names) - _MOST_CLASSES
        shown = f"The other {counted(hidden, 'class', 'classes')} add {rest:+.3f}. " if hidden > 0 else ""
        note = f"{shown}The contributions of all classes sum to the score in the space {match.space.name}."
        return [View(self.kind, "Class probabilities", _class_sentence(match, names), bars, note, rest)]


def _class_sentence(match: Match, names: list[str]) -> str:
    asked, found = match.query.point[0], match.answer.point[0]
    first, second = int(asked.argmax()), int(found.argmax())
    if first == second:
        shares = f"{per_cent(float(asked[first]))} and {per_cent(float(found[first]))}"
        return f"Both the query and the {match.answer_noun} look most like {names[first]} ({shares})."
    return (
        f"The query looks most like {names[first]} ({per_cent(float(asked[first]))}), the {match.answer_noun} most "
        f"like {names[second]} ({per_cent(float(found[second]))})."
    )


_NAMED = 3
_MOST_LABELS = 8


class SeenLabels(Explainer):
    """For features of a network with a classifier: its likeliest labels, and how near their words lie to the text.

    A bar is the probability of a label times the score of its words with the text of the match, or between two pictures
    the product of the two probabilities. The bars do not add up to the score: they say what is in the picture.
    """

    kind: ClassVar[ViewKind] = "labels"

    def views(self, match: Match) -> list[View]:
        """Return the labels of the picture, or those that two pictures share."""
        if isinstance(inner_model(match.retriever.model_), Random):
            return []
        if match.query.side == match.answer.side == "image":
            return self._shared(match)
        for picture, text in ((match.query, match.answer), (match.answer, match.query)):
            if picture.side == "image" and text.side == "text":
                return self._beside_words(match, picture, text)
        return []

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
        likeliest = list(zip(names, probabilities[rows].tolist(), strict=True))[:_NAMED]
        seen = listed([f"{name} ({per_cent(probability)})" for name, probability in likeliest])
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
        values = zip(asked[rows].tolist(), found[rows].tolist(), strict=True)
        names = [imagenet_labels()[row].lemmas[0] for row in rows]
        bars = tuple(Contribution(name, *two, two[0] * two[1]) for name, two in zip(names, values, strict=True))
        common = [bar.name for bar in bars if min(bar.query or 0, bar.answer or 0) >= 0.01][:_NAMED]
        sentence = f"Both pictures look like {listed(common)}." if common else "The pictures share no likely label."
        note = (
            "Labels of the network that the features come from; a bar is the product of the label's probabilities in "
            "the two pictures. They tell what is seen, not how the score was computed."
        )
        return [View(self.kind, "Seen in both pictures", sentence, bars, note)]


def _seen(match: Match, picture: Subject) -> FloatArray | None:
    """Return the probability of each ImageNet label in a picture; None without features or a classifier of them."""
    encoder = match.retriever.image_encoder_
    if isinstance(encoder, SideBySide):
        # The columns of the first network come first, as it made them.
        encoder = encoder.encoders[0]
    if picture.features is None or not isinstance(encoder, ConvolutionalEncoder):
        return None
    own = picture.features[:, : encoder.n_features]
    if isinstance(encoder, ImageNetLabels):
        return np.asarray(own[0], dtype=np.float64)
    return np.asarray(encoder.probabilities(own)[0], dtype=np.float64)
