"""``diptych evaluate``: one method, one data set, both directions; with its tables and figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from diptych.cli.console.output import (
    bold,
    facts_table,
    numbers,
    or_dash,
    print_table,
    results,
    writing,
)
from diptych.cli.console.progress import Stages
from diptych.cli.console.report_files import check_report_files, save_figures, write_report_files
from diptych.cli.options import (
    DatasetOption,
    DeviceOption,
    ImageEncoderOption,
    ImageScalingOption,
    JsonOption,
    MethodOption,
    ParameterOption,
    PictureFormat,
    PluginOption,
    QuietOption,
    Relevance,
    TextEncoderOption,
    TextScalingOption,
    TieBreaking,
    complete_dataset,
)
from diptych.directions import DIRECTIONS

if TYPE_CHECKING:
    from diptych.benchmark.evaluation import Outcome
    from diptych.benchmark.results import Record

FILES = "What to write"
MEASURING = "How to measure"
IN_WORDS = {
    "AP": "mean average precision",
    "CMC": "cumulative match",
    "RecallAtK": "recall, any hit",
    "Precision": "precision",
    "NDCG": "normalised gain",
    "MedianRank": "of the first hit",
    "MeanRank": "of the first hit",
}
RELEVANT = {"label": "what shares a label with the query", "instance": "what belongs to the query's own picture"}


def evaluate(
    dataset: Annotated[
        str,
        typer.Option(
            "--dataset",
            "-d",
            autocompletion=complete_dataset,
            help="Name of a data set; `diptych datasets` lists them.",
        ),
    ],
    method: MethodOption,
    param: ParameterOption = None,
    tune: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=[VALUE,...]",
            help="Choose a parameter, or the scaling of images or texts, on 5 hold-outs of the training part.",
        ),
    ] = None,
    dataset_option: DatasetOption = None,
    image_encoder: ImageEncoderOption = None,
    text_encoder: TextEncoderOption = None,
    images: ImageScalingOption = "l2",
    texts: TextScalingOption = "none",
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the method, the hold-outs and the bootstrap.")] = 0,
    relevant: Annotated[
        Relevance,
        typer.Option(
            rich_help_panel=MEASURING,
            help="What a right answer shares with the query: a label, or the picture itself; auto: labels if any.",
        ),
    ] = "auto",
    ties: Annotated[
        TieBreaking, typer.Option(rich_help_panel=MEASURING, help="What happens to items of equal score.")
    ] = "expected",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", rich_help_panel=FILES, help="Write all numbers to this JSON file.")
    ] = None,
    plots: Annotated[Path | None, typer.Option(rich_help_panel=FILES, help="Draw figures into this folder.")] = None,
    file_format: Annotated[
        PictureFormat, typer.Option("--format", rich_help_panel=FILES, help="File format of the figures.")
    ] = "png",
    save: Annotated[
        Path | None, typer.Option(rich_help_panel=FILES, help="Save the fitted model in this folder.")
    ] = None,
    plugin: PluginOption = None,
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Measure a method on a data set, in both directions.

    It is fitted on the training part and measured on the test part.
    """
    from diptych.benchmark import Plugin
    from diptych.benchmark.evaluation import Evaluation
    from diptych.cli.arguments import build_encoders, parse_assignments

    encode_images, encode_texts = build_encoders(image_encoder, text_encoder)
    evaluation = Evaluation(
        dataset=dataset,
        method=method,
        parameters=parse_assignments(param or [], "--param"),
        dataset_options=parse_assignments(dataset_option or [], "--dataset-option"),
        choices=parse_assignments(tune or [], "--tune"),
        image_encoder=encode_images,
        text_encoder=encode_texts,
        images=images,
        texts=texts,
        relevant=relevant,
        ties=ties,
        seed=seed,
        plugins=tuple(Plugin.read(path) for path in plugin or ()),
    )
    check_report_files(output, plots)
    if save is not None:
        from diptych.models.files import check_replaceable

        check_replaceable(save)
    stages = Stages(quiet=quiet)
    outcome = evaluation.run(lambda title: stages.run(title, title), curves=plots is not None)

    def draw(folder: Path) -> list[Path]:
        return draw_plots(outcome, folder, file_format)

    # Files first: a reader of the pipe may leave early.
    if save is not None:
        with writing(save):
            outcome.model.save(save)
        without = ", without the encoders of pictures and texts" if outcome.prepared.encoders else ""
        stages.note(f"model: {save}{without}")
    write_report_files(stages, output=output, document=outcome.as_json, plots=plots, draw=draw, as_json=as_json)
    if not as_json:
        print_report(outcome)


def print_report(outcome: Outcome) -> None:
    """Print what was done, what came out, and codes and categories if there are any."""
    _print_facts(outcome)
    _print_measures(outcome)
    if outcome.measured.record.code_statistics is not None:
        _print_hash_codes(outcome.measured.record)
    if outcome.categories:
        _print_categories(outcome)


