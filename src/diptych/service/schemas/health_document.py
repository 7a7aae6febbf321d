"""Whether the process lives."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel


class HealthDocument(BaseModel):
    """That the process lives."""

    status: Literal["ok"]
