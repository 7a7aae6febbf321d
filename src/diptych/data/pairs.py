"""Aligned pictures, words, labels and ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from diptych.arrays import AnyArray, BoolArray, IntArray, as_labels
from diptych.data.item_sequences import Items, as_items, is_features, pick_items, read_only
from diptych.errors import InvalidInputError, UnknownNameError


class ClassSplit(NamedTuple):
    """Two sets of pairs without a common class, and how many pairs belonged to neither."""

    first: Pairs
    second: Pairs
    n_dropped: int


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Pairs:
    """An immutable set of images and the texts that describe them.

    Either side is a feature matrix, one row per item, or a sequence of raw items: paths, strings, arrays, or a lazy
    sequence that makes its items when asked.

    Parameters
    ----------
    images, texts:
        The two sides. Without ``owners`` they have the same length, and text *i* describes image *i*.
    labels:
        One class per image, shape (n,), integers or strings; or a 0/1 indicator of several classes, shape (n, K); or
        None when there are no classes.
    ids, text_ids:
        Unique names. By default images are named by their row and the k-th text of an image ``<image id>#<k>``.
    class_names:
        Names of the K columns of an indicator, or of the integer labels 0, 1, …; for string labels the classes
        themselves, in the order wanted for tables. By default the sorted strings, or the column numbers.
    owners:
        For each text the row of the image it describes, when an image has several. Every image needs a text.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.data import Pairs
    >>> pairs = Pairs(np.eye(2), ["a cat", "a kitten", "a dog"], labels=["cat", "dog"], owners=[0, 0, 1])
    >>> pairs
    <Pairs: 2 images (2 features), 3 texts (raw), 2 classes>
    >>> images, texts, labels = pairs.aligned()
    >>> images.shape, labels.tolist()
    ((3, 2), ['cat', 'cat', 'dog'])
    >>> pairs.select([1]).texts
    ('a dog',)
    """

    images: Items
    texts: Items
    labels: AnyArray | None
    ids: AnyArray
    class_names: tuple[str, ...]
    owners: IntArray
    text_ids: AnyArray

    def __init__(
        self,
        images: Items | ArrayLike,
        texts: Items | ArrayLike,
        labels: ArrayLike | None = None,
        ids: ArrayLike | None = None,
        class_names: Sequence[str] = (),
        owners: ArrayLike | None = None,
        text_ids: ArrayLike | None = None,
    ) -> None:
        checked_images, checked_texts = as_items(images, name="images"), as_items(texts, name="texts")
        n_images, n_texts = len(checked_images), len(checked_texts)
        if n_images == 0:
            raise InvalidInputError("there are no images; a set of pairs needs at least one")
        checked_owners = _checked_owners(owners, n_images, n_texts)
        checked_labels, names = _checked_labels(labels, tuple(class_names), n_images)
        checked_ids = _checked_ids(np.arange(n_images) if ids is None else ids, n_images, name="ids")
        named_texts = _default_text_ids(checked_ids, checked_owners) if text_ids is None else text_ids
        checked = {
            "images": checked_images,
            "texts": checked_texts,
            "labels": checked_labels,
            "ids": checked_ids,
            "class_names": names,
            "owners": checked_owners,
            "text_ids": _checked_ids(named_texts, n_texts, name="text_ids"),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def n_images(self) -> int:
        """The number of images, each with at least one text."""
        return len(self.images)

    @property
    def n_texts(self) -> int:
        """The number of texts, at least the number of images."""
        return len(self.texts)

    @property
    def n_classes(self) -> int:
        """The number of classes: the names if there are names, else the distinct labels."""
        if self.labels is None:
            return 0
        return len(self.class_names) or len(np.unique(self.labels))

    @property
    def is_multi_label(self) -> bool:
        """Whether an image can belong to several classes."""
        return self.labels is not None and self.labels.ndim == 2

    @property
    def is_one_to_one(self) -> bool:
        """Whether text *i* describes image *i* and there are no other texts."""
        return self.n_images == self.n_texts and bool((self.owners == np.arange(self.n_texts)).all())

    @property
    def has_image_features(self) -> bool:
        """Whether the images are a feature matrix."""
        return is_features(self.images)

    @property
    def has_text_features(self) -> bool:
        """Whether the texts are a feature matrix."""
        return is_features(self.texts)

    @property
    def text_labels(self) -> AnyArray | None:
        """The labels of each text, taken from the image it describes."""
        return None if self.labels is None else self.labels[self.owners]

    def aligned(self) -> tuple[Items, Items, AnyArray | None]:
        """Return (images, texts, labels) with one row per text, the image rows repeated, ready for ``model.fit``."""
        if self.is_one_to_one:
            return self.images, self.texts, self.labels
        return pick_items(self.images, self.owners), self.texts, self.text_labels

    def one_text_per_image(self, which: int | Literal["join"] = 0) -> Pairs:
        """Keep the ``which``-th text of each image, or join all its texts into one document.

        Joining needs raw strings; a document of all captions is what Liu et al. (2017) use for Pascal Sentence.
        """
        groups = self._texts_by_image()
        if which == "join":
            return replace(self, texts=self._joined(groups), owners=np.arange(self.n_images), text_ids=self.ids)
        for row, group in enumerate(groups):
            if not 0 <= which < len(group):
                raise InvalidInputError(
                    f"image {self.ids[row]} has {len(group)} texts, so none at position {which}; choose a smaller one"
                )
        rows = np.array([group[which] for group in groups])
        texts, text_ids = pick_items(self.texts, rows), self.text_ids[rows]
        return replace(self, texts=texts, owners=np.arange(self.n_images), text_ids=text_ids)

    def select(self, rows: ArrayLike) -> Pairs:
        """Return the pairs of these image rows (positions or a mask), in that order; their texts follow them."""
        chosen = _checked_rows(rows, self.n_images)
        groups = self._texts_by_image()
        texts = np.concatenate([groups[row] for row in chosen])
        owners = np.repeat(np.arange(len(chosen)), [len(groups[row]) for row in chosen])
        labels = None if self.labels is None else self.labels[chosen]
        return replace(
            self,
            images=pick_items(self.images, chosen),
            texts=pick_items(self.texts, texts),
            labels=labels,
            ids=self.ids[chosen],
            owners=owners,
            text_ids=self.text_ids[texts],
        )

    def split(self, test_size: float | int = 0.25, seed: int = 0, stratify: bool = False) -> tuple[Pairs, Pairs]:
        """Split at random into (train, test); all texts of an image stay with it.

        ``test_size`` is a share of the images or a number of them. With ``stratify`` every class gives its share,
        by largest remainders. Both parts keep the original order.
        """
        n_test = _checked_size(test_size, self.n_images, name="test_size", things="images")
        order = np.random.default_rng(seed).permutation(self.n_images)
        test = self._stratified(order, n_test) if stratify else order[:n_test]
        mask = np.zeros(self.n_images, dtype=bool)
        mask[test] = True
        return self.select(~mask), self.select(mask)

    def split_classes(self, classes: float | int | Sequence[Any] = 0.5, seed: int = 0) -> ClassSplit:
        """Split by class into the pairs of some classes and the pairs of all others.

        ``classes`` is a share or a number of classes, drawn at random with ``seed``, or a list of them. Pairs with
        several labels that fall into both halves, and pairs without any label, belong to neither: they are dropped and
        counted. An indicator keeps only the columns of its own half.
        """
        if self.labels is None:
            raise InvalidInputError("these pairs have no labels, so they cannot be split by class")
        chosen = self._chosen_classes(classes, seed)
        if self.is_multi_label:
            return self._split_indicator(chosen)
        mask = np.asarray(np.isin(self.labels, self._class_values()[chosen]))
        return ClassSplit(self._of_classes(mask, chosen), self._of_classes(~mask, ~chosen), 0)

    def class_name(self, label: Any) -> str:
        """Return the name of one label: of a number its place among the names, where there are names."""
        has_place = not self.is_multi_label and isinstance(label, np.integer) and bool(self.class_names)
        return self.class_names[int(label)] if has_place else str(label)

    def image_classes(self) -> AnyArray:
        """Return the name of each image's class, of several the first.

        >>> import numpy as np
        >>> from diptych.data import Pairs
        >>> Pairs(np.eye(3), np.eye(3), labels=[1, 0, 1], class_names=["cat", "dog"]).image_classes().tolist()
        ['dog', 'cat', 'dog']
        """
        if self.labels is None:
            raise InvalidInputError("these pairs have no labels, so their images have no classes")
        if self.is_multi_label:
            return np.array([self.class_names[column] for column in self.labels.argmax(axis=1)])
        return np.array([self.class_name(label) for label in self.labels])

    def with_features(self, images: ArrayLike | None = None, texts: ArrayLike | None = None) -> Pairs:
        """Return the same pairs with one or both sides replaced by a feature matrix of as many rows."""
        changes: dict[str, Any] = {}
        for name, features, n_rows in (("images", images, self.n_images), ("texts", texts, self.n_texts)):
            if features is None:
                continue
            matrix = np.asarray(features)
            if matrix.ndim != 2 or len(matrix) != n_rows:
                raise InvalidInputError(
                    f"features of {name} must have one row for each of the {n_rows} {name}, got shape {matrix.shape}"
                )
            changes[name] = matrix
        return replace(self, **changes)

    def describe(self) -> str:
        """Return the counts in one line."""
        sides = (("images", self.images), ("texts", self.texts))
        parts = [f"{len(items):,} {name} ({_form(items)})" for name, items in sides]
        if self.labels is not None:
            parts.append(f"{self.n_classes:,} classes" + (", several per image" if self.is_multi_label else ""))
        return ", ".join(parts)

    def __repr__(self) -> str:
        return f"<Pairs: {self.describe()}>"

    def _texts_by_image(self) -> list[IntArray]:
        order = np.argsort(self.owners, kind="stable")
        ends = np.cumsum(np.bincount(self.owners, minlength=self.n_images))
        return np.split(order, ends[:-1])

    def _joined(self, groups: list[IntArray]) -> tuple[str, ...]:
        texts = self.texts
        if self.has_text_features or not all(isinstance(text, str) for text in texts):
            raise InvalidInputError("only raw strings can be joined; join the texts before you encode them")
        return tuple(" ".join(texts[row] for row in group) for group in groups)

    def _stratified(self, order: IntArray, n_test: int) -> IntArray:
        if self.labels is None or self.is_multi_label:
            raise InvalidInputError("stratify needs one label per image; use stratify=False for these pairs")
        _, codes, sizes = np.unique(self.labels, return_inverse=True, return_counts=True)
        shares = _largest_remainders(sizes * (n_test / self.n_images), n_test)
        return np.concatenate([order[codes[order] == code][:share] for code, share in enumerate(shares)])

    def _class_values(self) -> AnyArray:
        """All classes that a half of the classes is drawn from; for labels, those that occur."""
        if self.is_multi_label:
            return np.array(self.class_names)
        assert self.labels is not None
        present = np.unique(self.labels)
        if self.labels.dtype.kind != "U":
            return present
        return np.array([name for name in self.class_names if name in set(present.tolist())])

    def _chosen_classes(self, classes: float | int | Sequence[Any], seed: int) -> BoolArray:
        values = self._class_values()
        if isinstance(classes, (int, float, np.number)):
            n_first = _checked_size(classes, len(values), name="classes", things="classes")
            chosen = np.zeros(len(values), dtype=bool)
            chosen[np.random.default_rng(seed).permutation(len(values))[:n_first]] = True
            return chosen
        names = [self.class_name(value) for value in values]
        wanted = {str(wanted) for wanted in classes}
        for name in wanted:
            if name not in names:
                raise UnknownNameError("class", name, names)
        mask = np.array([name in wanted for name in names])
        if mask.all() or not mask.any():
            raise InvalidInputError(f"each half needs a class, but {int(mask.sum())} of {len(names)} were asked for")
        return mask

    def _split_indicator(self, chosen: BoolArray) -> ClassSplit:
        assert self.labels is not None
        n_first, n_second = self.labels[:, chosen].sum(axis=1), self.labels[:, ~chosen].sum(axis=1)
        only_first = np.asarray((n_first > 0) & (n_second == 0))
        only_second = np.asarray((n_second > 0) & (n_first == 0))
        n_dropped = self.n_images - int(only_first.sum() + only_second.sum())
        return ClassSplit(self._of_classes(only_first, chosen), self._of_classes(only_second, ~chosen), n_dropped)

    def _of_classes(self, rows: BoolArray, classes: BoolArray) -> Pairs:
        if not rows.any():
            raise InvalidInputError("no pair belongs to one half of the classes alone; choose other classes")
        part = self.select(rows)
        assert part.labels is not None
        names = tuple(self._class_values()[classes].tolist())
        if self.is_multi_label:
            return replace(part, labels=part.labels[:, classes], class_names=names)
        return replace(part, class_names=names) if part.labels.dtype.kind == "U" else part


def _form(items: Items) -> str:
    return f"{items.shape[1]} features" if isinstance(items, np.ndarray) else "raw"


def _checked_owners(owners: ArrayLike | None, n_images: int, n_texts: int) -> IntArray:
    if owners is None:
        if n_images != n_texts:
            raise InvalidInputError(
                f"{n_images} images but {n_texts} texts; pass owners, the image row of each text, or align the two"
            )
        return read_only(np.arange(n_images))
    rows = np.asarray(owners)
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or len(rows) != n_texts:
        raise InvalidInputError(
            f"owners must be one image row (an integer) for each of the {n_texts} texts, "
            f"got shape {rows.shape} of {rows.dtype}"
        )
    if rows.min() < 0 or rows.max() >= n_images:
        raise InvalidInputError(f"owners must lie in 0..{n_images - 1}, got {rows.min()}..{rows.max()}")
    lonely = np.flatnonzero(np.bincount(rows, minlength=n_images) == 0)
    if len(lonely):
        raise InvalidInputError(f"{len(lonely)} images have no text, first row {lonely[0]}; drop them or add texts")
    return read_only(rows.astype(np.int64))


def _checked_labels(
    labels: ArrayLike | None, class_names: tuple[str, ...], n_images: int
) -> tuple[AnyArray | None, tuple[str, ...]]:
    if len(set(class_names)) != len(class_names):
        raise InvalidInputError("class_names must be different from each other")
    if labels is None:
        if class_names:
            raise InvalidInputError("class_names were given without labels; pass both or neither")
        return None, ()
    values = as_labels(labels, one_column=False)
    if len(values) != n_images:
        raise InvalidInputError(f"labels must have one row for each of the {n_images} images, got {len(values)}")
    if values.ndim == 2:
        return _checked_indicator(values, class_names)
    if values.ndim != 1:
        raise InvalidInputError(f"labels must have shape (n,) or (n, classes), got {values.shape}")
    if values.dtype.kind == "U":
        return _checked_names(values, class_names)
    if values.dtype.kind not in "iub":
        raise InvalidInputError(f"labels must be integers, strings or a 0/1 indicator, got dtype {values.dtype}")
    return _checked_numbers(values.astype(np.int64), class_names)


def _checked_indicator(values: AnyArray, class_names: tuple[str, ...]) -> tuple[AnyArray, tuple[str, ...]]:
    if values.dtype.kind not in "iubf" or not np.isin(values, (0, 1)).all():
        raise InvalidInputError("labels of shape (n, classes) must be a 0/1 indicator; for one class pass shape (n,)")
    names = class_names or tuple(str(column) for column in range(values.shape[1]))
    if len(names) != values.shape[1]:
        raise InvalidInputError(f"labels have {values.shape[1]} columns but there are {len(names)} class_names")
    return read_only(values.astype(np.int32)), names


def _checked_names(values: AnyArray, class_names: tuple[str, ...]) -> tuple[AnyArray, tuple[str, ...]]:
    present = np.unique(values).tolist()
    for name in present:
        if class_names and name not in class_names:
            raise InvalidInputError(f"the label {name!r} is not among class_names; add it there")
    return read_only(values), class_names or tuple(present)


def _checked_numbers(values: AnyArray, class_names: tuple[str, ...]) -> tuple[AnyArray, tuple[str, ...]]:
    if class_names and (values.min() < 0 or values.max() >= len(class_names)):
        raise InvalidInputError(
            f"integer labels count from 0 into the {len(class_names)} class_names, got {values.min()}..{values.max()}"
        )
    return read_only(values), class_names


def _checked_ids(ids: ArrayLike, n_rows: int, *, name: str) -> AnyArray:
    values = np.asarray(ids).astype(str)
    if values.shape != (n_rows,):
        raise InvalidInputError(f"{name} must be one for each of the {n_rows} items, got shape {values.shape}")
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) != n_rows:
        raise InvalidInputError(f"{name} must be unique, but {str(distinct[counts > 1][0])!r} occurs more than once")
    return read_only(values)


def _default_text_ids(ids: AnyArray, owners: IntArray) -> list[str]:
    seen = dict.fromkeys(range(len(ids)), 0)
    names = []
    for owner in owners.tolist():
        names.append(f"{ids[owner]}#{seen[owner]}")
        seen[owner] += 1
    return names


def _checked_rows(rows: ArrayLike, n_images: int) -> IntArray:
    chosen = np.asarray(rows)
    if chosen.dtype == bool:
        if chosen.shape != (n_images,):
            raise InvalidInputError(f"a mask needs one entry for each of the {n_images} images, got {chosen.shape}")
        chosen = np.flatnonzero(chosen)
    if chosen.ndim != 1 or len(chosen) == 0 or chosen.dtype.kind not in "iu":
        raise InvalidInputError("rows must be a non-empty list of image rows or a mask that keeps at least one")
    if chosen.min() < 0 or chosen.max() >= n_images:
        raise InvalidInputError(f"rows must lie in 0..{n_images - 1}, got {chosen.min()}..{chosen.max()}")
    if len(np.unique(chosen)) != len(chosen):
        raise InvalidInputError("rows must be different from each other, because ids stay unique")
    return chosen.astype(np.int64)


def _checked_size(size: float | int, total: int, *, name: str, things: str) -> int:
    is_share = isinstance(size, (float, np.floating))
    count = round(float(size) * total) if is_share else int(size)
    if (is_share and not 0 < size < 1) or not 0 < count < total:
        raise InvalidInputError(
            f"{name} must be a share between 0 and 1 or a number in 1..{total - 1} that leaves both parts some "
            f"{things}, got {size} of {total}"
        )
    return count


def _largest_remainders(quotas: AnyArray, total: int) -> IntArray:
    counts = np.floor(quotas).astype(np.int64)
    neediest = np.argsort(-(quotas - counts), kind="stable")[: total - int(counts.sum())]
    counts[neediest] += 1
    return counts
