from __future__ import annotations

import csv
import io
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import tracemalloc
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diptych.data.clicks import read_clicks
from diptych.errors import InvalidInputError
from diptych.service.clicks import ClickLog, ClickLogError, NotShownError, UnknownSearchError

ITEMS = [f"item {number}" for number in range(6)]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[ClickLog]:
    with ClickLog(tmp_path / "service" / "clicks.sqlite") as opened:
        yield opened


def search(log: ClickLog, query: str = "a dog", items: list[str] | None = None, first: int = 1, **facts: Any) -> str:
    shown = [(item, first + place) for place, item in enumerate(ITEMS[:3] if items is None else items)]
    facts = {
        "retriever": "default",
        "fingerprint": "f1",
        "target": "images",
        "no_good_match": False,
        "best_probability": 0.8,
        **facts,
    }
    search_id = log.record_search(query=query, shown=shown, **facts)
    assert search_id is not None
    return search_id


def rows(log: ClickLog, what: str, format: str = "jsonl") -> list[dict[str, Any]]:
    stream = io.BytesIO()
    log.export(stream, what, format)
    return [json.loads(line) for line in stream.getvalue().decode().splitlines()]


def stored(path: Path, table: str) -> int:
    """Count as another process would."""
    script = "import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute(sys.argv[2]).fetchone()[0])"
    counting = [sys.executable, "-c", script, str(path), f"SELECT count(*) FROM {table}"]
    return int(subprocess.run(counting, capture_output=True, text=True, check=True).stdout)


def test_a_click_is_in_the_file_when_it_is_acknowledged_even_on_a_search_of_this_instant(log: ClickLog) -> None:
    log.record_click(search_id=search(log), item=ITEMS[1], position=2, kind="open")
    assert (stored(log.path, "searches"), stored(log.path, "clicks")) == (1, 1)


def test_searches_reach_the_file_by_themselves(log: ClickLog) -> None:
    search(log)
    connection = sqlite3.connect(log.path)
    deadline = time.monotonic() + 60
    while connection.execute("SELECT count(*) FROM searches").fetchone() == (0,):
        assert time.monotonic() < deadline
        time.sleep(0.005)
    connection.close()


def test_the_file_is_for_its_owner_alone(log: ClickLog) -> None:
    log.record_click(search_id=search(log), item=ITEMS[0], position=1, kind="open")
    files = list(log.path.parent.iterdir())
    assert len(files) == 3
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}


@given(
    pages=st.lists(st.integers(0, 5), min_size=1, max_size=4),
    item=st.sampled_from(ITEMS),
    position=st.integers(-1, 20) | st.just(2**70),
)
@settings(max_examples=30, deadline=None)
def test_a_click_counts_only_where_the_item_was_shown(pages: list[int], item: str, position: int) -> None:
    with tempfile.TemporaryDirectory() as folder, ClickLog(Path(folder) / "c.sqlite") as log:
        shown: dict[int, str] = {}
        search_id = None
        for length in pages:
            first = len(shown) + 1
            items = [ITEMS[(first + place) % len(ITEMS)] for place in range(length)]
            search_id = search(log, items=items, first=first, continues=search_id)
            shown.update(enumerate(items, first))
        assert search_id is not None
        if shown.get(position) == item:
            assert log.record_click(search_id=search_id, item=item, position=position, kind="open") == 1
        else:
            with pytest.raises(NotShownError):
                log.record_click(search_id=search_id, item=item, position=position, kind="open")
        assert log.counts().searches == 1
        assert log.counts().results_shown == len(shown)


@pytest.mark.parametrize("search_id", ["", "zz", "00" * 16, "AB" * 16, "é", "\ud800", "0 " * 16])
def test_a_click_on_an_unknown_search_is_refused(log: ClickLog, search_id: str) -> None:
    with pytest.raises(UnknownSearchError, match="search again"):
        log.record_click(search_id=search_id, item="x", position=1, kind="open")


