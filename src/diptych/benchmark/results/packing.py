"""Many small files in a few, for publishing."""

from __future__ import annotations

import gzip
import io
import json
import os
from itertools import groupby
from os import PathLike
from pathlib import Path

from diptych.benchmark.results.result_folder import PACKED_SUFFIX, ResultFolder


def pack_results(source: str | PathLike[str], target: str | PathLike[str]) -> list[Path]:
    """Write ``<task>.jsonl.gz`` into ``target`` for every task of ``source``, one record a line, and return the files.

    The same records always give the same bytes.

    >>> import tempfile
    >>> from diptych.benchmark.results import Record, ResultFolder, pack_results
    >>> record = Record(task="t", dataset="d", setting="seen", features="f", method="cca", method_title="CCA", fold=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = ResultFolder(f"{folder}/single").write(record)
    ...     files = pack_results(f"{folder}/single", f"{folder}/packed")
    ...     [file.name for file in files], ResultFolder(f"{folder}/packed").find("t", "cca", 0) == record
    (['t.jsonl.gz'], True)
    """
    files = []
    folder = Path(target)
    folder.mkdir(parents=True, exist_ok=True)
    for task, records in groupby(ResultFolder(source).records(), key=lambda record: record.task):
        buffer = io.BytesIO()
        # Without a time in the header, packing twice gives one file.
        with gzip.GzipFile(filename="", fileobj=buffer, mode="wb", mtime=0) as stream:
            for record in records:
                line = json.dumps(record.as_json(), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
                stream.write(f"{line}\n".encode())
        path = folder / f"{task}{PACKED_SUFFIX}"
        temporary = path.with_name(f".{path.name}.part")
        temporary.write_bytes(buffer.getvalue())
        os.replace(temporary, path)
        files.append(path)
    return files
