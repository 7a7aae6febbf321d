"""The recorded commands, run on the photographs that come with Diptych, and what of their output is not compared."""

from __future__ import annotations

import csv
import os
import re
import shlex
import shutil
from contextlib import chdir
from difflib import unified_diff
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

import diptych.data
from diptych import Retriever
from diptych.cli import app
from diptych.collection import Collection, Record

COMMANDS = """
diptych --help
diptych index --help
diptych search --help
diptych add --help
diptych serve --help
diptych train --help
diptych export --help
diptych unknown
diptych search
diptych search "a dog" -c missing
diptych search "a dog" --mode telepathy
diptych search "a dog" --filter "label:"
diptych search "a dog" --min-probability 2
diptych search "dog +"
diptych search nothing.jpg
diptych search "two dogs" -k 3
diptych search "two dogs" -k 3 --json
diptych search "animal - dog" -k 3 --format table
diptych search "a mountain" -k 2 --target texts --format paths
diptych search cat.jpg -k 3 --filter "not name:cat*" --json
diptych search "a quantum computer" --all -k 2
diptych search dog --mode words --why
diptych index . --quiet
diptych status
diptych status --json
diptych duplicates
diptych album add Animals --filter "caption:dog"
diptych album list
diptych album show Animals
diptych saved list
diptych methods scm
diptych methods unknown
diptych encoders TfidfTopics
diptych datasets show wikipedia
diptych evaluate -d wikipedia -m scm --quiet
diptych evaluate -d wikipedia -m nothing
diptych history
diptych remove moose.jpg
"""

# What differs between two runs or two machines: folders, ids and checksums, times, versions, sizes on disk.
VARIABLE = (
    (re.compile(r"(?<![.\w])[0-9a-f]{12,64}\b"), "ID"),
    (re.compile(r"\b20\d\d-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?)?(Z|[+-]\d\d:\d\d| UTC)?"), "TIME"),
    (re.compile(r"\b\d+(\.\d+)? ?(ms|s|seconds?)\b"), "SECONDS"),
    (re.compile(r'("\w*(seconds|bytes|_ns)\w*": )[\d.e-]+'), r"\1NUMBER"),
    (re.compile(r"\b\d+(\.\d+)? (B|kB|KB|MB|GB|KiB|MiB|GiB)\b"), "SIZE"),
    (re.compile(rf"\b{re.escape(diptych.__version__)}\b"), "VERSION"),
)
NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?|\d+(?= ?%)")
TOLERANCE, PERCENT_TOLERANCE = 0.006, 1


def command_outputs(folder: Path) -> dict[str, dict[str, Any]]:
    """Run every command in a collection of the shipped photographs; return the exit status and both streams of each."""
    pictures = folder / "pictures"
    _make_collection(pictures)
    surroundings = {"COLUMNS": "100", "TERMINAL_WIDTH": "100", "DIPTYCH_DEVICE": "cpu"}
    outputs: dict[str, dict[str, Any]] = {}
    with chdir(pictures):
        for line in COMMANDS.strip().splitlines():
            result = CliRunner().invoke(app, shlex.split(line)[1:], prog_name="diptych", env=surroundings)
            if result.exception is not None and not isinstance(result.exception, SystemExit):
                raise result.exception
            outputs[line] = {
                "exit": result.exit_code,
                "stdout": _stable(result.stdout, folder),
                "stderr": _stable(result.stderr, folder),
            }
    return outputs


def _make_collection(pictures: Path) -> None:
    source = Path(diptych.data.__file__).parent / "photographs"
    pictures.mkdir(parents=True)
    with (source / "photographs.tsv").open(newline="") as table:
        rows = list(csv.DictReader(table, delimiter="\t"))
    for row in rows:
        shutil.copyfile(source / row["file"], pictures / row["file"])
    records = [Record(pictures / row["file"], captions=[row["caption"]]) for row in rows]
    retriever = Retriever.ready_made("default")
    retriever.save(pictures.parent / "retriever")
    with Collection.create(pictures / ".diptych", retriever) as collection:
        collection.add(records)


def _stable(text: str, folder: Path) -> list[str]:
    # The folder may be shown from the home folder or from the present one.
    for shown in (os.path.realpath(folder), str(folder)):
        text = text.replace(shown, "FOLDER")
    text = text.replace(os.environ.get("DIPTYCH_DATA") or "\0", "DATA")
    for pattern, name in VARIABLE:
        text = pattern.sub(name, text)
    return [line.rstrip() for line in text.splitlines()]


def output_differences(recorded: dict[str, Any], found: dict[str, Any]) -> list[str]:
    """Return the lines that differ, numbers of other last digits aside."""
    lines = (
        [f"exit status: recorded {recorded['exit']}, now {found['exit']}"] if recorded["exit"] != found["exit"] else []
    )
    for stream in ("stdout", "stderr"):
        before, now = recorded[stream], found[stream]
        if len(before) != len(now) or not all(map(_is_same_line, before, now)):
            lines += list(unified_diff(before, now, f"{stream} recorded", f"{stream} now", lineterm="", n=1))
    return lines


def _is_same_line(before: str, now: str) -> bool:
    numbers = zip(NUMBER.findall(before), NUMBER.findall(now), strict=False)
    return _words(before) == _words(now) and all(
        abs(float(one) - float(other)) <= (TOLERANCE if "." in one else PERCENT_TOLERANCE) for one, other in numbers
    )


def _words(line: str) -> list[str]:
    """Return a line without its numbers, and without the width of columns."""
    return NUMBER.sub("#", line).split()