def test_words_that_cannot_be_written_do_no_harm(log: ClickLog) -> None:
    search_id = search(log, query="half \ud800 a\x00character", items=["a\x00b", "c"])
    with pytest.raises(NotShownError):
        log.record_click(search_id=search_id, item="\ud800", position=1, kind="open")
    log.record_click(search_id=search_id, item="c", position=2, kind="open", caption_id="\udfff")
    (triad,) = rows(log, "triads")
    assert triad["query"].startswith("half ")


def test_an_unknown_kind_is_refused(log: ClickLog) -> None:
    with pytest.raises(InvalidInputError, match="less_like"):
        log.record_click(search_id=search(log), item=ITEMS[0], position=1, kind="stare")


def test_a_page_continues_its_search_and_no_other(log: ClickLog) -> None:
    first = search(log, "Dogs  at play")
    assert search(log, "dogs at play", first=4, continues=first) == first
    log.flush()
    assert search(log, "dogs at play", first=7, continues=first) == first
    others = [
        search(log, "cats", continues=first),
        search(log, "dogs at play", continues=first, target="texts"),
        search(log, "dogs at play", continues=first, fingerprint="f2"),
        search(log, "dogs at play", continues="ab" * 16),
        search(log, "dogs at play", continues="no id"),
    ]
    assert len({first, *others}) == 6
    assert log.counts().searches == 6


def test_many_threads_lose_nothing(log: ClickLog) -> None:
    def person(number: int) -> list[int]:
        clicks = []
        for turn in range(20):
            search_id = search(log, f"query {turn}")
            clicks.append(log.record_click(search_id=search_id, item=ITEMS[2], position=3, kind="open"))
        return clicks

    with ThreadPoolExecutor(32) as pool:
        acknowledged = [click for clicks in pool.map(person, range(32)) for click in clicks]
    assert sorted(acknowledged) == list(range(1, 641))
    assert {row["query"]: row["clicks"] for row in rows(log, "triads")} == {f"query {turn}": 32 for turn in range(20)}


WRITER = """
import sys, threading
from pathlib import Path
from diptych.service.clicks import ClickLog

log = ClickLog(Path(sys.argv[1]))
def click(number):
    for turn in range(int(sys.argv[2])):
        search = log.record_search(query=f"{sys.argv[3]} {number} {turn}", retriever="r", fingerprint="f",
            target="images", shown=[("x", 1)], no_good_match=False, best_probability=0.5, visitor="ann")
        log.record_click(search_id=search, item="x", position=1, kind="open")
        sys.stdout.write(f"{sys.argv[3]} {number} {turn}\\n")
        sys.stdout.flush()
threads = [threading.Thread(target=click, args=(number,)) for number in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
log.close()
"""


def test_no_acknowledged_click_is_lost_when_the_process_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "clicks.sqlite"
    command = [sys.executable, "-c", WRITER, str(path), "100000", "run"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        acknowledged = [process.stdout.readline() for _ in range(100)]
        process.send_signal(signal.SIGKILL)
        acknowledged += [line for line in process.stdout if line.endswith("\n")]
    with ClickLog(path) as log:
        kept = {row["query"] for row in rows(log, "triads")}
    assert len(acknowledged) >= 100
    assert {line.strip() for line in acknowledged} <= kept


def test_several_processes_write_to_one_new_file(tmp_path: Path) -> None:
    path = tmp_path / "clicks.sqlite"
    processes = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), "25", name], stdout=subprocess.DEVNULL)
        for name in ("one", "two", "three")
    ]
    assert [process.wait(timeout=50) for process in processes] == [0, 0, 0]
    with ClickLog(path) as log:
        assert (log.counts().searches, log.counts().clicks) == (300, 300)
        assert len({row["visitor"] for row in rows(log, "events")}) == 1


def test_a_process_that_comes_and_goes_takes_no_later_click_with_it(log: ClickLog) -> None:
    """The last to close a database removes its journal; one that is still open must be seen as such by others."""
    visit = "import sys; from pathlib import Path; from diptych.service.clicks import ClickLog; "
    visit += "ClickLog(Path(sys.argv[1])).close()"
    for turn in range(3):
        log.record_click(search_id=search(log, f"query {turn}"), item=ITEMS[0], position=1, kind="open")
        subprocess.run([sys.executable, "-c", visit, str(log.path)], check=True)
    assert stored(log.path, "clicks") == 3


