"""``diptych encoders``: what turns pictures and texts into features, and whether it works here."""

from __future__ import annotations

import inspect
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from diptych.cli.console.output import bold, print_json, results, table, whole
from diptych.cli.options import JsonOption
from diptych.errors import DiptychError, MissingPackageError

if TYPE_CHECKING:
    from diptych.cli.commands.methods import Parameter
    from diptych.encoders import Encoder
    from diptych.encoders.encoder import Modality


def encoders(
    name: Annotated[str | None, typer.Argument(metavar="[ENCODER]", help="Show this encoder in detail.")] = None,
    as_json: JsonOption = False,
) -> None:
    """List the encoders: what each is for, and what to install where one is not ready."""
    from diptych.cli.arguments import encoder_classes, find_encoder

    if name is not None:
        card = EncoderCard.of(find_encoder(name))
        print_json(card.detail()) if as_json else _show(card)
        return
    cards = [EncoderCard.of(cls) for side in ("image", "text") for cls in encoder_classes(side).values()]
    print_json([card.outline() for card in cards]) if as_json else _list(cards)


def _list(cards: list[EncoderCard]) -> None:
    listing = table(bold("encoder"), whole("encodes"), "here", "what it is")
    for card in cards:
        listing.add_row(card.name, card.encodes, card.state, card.summary)
    console = results()
    console.print(listing)
    console.print("\n`diptych encoders ENCODER` shows one of them with its parameters.")
    console.print("Use them as in --image-encoder EfficientNetLite:network=lite0, or joined, A+B.")


def _show(card: EncoderCard) -> None:
    from diptych.cli.commands.methods import parameter_table

    console = results()
    console.print(card.name, style="bold")
    console.print(card.summary)
    learns = "the training part" if card.learns else "nothing: it is ready made"
    console.print(f"\nEncodes:     {card.encodes}\nLearns from: {learns}\nHere:        {card.state}\n")
    if card.parameters:
        console.print(parameter_table(card.parameters))


@dataclass(frozen=True)
class EncoderCard:
    """An encoder for a reader who has to choose.

    >>> from diptych.encoders import TfidfTopics
    >>> card = EncoderCard.of(TfidfTopics)
    >>> card.name, card.encodes, card.needs
    ('TfidfTopics', 'texts', None)
    """

    name: str
    encodes: str
    learns: bool
    needs: str | None
    summary: str
    parameters: tuple[Parameter, ...]

    @classmethod
    def of(cls, encoder: type[Encoder]) -> EncoderCard:
        """Read the card of a class, and find out what it lacks here."""
        from diptych.cli.commands.methods import Parameter, meanings, one_line, sections

        known = meanings(encoder)
        defaults = {
            name: "required" if about.default is about.empty else about.default
            for name, about in inspect.signature(encoder).parameters.items()
        }
        return cls(
            name=encoder.__name__,
            encodes="pictures" if encoder.modality == "image" else "texts",
            learns=_learns(encoder),
            needs=missing_for(encoder),
            summary=one_line(sections(inspect.getdoc(encoder) or "")[""].partition("\n\n")[0]),
            parameters=tuple(Parameter(name, default, known.get(name, "")) for name, default in defaults.items()),
        )

    @property
    def state(self) -> str:
        """Whether the encoder is ready, or what it needs."""
        return "ready" if self.needs is None else self.needs

    def outline(self) -> dict[str, Any]:
        """Return what a list of encoders shows."""
        return {
            "name": self.name,
            "encodes": self.encodes,
            "learns": self.learns,
            "ready": self.needs is None,
            "needs": self.needs,
            "summary": self.summary,
        }

    def detail(self) -> dict[str, Any]:
        """Return everything."""
        return {**self.outline(), "parameters": [asdict(parameter) for parameter in self.parameters]}


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


def _learns(encoder: type[Encoder]) -> bool:
    # With some encoders it depends on the parameters.
    return bool(encoder.learns if _required(encoder) else encoder().learns)


def _samples(modality: Modality) -> list[Any]:
    """Return enough for an encoder to look for its packages and weights; what it makes of it does not matter."""
    import numpy as np

    return ["a boat"] if modality == "text" else [np.zeros((32, 32, 3), dtype=np.uint8)]
