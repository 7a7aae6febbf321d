"""What clients send as JSON."""

from __future__ import annotations

from pydantic import ConfigDict

from diptych.service.schemas.document import Document


class SentDocument(Document):
    """A JSON object from a client: a number is a number and true is true, since anything else is a slip as well."""

    model_config = ConfigDict(strict=True)