def test_a_click_may_reach_another_process_than_its_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # On a loaded machine the search is in the file later than after the tenth of a second that a click waits for it.
    monkeypatch.setattr("diptych.service.clicks.log.BATCH_SECONDS", 0.5)
    with ClickLog(tmp_path / "c.sqlite") as one, ClickLog(tmp_path / "c.sqlite") as other:
        search_id = search(one)
        assert other.record_click(search_id=search_id, item=ITEMS[0], position=1, kind="open") == 1


def test_recording_a_search_does_not_wait_for_the_disk(log: ClickLog) -> None:
    with closing(sqlite3.connect(log.path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        recorded = {search(log, f"a dog on beach {turn}") for turn in range(100)}
        # The file is still locked, so nothing of this can be in it.
        assert len(recorded) == 100
        assert stored(log.path, "searches") == 0
        other.execute("ROLLBACK")
    log.flush()
    assert stored(log.path, "searches") == 100


def test_memory_does_not_grow_with_the_log(log: ClickLog) -> None:
    def use(turns: int) -> int:
        for turn in range(turns):
            search_id = search(log, f"query {turn}", items=[f"{turn} {place}" for place in range(30)])
            if turn % 50 == 0:
                log.record_click(search_id=search_id, item=f"{turn} 0", position=1, kind="open")
        log.flush()
        # Other threads of this process allocate, too.
        of_the_log = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, "*/service/clicks/*")])
        return sum(trace.size for trace in of_the_log.traces)

    tracemalloc.start()
    try:
        before = use(300)
        after = use(1500)
    finally:
        tracemalloc.stop()
    assert after - before < 100_000


def test_a_full_disk_is_one_clear_error_and_searching_goes_on(tmp_path: Path) -> None:
    with ClickLog(tmp_path / "c.sqlite", most_bytes=200_000, most_waiting=50) as log:
        early = search(log)
        log.record_click(search_id=early, item=ITEMS[0], position=1, kind="open")
        many = [f"{number:0200d}" for number in range(200)]
        for turn in range(8):
            with_room = search(log, f"query {turn}", items=many)
        with pytest.raises(ClickLogError, match="no room left") as refused:
            log.record_click(search_id=with_room, item=many[0], position=1, kind="open")
        assert refused.value.cause == "full"
        facts = {"retriever": "r", "fingerprint": "f", "target": "images", "no_good_match": False}
        answers = [log.record_search(query="more", shown=[("x", 1)], best_probability=0.5, **facts) for _ in range(100)]
        assert answers[0] is not None
        assert answers[-1] is None, "what cannot be written is not gathered for ever"
        assert log.counts().clicks == 1, "what was written can still be read"


def test_what_waited_for_room_is_written_when_there_is_some(tmp_path: Path) -> None:
    with ClickLog(tmp_path / "c.sqlite", most_bytes=600_000) as log:
        filler = [f"{number:0200d}" for number in range(200)]
        for turn in range(10):
            search(log, f"old {turn}", items=filler)
        log.flush()
        for turn in range(5):
            search(log, f"later {turn}", items=filler)
        with pytest.raises(ClickLogError):
            log.flush()
        waiting = search(log, "new", items=["x"])
        connection = sqlite3.connect(log.path)
        connection.executescript("DELETE FROM pages; VACUUM; PRAGMA wal_checkpoint(TRUNCATE);")
        connection.close()
        assert log.record_click(search_id=waiting, item="x", position=1, kind="open") == 1
        assert log.counts().searches == 16


@pytest.mark.parametrize("content", [b"this is no database" * 100, b"SQLite format 3\x00" + bytes(5000)])
def test_a_damaged_file_is_one_clear_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "c.sqlite").write_bytes(content)
    with pytest.raises(ClickLogError, match="move it away"):
        ClickLog(tmp_path / "c.sqlite")


