"""The jobs of a collection."""

from __future__ import annotations

from diptych.service.schemas.document import Document
from diptych.service.schemas.job_document import JobDocument


class JobList(Document):
    """Jobs, the newest first."""

    jobs: list[JobDocument]
