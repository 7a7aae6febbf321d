"""What every method keeps: two towers into one space, how two points compare, and checked parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from os import PathLike
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from diptych.arrays import AnyArray, FloatArray, as_labels, as_matrix, check_scale, column_names
from diptych.errors import InvalidInputError, ModelFileError
from diptych.estimators import BaseEstimator, scikit_learn
from diptych.models.files import KnownClasses, read_model, write_model
from diptych.models.labels import Targets
from diptych.models.linear import project
from diptych.models.parameters import check_parameters
from diptych.space import DIRECTIONS, Space

Need = Literal["pairs", "labels", "clicks", "unpaired"]
Inputs = Literal["features", "items", "clicks"]
Side = Literal["image", "text"]
SIDES: tuple[Side, ...] = ("image", "text")


class FromTask(Enum):
    """Values of a grid that the benchmark's task fills in."""

    COMPONENTS = "the dimensions of a subspace to try"
    CLASSES = "as many dimensions as there are classes to train on"


Grid = Mapping[str, Sequence[Any] | FromTask]
Variants = Mapping[str, Mapping[str, Any]]
REGISTRY: dict[str, type[CrossModalModel]] = {}
"""Every method of Diptych by the name of its class, from the moment its module is imported."""

_MOST_FEATURES = 10_000_000


