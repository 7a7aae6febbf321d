"""Health, readiness and the session of the page over REST."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator


class HealthDocument(BaseModel):
    """That the process lives."""

    status: Literal["ok"]


class ReadinessDocument(BaseModel):
    """Whether every collection can be searched."""

    ready: bool
    collections: dict[str, str] = Field(description="By name: ready, or why not; nothing for those who may not read.")


class SessionDocument(BaseModel):
    """Whether a browser may write, and what its requests carry to do so."""

    signed_in: bool
    needs_token: bool = Field(description="Whether reading needs the token or a session as well.")
    csrf: str | None = Field(description="For the header X-Diptych-CSRF of every request that changes something.")
    read_only: bool
    version: str


class SignIn(BaseModel):
    """The token, or the key of an address that works once: with either a browser begins a session."""

    # Mistakes are told to the client with what was wrong, which must not be the secret.
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    token: str | None = Field(default=None, min_length=1, max_length=1_000)
    key: str | None = Field(default=None, min_length=1, max_length=1_000)

    @model_validator(mode="after")
    def _has_one(self) -> Self:
        if (self.token is None) == (self.key is None):
            raise ValueError("give the token or a key, one of them")
        return self
