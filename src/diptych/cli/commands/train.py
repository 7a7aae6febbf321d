"""``diptych train``: a collection's own captions teach its retriever, or files of features teach a method."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from diptych.cli.console.output import check_folder, print_json, results, scores, table, whole
from diptych.cli.console.paths import open_collection
from diptych.cli.console.progress import Stages
from diptych.cli.options import CollectionOption, QuietOption, SchedulerOption
from diptych.errors import InvalidInputError

if TYPE_CHECKING:
    from diptych.collection import Collection
    from diptych.data import Pairs
    from diptych.models import CrossModalModel
    from diptych.retriever import Comparison


def train(
    method: Annotated[
        str | None, typer.Option("--method", "-m", help="One of `diptych methods`; by default the best linear one.")
    ] = None,
    param: Annotated[
        list[str] | None, typer.Option("--param", "-p", metavar="NAME=VALUE", help="A parameter of the method.")
    ] = None,
    captions: Annotated[
        str | None, typer.Option(help="Learn from this caption file instead of the collection's captions.")
    ] = None,
    held_out: Annotated[
        float, typer.Option(min=0.05, max=0.9, help="The share of pictures kept back for the comparison.")
    ] = 0.2,
    seed: Annotated[int, typer.Option(help="Random seed of that draw.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Take the new model even if it is not better.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Compare only; change nothing.")] = False,
    retriever_out: Annotated[
        Path | None, typer.Option("--retriever-out", help="Also save the new retriever in this folder.")
    ] = None,
    features: Annotated[
        Path | None,
        typer.Option(
            help="Learn from features in files instead, however large: a folder with images.npy, texts.npy and perhaps "
            "labels.npy; Parquet files; or a Lance table.",
        ),
    ] = None,
    model_out: Annotated[
        Path | None, typer.Option("--model-out", help="With --features: save the model in this folder.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", min=1, help="With --features: threads; by default one per core.")
    ] = None,
    scheduler: SchedulerOption = None,
    collection: CollectionOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON.")] = False,
    quiet: QuietOption = False,
) -> None:
    """Learn from captions or labels, compare with the present retriever on held-out pictures, and keep the better.

    With --features a method learns from rows of features in files that may be larger than memory, and is saved as a
    model. With --scheduler the workers of a Dask cluster read these files, or the pictures of another image encoder.
    """
    from diptych.cli.arguments import parse_assignments
    from diptych.collection.learning import Training
    from diptych.models.registry import build_model

    parameters = parse_assignments(param or [], "--param")
    if method is None and parameters:
        raise InvalidInputError("--param belongs to a method; name it with --method")
    stages = Stages(quiet=quiet)
    if features is not None:
        if method is None or model_out is None:
            raise InvalidInputError("--features needs a --method to fit, and a --model-out to save it in")
        if captions is not None or collection is not None or retriever_out is not None:
            raise InvalidInputError("--features has nothing to do with a collection, its captions and its retriever")
        model = build_model(method, parameters, seed=seed)
        facts = train_on_features(features, model, model_out, stages, n_jobs=jobs, scheduler=scheduler)
        _print_fit(facts, as_json=as_json)
        return
    if (model_out, jobs) != (None, None):
        raise InvalidInputError("--model-out and --jobs belong to --features")
    if retriever_out is not None:
        check_folder(retriever_out)
    with open_collection(collection, quiet=quiet, scheduler=scheduler) as opened:
        training = Training(opened, method=method, parameters=parameters)
        pairs = pairs_to_learn(opened, captions, stages)
        with stages.run("learn", f"learning from {pairs.n_images:,} pictures and {pairs.n_texts:,} texts"):
            learned = training.learn(
                pairs, held_out=held_out, seed=seed, force=force, epochs=lambda record: stages.note(str(record))
            )
        is_taken = learned.comparison_.replaced and not dry_run
        if is_taken:
            with stages.count("reencode", "giving every item its new point") as advance:
                opened.set_retriever(
                    learned,
                    # Learning from clicks leads back to it.
                    keep=_is_in_learning_history(opened),
                    progress=lambda step: advance(step.done, step.total),
                )
        if learned.comparison_.replaced and retriever_out is not None:
            learned.save(retriever_out)
            stages.note(f"retriever: {retriever_out}")
    print_training_report(learned.comparison_, is_taken=is_taken, is_dry_run=dry_run, as_json=as_json)


def train_on_features(
    features: Path, model: CrossModalModel, model_out: Path, stages: Stages, **work: Any
) -> dict[str, Any]:
    """Fit a method on features in files, save it, and return what it has learned from."""
    from diptych.data import open_features
    from diptych.models import fit_from_files, method_name

    opened = open_features(features)
    check_folder(model_out)
    with stages.count("learn", f"learning from {opened.n_rows:,} pairs") as advance:
        fit_from_files(model, opened, progress=advance, **work)
    model.save(model_out)
    return {
        "method": method_name(type(model)),
        "pairs": opened.n_rows,
        "image_features": opened.image_width,
        "text_features": opened.text_width,
        "seconds": round(stages.seconds["learn"], 3),
        "model": str(model_out),
    }


def _print_fit(facts: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(facts)
        return
    results().print(
        "{method} has learned from {pairs:,} pairs of {image_features:,} and {text_features:,} features; "
        "the model: {model}".format(**facts),
        markup=False,
        soft_wrap=True,
    )


def pairs_to_learn(collection: Collection, captions: str | None, stages: Stages) -> Pairs:
    """Return the collection's pictures with their captions, those of a caption file, or their labels as words."""
    from diptych.collection.learning import training_pairs
    from diptych.data import read_captions

    if captions is None:
        return training_pairs(collection, stages.note)
    source = collection.root if captions == "sidecar" else Path(captions).expanduser()
    described = read_captions(source, collection.root)
    stages.note(f"captions: {described.describe()}")
    return described.pairs()


