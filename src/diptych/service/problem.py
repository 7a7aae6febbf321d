"""Errors as clients see them."""

from __future__ import annotations

from typing import Any


class Problem(Exception):
    """An answer other than success, as a problem document (RFC 9457).

    ``kind`` is the last part of the document's type and stays the same between versions; ``detail`` says what to do.

    >>> from diptych.service.problem import Problem
    >>> Problem(404, "no-such-item", "There is no item x.").document()["status"]
    404
    """

    def __init__(
        self, status: int, kind: str, detail: str, *, headers: dict[str, str] | None = None, **members: Any
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.kind = kind
        self.detail = detail
        self.headers = headers or {}
        self.members = members

    @property
    def title(self) -> str:
        """The kind in words."""
        return self.kind.replace("-", " ").capitalize()

    def document(self) -> dict[str, Any]:
        """Return the members of the problem document."""
        return {
            "type": f"/problems/{self.kind}",
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
            **self.members,
        }
