"""``diptych doctor``: whether a local joint model can be used, and which files a known one consists of."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from diptych.cli.console.output import bold, facts_table, print_json, print_table, results, whole
from diptych.cli.console.paths import printable, shown_path
from diptych.cli.options import DeviceOption, JsonOption
from diptych.errors import counted

if TYPE_CHECKING:
    from diptych.encoders.joint.folder_check import FolderCheck
    from diptych.encoders.joint.joint_folder import KnownModel

_ALL = "list"


def doctor(
    joint: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="The folder of a CLIP, SigLIP or MobileCLIP model; default: yours."),
    ] = None,
    files: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="Say which files of this model to put where; `list` names the models."),
    ] = None,
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Check a local joint model: its files, what it is, how it prepares pictures and texts, and how fast it is here.

    Nothing is fetched. The exit status is 1 when the model cannot be used.
    """
    if files is not None:
        _show_files(files, as_json)
        return
    from diptych.encoders import find_joint_model
    from diptych.encoders.joint.folder_check import check_joint_folder

    folder = joint or find_joint_model()
    if folder is None:
        _say_where(as_json)
        return
    check = check_joint_folder(folder)
    if as_json:
        from dataclasses import asdict

        print_json({**asdict(check), "missing": check.missing})
    else:
        results().print(facts_table(_facts(check)))
    if check.problem is not None:
        raise typer.Exit(1)


def _facts(check: FolderCheck) -> dict[str, str]:
    facts = {"folder": printable(shown_path(Path(check.folder))), "layout": check.layout}
    for name, found in check.files.items():
        if found is None:
            facts[name] = "missing" if name in check.missing else "not there, not needed"
        else:
            facts[name] = "there" if found == name else f"{found} instead"
    if check.family is not None:
        facts["architecture"] = check.family
    if check.n_features is not None:
        facts["points"] = f"{check.n_features:,} numbers"
    if check.max_tokens is not None:
        facts["texts"] = f"up to {counted(check.max_tokens, 'token')}"
    if check.preparation is not None:
        facts["pictures"] = check.preparation
    if check.pictures_per_second is not None and check.texts_per_second is not None:
        facts["speed"] = f"{check.pictures_per_second:,.1f} pictures/s, {check.texts_per_second:,.1f} texts/s"
    facts["state"] = "ready" if check.problem is None else printable(check.problem)
    return facts


def _say_where(as_json: bool) -> None:
    shelf = _shelf()
    if as_json:
        print_json({"folder": None, "shelf": str(shelf)})
        return
    console = results()
    console.print("There is no joint model here, and none is needed.", soft_wrap=True)
    console.print(
        f"Put the folder of one into {shown_path(shelf)}, or name it in DIPTYCH_JOINT_MODEL; "
        "`diptych doctor --files list` names models.",
        soft_wrap=True,
    )


def _show_files(name: str, as_json: bool) -> None:
    from diptych.encoders.joint.joint_folder import KNOWN_MODELS, known_model

    if name == _ALL:
        _show_models(KNOWN_MODELS, as_json)
        return
    model = known_model(name)
    folder = _shelf() / model.name
    if as_json:
        print_json({**_outline(model), "files": list(model.files), "folder": str(folder)})
        return
    console = results()
    console.print(f"{model.source}, layout {model.layout}: {model.address}", soft_wrap=True)
    for file in model.files:
        console.print(f"  {file}  →  {shown_path(folder / file)}", soft_wrap=True)
    if "model.safetensors" in model.files:
        console.print("In place of model.safetensors: all its parts and model.safetensors.index.json.")
    console.print(f"Then `diptych doctor --joint {shown_path(folder)}` checks it.", soft_wrap=True)


def _show_models(models: tuple[KnownModel, ...], as_json: bool) -> None:
    if as_json:
        print_json([_outline(model) for model in models])
        return
    rows = ([model.name, model.layout, model.source] for model in models)
    print_table([bold("model"), whole("layout"), "from"], rows, results())


def _outline(model: KnownModel) -> dict[str, str]:
    return {"name": model.name, "source": model.source, "layout": model.layout, "address": model.address}


def _shelf() -> Path:
    from diptych.encoders.joint.joint_model import joint_shelf

    return joint_shelf()
