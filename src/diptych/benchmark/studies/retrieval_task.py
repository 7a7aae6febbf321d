"""A task of the benchmark, declared."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

from diptych.benchmark.features import Features
from diptych.benchmark.results import FORMAT
from diptych.benchmark.task import BenchmarkTask, Method, labelled_only
from diptych.data import DatasetSplits
from diptych.errors import UnknownNameError
from diptych.former_names import former_parameters
from diptych.metrics import AP, CMC, Measure
from diptych.protocols import Fold, Relevant, RetrievalProtocol


@dataclass(frozen=True)
class RetrievalTask(BenchmarkTask):
    """Data set × features × protocol × measures × citation, and the methods that take part; never how they run.

    The first measure is the main one: parameters are chosen by it. ``source`` is a data set that is not registered,
    and ``data_digest`` tells its contents apart.

    >>> from diptych.benchmark.running import find_retrieval_task
    >>> task = find_retrieval_task("extendable-wikipedia-unseen")
    >>> task.dataset, task.protocol.setting, task.protocol.n_folds, task.measures[0].label
    ('wikipedia', 'unseen', 5, 'MAP')
    """

    features: Features
    protocol: RetrievalProtocol
    methods: tuple[Method, ...]
    measures: tuple[Measure, ...] = (AP(), CMC(1), CMC(5), CMC(10), CMC(20), CMC(50))
    relevant: Relevant = "auto"
    citation: str = ""
    data_digest: str = ""

    def load(self) -> DatasetSplits:
        """Return the data set, encoded where encoders learn nothing; where labels decide, only pictures with one."""
        items = self.load_items()
        return self.features.of_splits(labelled_only(items) if self.relevant == "label" else items)

    def fold(self, splits: DatasetSplits, number: int) -> Fold:
        """Return one fold of what `load` returned, as features."""
        return self.features.of_fold(self.protocol.fold(splits, number), splits)

    def method(self, key: str) -> Method:
        """Return the method called ``key``."""
        by_key = {entry.key: entry for entry in self.methods}
        if key not in by_key:
            raise UnknownNameError(f"method of {self.name}", key, by_key)
        return by_key[key]

    def fingerprint(self, entry: Method) -> str:
        """Return a digest of the declaration; results under another one answer another question.

        The number of folds is not in it, because a fold does not depend on how many there are.
        """
        model = sorted((name, repr(value)) for name, value in former_parameters(entry.model).items())
        shape = (
            FORMAT,
            self.dataset,
            self.data_digest,
            sorted(self.options.items()),
            self.features.declaration,
            repr(self.protocol),
            self.measures,
            self.relevant,
            type(entry.model).__name__,
            model,
            [sorted((name, list(values)) for name, values in part.items()) for part in entry.grid],
        )
        return hashlib.sha256(repr(shape).encode()).hexdigest()[:32]

    def with_methods(self, methods: tuple[Method, ...]) -> RetrievalTask:
        """Return the task with these methods."""
        return replace(self, methods=methods)
