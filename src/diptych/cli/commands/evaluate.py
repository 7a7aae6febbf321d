"""``diptych evaluate``: one method, one data set, both directions; with its tables and figures."""

from __future__ import annotations

from collections.abc import Mapping
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
    write_text,
    writing,
)
from diptych.cli.console.progress import Stages
from diptych.cli.console.report_files import check_report_files, save_figures
from diptych.cli.options import (
    DatasetOption,
    DeviceOption,
    ImageEncoderOption,
    ImageScalingOption,
    JsonOption,
    MethodOption,
    ParameterOption,
    PictureFormat,
    QuietOption,
    Relevance,
    TextEncoderOption,
    TextScalingOption,
    TieBreaking,
    complete_dataset,
)
from diptych.directions import DIRECTIONS
from diptych.errors import InvalidInputError

if TYPE_CHECKING:
    from diptych.benchmark.experiment import HashCodeFacts, Outcome

FILES = "What to write"
MEASURING = "How to measure"
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
    per_query: Annotated[
        bool, typer.Option("--per-query", rich_help_panel=FILES, help="Values per query and whole curves, too.")
    ] = False,
    plots: Annotated[Path | None, typer.Option(rich_help_panel=FILES, help="Draw figures into this folder.")] = None,
    file_format: Annotated[
        PictureFormat, typer.Option("--format", rich_help_panel=FILES, help="File format of the figures.")
    ] = "png",
    save: Annotated[
        Path | None, typer.Option(rich_help_panel=FILES, help="Save the fitted model in this folder.")
    ] = None,
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Measure a method on a data set, in both directions.

    It is fitted on the training part and measured on the test part.
    """
    from diptych.benchmark.experiment import Experiment
    from diptych.cli.arguments import build_encoders, parse_assignments

    encode_images, encode_texts = build_encoders(image_encoder, text_encoder)
    experiment = Experiment(
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
    )
    if per_query and output is None and not as_json:
        raise InvalidInputError("--per-query goes into the JSON file; name one with --output")
    check_report_files(output, plots)
    if save is not None:
        from diptych.models.files import check_replaceable

        check_replaceable(save)
    stages = Stages(quiet=quiet)
    outcome = experiment.run(stages, in_detail=as_json or output is not None or plots is not None)
    # Files first: a reader of the pipe may leave early.
    document = ""
    if as_json or output is not None:
        from diptych.benchmark.experiment import experiment_as_json

        document = experiment_as_json(outcome, per_query=per_query)
    if output is not None:
        write_text(output, document)
        stages.note(f"numbers: {output}")
    if save is not None:
        with writing(save):
            outcome.model.save(save)
        without = ", without the encoders of pictures and texts" if "encode" in stages.seconds else ""
        stages.note(f"model: {save}{without}")
    if plots is not None:
        with stages.run("draw", "drawing"):
            files = draw_plots(outcome, plots, file_format)
        stages.note("figures: " + ", ".join(str(file) for file in files))
    if as_json:
        typer.echo(document, nl=False)
    else:
        print_report(outcome)


def print_report(outcome: Outcome) -> None:
    """Print what was done, what came out, and codes and categories if there are any."""
    _print_facts(outcome)
    _print_measures(outcome)
    if outcome.codes is not None:
        _print_hash_codes(outcome.codes)
    if outcome.categories:
        _print_categories(outcome)


def _print_facts(outcome: Outcome) -> None:
    from diptych.benchmark.experiment import readable_parameters
    from diptych.models import method_name

    model, splits = outcome.method, outcome.splits
    facts = {
        "data set": splits.name + _in_brackets(splits.options),
        "train": splits.train.describe(),
        "test": splits.test.describe(),
        **{f"{side} by": encoder.identity for side, encoder in outcome.encoders.items()},
        "method": method_name(type(model)) + _in_brackets(readable_parameters(model)),
        "scaling": ", ".join(f"{side} {scaling}" for side, scaling in outcome.scaling.items()) or "none",
        "relevant": RELEVANT[outcome.relevant],
        "ties": outcome.experiment.ties,
    }
    if outcome.tuning is not None:
        best, count = outcome.tuning.best, len(outcome.tuning.trials)
        facts["chosen"] = f"best of {count} settings, MAP {best.mean:.4f} ± {best.deviation:.4f} on 5 hold-outs"
    results().print(facts_table(facts))


def _in_brackets(options: Mapping[str, Any]) -> str:
    listed = ", ".join(f"{name}={value!r}" for name, value in options.items())
    return f" ({listed})" if listed else ""


def _print_measures(outcome: Outcome) -> None:
    from diptych.benchmark.experiment import describe_measure, is_rank

    evaluation = outcome.evaluation
    rows = []
    for measure in outcome.measures:
        values = [evaluation[way].mean[measure] for way in DIRECTIONS]
        values += [evaluation.average(measure), evaluation.chance(measure)]
        form = ",.1f" if is_rank(measure) else ".4f"
        rows.append([measure.label, *(format(value, form) for value in values), describe_measure(measure)])
    columns = numbers("image query", "text query", "average", "chance")
    console = results()
    console.print()
    print_table([bold("measure"), *columns, "in words"], rows, console, title="Measures")
    bounds = [f"{outcome.intervals[way].low:.4f}–{outcome.intervals[way].high:.4f}" for way in DIRECTIONS]
    console.print(f"\n95 % bootstrap interval of MAP: images {bounds[0]}, texts {bounds[1]}")
    skipped = sum(evaluation[way].n_without_relevant for way in DIRECTIONS)
    if skipped:
        console.print(f"{skipped:,} queries without a relevant item are left out.")


def _print_hash_codes(facts: HashCodeFacts) -> None:
    """Print whether the codes use their bits, and what opening the buckets near a query finds."""
    sides = (("images", facts.images), ("texts", facts.texts))
    rows = [
        [
            side,
            f"{codes.n_items:,}",
            f"{codes.distinct:,}",
            f"{codes.bit_balance:.3f}",
            str(codes.constant_bits),
            f"{codes.mean_abs_correlation:.3f}",
        ]
        for side, codes in sides
    ]
    console = results()
    console.print()
    title = f"Codes of the test part, {facts.images.n_bits} bits, {facts.images.bytes_per_item} bytes an item"
    columns = numbers("items", "distinct codes", "mean share of ones", "constant bits", "mean |correlation|")
    print_table([bold("side"), *columns], rows, console, title=title)
    lookups = [(way.replace("_", " "), facts.lookups[way]) for way in DIRECTIONS]
    within = [
        f"{way} {lookup.precision(facts.radius):.4f} ({lookup.unanswered(facts.radius):.1%} find nothing)"
        for way, lookup in lookups
    ]
    told = f"Precision within Hamming radius {facts.radius}, nothing found counts as zero: {', '.join(within)}."
    console.print(f"\n{told}")


def _print_categories(outcome: Outcome) -> None:
    rows = []
    for category in outcome.categories:
        values = [category.value[way] for way in DIRECTIONS]
        chances = [category.chance[way] for way in DIRECTIONS]
        shown = (or_dash(value, ".4f") for value in (*values, _middle(values), _middle(chances)))
        rows.append([category.name, f"{category.n_images:,}", f"{category.n_texts:,}", *shown])
    columns = numbers("images", "texts", "image query", "text query", "average", "chance")
    results().print()
    print_table([bold("category"), *columns], rows, results(), title="MAP by category of the query")


def _middle(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if len(known) == len(values) else None


def draw_plots(outcome: Outcome, folder: Path, file_format: str) -> list[Path]:
    """Draw every figure the outcome allows into ``folder`` and return the files."""
    from diptych import figures
    from diptych.models import method_name

    title = f"{method_name(type(outcome.method))} on {outcome.splits.name}"
    evaluation, chance = outcome.evaluation, outcome.chance
    drawn = {
        "precision-recall-11-point": figures.precision_recall(evaluation, chance, title=title),
        "precision-recall": figures.precision_recall(evaluation, chance, title=title, interpolated=False),
        "cmc": figures.cmc(evaluation, chance, title=title),
    }
    if outcome.codes is not None:
        drawn["radius"] = figures.radius_precision_recall(outcome.codes.lookups, title=title)
    if outcome.categories:
        values, levels = (
            {
                way: {category.name: getattr(category, kind)[way] for category in outcome.categories}
                for way in DIRECTIONS
            }
            for kind in ("value", "chance")
        )
        drawn["categories"] = figures.category_bars(values, levels, title=title)
    if outcome.confusion is not None:
        drawn["confusion"] = figures.confusion(outcome.confusion, title=title)
    return save_figures({f"{name}.{file_format}": figure for name, figure in drawn.items()}, folder)
