"""What a service refuses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from diptych.errors import DiptychError


class ServiceError(DiptychError):
    """A service answered with a problem document, or could not be reached.

    ``status`` is that of HTTP, 0 when there was no answer; ``problem`` is the whole document (RFC 9457), and ``kind``
    the last part of its type, which stays the same between versions.

    >>> from diptych.service.client import ServiceError
    >>> error = ServiceError(404, {"type": "/problems/no-such-item", "detail": "There is no item x."})
    >>> error.kind, str(error)
    ('no-such-item', 'There is no item x.')
    """

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        super().__init__(str(problem.get("detail") or f"the service answered with status {status}"))
        self.status = status
        self.problem = dict(problem)

    @property
    def kind(self) -> str:
        """What went wrong, as a name for programs."""
        return str(self.problem.get("type", "")).rpartition("/")[2]
