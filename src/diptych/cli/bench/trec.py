"""``diptych bench trec``: rankings to and from the files of other tools."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from diptych.cli.console.output import (
    bold,
    check_folder,
    check_writable_file,
    notes,
    numbers,
    print_json,
    print_outcome,
    print_table,
    results,
    write_text,
)
from diptych.cli.console.progress import Stages
from diptych.cli.options import (
    DatasetOption,
    ImageEncoderOption,
    ImageScalingOption,
    JsonOption,
    MethodOption,
    ParameterOption,
    PluginOption,
    QuietOption,
    Relevance,
    RunGains,
    RunMissing,
    RunTieBreaking,
    TextEncoderOption,
    TextScalingOption,
    WrittenScores,
    complete_dataset,
)

if TYPE_CHECKING:
    from diptych.benchmark.exchange import RunScores
    from diptych.metrics import Measure

_MEASURES = ("AP", "P@10", "R@10", "RR", "nDCG@10")


def trec_export(
    data: Annotated[
        str,
        typer.Option(
            "--data", "-d", autocompletion=complete_dataset, help="Name of a data set; `diptych datasets` lists them."
        ),
    ],
    method: MethodOption,
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder that gets the files.")],
    param: ParameterOption = None,
    dataset_option: DatasetOption = None,
    image_encoder: ImageEncoderOption = None,
    text_encoder: TextEncoderOption = None,
    images: ImageScalingOption = "l2",
    texts: TextScalingOption = "none",
    relevant: Annotated[
        Relevance, typer.Option(help="What a right answer shares with the query; auto: a label, if there are any.")
    ] = "auto",
    depth: Annotated[
        int | None, typer.Option(min=1, help="Keep so many items of each list; by default all of them.")
    ] = None,
    scores: Annotated[
        WrittenScores,
        typer.Option(
            help="rank: whole numbers, so that every tool sees the same order; model: the scores themselves, whose "
            "ties tools break as they like."
        ),
    ] = "rank",
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the method.")] = 0,
    plugin: PluginOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Fit a method on the training part and write its rankings of the test part and the right answers.

    There is a run and a qrels file for image queries and for text queries. Items of equal score stand in trec_eval's
    order: the name that is later in the alphabet first.
    """
    from diptych.benchmark import Plugin
    from diptych.benchmark.evaluation import Evaluation
    from diptych.benchmark.exchange import export_retrieval
    from diptych.benchmark.runner import choose
    from diptych.cli.arguments import build_encoders, parse_assignments

    encode_images, encode_texts = build_encoders(image_encoder, text_encoder)
    evaluation = Evaluation(
        dataset=data,
        method=method,
        parameters=parse_assignments(param or [], "--param"),
        dataset_options=parse_assignments(dataset_option or [], "--dataset-option"),
        image_encoder=encode_images,
        text_encoder=encode_texts,
        images=images,
        texts=texts,
        relevant=relevant,
        seed=seed,
        plugins=tuple(Plugin.read(path) for path in plugin or ()),
    )
    check_folder(output)
    stages = Stages(quiet=quiet)
    prepared = evaluation.prepare(lambda title: stages.run(title, title))
    fold = prepared.fold
    with stages.run("fit", f"fitting {method}"):
        model = choose(prepared.method, fold.training, prepared.task.measures[0]).model
    with stages.run("write", "writing rankings"):
        files = export_retrieval(
            model,
            fold.retrieval,
            output,
            relevant=prepared.task.relevant,
            depth=depth,
            tag=method,
            scores=scores,
        )
    facts = {way: {"run": run, "qrels": files.qrels[way]} for way, run in files.runs.items()}
    lines = [str(file) for written in facts.values() for file in written.values()]
    print_outcome("\n".join(lines), facts, as_json=as_json)


def trec_score(
    run: Annotated[Path, typer.Argument(help="A run file: query Q0 item rank score tag.")],
    qrels: Annotated[Path, typer.Argument(help="A qrels file: query 0 item grade.")],
    measure: Annotated[
        list[str] | None,
        typer.Option(
            "--measure",
            "-m",
            help="AP, AP@k, P@k, R@k, RR, nDCG, nDCG@k, nDCG-exp@k or Success@k with a number for k; may be repeated. "
            f"Default: {', '.join(_MEASURES)}.",
        ),
    ] = None,
    ties: Annotated[
        RunTieBreaking, typer.Option(help="Order of items of equal score; trec: as trec_eval orders them.")
    ] = "trec",
    level: Annotated[int, typer.Option(min=1, help="The lowest grade that is relevant, as trec_eval's -l.")] = 1,
    gains: Annotated[
        RunGains, typer.Option(help="Gains of nDCG: grades, also those below --level, as trec_eval; or binary.")
    ] = "grades",
    missing: Annotated[
        RunMissing,
        typer.Option(help="Judged queries that the run does not rank: zero, as trec_eval -c, or skip, as without -c."),
    ] = "zero",
    empty: Annotated[
        RunMissing, typer.Option(help="Queries without a relevant item: zero, as trec_eval, or skip.")
    ] = "skip",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write all numbers, those of each query too, to a JSON file.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure a run file of any tool against a qrels file.

    `--empty zero --missing skip` counts as trec_eval does, `--empty zero` as `trec_eval -c`.
    """
    import json

    from diptych.benchmark.exchange import find_measure, read_qrels, read_run, score_run

    measures = {name: find_measure(name) for name in measure or _MEASURES}
    if output is not None:
        check_writable_file(output)
    found = score_run(
        read_run(run),
        read_qrels(qrels),
        [*measures.values()],
        ties=ties,
        missing=missing,
        empty=empty,
        level=level,
        gains=gains,
    )
    if output is not None:
        write_text(output, json.dumps(_document(found, measures), indent=2) + "\n")
    if as_json:
        print_json(_document(found, measures))
        return
    rows = ([name, f"{found.mean[one]:.4f}"] for name, one in measures.items())
    print_table([bold("measure"), *numbers("mean")], rows, results())
    notes().print(_remark(found, ties, missing=missing, empty=empty))


def _remark(found: RunScores, ties: str, *, missing: str, empty: str) -> str:
    told = {"zero": "count as nothing found", "skip": "are left out"}
    counts = {
        f"judged queries are not in the run and {told[missing]}": found.unanswered,
        "queries of the run are not judged and left out": found.unjudged,
        f"queries have no relevant item and {told[empty]}": found.without_relevant,
    }
    lines = [f"{count:,} {what}" for what, count in counts.items() if count]
    return "; ".join([f"{len(found.queries):,} queries", f"ties: {ties}", *lines])


def _document(found: RunScores, measures: Mapping[str, Measure]) -> dict[str, dict[str, Any]]:
    """Return the numbers as plain values, null for a query that was left out."""
    return {
        "mean": {name: found.mean[measure] for name, measure in measures.items()},
        "queries": {
            name: {
                query: None if math.isnan(value) else value
                for query, value in zip(found.queries, found.values[measure].tolist(), strict=True)
            }
            for name, measure in measures.items()
        },
    }
