"""Following a folder that was indexed, until Ctrl-C."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import FrameType

from diptych.cli.console.paths import shown_path
from diptych.cli.console.progress import Stages
from diptych.cli.indexing import WRITE_WAIT_S, IndexOutcome, IndexRequest, searchable
from diptych.collection import AddReport, Collection, FolderWatcher, Record
from diptych.data import CaptionedPicture
from diptych.data.remote_files import full_path
from diptych.errors import InvalidInputError


def watch_folder(
    request: IndexRequest, outcome: IndexOutcome, stages: Stages, report: Callable[[AddReport], None]
) -> None:
    """Keep the collection of an indexed folder up to date until Ctrl-C or a request to end."""
    stop = threading.Event()

    def end(number: int, frame: FrameType | None) -> None:
        # Python drops what a finaliser raises, and a signal may arrive within one; the watch then sees the event.
        stop.set()
        raise KeyboardInterrupt

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        root = request.named_root(outcome.place)
        with Collection.open(outcome.place, write_wait=WRITE_WAIT_S, root=root) as collection:
            watcher = FolderWatcher(
                collection,
                request.folder,
                make_records=partial(_records, request, stages),
                keep_missing=request.keep_missing,
                skipped=outcome.report.skipped,
            )
            stages.note(f"watching {shown_path(watcher.folder)}; Ctrl-C ends it")
            with suppress(KeyboardInterrupt):
                watcher.run(stop, report, stages.note)
            stages.note(f"stopped watching; {searchable(collection)} searchable")
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _records(request: IndexRequest, stages: Stages, pictures: Sequence[Path]) -> list[Record]:
    request = replace(request, folder=full_path(request.folder))
    known: Mapping[Path, CaptionedPicture] = {}
    if request.captions is not None:
        try:
            known = request.read_captions(pictures)
        except InvalidInputError as problem:
            # Someone may be writing it at this moment.
            stages.note(f"captions: {problem}; the next pictures are added without them")

    def pass_over(path: Path, reason: str) -> None:
        stages.note(f"skipped {shown_path(path)}: {reason}")

    return request.records(pictures, known, pass_over)
