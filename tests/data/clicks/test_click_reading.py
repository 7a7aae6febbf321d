from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from diptych.data.clicks import ClickLog, read_clicks
from diptych.errors import InvalidInputError, UnknownNameError

LOG = ClickLog.from_triads(
    ["red car", 'the "big" dog', "red car", "a, b; c\td"], ["1.jpg", "2.jpg", "2.jpg", "ß.jpg"], [3, 1, 0.1, 2.5]
)

printable = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1).filter(
    lambda text: text == text.strip()
)


def rows_of(log: ClickLog) -> list[tuple[str, str, float]]:
    names = ((log.queries[query], log.images[image]) for query, image in zip(log.query_ids, log.image_ids, strict=True))
    return [(*name, clicks) for name, clicks in zip(names, log.clicks.tolist(), strict=True)]


def file(folder: Path, name: str, content: str) -> Path:
    path = folder / name
    path.write_text(content, encoding="utf-8")
    return path


@pytest.mark.parametrize("suffix", ["tsv", "csv", "jsonl", "parquet"])
@pytest.mark.parametrize("times", [None, [1.5, 2.0, 1e9, 0.1]])
def test_what_is_written_is_read(suffix: str, times: list[float] | None, tmp_path: Path) -> None:
    names = [(LOG.queries[query], LOG.images[image]) for query, image in zip(LOG.query_ids, LOG.image_ids, strict=True)]
    log = ClickLog.from_triads([query for query, _ in names], [image for _, image in names], LOG.clicks, times)
    read = read_clicks(log.write(tmp_path / f"log.{suffix}"))
    assert rows_of(read) == rows_of(log)
    assert list(read.queries) == list(log.queries)
    assert (read.times is None) == (times is None)
    assert times is None or (read.times is not None and read.times.tolist() == times)
    assert [path.name for path in tmp_path.iterdir()] == [f"log.{suffix}"]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    rows=st.lists(
        st.tuples(printable, st.sampled_from(["1.jpg", "2 b.jpg", "'"]), st.floats(2**-20, 2**20, width=32)),
        min_size=1,
        max_size=5,
    ),
    suffix=st.sampled_from(["tsv", "csv", "jsonl"]),
)
def test_any_text_survives(rows: list[tuple[str, str, float]], suffix: str, tmp_path: Path) -> None:
    log = ClickLog.from_triads(*zip(*rows, strict=True))
    assert rows_of(read_clicks(log.write(tmp_path / f"log.{suffix}"), layout=suffix)) == rows


def test_clickture_is_read_in_either_order(tmp_path: Path) -> None:
    triads = [("red car", "k+1/x", 3), ('say "hi', "k2", 1), ("dog", "k+1/x", 2)]
    first = file(tmp_path, "query_first.tsv", "".join(f"{q}\t{k}\t{c}\n" for q, k, c in triads))
    second = file(tmp_path, "key_first.tsv", "".join(f"{k}\t{q}\t{c}\r\n" for q, k, c in triads))
    pairs = file(tmp_path, "pairs.txt", "".join(f"{q}\t{k}\n" for q, k, _ in triads))
    assert rows_of(read_clicks(first)) == rows_of(read_clicks(second, layout="clickture")) == triads
    assert rows_of(read_clicks(pairs)) == [(query, key, 1) for query, key, _ in triads]
    named = read_clicks(first, columns=("image", "query", "clicks"))
    assert list(named.images) == [query for query, _, _ in triads]


def test_the_service_s_own_export_is_read(tmp_path: Path) -> None:
    path = file(tmp_path, "export.csv", 'query,item,clicks\n"red, car",x1,2\ndog,x2,1\n')
    assert rows_of(read_clicks(path)) == [("red, car", "x1", 2), ("dog", "x2", 1)]


@pytest.mark.parametrize("names", ["query,item,position,shown,clicked", "time,search,query,item,kind,position"])
def test_tables_that_are_no_triads_are_refused(names: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"events or impressions.*GET /v1"):
        read_clicks(file(tmp_path, "export.csv", f"{names}\n"))


def test_packed_files_and_marks_at_the_start_are_read(tmp_path: Path) -> None:
    path = tmp_path / "log.csv.gz"
    with gzip.open(path, "wt", encoding="utf-8-sig") as stream:
        stream.write("Query,Image Key,Click Count\ncafé,1,2\n")
    assert rows_of(read_clicks(path)) == [("café", "1", 2)]


