"""What a fitted retriever does: from pictures and words to features, points, scores and probabilities."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike

import diptych.protocols as protocols
from diptych.arrays import AnyArray, BoolArray, FloatArray, indexed_items
from diptych.data import Pairs
from diptych.data.item_sequences import is_features
from diptych.encoders import Encoder, FeatureCache
from diptych.encoders.encoder import EncodedBatch
from diptych.encoders.feature_cache import Progress
from diptych.encoders.text.languages import language_note
from diptych.encoders.text.word_pipeline import is_short_query
from diptych.errors import InvalidInputError
from diptych.estimators import BaseEstimator, scikit_learn
from diptych.metrics import AP, Measure
from diptych.models import CrossModalModel, Preprocessed, QueryBankNormalized
from diptych.models.files import model_digest
from diptych.models.hashing.hashing_model import HashingModel
from diptych.retriever.calibration import Calibration, HeldOutScores, calibrate, pictures_with, short_queries
from diptych.retriever.comparison import Comparison
from diptych.space import SearchDirection, Space

# More pixels than any network of the package sees.
_TURNED_SIDE = 650


class RetrieverBase(BaseEstimator):
    """Use two fitted encoders and a fitted model as one; `Retriever` adds how they are learned, saved and found."""

    name: str
    cache: bool | str | PathLike[str]
    image_encoder_: Encoder
    text_encoder_: Encoder
    model_: CrossModalModel
    calibration_: Calibration
    comparison_: Comparison

    def _repr_html_(self) -> str:
        """Return the parts as a table, for notebooks."""
        from html import escape

        parts: dict[str, Any] = {"name": self.name}
        for name in ("image_encoder", "text_encoder", "model", "comparison"):
            value = getattr(self, f"{name}_", getattr(self, name, None))
            parts[name.replace("_", " ")] = "not fitted" if value is None and name != "comparison" else value
        rows = [f"<tr><th>{name}</th><td>{escape(str(value))}</td></tr>" for name, value in parts.items() if value]
        return f"<table>{''.join(rows)}</table>"

    @property
    def space(self) -> Space:
        """How two points compare."""
        return self._require("model_").model_.space

    @property
    def fingerprint(self) -> str:
        """A digest of everything that shapes points; points of two fingerprints must never be mixed."""
        parts = (self.image_fingerprint, self.text_fingerprint, model_digest(self.model_))
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]

    @property
    def image_fingerprint(self) -> str:
        """The digest that names image features."""
        return self._require("image_encoder_").image_encoder_.fingerprint

    @property
    def text_fingerprint(self) -> str:
        """The digest that names text features."""
        return self._require("text_encoder_").text_encoder_.fingerprint

    @property
    def cutoff(self) -> float:
        """The probability below which an answer is no good match."""
        return self._require("calibration_").calibration_.cutoff_

    def cutoff_among(self, count: int, *, is_short: bool = False, is_joined: bool = False) -> float:
        """Return the cut-off of a search among so many items; see `Calibration.cutoff_among`."""
        return self._require("calibration_").calibration_.cutoff_among(count, is_short=is_short, is_joined=is_joined)

    def cutoff_of(self, text: AnyArray, count: int, *, is_short: bool = False) -> float:
        """Return the cut-off of one text, given by its point, that looks for pictures among so many."""
        calibration = self._require("calibration_").calibration_
        known = self.familiarity(text) if hasattr(calibration, "presence_") else None
        if known is None:
            return self.cutoff_among(count, is_short=is_short)
        return calibration.cutoff_of(known[0], count, is_short=is_short)

    def familiarity(self, texts: AnyArray) -> FloatArray | None:
        """Return what the bank of the model knows of texts, given by their points; None for a model without one."""
        model = self._require("model_").model_
        return model.familiarity(texts) if isinstance(model, QueryBankNormalized) else None

    def has_match(self, texts: Sequence[str], points: AnyArray, best: FloatArray, count: int) -> BoolArray:
        """Return which texts find a good match among so many pictures, given their points and best scores."""
        found = np.zeros(len(texts), dtype=bool)
        for row, text in enumerate(texts):
            is_short = self.is_short_query(text)
            likely = self.probability(best[row], "text_to_image", is_short=is_short)
            found[row] = likely >= self.cutoff_of(points[row : row + 1], count, is_short=is_short)
        return found

    def line_share(self, *, is_short: bool = False) -> float:
        """Return the share of the best answer's probability above which an answer to a text is good."""
        return self._require("calibration_").calibration_.line_share(is_short=is_short)

    def is_short_query(self, text: str) -> bool:
        """Return whether a text that looks for pictures is a word or two, with probabilities of its own."""
        return hasattr(self._require("calibration_").calibration_, "short_line_") and is_short_query(text)

    def image_features(self, items: Sequence[Any], *, progress: Progress | None = None) -> FloatArray:
        """Return the features of pictures (paths, arrays, Pillow images), from the cache where they are known."""
        if isinstance(items, (str, PathLike)):
            raise InvalidInputError(f"pictures must be a sequence, got one path {items!s}; pass it in a list")
        return self._features(self._require("image_encoder_").image_encoder_, items, progress)

    def text_features(self, texts: Sequence[str], *, progress: Progress | None = None) -> FloatArray:
        """Return the features of texts, from the cache where they are known."""
        if isinstance(texts, str):
            raise InvalidInputError("texts must be a sequence of strings, got one string; pass it in a list")
        return self._features(self._require("text_encoder_").text_encoder_, texts, progress)

    def query_features(self, texts: Sequence[str]) -> FloatArray:
        """Return the features of what someone looks for, which are never kept; "a dog" may be read as "dog"."""
        return self._require("text_encoder_").text_encoder_.transform_queries(texts)

    def stream_image_features(self, items: Sequence[Any]) -> Iterator[EncodedBatch]:
        """Yield image features batch by batch, with the reason for each picture that cannot be read."""
        encoder = self._require("image_encoder_").image_encoder_
        return cast(Any, encoder).stream(items) if self._store is None else self._store.stream(encoder, items)

    def images_to_points(self, features: ArrayLike) -> AnyArray:
        """Return the points of image features."""
        return self._require("model_").model_.encode_images(features)

    def texts_to_points(self, features: ArrayLike) -> AnyArray:
        """Return the points of text features."""
        return self._require("model_").model_.encode_texts(features)

    def images_to_outputs(self, features: ArrayLike) -> FloatArray:
        """Return the real numbers of a hashing method that the bits of image features are the signs of."""
        return self._hash_code_model.decision_images(features)

    def texts_to_outputs(self, features: ArrayLike) -> FloatArray:
        """Return the real numbers of a hashing method that the bits of text features are the signs of."""
        return self._hash_code_model.decision_texts(features)

    def encode_images(self, items: Sequence[Any]) -> AnyArray:
        """Return the points of pictures: paths, arrays, Pillow images, or rows of features."""
        return self.images_to_points(items if is_features(items) else self.image_features(items))

    def turned_points(self, picture: Any) -> AnyArray | None:
        """Return the points of a picture turned by a quarter, a half and three quarters; None where no copy is known.

        A copy is known of retrievers whose calibration learned what similarity tells it (``copy_line_``).
        """
        if not hasattr(self._require("calibration_").calibration_, "copy_line_"):
            return None
        # Words are searched for without a library of pictures.
        from diptych.encoders.image.picture_decoding import read_picture

        pixels = read_picture(picture, shortest_side=_TURNED_SIDE)
        turned = [np.ascontiguousarray(np.rot90(pixels, quarters)) for quarters in (1, 2, 3)]
        return self.images_to_points(self.image_encoder_.transform(turned))

    def encode_texts(self, texts: Sequence[str]) -> AnyArray:
        """Return the points of texts: strings, or rows of features."""
        return self.texts_to_points(texts if is_features(texts) else self.text_features(texts))

    def similarity(self, images: Sequence[Any], texts: Sequence[str]) -> FloatArray:
        """Return the (images, texts) matrix of scores; larger is better."""
        return self.space.compare(self.encode_images(images), self.encode_texts(texts))

    def probability(self, scores: ArrayLike, direction: SearchDirection, *, is_short: bool = False) -> FloatArray:
        """Return the calibrated probability that answers with these scores are relevant."""
        return self._require("calibration_").calibration_.probability(scores, direction, is_short=is_short)

    def score_slope(self, direction: SearchDirection) -> float:
        """Return how much evidence a unit of score is, in logarithms of odds; 1 where nothing is calibrated."""
        return self.calibration_.slope(direction) if hasattr(self, "calibration_") else 1.0

    def language_note(self, text: str) -> str | None:
        """Return a sentence where a text is surely in a language that the text encoder does not understand."""
        understood = self._require("text_encoder_").text_encoder_.understood_languages
        return None if understood is None else language_note(text, understood)

    def featured(self, pairs: Pairs, *, progress: Progress | None = None) -> Pairs:
        """Return pairs with raw items replaced by this retriever's features."""
        images = texts = None
        if not pairs.has_image_features:
            images = self.image_features(cast(Sequence[Any], pairs.images), progress=progress)
        if not pairs.has_text_features:
            texts = self.text_features(cast(Sequence[str], pairs.texts), progress=progress)
        return pairs if images is None and texts is None else pairs.with_features(images=images, texts=texts)

    def evaluate(self, pairs: Pairs, measures: Sequence[Measure] = (AP(),)) -> protocols.TwoWayEvaluation:
        """Evaluate both directions on pairs that were not used for fitting."""
        return protocols.evaluate_model(self._require("model_").model_, self.featured(pairs), measures)

    def calibrated(self, pairs: Pairs, featured: Pairs | None = None, *, prior: float = 0.01) -> Calibration:
        """Return a calibration learned from pairs that the model has not seen; ``featured`` are they with features."""
        seen = self.featured(pairs) if featured is None else featured
        images, texts = self.images_to_points(seen.images), self.texts_to_points(seen.texts)
        return calibrate([self.held_out_scores(images, texts, pairs, seen)], prior)

    def held_out_scores(self, images: AnyArray, texts: AnyArray, pairs: Pairs, featured: Pairs) -> HeldOutScores:
        """Compare the points of held-out pairs, and those of words of their captions."""
        words = [] if pairs.has_text_features else short_queries(pairs)
        if not words:
            return HeldOutScores.of(self.space, images, texts, featured)
        short, belong = self.texts_to_points(self.query_features(words)), pictures_with(words, pairs)
        return HeldOutScores.of(self.space, images, texts, featured, short_points=short, short_belong=belong)

    def _require(self, part: str) -> Self:
        if not hasattr(self, part):
            unfitted = "this retriever is not fitted: call fit(pairs), or use Retriever.default()"
            raise scikit_learn("sklearn.exceptions").NotFittedError(unfitted)
        return self

    @property
    def _hash_code_model(self) -> HashingModel | Preprocessed:
        model = self._require("model_").model_
        if isinstance(model, (HashingModel, Preprocessed)):
            return model
        raise InvalidInputError(f"{type(model).__name__} has no outputs before a sign: fit a hashing method")

    @property
    def _store(self) -> FeatureCache | None:
        return None if self.cache is False else FeatureCache(None if self.cache is True else Path(self.cache))

    def _features(self, encoder: Encoder, items: Sequence[Any], progress: Progress | None) -> FloatArray:
        items, store = indexed_items(items, name="pictures" if encoder.modality == "image" else "texts"), self._store
        return encoder.transform(items) if store is None else store.encode(encoder, items, progress=progress)
