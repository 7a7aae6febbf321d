"""``diptych methods`` and ``diptych encoders``: what there is to choose from, with parameters and when to use it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from diptych.cli.console.output import (
    bold,
    facts_table,
    numbers,
    print_json,
    print_listing,
    print_table,
    results,
    whole,
)
from diptych.cli.console.progress import Stages
from diptych.cli.options import JsonOption, QuietOption

if TYPE_CHECKING:
    from diptych.encoders import Encoder
    from diptych.models import CrossModalModel
    from diptych.models.base import Inputs

INPUTS: tuple[Inputs, ...] = ("features", "items", "clicks")
NEEDS = ("pairs", "labels", "clicks", "unpaired")
IMAGE_TOWERS = ("EfficientNetLite", "EfficientNetLite:network=lite0")
TEXT_TOWERS = ("SentenceEncoder", "UniversalSentenceEncoder")
HEADING = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)
ENTRY = re.compile(r"^(?P<names>\S[^:\n]*?)(?: ?:[^\n]*)?\n(?P<text>(?:[ ]+[^\n]*\n?|\n)+)", re.MULTILINE)


def methods(
    name: Annotated[str | None, typer.Argument(metavar="[METHOD]", help="Show this method in detail.")] = None,
    as_json: JsonOption = False,
) -> None:
    """List the methods, or show one: when to use it."""
    from diptych.models import find_model, installed_methods, model_classes

    if name is not None:
        cls = find_model(name, among=INPUTS)
        card = {**_method_outline(cls), **_described(cls)}
        facts = {"Learns from": _needs_text(card), "Use it for": card["when_to_use"]}
        _show(f"{card['name']} ({card['class']})", card, facts, as_json=as_json)
        return
    classes = [entry for inputs in INPUTS for entry in model_classes(inputs).items()]
    classes = sorted([*classes, *installed_methods(*INPUTS).items()], key=lambda entry: entry[0])
    print_listing(
        [_method_outline(cls) for _, cls in classes],
        [bold("method"), whole("learns from"), "when to use it"],
        lambda each: (each["name"], _needs_text(each), each["when_to_use"]),
        as_json=as_json,
    )
    if not as_json:
        results().print("\n`diptych methods METHOD` shows one of them with its parameters.")


def _method_outline(method: type[CrossModalModel]) -> dict[str, Any]:
    from diptych.models import method_name

    needs = sorted(method.needs, key=NEEDS.index)
    names = {"name": method_name(method), "class": method.__name__}
    return {**names, "needs": needs, "when_to_use": method.when_to_use}


def _needs_text(card: Mapping[str, Any]) -> str:
    return ", ".join(card["needs"]) or "nothing"


def encoders(
    name: Annotated[str | None, typer.Argument(metavar="[ENCODER]", help="Show this encoder in detail.")] = None,
    compare: Annotated[
        str | None,
        typer.Option(
            metavar="DATA",
            help="Compare encoders on captioned pictures: a data set, a caption file beside its pictures, or a folder.",
        ),
    ] = None,
    image_encoder: Annotated[
        list[str] | None, typer.Option(help="With --compare: an encoder of pictures; may be repeated.")
    ] = None,
    text_encoder: Annotated[
        list[str] | None, typer.Option(help="With --compare: an encoder of texts; may be repeated.")
    ] = None,
    pairs: Annotated[int, typer.Option(min=40, help="With --compare: look at so many pictures at most.")] = 500,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """List the encoders of pictures and texts, show one, or compare which of them agree.

    Towers that agree, by kernel alignment (CKA) and by mutual nearest neighbours, need fewer captions. Recall is that
    of an orthogonal map between them, learned from four fifths of the pairs and asked the rest, in turn.
    """
    from diptych.cli.arguments import encoder_classes, find_encoder

    if compare is not None:
        _compare(compare, image_encoder or IMAGE_TOWERS, text_encoder or TEXT_TOWERS, pairs, as_json, quiet)
        return
    if name is not None:
        card = _encoder_card(find_encoder(name))
        learns = "the training part" if card["learns"] else "nothing: it is ready made"
        _show(card["name"], card, {"Encodes": card["encodes"], "Learns from": learns}, as_json=as_json)
        return
    cards = [_encoder_card(cls) for side in ("image", "text") for cls in encoder_classes(side).values()]
    print_listing(
        [{name: value for name, value in card.items() if name != "parameters"} for card in cards],
        [bold("encoder"), whole("encodes"), "what it is"],
        lambda card: (card["name"], card["encodes"], card["summary"]),
        as_json=as_json,
    )
    if not as_json:
        results().print("\n`diptych encoders ENCODER` shows one of them with its parameters.")
        results().print("Use them as in --image-encoder EfficientNetLite:network=lite0, or joined, A+B.")


def _compare(
    source: str, image_names: Sequence[str], text_names: Sequence[str], most: int, as_json: bool, quiet: bool
) -> None:
    from diptych.benchmark.towers import captioned_pairs, compare_towers
    from diptych.cli.arguments import build_encoder

    towers = {name: build_encoder(name, "image", "--image-encoder") for name in image_names}
    text_towers = {name: build_encoder(name, "text", "--text-encoder") for name in text_names}
    stages = Stages(quiet=quiet)
    found = captioned_pairs(source, most)
    with stages.run("encode", f"encoding {found.n_images:,} pictures and as many captions"):
        rows = compare_towers(found, towers, text_towers)
    print_listing(
        rows,
        [bold("pictures"), bold("texts"), *numbers("CKA", "neighbours", "by chance", "R@1", "by chance")],
        lambda row: (
            row["images"],
            row["texts"],
            f"{row['cka']:.3f} ± {row['cka_error']:.3f}",
            f"{row['neighbours']:.3f} ± {row['neighbours_error']:.3f}",
            f"{row['neighbours_chance']:.3f}",
            f"{row['recall']:.3f}",
            f"{row['recall_chance']:.3f}",
        ),
        as_json=as_json,
    )


def _encoder_card(encoder: type[Encoder]) -> dict[str, Any]:
    described = _described(encoder)
    has_defaults = all(parameter["default"] != "required" for parameter in described["parameters"])
    return {
        "name": encoder.__name__,
        "encodes": "pictures" if encoder.modality == "image" else "texts",
        # With some encoders it depends on the parameters.
        "learns": bool(encoder().learns if has_defaults else encoder.learns),
        "summary": described["summary"],
        "parameters": described["parameters"],
    }


def _show(title: str, card: Mapping[str, Any], facts: Mapping[str, str], *, as_json: bool) -> None:
    """Print what is known of one method or encoder."""
    if as_json:
        print_json(card)
        return
    console = results()
    console.print(title, style="bold")
    console.print(f"{card['summary']}\n")
    console.print(facts_table(facts))
    if card["parameters"]:
        console.print()
        rows = ([each["name"], repr(each["default"]), each["meaning"]] for each in card["parameters"])
        print_table([bold("parameter"), whole("default"), "meaning"], rows, console)
    if card.get("reference"):
        console.print(f"\nReference: {card['reference']}")


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
    parts = HEADING.split(docstring)
    return dict(zip(["", *parts[1::2]], [part.strip("\n") for part in parts[0::2]], strict=True))


def meanings(described: type) -> dict[str, str]:
    """Return what each parameter means: what a base class says of fewer names counts more, "As in" X is looked up."""
    from diptych.models.base import REGISTRY

    found: dict[str, tuple[int, str]] = {}
    for cls in reversed(described.__mro__):
        section = sections(inspect.cleandoc(cls.__doc__ or "")).get("Parameters", "")
        for entry in ENTRY.finditer(section + "\n"):
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
