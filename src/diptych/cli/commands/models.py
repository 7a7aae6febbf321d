"""``diptych models``: joint models of the catalogue and the hub, fetched, checked, updated and removed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from diptych.cli.console.output import (
    bold,
    confirm,
    facts_table,
    folded,
    notes,
    numbers,
    print_json,
    print_listing,
    print_outcome,
    results,
)
from diptych.cli.console.paths import printable, shown_path
from diptych.cli.console.progress import Stages, download_progress
from diptych.cli.options import DeviceOption, Group, JsonOption, QuietOption, YesOption, complete_model
from diptych.errors import InvalidInputError, ModelFileError, counted

if TYPE_CHECKING:
    from diptych.hub.catalogue import ModelSource
    from diptych.hub.client import HubClient
    from diptych.hub.getting import Plan
    from diptych.hub.lock import ModelLock

INTERRUPTED = 130

models = typer.Typer(
    cls=Group,
    help="Fetch joint models such as CLIP and SigLIP 2, and check them.",
)

NameArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        autocompletion=complete_model,
        help="A model that `diptych models list` names, or a repository: hub:OWNER/REPOSITORY[@REVISION].",
    ),
]
AcceptOption = Annotated[
    str | None,
    typer.Option(metavar="LICENCE", help="Accept this licence, which forbids commercial use, and fetch."),
]
TokenOption = Annotated[
    bool, typer.Option("--use-token", help="Send your token of the hub, which some models ask for.")
]
MaxSizeOption = Annotated[float, typer.Option(metavar="GB", min=0, help="Refuse a model that is larger.")]


@models.command("list")
def list_models(as_json: JsonOption = False) -> None:
    """List the joint models that can be fetched, and those that are here; no network is asked."""
    from diptych.hub.catalogue import ModelSource, catalogue
    from diptych.hub.place import installed_models, models_folder, partial_models

    here = installed_models()
    names = sorted((here.keys() | partial_models()) - catalogue().keys())
    others = (ModelSource(name=name, repository="") for name in names)
    print_listing(
        [_outline(source, here.get(source.name)) for source in (*catalogue().values(), *others)],
        [bold("model"), *numbers("GB"), *map(folded, ("languages", "licence", "quality")), *numbers("cost"), "state"],
        _cells,
        as_json=as_json,
    )
    if not as_json:
        notes().print(
            "\nCost: the time for a photograph, relative to the default search model. "
            f"`diptych models get NAME` fetches a model into {shown_path(models_folder())}.",
            soft_wrap=True,
        )


def _outline(source: ModelSource, folder: Path | None) -> dict[str, Any]:
    from diptych.hub.catalogue import is_research_only
    from diptych.hub.place import folder_of

    facts = {name: value for name, value in asdict(source).items() if name != "pins"}
    facts |= {"research_only": is_research_only(source.licence), "state": _state(source, folder)}
    return {**facts, "folder": folder or folder_of(source.name)}


def _cells(model: dict[str, Any]) -> list[str]:
    licence = f"{model['licence']}, research only" if model["research_only"] else model["licence"]
    cost = "–" if model["cost"] is None else f"{model['cost']:.1f}×"
    size = "–" if model["size"] is None else f"{model['size'] / 1000:.1f}"
    return [model["name"], size, model["languages"], licence or "–", model["quality"] or "–", cost, model["state"]]


def _state(source: ModelSource, folder: Path | None) -> str:
    from diptych.hub.lock import read_lock
    from diptych.hub.place import partial_models

    if folder is None:
        return "in part" if source.name in partial_models() else ""
    try:
        lock = read_lock(folder)
    except ModelFileError:
        return "damaged"
    if lock is None:
        return "here, unlocked"
    if lock.damage(folder, fast=True):
        return "damaged"
    if lock.exported_from:
        return "here, exported"
    return "here, older" if source.is_pinned and source.revision != lock.commit else "here"


@models.command()
def get(
    name: NameArgument,
    edition: Annotated[
        str | None,
        typer.Option(help="Of ONNX networks: full, fp16, quantized, int8, uint8, q4, q4f16, bnb4; default: the best."),
    ] = None,
    yes: YesOption = False,
    accept_licence: AcceptOption = None,
    use_token: TokenOption = False,
    max_size: MaxSizeOption = 8.0,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Fetch a joint model: show what comes from where and under which licence, ask, fetch, and compare digests.

    An interrupted run goes on where it stopped. Nothing about your pictures is sent.
    """
    from diptych.hub.catalogue import find_source
    from diptych.hub.lock import read_lock
    from diptych.hub.place import folder_of

    source = find_source(name)
    folder = folder_of(source.name)
    lock = read_lock(folder)
    if lock is None and folder.is_dir():
        raise InvalidInputError(f"{folder} is there and was not fetched; use it as it is, or move it away")
    if lock is not None and not lock.damage(folder, fast=True):
        is_same_edition = (source.repository, edition or lock.edition) == (lock.repository, lock.edition)
        if not is_same_edition or source.revision not in (lock.revision, lock.commit):
            raise InvalidInputError(
                f"{name} is here at revision {lock.commit[:7]}, edition {lock.edition}; `diptych models update "
                f"{name}` brings another revision, `diptych models remove {source.name}` makes room for an edition"
            )
        _report_fetched(lock, "here", "is here already", as_json=as_json, quiet=quiet)
        return
    client, plan = _planned(source, edition, accept_licence, use_token, max_size)
    pinned = "pinned" if source.is_pinned else f"of {source.revision}"
    here = plan.choice.size - plan.missing_bytes
    rest = f", of which {_megabytes(here)} are here" if here > 0 else ""
    amount = f"{counted(plan.choice.n_files, 'file')}, {_megabytes(plan.choice.size)}{rest}, to {shown_path(folder)}"
    lines = (f"revision {plan.commit[:7]} ({pinned}), {amount}", _licence_words(plan))
    lock = _carried_out(client, plan, lines, yes=yes, accepted=accept_licence, quiet=quiet)
    _report_fetched(lock, "fetched", "is here, and its digests are right", as_json=as_json, quiet=quiet)


