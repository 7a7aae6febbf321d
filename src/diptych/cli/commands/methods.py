"""``diptych methods`` and ``diptych encoders``: what there is to choose from, with parameters and when to use it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from diptych.cli.console.output import bold, print_json, print_table, results, whole
from diptych.cli.options import JsonOption
from diptych.errors import DiptychError, MissingPackageError

if TYPE_CHECKING:
    from diptych.encoders import Encoder
    from diptych.encoders.encoder import Modality
    from diptych.models import CrossModalModel
    from diptych.models.base import Inputs

_INPUTS: tuple[Inputs, ...] = ("features", "items", "clicks")
_NEEDS = ("pairs", "labels", "clicks")
_HEADING = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)
_ENTRY = re.compile(r"^(?P<names>\S[^:\n]*?)(?: ?:[^\n]*)?\n(?P<text>(?:[ ]+[^\n]*\n?|\n)+)", re.MULTILINE)


def methods(
    name: Annotated[str | None, typer.Argument(metavar="[METHOD]", help="Show this method in detail.")] = None,
    as_json: JsonOption = False,
) -> None:
    """List the methods: what each learns from and when to use it."""
    from diptych.models import find_model, model_classes

    if name is not None:
        cls = find_model(name, among=_INPUTS)
        card = {**_method_outline(cls), **_described(cls)}
        print_json(card) if as_json else _show_method(card)
        return
    listed = sorted(entry for inputs in _INPUTS for entry in model_classes(inputs).items())
    outlines = [_method_outline(cls) for _, cls in listed]
    if as_json:
        print_json(outlines)
        return
    rows = ([each["name"], _needs_text(each), each["when_to_use"]] for each in outlines)
    print_table([bold("method"), whole("learns from"), "when to use it"], rows, results())
    results().print("\n`diptych methods METHOD` shows one of them with its parameters.")


def _method_outline(method: type[CrossModalModel]) -> dict[str, Any]:
    from diptych.models import method_name

    needs = sorted(method.needs, key=_NEEDS.index)
    return {
        "name": method_name(method),
        "class": method.__name__,
        "needs": needs,
        "when_to_use": method.when_to_use,
    }


def _needs_text(card: Mapping[str, Any]) -> str:
    return ", ".join(card["needs"]) or "nothing"


def _show_method(card: Mapping[str, Any]) -> None:
    console = results()
    console.print(f"{card['name']} ({card['class']})", style="bold")
    console.print(card["summary"])
    console.print(f"\nLearns from: {_needs_text(card)}\nUse it for:  {card['when_to_use']}\n")
    _print_parameters(card["parameters"])
    if card["reference"]:
        console.print(f"\nReference: {card['reference']}")


def _print_parameters(parameters: Sequence[Mapping[str, Any]]) -> None:
    if parameters:
        rows = ([each["name"], repr(each["default"]), each["meaning"]] for each in parameters)
        print_table([bold("parameter"), whole("default"), "meaning"], rows, results())


def _described(cls: type) -> dict[str, Any]:
    """Return what the documentation of a method or an encoder says of it, and its parameters with their meanings."""
    described, known = sections(inspect.getdoc(cls) or ""), meanings(cls)
    parameters = [
        {
            "name": name,
            "default": "required" if about.default is about.empty else about.default,
            "meaning": known.get(name, ""),
        }
        for name, about in inspect.signature(cls).parameters.items()
    ]
    return {
        "summary": one_line(described[""].partition("\n\n")[0]),
        "parameters": parameters,
        "reference": one_line(described.get("References", "")),
    }


def sections(docstring: str) -> dict[str, str]:
    """Split a docstring at its underlined headings; what comes before the first is called ""."""
    parts = _HEADING.split(docstring)
    return dict(zip(["", *parts[1::2]], [part.strip("\n") for part in parts[0::2]], strict=True))


def meanings(described: type) -> dict[str, str]:
    """Return what each parameter means: what a base class says of fewer names counts more, "As in" X is looked up."""
    from diptych.models.base import REGISTRY

    found: dict[str, tuple[int, str]] = {}
    for cls in reversed(described.__mro__):
        section = sections(inspect.cleandoc(cls.__doc__ or "")).get("Parameters", "")
        for entry in _ENTRY.finditer(section + "\n"):
            names = [name.strip() for name in entry["names"].split(",")]
            for name in names:
                if name not in found or len(names) <= found[name][0]:
                    found[name] = len(names), one_line(entry["text"])
    known = {name: meaning for name, (_, meaning) in found.items()}
    for name, meaning in known.items():
        other = re.fullmatch(r"As in (?::class:)?(\w+)\.", meaning)
        if other and other[1] in REGISTRY:
            known[name] = meanings(REGISTRY[other[1]]).get(name, meaning)
    return known


def one_line(text: str) -> str:
    """Return text without line breaks and code marks."""
    return " ".join(text.replace("``", "").replace("`", "").split())


def encoders(
    name: Annotated[str | None, typer.Argument(metavar="[ENCODER]", help="Show this encoder in detail.")] = None,
    as_json: JsonOption = False,
) -> None:
    """List the encoders: what each is for, and what to install where one is not ready."""
    from diptych.cli.arguments import encoder_classes, find_encoder

    if name is not None:
        card = _encoder_card(find_encoder(name))
        print_json(card) if as_json else _show_encoder(card)
        return
    cards = [_encoder_card(cls) for side in ("image", "text") for cls in encoder_classes(side).values()]
    for card in cards:
        del card["parameters"]
    if as_json:
        print_json(cards)
        return
    rows = ([card["name"], card["encodes"], card["needs"] or "ready", card["summary"]] for card in cards)
    print_table([bold("encoder"), whole("encodes"), "here", "what it is"], rows, results())
    console = results()
    console.print("\n`diptych encoders ENCODER` shows one of them with its parameters.")
    console.print("Use them as in --image-encoder EfficientNetLite:network=lite0, or joined, A+B.")


def _encoder_card(encoder: type[Encoder]) -> dict[str, Any]:
    described, needs = _described(encoder), missing_for(encoder)
    return {
        "name": encoder.__name__,
        "encodes": "pictures" if encoder.modality == "image" else "texts",
        # With some encoders it depends on the parameters.
        "learns": bool(encoder.learns if _required(encoder) else encoder().learns),
        "ready": needs is None,
        "needs": needs,
        "summary": described["summary"],
        "parameters": described["parameters"],
    }


def _show_encoder(card: Mapping[str, Any]) -> None:
    console = results()
    console.print(card["name"], style="bold")
    console.print(card["summary"])
    learns = "the training part" if card["learns"] else "nothing: it is ready made"
    here = card["needs"] or "ready"
    console.print(f"\nEncodes:     {card['encodes']}\nLearns from: {learns}\nHere:        {here}\n")
    _print_parameters(card["parameters"])


def missing_for(encoder: type[Encoder]) -> str | None:
    """Return what an encoder needs that is not here, None when it is ready; ``requirements`` tells, or it is tried."""
    answer = getattr(encoder, "requirements", None)
    if answer is not None:
        found: str | None = answer()
        return found
    required = _required(encoder)
    if required:
        return f"{required[0]}=..."
    try:
        example = encoder()
        # Learning from texts may take long.
        if example.learns and example.modality == "text":
            _ = example.fingerprint
        else:
            example.fit_transform(_samples(example.modality))
    except MissingPackageError as error:
        return str(error).rpartition(": ")[2]
    except DiptychError as error:
        # One item may be too little to learn from, which says nothing about the machine.
        return None if encoder.learns else str(error)
    return None


def _required(encoder: type[Encoder]) -> list[str]:
    return [about.name for about in inspect.signature(encoder).parameters.values() if about.default is about.empty]


def _samples(modality: Modality) -> list[Any]:
    """Return enough for an encoder to look for its packages and weights; what it makes of it does not matter."""
    import numpy as np

    return ["a boat"] if modality == "text" else [np.zeros((32, 32, 3), dtype=np.uint8)]
