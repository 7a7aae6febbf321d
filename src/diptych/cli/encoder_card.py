"""What an encoder says about itself, and whether it works on this machine."""

from __future__ import annotations

import inspect
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from diptych.cli.docstrings import meanings, one_line, sections
from diptych.cli.method_card import Parameter
from diptych.encoders import Encoder
from diptych.encoders.encoder import Modality
from diptych.errors import DiptychError, MissingPackageError

# Enough for an encoder to look for its packages and weights; what it makes of them does not matter.
_SAMPLES: dict[Modality, Any] = {"image": [np.zeros((32, 32, 3), dtype=np.uint8)], "text": ["a boat"]}


@dataclass(frozen=True)
class EncoderCard:
    """An encoder for a reader who has to choose.

    >>> from diptych.cli.encoder_card import EncoderCard
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
        signature = inspect.signature(encoder).parameters.values()
        return cls(
            name=encoder.__name__,
            encodes="pictures" if encoder.modality == "image" else "texts",
            learns=_learns(encoder),
            needs=missing_for(encoder),
            summary=one_line(sections(inspect.getdoc(encoder) or "")[""].partition("\n\n")[0]),
            parameters=tuple(Parameter(about.name, _default(about), known.get(about.name, "")) for about in signature),
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
    """Return what an encoder needs that is not here, None when it is ready.

    An encoder may answer by a class method ``requirements``; otherwise it is tried on one small item, or, when it
    learns from texts, which may take long, asked for its fingerprint.
    """
    answer = getattr(encoder, "requirements", None)
    if answer is not None:
        found: str | None = answer()
        return found
    required = _required(encoder)
    if required:
        return f"{required[0]}=..."
    try:
        example = encoder()
        if example.learns and example.modality == "text":
            _ = example.fingerprint
        else:
            example.fit_transform(_SAMPLES[example.modality])
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


def _default(about: inspect.Parameter) -> Any:
    return "required" if about.default is about.empty else about.default
