"""The experiments of Costa Pereira et al. (2014): which distance, which correlation, and do the two ideas add up?"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

import numpy as np

from diptych.benchmark.costa_pereira_choosing import (
    STRENGTHS,
    KernelChoice,
    TunedMethod,
    kernel_choices,
    refitted,
    tuned,
    validation_split,
)
from diptych.benchmark.costa_pereira_report import CostaPereiraReport, MapRow, MethodDetail
from diptych.benchmark.costa_pereira_spaces import METRIC, encoded_by
from diptych.benchmark.costa_pereira_task import CostaPereiraTask
from diptych.benchmark.published import Published
from diptych.benchmark.runner import DISTANCES, Progress, Stage
from diptych.data import DatasetSplits, Pairs
from diptych.encoders import LdaTopics, SiftWords
from diptych.errors import InvalidInputError, UnknownNameError
from diptych.metrics import AP, InterpolatedPrecisionRecall, category_means
from diptych.models import CCA, CFA, SM
from diptych.protocols import EncodedRetrieval, TwoWayEvaluation
from diptych.space import DIRECTIONS, Space

_RIDGES = (1e-3, 1e-2, 0.1, 1.0)
_CURVE = InterpolatedPrecisionRecall()
_METHODS = ("SCM", "SM", "CM")

COSTA_PEREIRA = (
    CostaPereiraTask(
        name="wikipedia",
        title="Wikipedia, 2,173 training and 693 test pairs, 128 SIFT words and 10 LDA topics",
        dataset="wikipedia",
        # The regulariser that the paper prints for this data set.
        kappas=(0.5,),
        tables={"distances": "Table IV", "correlation": "Table VI", "test": "Table IX"},
        notes=(
            "The paper chose among codebooks of 128 to 8,192 words and 5 to 4,000 topics; the features given to the "
            "public are smaller, so its numbers stand there for orientation.",
        ),
    ),
    CostaPereiraTask(
        name="pascal",
        title="Pascal Sentence, 700 training and 300 test pairs, SIFT words and LDA topics learned here",
        dataset="pascal_sentence",
        options={"captions": "join"},
        image_encoders={f"{words} words": SiftWords(n_words=words) for words in (256, 1024)},
        text_encoders={f"{topics} topics": LdaTopics(n_topics=topics) for topics in (20, 50, 100)},
        kappas=(0.1, 0.5, 0.9),
        few_components=(5, 10, 20, 40),
        notes=("The paper has no such data set: its experiments on another one, from raw pictures and sentences.",),
    ),
    CostaPereiraTask(
        name="tvgraz",
        title="TVGraz, 1,558 training and 500 test pairs, features as supplied",
        dataset="tvgraz",
        kappas=(0.1,),
        few_components=(5, 10, 20, 40),
        tables={"distances": "Table IV", "correlation": "Table V", "test": "Table VIII"},
    ),
)
"""One task for each data set: the paper's two, and Pascal Sentence from raw pictures."""


def find_costa_pereira(name: str) -> CostaPereiraTask:
    """Return the task of one data set; a typo gets a suggestion.

    >>> from diptych.benchmark.costa_pereira import find_costa_pereira
    >>> find_costa_pereira("wikipedia").protocol
    HoldOut(repeats=1, share=0.2, seed=0)
    """
    tasks = {task.name: task for task in COSTA_PEREIRA}
    if name not in tasks:
        raise UnknownNameError("data set of this study", name, tasks)
    return tasks[name]


