"""``diptych methods``: what there is to choose from."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from diptych.cli.terminal import print_json, results, table

if TYPE_CHECKING:
    from diptych.cli.method_card import MethodCard
    from diptych.models.base import Inputs

_INPUTS: tuple[Inputs, ...] = ("features", "items", "clicks")


def methods(
    name: Annotated[str | None, typer.Argument(metavar="[METHOD]", help="Show this method in detail.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """List the methods: what each learns from and when to use it."""
    from diptych.cli.method_card import MethodCard
    from diptych.models import find_model, model_classes

    if name is not None:
        card = MethodCard.of(find_model(name, among=_INPUTS))
        print_json(_as_json(card.detail())) if as_json else _show(card)
        return
    listed = sorted(entry for inputs in _INPUTS for entry in model_classes(inputs).items())
    cards = [MethodCard.of(cls) for _, cls in listed]
    print_json(_as_json([card.outline() for card in cards])) if as_json else _list(cards)


def _as_json(content: Any) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False)


def _list(cards: list[MethodCard]) -> None:
    listing = table()
    listing.add_column("method", no_wrap=True, style="bold")
    listing.add_column("learns from", no_wrap=True)
    listing.add_column("when to use it")
    for card in cards:
        listing.add_row(card.name, card.needs_text, card.when_to_use)
    console = results()
    console.print(listing)
    console.print("\n`diptych methods METHOD` shows one of them with its parameters.")


def _show(card: MethodCard) -> None:
    console = results()
    console.print(f"{card.name} ({card.class_name})", style="bold")
    console.print(card.summary)
    console.print(f"\nLearns from: {card.needs_text}\nUse it for:  {card.when_to_use}\n")
    if card.parameters:
        listing = table()
        listing.add_column("parameter", no_wrap=True, style="bold")
        listing.add_column("default", no_wrap=True)
        listing.add_column("meaning")
        for parameter in card.parameters:
            listing.add_row(parameter.name, repr(parameter.default), parameter.meaning)
        console.print(listing)
    if card.reference:
        console.print(f"\nReference: {card.reference}")
