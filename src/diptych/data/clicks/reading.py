"""Click logs from files, in the layouts people have them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Literal, get_args

from diptych.data.clicks.click_log import ClickLog
from diptych.data.clicks.columns import find_columns
from diptych.data.clicks.delimited import first_line, read_named_table, read_plain_table
from diptych.data.clicks.gathering import Gathering, Progress
from diptych.data.clicks.json_lines import read_json_lines
from diptych.data.clicks.parquet import read_parquet
from diptych.data.clicks.rows import BadRow, TriadRow
from diptych.errors import InvalidInputError, UnknownNameError

ClickLayout = Literal["auto", "tsv", "csv", "jsonl", "parquet", "clickture"]
CLICK_LAYOUTS: tuple[ClickLayout, ...] = get_args(ClickLayout)


def read_clicks(
    path: str | PathLike[str],
    *,
    layout: ClickLayout = "auto",
    columns: Sequence[str] | None = None,
    skip: bool = False,
    progress: Progress | None = None,
) -> ClickLog:
    """Read a click log of any length, a batch of rows at a time.

    ============= ==================================================================================
    ``tsv``       columns query, image (or item), clicks and, if known, time, named in the first row
    ``csv``       the same with commas
    ``jsonl``     an object per line with these names
    ``parquet``   a table with these columns; needs pyarrow
    ``clickture`` tabs, no names, no quotes: query, image key, clicks (Hua et al., "Clickage: towards
                  bridging semantic and intent gaps via mining click logs of search engines", ACM MM 2013)
    ============= ==================================================================================

    ``auto`` goes by the file's ending and its first line; a text file may be packed (``.gz``). Without a column of
    clicks every row is one click. The tables of ``diptych clicks export`` can be read as they are. ``columns`` names
    the columns of a ``clickture`` file in their order; by default its rows tell whether queries or keys come first,
    since keys hold no spaces. The first bad row is an error with its line; ``skip`` passes over bad rows and counts
    them in ``n_skipped``. ``progress`` is called with the number of rows read so far.

    Use it for a log that you have; :meth:`ClickLog.from_triads` makes one from columns in memory.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from diptych.data.clicks import read_clicks
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "log.tsv"
    ...     _ = file.write_text("query\\timage\\tclicks\\nred car\\t1.jpg\\t3\\nred car\\t2.jpg\\t1\\n")
    ...     log = read_clicks(file)
    >>> log
    <ClickLog: 2 triads, 1 queries, 2 images, 4 clicks>
    """
    if layout not in CLICK_LAYOUTS:
        raise UnknownNameError("layout of a click log", str(layout), CLICK_LAYOUTS)
    file = Path(path)
    if not file.is_file():
        raise InvalidInputError(f"{file} is not a file; name the file that holds the clicks")
    known = _detected(file, columns) if layout == "auto" else layout
    if columns is not None and known != "clickture":
        raise InvalidInputError(f"{file} names its columns itself; columns belong to the layout 'clickture'")
    gathering = Gathering(f"{file}: {'row' if known == 'parquet' else 'line'}", skip=skip, progress=progress)
    gathering.add(_rows(file, known, columns))
    return gathering.log()


def _detected(file: Path, columns: Sequence[str] | None) -> ClickLayout:
    suffixes = [suffix.lower() for suffix in file.suffixes if suffix.lower() != ".gz"]
    match suffixes[-1] if suffixes else "":
        case ".parquet" | ".pq":
            return "parquet"
        case ".jsonl" | ".ndjson":
            return "jsonl"
        case ".csv":
            return "csv"
    if columns is not None:
        return "clickture"
    first = first_line(file)
    if first.startswith("{"):
        return "jsonl"
    if "\t" in first:
        return "tsv" if find_columns(first.split("\t"), str(file)) else "clickture"
    return "csv"


def _rows(file: Path, layout: ClickLayout, columns: Sequence[str] | None) -> Iterator[TriadRow | BadRow]:
    match layout:
        case "parquet":
            return read_parquet(file)
        case "jsonl":
            return read_json_lines(file)
        case "csv":
            return read_named_table(file, ",")
        case "tsv":
            return read_named_table(file, "\t")
    return read_plain_table(file, columns)
