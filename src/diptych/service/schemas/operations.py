"""Health, readiness and the session of the page over REST."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class HealthDocument(BaseModel):
    """That the process lives."""

    status: Literal["ok"]


class ReadinessDocument(BaseModel):
    """Whether every collection can be searched."""

    ready: bool
    collections: dict[str, str] = Field(description="By name: ready, or why not.")


class SessionDocument(BaseModel):
    """Whether a browser may write, and what its requests carry to do so."""

    signed_in: bool
    needs_token: bool = Field(description="Whether one signs in with the token.")
    csrf: str | None = Field(description="For the header X-Diptych-CSRF of every request that changes something.")
    read_only: bool
    version: str


class SignIn(BaseModel):
    """The token, with which a browser begins a session."""

    # Mistakes are told to the client with what was wrong, which must not be the secret.
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    token: str = Field(min_length=1, max_length=1_000)
