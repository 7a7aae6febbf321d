"""A job, as asked for."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, RootModel

from diptych.service.schemas.index_job import IndexJob
from diptych.service.schemas.learn_job import LearnJob
from diptych.service.schemas.map_job import MapJob
from diptych.service.schemas.reencode_job import ReencodeJob
from diptych.service.schemas.retriever_job import RetrieverJob
from diptych.service.schemas.train_job import TrainJob

AnyJob = IndexJob | TrainJob | LearnJob | ReencodeJob | MapJob | RetrieverJob


class JobRequest(RootModel[Annotated[AnyJob, Field(discriminator="kind")]]):
    """What is to be done, and how."""

    def parameters(self) -> dict[str, Any]:
        """Return the parameters that were given."""
        return self.root.parameters.model_dump(exclude_unset=True)
