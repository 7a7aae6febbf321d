"""``diptych encoders``: what turns pictures and texts into features, and whether it works here."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from diptych.cli.terminal import print_json, results, table

if TYPE_CHECKING:
    from diptych.cli.encoder_card import EncoderCard


def encoders(
    name: Annotated[str | None, typer.Argument(metavar="[ENCODER]", help="Show this encoder in detail.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """List the encoders: what each is for, and what to install where one is not ready."""
    from diptych.cli.encoder_building import encoder_classes, find_encoder
    from diptych.cli.encoder_card import EncoderCard

    if name is not None:
        card = EncoderCard.of(find_encoder(name))
        print_json(json.dumps(card.detail(), indent=2, ensure_ascii=False)) if as_json else _show(card)
        return
    cards = [EncoderCard.of(cls) for side in ("image", "text") for cls in encoder_classes(side).values()]
    outlines = [card.outline() for card in cards]
    print_json(json.dumps(outlines, indent=2, ensure_ascii=False)) if as_json else _list(cards)


def _list(cards: list[EncoderCard]) -> None:
    listing = table()
    listing.add_column("encoder", no_wrap=True, style="bold")
    listing.add_column("encodes", no_wrap=True)
    listing.add_column("here")
    listing.add_column("what it is")
    for card in cards:
        listing.add_row(card.name, card.encodes, card.state, card.summary)
    console = results()
    console.print(listing)
    console.print("\n`diptych encoders ENCODER` shows one of them with its parameters.")
    console.print("Use them as in --image-encoder EfficientNetLite:network=lite0, or joined, A+B.")


def _show(card: EncoderCard) -> None:
    console = results()
    console.print(card.name, style="bold")
    console.print(card.summary)
    learns = "the training part" if card.learns else "nothing: it is ready made"
    console.print(f"\nEncodes:     {card.encodes}\nLearns from: {learns}\nHere:        {card.state}\n")
    if card.parameters:
        listing = table()
        listing.add_column("parameter", no_wrap=True, style="bold")
        listing.add_column("default", no_wrap=True)
        listing.add_column("meaning")
        for parameter in card.parameters:
            listing.add_row(parameter.name, repr(parameter.default), parameter.meaning)
        console.print(listing)
