"""``diptych evaluate``: one method, one data set, both directions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from diptych.cli.choices import PictureFormat, Relevance, Scaling, TieBreaking
from diptych.errors import InvalidInputError

_FILES = "What to write"
_MEASURING = "How to measure"


def evaluate(
    dataset: Annotated[str, typer.Option("--dataset", "-d", help="Name of a data set; `diptych datasets` lists them.")],
    method: Annotated[str, typer.Option("--method", "-m", help="Name of a method; `diptych methods` lists them.")],
    param: Annotated[
        list[str] | None,
        typer.Option("--param", "-p", metavar="NAME=VALUE", help="Set a parameter of the method; outer__inner nests."),
    ] = None,
    tune: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=[VALUE,...]",
            help="Choose a parameter, or the scaling of images or texts, on 5 hold-outs of the training part.",
        ),
    ] = None,
    dataset_option: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="Set an option of the data set.")
    ] = None,
    image_encoder: Annotated[
        str | None,
        typer.Option(
            metavar="NAME[:KEY=VALUE,...]",
            help="What turns pictures into features, or several joined with +; `diptych encoders` lists them.",
        ),
    ] = None,
    text_encoder: Annotated[
        str | None, typer.Option(metavar="NAME[:KEY=VALUE,...]", help="What turns texts into features.")
    ] = None,
    images: Annotated[Scaling, typer.Option(help="Scaling of each picture's features.")] = Scaling.L2,
    texts: Annotated[Scaling, typer.Option(help="Scaling of each text's features.")] = Scaling.NONE,
    seed: Annotated[
        int, typer.Option(min=0, help="Of random numbers in the method, the hold-outs, the bootstrap.")
    ] = 0,
    relevant: Annotated[
        Relevance,
        typer.Option(
            rich_help_panel=_MEASURING,
            help="What a right answer shares with the query: a label, or the picture itself; auto: labels if any.",
        ),
    ] = Relevance.AUTO,
    ties: Annotated[
        TieBreaking, typer.Option(rich_help_panel=_MEASURING, help="What happens to items of equal score.")
    ] = TieBreaking.EXPECTED,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", rich_help_panel=_FILES, help="Write all numbers to this JSON file.")
    ] = None,
    per_query: Annotated[
        bool,
        typer.Option("--per-query", rich_help_panel=_FILES, help="Values per query and whole curves, too."),
    ] = False,
    plots: Annotated[Path | None, typer.Option(rich_help_panel=_FILES, help="Draw figures into this folder.")] = None,
    file_format: Annotated[
        PictureFormat, typer.Option("--format", rich_help_panel=_FILES, help="File format of the figures.")
    ] = PictureFormat.PNG,
    save: Annotated[
        Path | None, typer.Option(rich_help_panel=_FILES, help="Save the fitted model in this folder.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")] = False,
) -> None:
    """Fit a method on the training part of a data set and measure it on the test part, in both directions."""
    from diptych.cli.assignments import parse_assignments
    from diptych.cli.encoder_building import build_encoder
    from diptych.cli.experiment import Experiment
    from diptych.cli.files import check_folder, check_writable_file, write_text, writing
    from diptych.cli.report import print_report
    from diptych.cli.stages import Stages
    from diptych.cli.terminal import results

    experiment = Experiment(
        dataset=dataset,
        method=method,
        parameters=parse_assignments(param or [], "--param"),
        dataset_options=parse_assignments(dataset_option or [], "--dataset-option"),
        choices=parse_assignments(tune or [], "--tune"),
        image_encoder=build_encoder(image_encoder, "image", "--image-encoder") if image_encoder else None,
        text_encoder=build_encoder(text_encoder, "text", "--text-encoder") if text_encoder else None,
        images=images.value,
        texts=texts.value,
        relevant=relevant.value,
        ties=ties.value,
        seed=seed,
    )
    if per_query and output is None:
        raise InvalidInputError("--per-query goes into the JSON file; name one with --output")
    if output is not None:
        check_writable_file(output)
    if save is not None:
        from diptych.models.files import check_replaceable

        check_replaceable(save)
    if plots is not None:
        from diptych.figures import require_matplotlib

        require_matplotlib()
        check_folder(plots)

    stages = Stages(quiet=quiet)
    outcome = experiment.run(stages, in_detail=output is not None or plots is not None)
    # Files first: a reader of the pipe may leave early.
    if output is not None:
        from diptych.cli.results_file import as_json

        write_text(output, as_json(outcome, per_query=per_query))
        stages.note(f"numbers: {output}")
    if save is not None:
        with writing(save):
            outcome.model.save(save)
        without = ", without the encoders of pictures and texts" if "encode" in stages.seconds else ""
        stages.note(f"model: {save}{without}")
    if plots is not None:
        from diptych.cli.plots import draw_plots

        with stages.run("draw", "drawing"):
            files = draw_plots(outcome, plots, file_format.value)
        stages.note("figures: " + ", ".join(str(file) for file in files))
    print_report(outcome, results())
