"""Files that could not be used: counted, listed, never fatal."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from diptych.cli.files import write_text
from diptych.cli.shown_path import printable, shown_path
from diptych.cli.stages import Stages

_SHOWN = 10


def report_skipped(skipped: Mapping[str, str], listing: Path, stages: Stages, *, verbose: bool) -> None:
    """Say which files were skipped and why: the first ten or all, and all of them in the file ``listing``."""
    if not skipped:
        listing.unlink(missing_ok=True)
        return
    lines = [_line(path, reason) for path, reason in skipped.items()]
    write_text(listing, "\n".join(lines) + "\n")
    many = f"{len(lines):,} {'file' if len(lines) == 1 else 'files'}"
    stages.note(f"skipped {many} that cannot be used:")
    for line in lines if verbose else lines[:_SHOWN]:
        stages.note(f"  {line}")
    if len(lines) > _SHOWN and not verbose:
        stages.note(f"  and {len(lines) - _SHOWN:,} more")
    stages.note(f"all of them are listed in {shown_path(listing)}")


def _line(path: str, reason: str) -> str:
    # Some reasons begin with the path, which is said already.
    return f"{printable(shown_path(Path(path)))}: {printable(reason.removeprefix(path).lstrip(' :'))}"