def run_costa_pereira(task: CostaPereiraTask, *, n_jobs: int = 1, stage: Stage | None = None) -> CostaPereiraReport:
    """Repeat the paper's experiments on one data set.

    One random fifth of the training pairs is the validation part. On it are chosen, one after another, the features,
    the settings of semantic matching (SM), of correlation matching (CM) by CFA, CCA and KCCA, and of semantic
    correlation matching (SCM), all with the distance NCc; with these settings five distances are compared. Then
    everything is fitted once more on all training pairs, with as many more kernel components as there are more pairs,
    and the test part is asked once. The order of the steps is ours: the paper compares distances first.

    Codebooks and topics, which use no labels, are learned from the whole training part, so that the validation part has
    been seen by them. ``stage(title)`` is entered around each long step.

    Costa Pereira et al., "On the role of correlation and abstraction in cross-modal multimedia retrieval", TPAMI 2014,
    sections V and VI.
    """
    started = time.perf_counter()
    enter = _silent if stage is None else stage
    with enter("loading and encoding"):
        representations = dict(task.representations())
    with enter("tuning SM on each choice of features"):
        compared = {name: _semantic(task, splits, n_jobs) for name, splits in representations.items()}
        best = max(compared, key=lambda name: compared[name].encoded.evaluate([AP()]).average(AP()))
        splits, semantic = representations[best], compared[best]
    with enter("tuning CCA and CFA"):
        few = {"n_components": [*task.few_components]}
        linear = {
            "CM-CCA": tuned(
                CCA(weight_power=0.0, metric=METRIC),
                few | {"regularization": _RIDGES},
                splits,
                task.protocol,
                n_jobs=n_jobs,
            ),
            "CM-CFA": tuned(CFA(metric=METRIC), few, splits, task.protocol, n_jobs=n_jobs),
        }
    with enter("choosing KCCA and SCM"):
        correlation, both = kernel_choices(splits, task.protocol, task.kappas, task.components)
    with enter("fitting again and asking the test part"):
        tested = {
            "SM": encoded_by(semantic.model, splits.test),
            **refitted({"CM": correlation, "SCM": both}, splits),
        }
        results = {name: encoded.evaluate([AP(), _CURVE]) for name, encoded in tested.items()}
        chance = _indifferent(tested["SM"]).evaluate([AP(), _CURVE])
    chosen: dict[str, TunedMethod | KernelChoice] = {"CM": correlation, "SM": semantic, "SCM": both}
    return CostaPereiraReport(
        task=task.name,
        title=task.title,
        n_train=splits.train.n_images,
        n_validation=validation_split(splits.train, task.protocol)[1].n_images,
        n_test=splits.test.n_images,
        representations=tuple(_row("SM", one.encoded, detail=name) for name, one in compared.items()),
        distances=tuple(_distance_rows(task, {name: choice.encoded for name, choice in chosen.items()})),
        correlation=tuple(_correlation_rows(task, {"CM-KCCA": correlation, **linear})),
        test=(
            *(_result_row(task, name, results[name], chosen[name].setting) for name in _METHODS),
            _result_row(task, "Random", chance, "exact expectation"),
        ),
        details={name: _detail(results[name], splits.test, tested[name]) for name in _METHODS},
        chance=_detail(chance, splits.test, None),
        seconds=time.perf_counter() - started,
        notes=task.notes,
    )


def _silent(title: str) -> AbstractContextManager[Progress]:
    return nullcontext(lambda done, total: None)


def _semantic(task: CostaPereiraTask, splits: DatasetSplits, n_jobs: int) -> TunedMethod:
    if splits.train.labels is None or splits.train.is_multi_label:
        raise InvalidInputError(f"SM and SCM learn from one label per picture, which {task.dataset} does not have")
    return tuned(SM(metric=METRIC), {"C": STRENGTHS}, splits, task.protocol, n_jobs=n_jobs)


def _row(method: str, encoded: EncodedRetrieval, *, detail: str = "", published: Published | None = None) -> MapRow:
    found = encoded.evaluate([AP()])
    return MapRow(method, found.image_query[AP()], found.text_query[AP()], detail, published)


def _distance_rows(task: CostaPereiraTask, encoded: Mapping[str, EncodedRetrieval]) -> Iterator[MapRow]:
    """Yield the five distances of each space; points of CM are no probabilities, so that KL is not defined for it."""
    for method, points in encoded.items():
        for metric, printed in DISTANCES.items():
            if method == "CM" and metric == "kl":
                continue
            published = task.published("distances", method, f"validation set; distance {printed}")
            yield _row(method, replace(points, space=Space(metric)), detail=metric, published=published)


def _correlation_rows(task: CostaPereiraTask, choices: Mapping[str, TunedMethod | KernelChoice]) -> Iterator[MapRow]:
    for method, choice in choices.items():
        published = task.published("correlation", method, "validation set; CM")
        yield _row(method, choice.encoded, detail=choice.setting, published=published)


def _result_row(task: CostaPereiraTask, method: str, result: TwoWayEvaluation, setting: str) -> MapRow:
    published = task.published("test", method, "test set")
    return MapRow(method, result.image_query[AP()], result.text_query[AP()], setting, published)


def _indifferent(encoded: EncodedRetrieval) -> EncodedRetrieval:
    """Return the same questions where every answer scores the same, so that measures take their chance level."""
    queries = {way: np.zeros_like(points) for way, points in encoded.queries.items()}
    gallery = {way: np.zeros_like(points) for way, points in encoded.gallery.items()}
    return replace(encoded, space=Space("dot"), queries=queries, gallery=gallery)


def _detail(result: TwoWayEvaluation, test: Pairs, encoded: EncodedRetrieval | None) -> MethodDetail:
    truth = {"image_query": np.asarray(test.labels), "text_query": np.asarray(test.text_labels)}
    categories = {way: category_means(result[way].values[AP()], truth[way]) for way in DIRECTIONS}
    return MethodDetail(
        precision={way: tuple(result[way][_CURVE].y.tolist()) for way in DIRECTIONS},
        categories={way: {str(name): mean for name, mean in means.items()} for way, means in categories.items()},
        confusion={} if encoded is None else {way: encoded.confusion(way) for way in DIRECTIONS},
    )
