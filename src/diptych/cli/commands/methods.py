"""``diptych methods`` and ``diptych encoders``: what there is to choose from, with parameters and when to use it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from diptych.cli.console.output import bold, print_json, results, table, whole
from diptych.cli.options import JsonOption
from diptych.errors import DiptychError, MissingPackageError

if TYPE_CHECKING:
    from diptych.encoders import Encoder
    from diptych.encoders.encoder import Modality
    from diptych.models import CrossModalModel
    from diptych.models.base import Inputs

_INPUTS: tuple[Inputs, ...] = ("features", "items", "clicks")
_HEADING = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)
_ENTRY = re.compile(r"^(?P<names>\S[^:\n]*?)(?: ?:[^\n]*)?\n(?P<text>(?:[ ]+[^\n]*\n?|\n)+)", re.MULTILINE)


def methods(
    name: Annotated[str | None, typer.Argument(metavar="[METHOD]", help="Show this method in detail.")] = None,
    as_json: JsonOption = False,
) -> None:
    """List the methods: what each learns from and when to use it."""
    from diptych.models import find_model, model_classes

    if name is not None:
        card = MethodCard.of(find_model(name, among=_INPUTS))
        print_json(card.detail()) if as_json else _show_method(card)
        return
    listed = sorted(entry for inputs in _INPUTS for entry in model_classes(inputs).items())
    cards = [MethodCard.of(cls) for _, cls in listed]
    print_json([card.outline() for card in cards]) if as_json else _list_methods(cards)


def _list_methods(cards: list[MethodCard]) -> None:
    listing = table(bold("method"), whole("learns from"), "when to use it")
    for card in cards:
        listing.add_row(card.name, card.needs_text, card.when_to_use)
    console = results()
    console.print(listing)
    console.print("\n`diptych methods METHOD` shows one of them with its parameters.")


def _show_method(card: MethodCard) -> None:
    console = results()
    console.print(f"{card.name} ({card.class_name})", style="bold")
    console.print(card.summary)
    console.print(f"\nLearns from: {card.needs_text}\nUse it for:  {card.when_to_use}\n")
    if card.parameters:
        console.print(parameter_table(card.parameters))
    if card.reference:
        console.print(f"\nReference: {card.reference}")


def parameter_table(parameters: Sequence[Parameter]) -> Table:
    """Return parameters with their defaults and meanings, to print."""
    listing = table(bold("parameter"), whole("default"), "meaning")
    for parameter in parameters:
        listing.add_row(parameter.name, repr(parameter.default), parameter.meaning)
    return listing


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


@dataclass(frozen=True)
class Parameter:
    """One parameter of a method."""

    name: str
    default: Any
    meaning: str


@dataclass(frozen=True)
class MethodCard:
    """A method for a reader who has to choose.

    >>> from diptych.models import CFA
    >>> card = MethodCard.of(CFA)
    >>> card.name, card.needs_text
    ('cfa', 'pairs')
    """

    name: str
    class_name: str
    needs: tuple[str, ...]
    when_to_use: str
    summary: str
    parameters: tuple[Parameter, ...]
    reference: str

    @classmethod
    def of(cls, method: type[CrossModalModel]) -> MethodCard:
        """Read the card of a class."""
        from diptych.models import method_name

        described = sections(inspect.getdoc(method) or "")
        known = meanings(method)
        defaults = {name: value.default for name, value in inspect.signature(method).parameters.items()}
        return cls(
            name=method_name(method),
            class_name=method.__name__,
            needs=tuple(sorted(method.needs, key=("pairs", "labels", "clicks").index)),
            when_to_use=method.when_to_use,
            summary=one_line(described[""].partition("\n\n")[0]),
            parameters=tuple(Parameter(name, default, known.get(name, "")) for name, default in defaults.items()),
            reference=one_line(described.get("References", "")),
        )

    @property
    def needs_text(self) -> str:
        """What the method learns from, in words."""
        return ", ".join(self.needs) or "nothing"

    def outline(self) -> dict[str, Any]:
        """Return what a list of methods shows."""
        return {"name": self.name, "class": self.class_name, "needs": list(self.needs), "when_to_use": self.when_to_use}

    def detail(self) -> dict[str, Any]:
        """Return everything."""
        parameters = [asdict(parameter) for parameter in self.parameters]
        return {**self.outline(), "summary": self.summary, "parameters": parameters, "reference": self.reference}


def encoders(
    name: Annotated[str | None, typer.Argument(metavar="[ENCODER]", help="Show this encoder in detail.")] = None,
    as_json: JsonOption = False,
) -> None:
    """List the encoders: what each is for, and what to install where one is not ready."""
    from diptych.cli.arguments import encoder_classes, find_encoder

    if name is not None:
        card = EncoderCard.of(find_encoder(name))
        print_json(card.detail()) if as_json else _show_encoder(card)
        return
    cards = [EncoderCard.of(cls) for side in ("image", "text") for cls in encoder_classes(side).values()]
    print_json([card.outline() for card in cards]) if as_json else _list_encoders(cards)


def _list_encoders(cards: list[EncoderCard]) -> None:
    listing = table(bold("encoder"), whole("encodes"), "here", "what it is")
    for card in cards:
        listing.add_row(card.name, card.encodes, card.state, card.summary)
    console = results()
    console.print(listing)
    console.print("\n`diptych encoders ENCODER` shows one of them with its parameters.")
    console.print("Use them as in --image-encoder EfficientNetLite:network=lite0, or joined, A+B.")


def _show_encoder(card: EncoderCard) -> None:
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
