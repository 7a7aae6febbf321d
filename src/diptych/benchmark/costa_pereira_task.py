"""One data set in the tables of Costa Pereira et al. (2014), declared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from diptych.benchmark.published import Published, published_map
from diptych.data import Dataset, DatasetSplits, find_dataset
from diptych.encoders import Encoder, encode_splits
from diptych.protocols import HoldOut


@dataclass(frozen=True)
class CostaPereiraTask:
    """Data, features to choose from, settings to choose from, and which tables the paper prints.

    ``image_encoders`` and ``text_encoders`` are by what a table calls them, one of each to be chosen; none where the
    data set comes as features. ``kappas`` and ``components`` are those of KCCA, ``few_components`` those of CCA and
    CFA. ``tables`` holds the paper's numbers of the tables for ``correlation`` and ``test``; nothing where it has none.
    """

    name: str
    title: str
    dataset: str
    options: Mapping[str, Any] = field(default_factory=dict)
    image_encoders: Mapping[str, Encoder] = field(default_factory=dict)
    text_encoders: Mapping[str, Encoder] = field(default_factory=dict)
    kappas: Sequence[float] = (0.5,)
    components: Sequence[int] = (5, 10, 20, 40, 80, 160)
    few_components: Sequence[int] = (3, 5, 7, 9)
    tables: Mapping[str, str] = field(default_factory=dict)
    protocol: HoldOut = field(default_factory=lambda: HoldOut(repeats=1, share=0.2))
    source: Dataset | None = None
    notes: tuple[str, ...] = ()

    def representations(self) -> Iterator[tuple[str, DatasetSplits]]:
        """Yield every choice of features, learned from the training part, with its name."""
        raw = (find_dataset(self.dataset) if self.source is None else self.source).load(**self.options)
        if not self.image_encoders or not self.text_encoders:
            yield "as given", raw
            return
        for image_name, image_encoder in self.image_encoders.items():
            for text_name, text_encoder in self.text_encoders.items():
                yield f"{image_name}, {text_name}", encode_splits(raw, image_encoder, text_encoder)

    def published(self, table: str, method: str, regime: str | None = None) -> Published | None:
        """Return what the paper prints, or None where it has no such table or row."""
        if table not in self.tables:
            return None
        return published_map("004", self.tables[table], self.dataset, method, regime)