@pytest.mark.parametrize("version", [3, 99])
def test_a_file_of_another_format_is_refused(version: int, tmp_path: Path) -> None:
    ClickLog(tmp_path / "c.sqlite").close()
    connection = sqlite3.connect(tmp_path / "c.sqlite")
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    with pytest.raises(ClickLogError, match=f"format {version}"):
        ClickLog(tmp_path / "c.sqlite")


def test_a_place_that_cannot_be_written_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ClickLogError, match="cannot open the click log"):
        ClickLog(tmp_path / "file" / "c.sqlite")


def test_a_closed_log_takes_nothing_more(tmp_path: Path) -> None:
    log = ClickLog(tmp_path / "c.sqlite")
    search_id = search(log)
    log.close()
    assert stored(log.path, "searches") == 1
    with pytest.raises(ClickLogError, match="closed"):
        log.record_click(search_id=search_id, item=ITEMS[0], position=1, kind="open")
    assert (
        log.record_search(
            query="x",
            retriever="r",
            fingerprint="f",
            target="images",
            shown=[],
            no_good_match=True,
            best_probability=None,
        )
        is None
    )
    assert threading.active_count() < 20


def test_what_is_forgotten_is_nowhere_in_the_files(tmp_path: Path) -> None:
    moments = iter([1000.0, 1000.0, 2000.0, 2000.0])
    with ClickLog(tmp_path / "c.sqlite", clock=lambda: next(moments)) as log:
        old = search(log, "embarrassing question", items=["secret picture"])
        log.record_click(search_id=old, item="secret picture", position=1, kind="open")
        new = search(log, "plain question", items=["public picture"])
        log.record_click(search_id=new, item="public picture", position=1, kind="open")
        log.forget(before=1500.0)
        assert [row["query"] for row in rows(log, "triads")] == ["plain question"]
        assert not contains(tmp_path, b"embarrassing")
        assert not contains(tmp_path, b"secret picture")
        assert contains(tmp_path, b"plain question")
        log.forget()
        assert not contains(tmp_path, b"plain question")
        assert log.counts().searches == log.counts().clicks == log.counts().queries == 0


def contains(folder: Path, words: bytes) -> bool:
    return any(words in file.read_bytes() for file in folder.iterdir())


@st.composite
def histories(draw: st.DrawFn) -> list[dict[str, Any]]:
    searched = []
    for _ in range(draw(st.integers(0, 8))):
        items = draw(st.lists(st.sampled_from(ITEMS), max_size=5))
        clicks = st.tuples(st.integers(0, 4), st.sampled_from(["open", "original", "more_like", "less_like"]))
        searched.append(
            {
                "query": draw(st.sampled_from(["A dog", "a  DOG", "a cat", 'say "hi", now', "a\tcat"])),
                "target": draw(st.sampled_from(["images", "texts"])),
                "retriever": draw(st.sampled_from(["one", "two"])),
                "items": items,
                "plain": draw(st.booleans()),
                "clicks": [(place, kind) for place, kind in draw(st.lists(clicks, max_size=3)) if place < len(items)],
            }
        )
    return searched


def replay(log: ClickLog, history: list[dict[str, Any]]) -> None:
    for entry in history:
        weight = 1.0 if entry["plain"] else -1.0
        search_id = search(
            log,
            entry["query"],
            entry["items"],
            target=entry["target"],
            retriever=entry["retriever"],
            terms=[{"text": entry["query"], "weight": weight}],
        )
        for place, kind in entry["clicks"]:
            log.record_click(search_id=search_id, item=entry["items"][place], position=place + 1, kind=kind)


