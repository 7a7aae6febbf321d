"""Whether searches can be answered."""

from __future__ import annotations

from pydantic import BaseModel, Field


class ReadinessDocument(BaseModel):
    """Whether every collection can be searched."""

    ready: bool
    collections: dict[str, str] = Field(description="By name: ready, or why not.")
