"""What a job's process does: reads what is wanted, does it, and reports as JSON lines."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from diptych.collection import Collection
from diptych.errors import DiptychError
from diptych.service.jobs.reporter import Reporter
from diptych.service.jobs.work import WORK

_LOCK_SECONDS = 600.0


def main() -> int:
    """Do the job that standard input describes in one line."""
    # Whatever a library prints must not end up among the reports.
    reports = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    request = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_the_service, daemon=True).start()
    return run(request, reports)


def run(request: Mapping[str, Any], reports: TextIO) -> int:
    """Do a job and write its reports; return the exit status."""
    reporter = Reporter(reports)
    try:
        with Collection.open(Path(request["collection"]), write_wait=_LOCK_SECONDS) as collection:
            result = WORK[request["kind"]](collection, request["parameters"], reporter)
    except DiptychError as error:
        reporter.failed(str(error))
        return 1
    except Exception as error:
        traceback.print_exc()
        reporter.failed(f"{type(error).__name__}: {error}")
        return 1
    reporter.finished(result)
    return 0


def _end_with_the_service() -> None:
    sys.stdin.read()
    # Nobody would see the result or could cancel the work.
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main())
