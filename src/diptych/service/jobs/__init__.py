"""Long work on a collection: indexing, training, changing retrievers, drawing maps."""

from diptych.service.jobs.runner import JobRunner
from diptych.service.jobs.store import JOB_KINDS, Job, JobKind, JobState, JobStore

__all__ = ["JOB_KINDS", "Job", "JobKind", "JobRunner", "JobState", "JobStore"]
