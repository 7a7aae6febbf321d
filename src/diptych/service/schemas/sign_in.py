"""Signing in."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class SignIn(BaseModel):
    """The token, with which a browser begins a session."""

    # Mistakes are told to the client with what was wrong, which must not be the secret.
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    token: str = Field(min_length=1, max_length=1_000)