def test_times_are_seconds_or_iso(tmp_path: Path) -> None:
    path = file(tmp_path, "log.csv", "query,image,time\na,1,1970-01-02\na,2,1970-01-01T01:00:00+01:00\na,3,86400.5\n")
    log = read_clicks(path)
    assert log.times is not None
    assert log.times.tolist() == [86400, 0, 86400.5]
    assert log.clicks.tolist() == [1, 1, 1]
    gap = file(tmp_path, "gap.csv", "query,image,time\na,1,5\na,2,\n")
    with pytest.raises(InvalidInputError, match=r"gap\.csv: triad 2 has no time, but others have"):
        read_clicks(gap)


def test_parquet_with_dates_and_numbers_is_read(tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    table = {"query": ["a", "b"], "item": [7, 8], "clicks": [1, 2], "time": np.array([0, 1], dtype="datetime64[s]")}
    parquet.write_table(pa.table(table), tmp_path / "log.parquet")
    log = read_clicks(tmp_path / "log.parquet")
    assert rows_of(log) == [("a", "7", 1), ("b", "8", 2)]
    assert log.times is not None
    assert log.times.tolist() == [0, 1]


BAD = {
    "fields.tsv": ("query\timage\tclicks\na\t1\t2\nb\t2\n", "line 3: it has 2 fields, but there are 3 columns"),
    "half.jsonl": (
        '{"query": "a", "image": "1"}\n{"query": "a", "image": "\\ud800"}\n',
        "line 2: the image holds half a character (a lone surrogate) at 1",
    ),
    "number.csv": ("query,image,clicks\na,1,2\nb,2,many\n", "line 3: clicks must be a number, got 'many'"),
    "nothing.csv": ("query,image,clicks\na,1,2\nb,2,0\n", "line 3: clicks must be a number above 0, got '0'"),
    "endless.csv": ("query,image,clicks\na,1,2\nb,2,nan\n", "line 3: clicks must be a number above 0, got 'nan'"),
    "query.csv": ("query,image,clicks\na,1,2\n ,2,1\n", "line 3: the query is empty"),
    "image.csv": ("query,image,clicks\na,1,2\nb,,1\n", "line 3: the image is empty"),
    "time.csv": (
        "query,image,time\na,1,2\nb,2,soon\n",
        "line 3: the time must be seconds since 1970 or ISO 8601, got 'soon'",
    ),
    "broken.jsonl": ('{"query": "a", "image": "1"}\n\n{"query"\n', "line 3: it is not valid JSON"),
    "list.jsonl": ('{"query": "a", "image": "1"}\n\n["b"]\n', "line 3: it is no object such as"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_row_is_named_or_skipped(name: str, tmp_path: Path) -> None:
    content, message = BAD[name]
    path = file(tmp_path, name, content)
    with pytest.raises(InvalidInputError, match="skip=True") as caught:
        read_clicks(path)
    assert f"{path}: {message}" in str(caught.value)
    log = read_clicks(path, skip=True)
    assert (log.n_triads, log.n_skipped) == (1, 1)
    assert list(log.queries) == ["a"]


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="is not a file; name the file"):
        read_clicks(tmp_path / "none.tsv")
    with pytest.raises(InvalidInputError, match=r"line 1 must name the columns.*it holds 'a,b'"):
        read_clicks(file(tmp_path, "unnamed.csv", "a,b\n1,2\n"))
    with pytest.raises(InvalidInputError, match="holds no triads"):
        read_clicks(file(tmp_path, "empty.csv", "query,image\n"))
    with pytest.raises(InvalidInputError, match="no readable Parquet file"):
        read_clicks(file(tmp_path, "text.parquet", "query"))
    with pytest.raises(UnknownNameError, match="did you mean 'tsv'"):
        read_clicks(tmp_path, layout="tvs")  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="csv, jsonl, parquet, tsv"):
        LOG.write(tmp_path / "log.xlsx")
    with pytest.raises(InvalidInputError, match="names its columns itself"):
        read_clicks(file(tmp_path, "named.csv", "query,image\n"), columns=("query", "image"))


def test_progress_counts_rows_and_long_files_come_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("diptych.data.clicks.click_reading._ROWS_AT_ONCE", 1_000)
    content = "".join(json.dumps({"query": f"q{row % 901}", "image": str(row % 7)}) + "\n" for row in range(1_500))
    seen: list[int] = []
    log = read_clicks(file(tmp_path, "log.jsonl", content), progress=seen.append)
    assert seen == [1_000, 1_500]
    assert (len(log.queries), len(log.images), log.n_triads) == (901, 7, 1_500)
    assert np.array_equal(log.query_ids, np.arange(1_500) % 901)
