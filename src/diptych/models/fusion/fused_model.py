"""Several models side by side as one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from diptych.arrays import AnyArray, FloatArray, as_labels
from diptych.errors import InvalidInputError
from diptych.estimators import clone
from diptych.metrics import AP, NDCG, Measure, RecallAtK
from diptych.models.base import SIDES, CrossModalModel, Side
from diptych.models.fusion._ranked_lists import HeldOutLists
from diptych.models.fusion.score_fusion import CoordinateAscent, LinearForm, given_weights
from diptych.models.parameters import Interval, check_choice
from diptych.models.registry import method_name
from diptych.space import Space

Columns = tuple[int, int] | None
MEASURES: dict[str, Measure] = {
    "map": AP(),
    "ndcg@25": NDCG(25, "ideal"),
    "recall@1": RecallAtK(1),
    "recall@10": RecallAtK(10),
}

_SAMPLED_ROWS = 400


@dataclass(kw_only=True, eq=False, repr=False)
class FusedModel(CrossModalModel):
    """Late fusion of models whose scores are inner products, which is again such a model.

    With scores sᵢ(x, y) = ⟨aᵢ(x), bᵢ(y)⟩ of the parts, weights λᵢ and scales σᵢ,

        s(x, y) = Σ λᵢ sᵢ(x, y)/σᵢ = ⟨[√(|λᵢ|/σᵢ) aᵢ(x)], [± √(|λᵢ|/σᵢ) bᵢ(y)]⟩:

    points of the parts stand side by side, each scaled, so that a fusion is saved, indexed, searched and served as any
    other model; parts of weight zero take no place. σᵢ is the standard deviation of a part's scores on a sample of
    pairs; their mean is one number for all answers and changes no ranking. Metrics ``cosine``, ``pearson``,
    ``covariance``, ``dot`` and ``kl`` are inner products; for others see `fuse_scores`.

    Use it where several methods or features err on different queries (Dong et al., "Cross-media similarity evaluation
    for web image retrieval in the wild", TMM 2018). `fit` fits the parts on the same pairs; `of` takes fitted parts.

    Parameters
    ----------
    parts : tuple of CrossModalModel
        What is fused.
    weights : "average", "learned" or tuple of float
        λ. Learned ones maximise ``measure`` on pictures that are held out while the parts are fitted; then these are
        fitted again on all. See `CoordinateAscent`.
    rescale : {"zscore", "none"}
        Whether scores are divided by their standard deviation.
    names : tuple of str or None
        What explanations call the parts; their methods' names by default. ``<name>__<parameter>`` sets a parameter.
    image_columns, text_columns : tuple of ((first, end) or None), or None
        The columns of the features that each part sees, all where None: so features are fused as well as methods.
    measure : {"map", "ndcg@25", "recall@1", "recall@10"}
        What learned weights maximise, as the mean over picture and text queries.
    held_out : float
        Share of the pictures that weights are learned on, at most 200.
    random_state : int
        Of the held-out pictures, the sample for scales, and the search for weights.

    Attributes
    ----------
    parts_ : list of CrossModalModel
        The fitted parts.
    weights_, scales_ : arrays
        λ and σ.
    part_names_ : tuple of str

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import CCA, PLS, FusedModel
    >>> rng = np.random.default_rng(0)
    >>> meaning = rng.normal(size=(80, 3))
    >>> images, texts = meaning @ rng.normal(size=(3, 9)), meaning @ rng.normal(size=(3, 5))
    >>> model = FusedModel(parts=(CCA(n_components=3), PLS(n_components=2))).fit(images, texts)
    >>> points = model.encode_images(images[:2]), model.encode_texts(texts[:1])
    >>> points[0].shape
    (2, 5)
    >>> shares = model.contributions(points[0], points[1][0])
    >>> list(shares), bool(np.allclose(sum(shares.values()), points[0] @ points[1][0]))
    (['cca', 'pls'], True)
    """

    when_to_use: ClassVar[str] = "Methods or features that err on different queries: their weighted sum errs less."
    is_method: ClassVar[bool] = False
    space = Space("dot")

    parts: tuple[CrossModalModel, ...] = ()
    weights: Literal["average", "learned"] | tuple[float, ...] = "average"
    rescale: Literal["zscore", "none"] = "zscore"
    names: tuple[str, ...] | None = None
    image_columns: tuple[Columns, ...] | None = None
    text_columns: tuple[Columns, ...] | None = None
    measure: str = "map"
    held_out: Annotated[float, Interval(0, 0.9, open_low=True)] = 0.2
    random_state: int = 0

    @classmethod
    def of(
        cls,
        parts: Sequence[CrossModalModel],
        *,
        weights: Literal["average"] | Sequence[float] | FloatArray = "average",
        scales: Sequence[float] | FloatArray | None = None,
        names: Sequence[str] | None = None,
        image_columns: Sequence[Columns] | None = None,
        text_columns: Sequence[Columns] | None = None,
    ) -> Self:
        """Return the fusion of fitted parts; ``scales`` are the deviations of their scores, 1 by default.

        `score_deviation` measures one.
        """
        fused = cls(
            parts=tuple(clone(part) for part in parts),
            weights="average" if isinstance(weights, str) else tuple(float(weight) for weight in weights),
            rescale="none" if scales is None else "zscore",
            names=None if names is None else tuple(names),
            image_columns=_plain_columns(image_columns),
            text_columns=_plain_columns(text_columns),
        )
        fused._check_parameters()
        for part in parts:
            part._check_fitted()
        fused.parts_ = list(parts)
        fused.n_pairs_ = max(part.n_pairs_ for part in parts)
        for side in SIDES:
            widths = [getattr(part, f"n_{side}_features_") for part in parts]
            setattr(fused, f"n_{side}_features_", _total_width(widths, fused._ranges(side), fused._names(), side))
            fused._keep_names(side, _common_names(parts, fused._ranges(side), side))
        fused._place(given_weights(weights, len(parts)), _checked_scales(scales, len(parts)))
        return fused

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; with ``deep`` the parts by their names, and their parameters, as well."""
        own: dict[str, Any] = super().get_params(deep=False)
        if deep and isinstance(self.parts, (tuple, list)):
            for name, part in zip(self._names(), self.parts, strict=False):
                own[name] = part
                own |= {f"{name}__{key}": value for key, value in part.get_params(deep=True).items()}
        return own

    def contributions(self, image_points: ArrayLike, text_point: ArrayLike) -> dict[str, FloatArray]:
        """Return what each part adds to the scores of pictures for one text, by the parts' names.

        ``image_points`` are rows, ``text_point`` is one; for each picture the contributions sum to the score.
        """
        self._check_fitted()
        rows, point = np.asarray(image_points), np.asarray(text_point).reshape(-1)
        if rows.ndim != 2 or rows.shape[1] != sum(self.widths_) or len(point) != sum(self.widths_):
            raise InvalidInputError(
                f"points of this fusion have {sum(self.widths_)} coordinates, got {rows.shape} and {point.shape}"
            )
        return {
            name: np.asarray(rows[:, place] @ point[place])
            for name, place in zip(self.part_names_, self._places(), strict=True)
        }

    def part_scores(self, images: ArrayLike, texts: ArrayLike) -> dict[str, FloatArray]:
        """Return the (images, texts) scores of each part on its own, before scales and weights, by name."""
        self._check_fitted()
        views = self._views(self._rows("image", images), self._rows("text", texts))
        seen = zip(self.part_names_, self.parts_, views, strict=True)
        return {name: part.similarity(*view) for name, part, view in seen}

    def _learn(self, images: FloatArray, texts: FloatArray, labels: ArrayLike | None) -> None:
        rng = np.random.default_rng(self.random_state)
        learned = (
            self._learned_weights(images, texts, labels, rng)
            if isinstance(self.weights, str) and self.weights == "learned"
            else given_weights(self.weights, len(self.parts))
        )
        self.parts_ = self._fitted_parts(images, texts, labels)
        # A model that was fitted before may be fitted again on other columns.
        self.n_image_features_, self.n_text_features_ = images.shape[1], texts.shape[1]
        sampled = rng.choice(len(images), min(len(images), _SAMPLED_ROWS), replace=False)
        self._place(learned, self._deviations(images[sampled], texts[sampled]))

    def _learned_weights(
        self, images: FloatArray, texts: FloatArray, labels: ArrayLike | None, rng: np.random.Generator
    ) -> FloatArray:
        held_out = HeldOutLists.of(images, labels, self.held_out, rng)
        known = None if labels is None else as_labels(labels)[held_out.train]
        trial = clone(self)
        trial.parts_ = self._fitted_parts(images[held_out.train], texts[held_out.train], known)
        pictures, captions = images[held_out.pictures], texts[held_out.texts]
        scales = trial._deviations(pictures, captions)
        matrices = [
            part.similarity(*view) / scale
            for part, view, scale in zip(trial.parts_, self._views(pictures, captions), scales, strict=True)
        ]
        ascent = CoordinateAscent(measure=MEASURES[self.measure], random_state=self.random_state)
        return ascent.fit(*held_out.scores(matrices)).weights_

    def _fitted_parts(self, images: FloatArray, texts: FloatArray, labels: ArrayLike | None) -> list[CrossModalModel]:
        seen = zip(self.parts, self._views(images, texts), strict=True)
        return [clone(part).fit(*view, labels) for part, view in seen]

    def _deviations(self, images: FloatArray, texts: FloatArray) -> FloatArray:
        if self.rescale == "none":
            return np.ones(len(self.parts_))
        seen = zip(self.parts_, self._views(images, texts), strict=True)
        return np.array([score_deviation(part, *view) for part, view in seen])

    def _place(self, weights: FloatArray, scales: FloatArray) -> None:
        """Fix what the parts count, and where their points stand."""
        self.weights_, self.scales_, self.part_names_ = weights, scales, self._names()
        nothing = np.zeros((1, self.n_image_features_))
        seen = zip(self.parts_, self._forms(), self._ranges("image"), weights, strict=True)
        self.widths_ = tuple(
            form.images(part.encode_images(_selected_columns(nothing, columns))).shape[1] if weight else 0
            for part, form, columns, weight in seen
        )

    def _encode_side(self, side: Side, rows: FloatArray) -> AnyArray:
        factors = np.sqrt(np.abs(self.weights_) / self.scales_)
        # A part that counts against an answer turns the text around, so that pictures still compare among themselves.
        if side == "text":
            factors *= np.sign(self.weights_)
        blocks = []
        for part, form, columns, factor in zip(self.parts_, self._forms(), self._ranges(side), factors, strict=True):
            if factor:
                own = _selected_columns(rows, columns)
                points = form.images(part.encode_images(own)) if side == "image" else form.texts(part.encode_texts(own))
                blocks.append(points * rows.dtype.type(factor))
        return np.concatenate(blocks, axis=1).astype(rows.dtype, copy=False)

    def _forms(self) -> list[LinearForm]:
        fitted = getattr(self, "parts_", self.parts)
        return [LinearForm.of(part.space, name) for part, name in zip(fitted, self._names(), strict=True)]

    def _places(self) -> list[slice]:
        ends = np.cumsum(self.widths_).tolist()
        return [slice(end - width, end) for width, end in zip(self.widths_, ends, strict=True)]

    def _views(self, images: FloatArray, texts: FloatArray) -> Iterator[tuple[FloatArray, FloatArray]]:
        for of_images, of_texts in zip(self._ranges("image"), self._ranges("text"), strict=True):
            yield _selected_columns(images, of_images), _selected_columns(texts, of_texts)

    def _ranges(self, side: str) -> tuple[Columns, ...]:
        chosen = self.image_columns if side == "image" else self.text_columns
        return (None,) * len(self.parts) if chosen is None else chosen

    def _names(self) -> tuple[str, ...]:
        if self.names is not None:
            return tuple(self.names)
        plain = [method_name(type(part)) for part in self.parts]
        numbered = [f"{name}-{plain[: place + 1].count(name)}" for place, name in enumerate(plain)]
        return tuple(own if plain.count(name) > 1 else name for name, own in zip(plain, numbered, strict=True))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not isinstance(self.parts, (tuple, list)) or not self.parts:
            raise InvalidInputError(
                "there is nothing to fuse: give parts=(CCA(), ...), or fitted ones to FusedModel.of"
            )
        for part in self.parts:
            if not isinstance(part, CrossModalModel):
                raise InvalidInputError(f"the parts of a fusion are models, got {part!r}")
        for name in ("names", "image_columns", "text_columns"):
            given = getattr(self, name)
            if given is not None and len(given) != len(self.parts):
                raise InvalidInputError(
                    f"{name} has {len(given)} entries for {len(self.parts)} parts; give one for each"
                )
        for columns in (*self._ranges("image"), *self._ranges("text")):
            if columns is not None and not (len(columns) == 2 and all(isinstance(place, int) for place in columns)):
                raise InvalidInputError(f"columns of a part are two whole numbers (first, end), got {columns!r}")
        if len(set(self._names())) != len(self.parts):
            raise InvalidInputError(f"parts need different names, got {', '.join(self._names())}")
        if isinstance(self.weights, str):
            check_choice("weights", self.weights, ("average", "learned"))
        check_choice("measure", self.measure, tuple(MEASURES))
        self._forms()


def score_deviation(model: CrossModalModel, images: ArrayLike, texts: ArrayLike) -> float:
    """Return the standard deviation of a fitted model's scores of all these pictures with all these texts, or 1 if 0.

    >>> import numpy as np
    >>> from diptych.models import SharedSpace
    >>> from diptych.models.fusion import score_deviation
    >>> score_deviation(SharedSpace(metric="dot").fit(np.eye(2), np.eye(2)), 4 * np.eye(2), np.eye(2))
    2.0
    """
    deviation = float(np.asarray(model.similarity(images, texts), dtype=np.float64).std())
    return deviation if deviation > 0 else 1.0


def _selected_columns(rows: FloatArray, columns: Columns) -> FloatArray:
    if columns is None:
        return rows
    first, end = columns
    if not 0 <= first < end <= rows.shape[1]:
        raise InvalidInputError(f"columns {columns} are not within the {rows.shape[1]} features; give (first, end)")
    return rows[:, first:end]


def _plain_columns(columns: Sequence[Columns] | None) -> tuple[Columns, ...] | None:
    if columns is None:
        return None
    return tuple(None if part is None else (int(part[0]), int(part[1])) for part in columns)


def _checked_scales(scales: Sequence[float] | FloatArray | None, n_parts: int) -> FloatArray:
    values = np.ones(n_parts) if scales is None else np.asarray(scales, dtype=np.float64)
    if values.shape != (n_parts,) or not (np.isfinite(values).all() and (values > 0).all()):
        raise InvalidInputError(f"scales must be one positive number for each of {n_parts} parts, got {scales!r}")
    return values


def _common_names(parts: Sequence[CrossModalModel], columns: Sequence[Columns], side: Side) -> AnyArray | None:
    """Return the names of the columns if all parts that see every one of them were fitted with the same."""
    seen = zip(parts, columns, strict=True)
    named: list[Any] = [getattr(part, f"{side}_feature_names_in_", None) for part, own in seen if own is None]
    return named[0] if named and all(np.array_equal(named[0], other) for other in named) else None


def _total_width(widths: Sequence[int], columns: Sequence[Columns], names: Sequence[str], side: str) -> int:
    """Return how many features the parts need together; one without columns of its own needs all of them."""
    for width, part, name in zip(widths, columns, names, strict=True):
        if part is not None and part[1] - part[0] != width:
            raise InvalidInputError(
                f"part {name!r} was fitted with {width} {side} features, but its columns {part} are {part[1] - part[0]}"
            )
    whole = {width for width, part in zip(widths, columns, strict=True) if part is None}
    total = max([*whole, *(part[1] for part in columns if part is not None)])
    if whole and whole != {total}:
        raise InvalidInputError(
            f"the parts were fitted with different numbers of {side} features ({sorted(whole)}, {total} in all); "
            f"give {side}_columns"
        )
    return total