@given(histories())
@settings(max_examples=25, deadline=None)
def test_exports_are_what_counting_by_hand_gives(history: list[dict[str, Any]]) -> None:
    triads: Counter[tuple[str, str]] = Counter()
    shown: Counter[tuple[str, int]] = Counter()
    impressions: dict[tuple[str, str, str, str, int], list[int]] = defaultdict(lambda: [0, 0])
    events = []
    for entry in history:
        query = " ".join(entry["query"].lower().split())
        used = {place for place, kind in entry["clicks"] if kind != "less_like"}
        for place, item in enumerate(entry["items"]):
            shown[entry["target"], place + 1] += 1
            counts = impressions[query, entry["target"], entry["retriever"], item, place + 1]
            counts[0] += 1
            counts[1] += place in used
        if entry["plain"]:
            triads.update({(query, entry["items"][place]) for place in used})
        for place, kind in entry["clicks"]:
            place_facts = (entry["items"][place], place + 1, kind, len(entry["items"]))
            events.append((query, entry["target"], entry["retriever"], *place_facts))
    with tempfile.TemporaryDirectory() as folder, ClickLog(Path(folder) / "c.sqlite") as log:
        replay(log, history)
        assert {(row["query"], row["item"]): row["clicks"] for row in rows(log, "triads")} == triads
        got = rows(log, "events")
        names = ("query", "target", "retriever", "item", "position", "kind", "results")
        assert [tuple(row[name] for name in names) for row in got] == events
        assert [row["shown"] for row in got] == [shown[row["target"], row["position"]] for row in got]
        keys = ("query", "target", "retriever", "item", "position")
        listed = rows(log, "impressions")
        assert len(listed) == len(impressions)
        assert {tuple(row[key] for key in keys): [row["shown"], row["clicked"]] for row in listed} == impressions


@pytest.mark.parametrize("what", ["triads", "events", "impressions"])
def test_all_formats_hold_the_same_table(log: ClickLog, what: str) -> None:
    from pyarrow import parquet

    for query in ('say "hi", now', "über\tmaß", "dog"):
        search_id = search(log, query, ["a\tb", 'c,"d"\ne', "f"])
        log.record_click(search_id=search_id, item='c,"d"\ne', position=2, kind="open", caption_id=None)
    expected = rows(log, what)
    assert expected
    stream = io.BytesIO()
    assert log.export(stream, what, "parquet") == len(expected)
    stream.seek(0)
    assert parquet.read_table(stream).to_pylist() == expected
    for format, delimiter in (("csv", ","), ("tsv", "\t")):
        stream = io.BytesIO()
        log.export(stream, what, format)
        table = csv.DictReader(io.StringIO(stream.getvalue().decode(), newline=""), delimiter=delimiter)
        shown = [{name: "" if value is None else str(value) for name, value in row.items()} for row in expected]
        assert list(table) == shown


def test_no_spreadsheet_takes_a_query_for_a_formula(log: ClickLog, tmp_path: Path) -> None:
    queries = ["=1+1", "+dog", "-snow", "@me", "'=1", "plain"]
    for query in queries:
        log.record_click(search_id=search(log, query, ["=item"]), item="=item", position=1, kind="open")
    for format in ("csv", "tsv"):
        path = tmp_path / f"log.{format}"
        with path.open("wb") as stream:
            log.export(stream, "triads", format)
        cells = [
            cell for line in path.read_text().splitlines() for cell in line.split("," if format == "csv" else "\t")
        ]
        assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@"))]
        read = read_clicks(path)
        assert sorted(read.queries) == sorted(queries)
        assert list(read.images) == ["=item"]
        read.write(tmp_path / f"again.{format}")
        assert sorted(read_clicks(tmp_path / f"again.{format}").queries) == sorted(queries)


def test_an_unknown_export_is_refused_by_name(log: ClickLog) -> None:
    with pytest.raises(LookupError, match="parquet"):
        log.export(io.BytesIO(), format="xlsx")
    with pytest.raises(LookupError, match="triads"):
        log.export(io.BytesIO(), "triad")


def test_an_export_takes_no_more_memory_for_more_rows(log: ClickLog) -> None:
    connection = sqlite3.connect(log.path)
    search_id = search(log, items=["x"])
    log.flush()
    connection.execute(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000)"
        " INSERT INTO clicks (search, item, position, kind, time) SELECT 1, 'item ' || i, 1, 'open', i FROM n"
    )
    connection.commit()
    connection.close()
    assert search_id
    tracemalloc.start()
    with open(os.devnull, "wb") as nowhere:
        assert log.export(nowhere, "triads", "csv") == 60_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4_000_000
