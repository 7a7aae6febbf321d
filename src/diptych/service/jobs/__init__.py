"""Long work on a collection: indexing, training, changing retrievers, drawing maps."""

from diptych.service.jobs.job import JOB_KINDS, Job, JobKind, JobState
from diptych.service.jobs.job_runner import JobRunner
from diptych.service.jobs.job_store import JobStore

__all__ = ["JOB_KINDS", "Job", "JobKind", "JobRunner", "JobState", "JobStore"]