def _print_facts(outcome: Outcome) -> None:
    from diptych.benchmark.evaluation import readable_parameters
    from diptych.models import Preprocessed

    prepared, fitted, record = outcome.prepared, outcome.measured.choice.model, outcome.measured.record
    splits, fold = prepared.splits, prepared.fold
    method = replace(prepared.method, model=fitted).method
    scaling = f"images {fitted.images}, texts {fitted.texts}" if isinstance(fitted, Preprocessed) else "none"
    facts = {
        "data set": splits.name + _in_brackets(splits.options),
        "train": (fold.training.pairs or splits.train).describe(),
        "test": fold.retrieval.queries.describe(),
        **{f"{side} by": encoder.identity for side, encoder in prepared.encoders.items()},
        "method": prepared.method.name + _in_brackets(readable_parameters(method)),
        "scaling": scaling,
        "relevant": RELEVANT[prepared.task.relevant],
        "ties": outcome.ties,
    }
    if record.validation["trials"]:
        mean, deviation, trials = (record.validation[name] for name in ("mean", "deviation", "trials"))
        facts["chosen"] = f"best of {trials} settings, MAP {mean:.4f} ± {deviation:.4f} on 5 hold-outs"
    results().print(facts_table(facts))


def _in_brackets(options: Mapping[str, Any]) -> str:
    listed = ", ".join(f"{name}={value!r}" for name, value in options.items())
    return f" ({listed})" if listed else ""


def _print_measures(outcome: Outcome) -> None:
    from diptych.metrics import MeanRank, MedianRank

    evaluation = outcome.measured.result
    rows = []
    for measure in outcome.prepared.task.measures:
        values = [evaluation[way].mean[measure] for way in DIRECTIONS]
        values += [evaluation.average(measure), evaluation.chance(measure)]
        form = ",.1f" if isinstance(measure, MedianRank | MeanRank) else ".4f"
        name = IN_WORDS.get(type(measure).__name__, "")
        rows.append([measure.label, *(format(value, form) for value in values), name])
    columns = numbers("image query", "text query", "average", "chance")
    console = results()
    console.print()
    print_table([bold("measure"), *columns, "in words"], rows, console, title="Measures")
    bounds = [f"{outcome.intervals[way].low:.4f}–{outcome.intervals[way].high:.4f}" for way in DIRECTIONS]
    console.print(f"\n95 % bootstrap interval of MAP: images {bounds[0]}, texts {bounds[1]}")
    skipped = sum(evaluation[way].n_without_relevant for way in DIRECTIONS)
    if skipped:
        console.print(f"{skipped:,} queries without a relevant item are left out.")


def _print_hash_codes(record: Record) -> None:
    """Print whether the codes use their bits, and what opening the buckets near a query finds."""
    facts = record.code_statistics or {}
    rows = [
        [
            side,
            f"{codes['n_items']:,}",
            f"{codes['distinct']:,}",
            f"{codes['bit_balance']:.3f}",
            str(codes["constant_bits"]),
            f"{codes['mean_abs_correlation']:.3f}",
        ]
        for side, codes in ((side, facts[side]) for side in ("image", "text"))
    ]
    console = results()
    console.print()
    columns = numbers("items", "distinct codes", "mean share of ones", "constant bits", "mean |correlation|")
    print_table([bold("side"), *columns], rows, console, title=f"Codes of the test part, {record.n_bits} bits")
    precision, unanswered = facts["precision_within_2"], facts["unanswered_within_2"]
    within = [
        f"{way.replace('_', ' ')} {precision[way]:.4f} ({unanswered[way]:.1%} find nothing)" for way in DIRECTIONS
    ]
    console.print(f"\nPrecision within Hamming radius 2, nothing found counts as zero: {', '.join(within)}.")


def _print_categories(outcome: Outcome) -> None:
    rows = []
    for category in outcome.categories:
        values = [category.value[way] for way in DIRECTIONS]
        chances = [category.chance[way] for way in DIRECTIONS]
        shown = (or_dash(value, ".4f") for value in (*values, _middle(values), _middle(chances)))
        rows.append([category.name, f"{category.images:,}", f"{category.texts:,}", *shown])
    columns = numbers("images", "texts", "image query", "text query", "average", "chance")
    results().print()
    print_table([bold("category"), *columns], rows, results(), title="MAP by category of the query")


def _middle(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if len(known) == len(values) else None


def draw_plots(outcome: Outcome, folder: Path, file_format: str) -> list[Path]:
    """Draw every figure the outcome allows into ``folder`` and return the files."""
    from diptych import figures
    from diptych.benchmark.evaluation import map_of_classes
    from diptych.benchmark.runner import look_up

    record, evaluation, chance = outcome.measured.record, outcome.measured.result, outcome.chance
    title = f"{record.method} on {record.dataset}"
    drawn = {
        "precision-recall-11-point": figures.precision_recall(evaluation, chance, title=title),
        "precision-recall": figures.precision_recall(evaluation, chance, title=title, interpolated=False),
        "cmc": figures.cmc(evaluation, chance, title=title),
    }
    encoded = outcome.measured.encoded
    if record.n_bits is not None:
        drawn["radius"] = figures.radius_precision_recall(look_up(encoded, record.n_bits), title=title)
    if outcome.categories:
        values, levels = (
            {
                way: {category.name: getattr(category, kind)[way] for category in outcome.categories}
                for way in DIRECTIONS
            }
            for kind in ("value", "chance")
        )
        drawn["categories"] = figures.category_bars(values, levels, title=title)
    if record.confusion is not None:
        drawn["confusion"] = figures.confusion({way: encoded.confusion(way) for way in DIRECTIONS}, title=title)
    if (mapped := map_of_classes(outcome)) is not None:
        drawn["map"] = figures.embedding_map(*mapped, title=title)
    return save_figures({f"{name}.{file_format}": figure for name, figure in drawn.items()}, folder)