def _is_in_learning_history(collection: Collection) -> bool:
    from diptych.collection.learning import learning_history

    now = collection.retriever.fingerprint
    return any(now in (each.before_fingerprint, each.after_fingerprint) for each in learning_history(collection))


def print_training_report(comparison: Comparison, *, is_taken: bool, is_dry_run: bool, as_json: bool) -> None:
    """Print the held-out quality of the new and the present retriever, and what was decided."""
    if as_json:
        print_json({**comparison.get_params(), "taken": is_taken})
        return
    listing = table(whole("retriever"), *scores("MAP"))
    listing.add_row("new", f"{comparison.new:.4f}")
    if comparison.old is not None:
        listing.add_row(f"present ({comparison.baseline})", f"{comparison.old:.4f}")
    listing.add_row("chance", f"{comparison.chance:.4f}")
    console = results()
    console.print(f"MAP on {comparison.n_held_out:,} held-out pictures, mean of both directions", style="bold")
    console.print(listing)
    console.print(f"\n{_verdict(comparison)} {_decision(comparison, is_taken=is_taken, is_dry_run=is_dry_run)}")


def _verdict(comparison: Comparison) -> str:
    if comparison.old is None or comparison.p_value is None:
        return "There is nothing to compare with."
    difference = f"{abs(comparison.new - comparison.old):.4f}"
    if float(difference) == 0:
        return "The new one is the same."
    word = "better" if comparison.is_better else "worse"
    chance = f"p = {comparison.p_value:.3f}" if comparison.p_value >= 0.001 else "p < 0.001"
    luck = "more than luck" if comparison.is_significant() else "may be luck"
    return f"The new one is {word} by {difference} ({chance}, {luck})."


def _decision(comparison: Comparison, *, is_taken: bool, is_dry_run: bool) -> str:
    if is_taken:
        return "The collection uses it now."
    if comparison.replaced or is_dry_run:
        return "Nothing was changed."
    return "The present one stays; --force takes the new one anyway."