@models.command()
def update(
    name: NameArgument,
    yes: YesOption = False,
    accept_licence: AcceptOption = None,
    use_token: TokenOption = False,
    max_size: MaxSizeOption = 8.0,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Bring a model that was fetched to the newest revision, or to the named one.

    The old one stays until the new one is here and can be used. Index your collections again after that.
    """
    from diptych.encoders.joint.folder_check import check_joint_folder
    from diptych.hub.catalogue import ModelSource, catalogue, find_source
    from diptych.hub.lock import read_lock
    from diptych.hub.place import find_model

    folder = find_model(name.partition("@")[0])
    lock = None if folder is None else read_lock(folder)
    if lock is not None and lock.exported_from:
        raise InvalidInputError(f"{name} was exported here; update the original, then: {lock.command}")
    if folder is None or lock is None:
        raise InvalidInputError(f"{name} was not fetched by `diptych models get`, so nothing can be updated")
    named = find_source(name) if name in catalogue() or "@" in name else None
    source = named or ModelSource(name=lock.name, repository=lock.repository, revision=lock.revision)
    client, plan = _planned(source, lock.edition, accept_licence, use_token, max_size)
    if plan.commit == lock.commit:
        told = f"is at the newest revision, {lock.commit[:7]}"
        _report_fetched(lock, "here", told, as_json=as_json, quiet=quiet)
        return
    old = {path: file.hub for path, file in lock.files.items()}
    changed = [file for file in plan.choice.files if old.get(file.path) != file.digest]
    size = _megabytes(sum(file.size for file in changed))
    before = "" if lock.licence == plan.licence else f"; before: {lock.licence or 'none stated'}"
    files = counted(plan.choice.n_files, "file")
    lines = (
        f"revision {lock.commit[:7]} → {plan.commit[:7]}, {len(changed):,} of {files} changed, {size}",
        _licence_words(plan) + before,
    )

    def check_it(new: Path) -> None:
        problem = check_joint_folder(new).problem
        if problem is not None and check_joint_folder(folder).problem is None:
            raise ModelFileError(f"the new revision cannot be used, and the old one stays: {problem}")

    lock = _carried_out(client, plan, lines, yes=yes, accepted=accept_licence, quiet=quiet, check=check_it)
    told = f"is at revision {lock.commit[:7]}; index your collections again"
    _report_fetched(lock, "updated", told, as_json=as_json, quiet=quiet)


def _report_fetched(lock: ModelLock, state: str, told: str, *, as_json: bool, quiet: bool) -> None:
    from diptych.hub.place import folder_of

    folder = folder_of(lock.name)
    facts = {"name": lock.name, "repo": lock.repository, "commit": lock.commit, "files": len(lock.files)}
    if not quiet:
        notes().print(f"{lock.name} {told}. To use it: diptych index PICTURES --model {lock.name}", soft_wrap=True)
    facts |= {"bytes": lock.size, "folder": folder, "state": state}
    print_outcome(shown_path(folder), facts, as_json=as_json)


def _planned(
    source: ModelSource, edition: str | None, accepted: str | None, use_token: bool, max_size: float
) -> tuple[HubClient, Plan]:
    """Ask the hub what there is, but not for a model whose licence has to be accepted first."""
    from diptych.hub.catalogue import is_research_only
    from diptych.hub.client import HubClient
    from diptych.hub.getting import make_plan

    def check_licence(*licences: str) -> None:
        binding = [licence for licence in licences if is_research_only(licence)]
        if binding and accepted not in binding:
            raise InvalidInputError(
                f"the licence of {source.name} is {binding[0]}, which forbids commercial use; if that suits you, add "
                f"--accept-licence {binding[0]}"
            )

    if accepted is None:
        check_licence(source.licence)
    client = HubClient(use_token=use_token)
    plan = make_plan(client, source, edition, max_bytes=int(max_size * 1e9))
    check_licence(plan.stated_licence, source.licence)
    return client, plan


def _carried_out(
    client: HubClient,
    plan: Plan,
    lines: tuple[str, ...],
    *,
    yes: bool,
    accepted: str | None,
    quiet: bool,
    check: Callable[[Path], None] | None = None,
) -> ModelLock:
    """Show a plan, ask, and fetch."""
    from diptych.hub.getting import fetch_model

    agreed = yes or accepted is not None
    if not (agreed and quiet):
        console = notes()
        console.print(f"{plan.source.name} from {plan.endpoint}/{plan.source.repository}", soft_wrap=True)
        for line in lines:
            console.print(f"  {printable(line)}", soft_wrap=True)
        token = f" Your token is sent to {plan.endpoint}." if client.sends_token else ""
        console.print(f"Nothing about your pictures is sent.{token}", soft_wrap=True)
    confirm("Fetch?", yes=agreed, told=f"{plan.source.name} would be fetched")
    reached = ""
    try:
        with download_progress(Stages(quiet=quiet)) as show:

            def progress(here: int, total: int) -> None:
                nonlocal reached
                reached = f" at {here / 1e6:,.0f} of {_megabytes(total)}"
                show(f"getting {plan.source.name}", here, total)

            return fetch_model(client, plan, accepted=accepted or "", progress=progress, check=check)
    except KeyboardInterrupt:
        typer.echo(f"error: stopped{reached}; the same command goes on", err=True)
        raise typer.Exit(INTERRUPTED) from None


def _licence_words(plan: Plan) -> str:
    stated, known, upstream = plan.stated_licence, plan.source.licence, plan.source.upstream or "the original"
    if stated:
        return f"licence {stated}" + (f" (of {upstream}: {known})" if known and known != stated else "")
    if known:
        return f"licence {known} (of {upstream}; this card states none)"
    return "licence: none is stated; ask its authors"


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f} MB"


@models.command()
def check(
    model: Annotated[
        str | None,
        typer.Argument(metavar="NAME|FOLDER", autocompletion=complete_model, help="By default all that are here."),
    ] = None,
    fast: Annotated[bool, typer.Option("--fast", help="Compare the sizes of files alone, and run nothing.")] = False,
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Check joint models that are here: their digests, what they are, how they prepare pictures, how fast they are.

    Nothing is fetched. The exit status is 1 when a model cannot be used.
    """
    from diptych.hub.place import models_folder

    reports = [joint_report(folder, fast=fast) for folder in joint_folders(model)]
    if as_json:
        print_json(reports if model is None else reports[0])
    elif not reports:
        results().print("There is no joint model here, and none is needed.")
        line = f"`diptych models list` names some; they are kept in {shown_path(models_folder())}."
        results().print(line, soft_wrap=True)
    else:
        for report in reports:
            results().print(facts_table(_facts(report)))
    if any(report["problem"] for report in reports):
        raise typer.Exit(1)


def joint_folders(model: str | None) -> list[Path]:
    """Return the folder of a joint model by its name or path, or those of all that are here."""
    from diptych.encoders import find_joint_model
    from diptych.hub.place import find_model, installed_models

    if model is None:
        chosen = find_joint_model()
        return list(dict.fromkeys([*installed_models().values(), *([] if chosen is None else [chosen])]))
    folder = find_model(model)
    return [Path(model).expanduser() if folder is None else folder]


def joint_report(folder: Path, *, fast: bool) -> dict[str, Any]:
    """Return what is known of a joint model; ``problem`` is None where it can be used."""
    from diptych.encoders.joint.folder_check import check_joint_folder
    from diptych.hub.lock import read_lock

    lock = read_lock(folder)
    report: dict[str, Any] = {"folder": str(folder), "problem": None}
    if not fast:
        found = check_joint_folder(folder)
        report |= asdict(found)
    if lock is None:
        return {**report, "lock": None}
    damage = lock.damage(folder, fast=fast)
    if damage:
        wrong = ", ".join(f"{path} {what}" for path, what in damage.items())
        report["problem"] = f"{wrong}; make it again: {lock.command}"
    facts = ("repository", "commit", "licence", "exported_from")
    return {**report, "lock": {name: getattr(lock, name) for name in facts}}


def _facts(report: dict[str, Any]) -> dict[str, str]:
    facts = {"folder": printable(shown_path(Path(report["folder"])))}
    lock = report["lock"]
    if lock is None:
        facts["fetched from"] = "unlocked: put here by hand"
    elif lock["repository"]:
        facts["fetched from"] = f"{lock['repository']}, revision {lock['commit'][:7]}"
    if lock is not None and lock["exported_from"]:
        facts["exported from"] = printable(lock["exported_from"])
    if report.get("family") is not None:
        facts["architecture"] = report["family"]
    if report.get("n_features") is not None:
        facts |= {
            "layout": report["layout"],
            "points": f"{report['n_features']:,} numbers",
            "texts": f"up to {report['max_tokens']:,} tokens",
            "speed": f"{report['pictures_per_second']:,.1f} pictures/s, {report['texts_per_second']:,.1f} texts/s",
        }
    facts["state"] = printable(report["problem"] or "ready")
    return facts


@models.command()
def export(
    model: Annotated[str, typer.Argument(metavar="NAME|FOLDER", autocompletion=complete_model)],
    to: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="By default beside the model, ending in -onnx.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Write a model of Transformers or OpenCLIP to ONNX, so that it runs without PyTorch.

    What it makes of pictures and texts is compared with the original, and nothing is kept where they differ.
    """
    from diptych.encoders import export_folder
    from diptych.hub.place import find_model

    source = find_model(model) or Path(model).expanduser()
    made = export_folder(source, source.with_name(f"{source.name}-onnx") if to is None else to.expanduser())
    cosines = f"{made.pictures:.6f} for pictures and {made.texts:.6f} for texts"
    told = f"{shown_path(made.folder)} is written; the least cosine is {cosines}."
    print_outcome(told, {name: getattr(made, name) for name in ("folder", "pictures", "texts")}, as_json=as_json)


@models.command()
def remove(
    name: Annotated[str, typer.Argument(autocompletion=complete_model, help="A model that is here, or here in part.")],
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Delete a model that was fetched."""
    from diptych.hub.catalogue import HUB_PREFIX, find_source
    from diptych.hub.getting import remove_model
    from diptych.hub.place import folder_of, partial_folder

    called = find_source(name).name if name.startswith(HUB_PREFIX) else name
    folder = folder_of(called)
    is_name = Path(called).name == called and not called.startswith(".")
    if not is_name or not (folder.is_dir() or partial_folder(called).is_dir()):
        raise InvalidInputError(f"there is no model {name} here; `diptych models list` says which are")
    question = f"Delete {shown_path(folder)}? Collections indexed with it cannot be searched by new words without it."
    confirm(question, yes=yes, told=f"{shown_path(folder)} would be deleted")
    remove_model(called)
    print_outcome(f"{called} is removed.", {"name": called, "folder": folder, "state": "removed"}, as_json=as_json)
