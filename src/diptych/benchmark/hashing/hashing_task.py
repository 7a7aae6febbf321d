"""Where codes are asked, declared: data, features, who is learned from and who is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from sklearn.base import clone

from diptych.data import Dataset, DatasetSplits, Pairs, find_dataset
from diptych.encoders import Encoder, encode_splits
from diptych.models import Preprocessed
from diptych.models.hashing.hashing_model import HashingModel
from diptych.models.preprocessed import RowScaling
from diptych.protocols import Extendable, Retrieval

Setting = Literal["seen", "unseen", "captions"]

SETTING_TITLES: Mapping[Setting, str] = {
    "seen": "classes that were learned",
    "unseen": "classes that were not learned",
    "captions": "the query's own photo or captions",
}


@dataclass(frozen=True)
class HashingTask:
    """A data set whose items become codes, and how they are asked.

    With classes, fold k is a division of the classes by `Extendable`: codes are learned from one half of them and asked
    for that half, ``seen``, and for the other, ``unseen``. Without classes, fold k learns from the k-th caption of each
    training photo, and every test photo and caption asks for what belongs to it: ``captions``.
    """

    name: str
    title: str
    dataset: str
    options: Mapping[str, Any] = field(default_factory=dict)
    source: Dataset | None = None
    image_encoder: Encoder | None = None
    text_encoder: Encoder | None = None
    images: RowScaling = "l2"
    texts: RowScaling = "l2"
    has_classes: bool = True
    cmc_rank: int = 1
    notes: tuple[str, ...] = ()

    @property
    def settings(self) -> tuple[Setting, ...]:
        """Who is asked for."""
        return ("seen", "unseen") if self.has_classes else ("captions",)

    def load(self) -> DatasetSplits:
        """Return the training and test pairs as feature matrices."""
        source = find_dataset(self.dataset) if self.source is None else self.source
        return encode_splits(source.load(**self.options), self.image_encoder, self.text_encoder)

    def fold(self, splits: DatasetSplits, number: int) -> tuple[Pairs, dict[Setting, Retrieval]]:
        """Return what to learn from in fold ``number``, and what to ask in each setting."""
        if self.has_classes:
            fold = Extendable(folds=number + 1).class_fold(splits, number)
            return fold.train, {"seen": fold.seen, "unseen": fold.unseen}
        captions = splits.train.n_texts // splits.train.n_images
        return splits.train.one_text_per_image(number % captions), {"captions": Retrieval(splits.test, splits.test)}

    def model(self, method: HashingModel, n_bits: int, number: int) -> Preprocessed:
        """Return the unfitted method behind the task's scaling; fold ``number`` is its seed, where it has one."""
        parameters: dict[str, Any] = {"n_bits": n_bits}
        if "seed" in method.get_params():
            parameters["seed"] = number
        return Preprocessed(model=clone(method).set_params(**parameters), images=self.images, texts=self.texts)
