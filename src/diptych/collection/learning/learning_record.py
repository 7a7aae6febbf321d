"""One step of learning from clicks, as it is remembered."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, Self

Action = Literal["promoted", "kept", "rolled back"]


@dataclass(frozen=True)
class LearningRecord:
    """What was compared when, and what became of it.

    ``before`` and ``after`` name the retrievers in force before and after with their fingerprints; when everything was
    kept they are the same. ``compared_with`` names the retriever that the learned one had to beat; ``old`` and ``new``
    are the mean of ``measure`` over the held-out queries. ``parts`` are the weights of what was fused. ``gained`` and
    ``lost`` are queries with their values before and after.

    >>> from diptych.collection.learning import LearningRecord
    >>> record = LearningRecord("2026-01-01T12:00:00+00:00", "kept", "default", "f1", "default", "f1", reason="few")
    >>> LearningRecord.from_json(record.to_json()) == record
    True
    """

    time: str
    action: Action
    before: str
    before_fingerprint: str
    after: str
    after_fingerprint: str
    reason: str = ""
    compared_with: str = ""
    measure: str = ""
    old: float | None = None
    new: float | None = None
    p_value: float | None = None
    alpha: float | None = None
    n_queries: int = 0
    n_held_out: int = 0
    n_clicks: float = 0.0
    answered: float | None = None
    parts: dict[str, float] = field(default_factory=dict)
    gained: tuple[tuple[str, float, float], ...] = ()
    lost: tuple[tuple[str, float, float], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Self:
        """Read plain values; what a newer version added is left out."""
        known = {each.name for each in fields(cls)}
        values = {name: value for name, value in document.items() if name in known}
        for name in ("gained", "lost"):
            values[name] = tuple((query, old, new) for query, old, new in values.get(name, ()))
        return cls(**values)
