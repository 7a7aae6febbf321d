"""One idea of how to explain a match."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from diptych.models import CrossModalModel
from diptych.retriever.explaining.match import Match
from diptych.retriever.explaining.view import View, ViewKind


class Explainer(ABC):
    """Looks at a match in one way, where it has anything to say.

    A subclass declares the ``kind`` of its bars and writes `reads_model` and `views`; a list of them in
    :mod:`diptych.retriever.explaining.explain` decides who speaks first.
    """

    kind: ClassVar[ViewKind]

    @abstractmethod
    def reads_model(self, model: CrossModalModel) -> bool:
        """Say whether this idea fits the model, whatever the encoders are."""

    @abstractmethod
    def views(self, match: Match) -> list[View]:
        """Return what there is to see; nothing where this idea does not fit the match."""