class CrossModalModel(BaseEstimator):
    """Two towers into one space.

    A method is fitted on aligned rows, where row i of ``images`` and row i of ``texts`` belong together, and then
    encodes each side alone into points that `space` compares. Everything else in Diptych (saving, indexing,
    serving, evaluating) uses nothing but this contract.

    A subclass writes ``_fit``, and ``_encode_side`` or both ``_encode_images`` and ``_encode_texts``, which receive
    checked input, and declares

    - ``needs``: what it learns from, any of ``pairs``, ``labels``, ``clicks`` and ``unpaired``; empty if nothing;
    - ``when_to_use``: one line for a person who has to choose;
    - how points compare: a constructor parameter ``metric``, or a ``space`` of its own;
    - for tables, where the defaults do not do: ``title``, ``grid`` and ``variants``.

    Learned attributes end in an underscore and hold arrays, numbers, strings, fitted models, or lists of these: that
    is what `save` writes.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({"pairs"})
    inputs: ClassVar[Inputs] = "features"
    """What it is fitted on: rows of features, the pictures and texts themselves (`ItemModel`), or a click log."""
    when_to_use: ClassVar[str] = ""
    command_name: ClassVar[str] = ""
    """What people type, where the words of the class name would not do."""
    title: ClassVar[str] = ""
    """What tables call it; the name of the class unless the class itself says more."""
    grid: ClassVar[Grid | Sequence[Grid]] = {}
    """What a benchmark tunes: few values, because every setting is fitted on every hold-out of every fold."""
    variants: ClassVar[Variants] = {}
    """The rows of a benchmark: a title and the parameters that differ from the defaults; one row unless given."""
    benchmarked: ClassVar[bool] = True
    is_method: ClassVar[bool] = True
    """False for what wraps other models, which `diptych methods` does not list."""
    takes_unpaired: ClassVar[bool] = False
    """Whether `fit` also takes rows that belong to no pair, as ``more_images`` and ``more_texts``."""

    metric: str
    n_pairs_: int
    n_image_features_: int
    n_text_features_: int
    image_feature_names_in_: AnyArray
    text_feature_names_in_: AnyArray

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # What a table calls a method is not what it calls a method derived from it.
        cls.title = vars(cls).get("title", cls.__name__)
        cls.variants = vars(cls).get("variants", {})
        # Classes without a line on when to use them are bases of methods; those from elsewhere are plugins and tests.
        if "when_to_use" in vars(cls) and cls.is_method and cls.__module__.startswith("diptych.models."):
            REGISTRY[cls.__name__] = cls

    @property
    def space(self) -> Space:
        """How two points compare: the space that the parameter ``metric`` names, unless a subclass decides."""
        return Space(self.metric)

    def fit(self, images: ArrayLike, texts: ArrayLike, labels: ArrayLike | None = None) -> Self:
        """Learn from aligned rows and return the model itself.

        ``labels`` are one class per row, or a 0/1 indicator matrix with one column per class; methods that do not
        need labels ignore them. Names of a table's columns are kept as ``image_feature_names_in_`` and
        ``text_feature_names_in_``; a table with other columns, or in another order, is not encoded then.
        """
        image_rows, text_rows = as_matrix(images, name="images"), as_matrix(texts, name="texts")
        check_scale(image_rows, name="images")
        check_scale(text_rows, name="texts")
        self._check_rows(image_rows, text_rows)
        names = column_names(images, name="images"), column_names(texts, name="texts")
        self._check_parameters()
        self._learn(image_rows, text_rows, None if labels is None else as_labels(labels))
        self._finish_fit(len(image_rows), image_rows.shape[1], text_rows.shape[1], names)
        return self

    def encode_images(self, images: ArrayLike) -> AnyArray:
        """Return the points of ``images``, one row each."""
        self._check_fitted()
        return self._encode_images(self._rows("image", images))

    def encode_texts(self, texts: ArrayLike) -> AnyArray:
        """Return the points of ``texts``, one row each."""
        self._check_fitted()
        return self._encode_texts(self._rows("text", texts))

    def similarity(self, images: ArrayLike, texts: ArrayLike) -> FloatArray:
        """Return the (images, texts) matrix of scores; larger is better."""
        return self.space.compare(self.encode_images(images), self.encode_texts(texts))

    def score(self, images: ArrayLike, texts: ArrayLike, labels: ArrayLike | None = None) -> float:
        """Return MAP averaged over both directions, so that scikit-learn's model selection works.

        With ``labels`` an item is relevant when it shares one with the query; without, only the row's own partner is.
        Model selection passes them where scikit-learn routes metadata (``sklearn.set_config``).
        """
        from diptych.metrics import AP, SameLabel, SharedLabel, evaluate

        points = self.encode_images(images), self.encode_texts(texts)
        self._check_rows(*points)
        truth = np.arange(len(points[0])) if labels is None else as_labels(labels)
        relevance = SameLabel(truth, truth) if truth.ndim == 1 else SharedLabel(truth, truth)
        sides = {"image_query": points, "text_query": points[::-1]}
        means = [evaluate(*sides[way], self.space, relevance, [AP()], direction=way).mean[AP()] for way in DIRECTIONS]
        return float(np.mean(means))

    def get_metadata_routing(self) -> Any:
        """Tell scikit-learn that ``fit`` and ``score`` want the labels, where it routes metadata."""
        request = scikit_learn("sklearn.utils.metadata_routing").MetadataRequest(owner=self)
        for method in (request.fit, request.score):
            method.add_request(param="labels", alias=True)
        return request

    def save(self, folder: str | PathLike[str]) -> None:
        """Write the fitted model to ``folder`` as ``model.json`` and ``arrays.safetensors``.

        The folder appears whole or not at all; an older model in the same place is replaced.
        """
        self._check_fitted()
        write_model(self, folder)

    @classmethod
    def load(cls, folder: str | PathLike[str]) -> Self:
        """Read a model of this class from ``folder``; nothing in the file is executed."""
        model = read_model(folder, KnownClasses(CrossModalModel))
        if not isinstance(model, cls):
            raise ModelFileError(f"{folder} holds a {type(model).__name__}, not a {cls.__name__}; use load_model")
        model._check_shapes(folder)
        return model

    def _check_shapes(self, folder: str | PathLike[str]) -> None:
        """Raise unless one row of each side can be encoded: arrays of a file may contradict one another."""
        widths = [getattr(self, f"n_{side}_features_", None) for side in ("image", "text")]
        # Networks are checked where they are built; that would take longer here than anything else.
        if None in widths or type(self).__module__.startswith("diptych.models.neural."):
            return
        try:
            if not all(type(width) is int and 0 < width < _MOST_FEATURES for width in widths):
                raise ValueError(f"{widths} are no numbers of features")
            self.encode_images(np.zeros((1, widths[0] or 0)))
            self.encode_texts(np.zeros((1, widths[1] or 0)))
        except Exception as problem:
            said = f"{folder} holds a {type(self).__name__} whose arrays do not fit together ({problem!r:.300})"
            raise ModelFileError(f"{said}; fit the model again") from None

    def _check_parameters(self) -> None:
        """Raise for a parameter that cannot be used, before any row is looked at: types say what they may be."""
        check_parameters(self)
        if hasattr(self, "metric"):
            Space(self.metric)

    def _learn(self, images: FloatArray, texts: FloatArray, labels: ArrayLike | None) -> None:
        self._fit(images, texts, self._targets(labels, len(images)))

    # With `Targets` where the method needs labels, else with None.
    def _fit(self, images: FloatArray, texts: FloatArray, targets: Any) -> None:
        raise NotImplementedError

    def _encode_images(self, images: FloatArray) -> AnyArray:
        return self._encode_side("image", images)

    def _encode_texts(self, texts: FloatArray) -> AnyArray:
        return self._encode_side("text", texts)

    def _encode_side(self, side: Side, rows: FloatArray) -> AnyArray:
        raise NotImplementedError

    def _of_side(self, side: Side, *names: str) -> list[Any]:
        """Return what was learned about one side: of pictures, ``mean`` is ``image_mean_``."""
        return [getattr(self, f"{side}_{name}_") for name in names]

    def _targets(self, labels: ArrayLike | None, n_rows: int) -> Targets | None:
        if "labels" not in self.needs:
            return None
        if labels is None:
            raise InvalidInputError(f"{type(self).__name__} learns from labels: call fit(images, texts, labels)")
        return Targets.from_labels(labels, n_rows)

    def _rows(self, side: Side, values: ArrayLike) -> FloatArray:
        """Return the rows of one side, checked: they have the columns that the model was fitted with."""
        width, columns = getattr(self, f"n_{side}_features_"), getattr(self, f"{side}_feature_names_in_", None)
        return as_matrix(values, name=f"{side}s", width=width, columns=columns)

    def _check_rows(self, images: AnyArray, texts: AnyArray) -> None:
        if len(images) != len(texts):
            raise InvalidInputError(
                f"images and texts must be aligned row by row, got {len(images)} and {len(texts)} rows; "
                "repeat an image for each of its texts (Pairs.aligned does)"
            )

    def _check_fitted(self) -> None:
        if not hasattr(self, "n_image_features_"):
            message = f"this {type(self).__name__} is not fitted yet: call fit(images, texts) first"
            raise scikit_learn("sklearn.exceptions").NotFittedError(message)

    def _finish_fit(
        self,
        n_pairs: int,
        image_width: int,
        text_width: int,
        names: tuple[AnyArray | None, AnyArray | None] = (None, None),
    ) -> None:
        self.n_pairs_ = n_pairs
        self.n_image_features_, self.n_text_features_ = image_width, text_width
        for side, own in zip(SIDES, names, strict=True):
            self._keep_names(side, own)
        self._make_contiguous()

    def _keep_names(self, side: Side, names: AnyArray | None) -> None:
        # As in scikit-learn there is no such attribute where the columns have no names, whatever was fitted before.
        vars(self).pop(f"{side}_feature_names_in_", None)
        if names is not None:
            setattr(self, f"{side}_feature_names_in_", names)

    def _make_contiguous(self) -> None:
        # A saved model comes back in C order; with any other order here its products could differ in the last bit.
        for name, value in vars(self).items():
            if name.endswith("_") and isinstance(value, np.ndarray):
                setattr(self, name, np.ascontiguousarray(value))


def load_model(folder: str | PathLike[str]) -> CrossModalModel:
    """Read whatever model ``folder`` holds.

    The folder is data: its JSON is parsed, its arrays are mapped, and nothing in it is executed. A truncated, altered
    or foreign folder raises `ModelFileError`.

    >>> import numpy as np, tempfile
    >>> from diptych.models import CCA, load_model
    >>> rng = np.random.default_rng(0)
    >>> model = CCA().fit(rng.normal(size=(50, 6)), rng.normal(size=(50, 4)))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(folder)
    ...     load_model(folder)
    CCA()
    """
    return CrossModalModel.load(folder)


class LinearProjectionModel(CrossModalModel):
    """Encodes x as ``(x − mean) @ projection``; a subclass learns the four arrays."""

    image_mean_: FloatArray
    text_mean_: FloatArray
    image_projection_: FloatArray
    text_projection_: FloatArray

    def _encode_side(self, side: Side, rows: FloatArray) -> FloatArray:
        return project(rows, *self._of_side(side, "mean", "projection"))
