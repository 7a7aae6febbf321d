"""What the page is told about its session."""

from __future__ import annotations

from pydantic import BaseModel, Field


class SessionDocument(BaseModel):
    """Whether a browser may write, and what its requests carry to do so."""

    signed_in: bool
    needs_token: bool = Field(description="Whether one signs in with the token.")
    csrf: str | None = Field(description="For the header X-Diptych-CSRF of every request that changes something.")
    read_only: bool
    version: str
