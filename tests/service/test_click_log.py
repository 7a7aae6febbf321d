from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
import tracemalloc
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from diptych.collection.store.dialect import Connection
from diptych.collection.store.store import Store
from diptych.data.clicks import read_clicks
from diptych.errors import CollectionError, InvalidInputError, NoRoomError
from diptych.service.clicks.click_log import ClickLog
from diptych.service.clicks.exports import text_query_searches
from diptych.service.clicks.records import NotShownError, UnknownSearchError

ITEMS = [f"item {number}" for number in range(6)]


@pytest.fixture
def log(store: Store) -> Iterator[ClickLog]:
    with ClickLog(store) as opened:
        yield opened


@contextmanager
def emptied_log(store: Store, clock: Callable[[], float] = time.time) -> Iterator[ClickLog]:
    """A log for each example of Hypothesis."""
    with ClickLog(store, clock=clock) as opened:
        if opened.interleaving() is not None:
            opened.stop_interleaving()
        opened.forget()
        yield opened


on_one_store = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


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


@given(
    pages=st.lists(st.integers(0, 5), min_size=1, max_size=4),
    item=st.sampled_from(ITEMS),
    position=st.integers(-1, 20) | st.just(2**70),
)
@settings(on_one_store, max_examples=30)
def test_a_click_counts_only_where_the_item_was_shown(store: Store, pages: list[int], item: str, position: int) -> None:
    with emptied_log(store) as log:
        shown: dict[int, str] = {}
        search_id = None
        for length in pages:
            first = len(shown) + 1
            items = [ITEMS[(first + place) % len(ITEMS)] for place in range(length)]
            search_id = search(log, items=items, first=first, continues=search_id)
            shown.update(enumerate(items, first))
        assert search_id is not None
        if shown.get(position) == item:
            assert log.record_click(search_id=search_id, item=item, position=position, kind="open")
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


def test_a_click_is_durable_when_it_is_acknowledged_even_on_a_search_of_this_instant(log: ClickLog) -> None:
    log.record_click(search_id=search(log), item=ITEMS[1], position=2, kind="open")
    with log.store.reading() as db:
        assert db.rows("SELECT item, position FROM click JOIN search ON search.id = search") == [(ITEMS[1], 2)]


def written(log: ClickLog) -> int:
    with log.store.reading() as db:
        return int(db.value("SELECT count(*) FROM search"))


def test_searches_are_written_by_themselves_and_together(log: ClickLog) -> None:
    commits = 0
    write = log.store.write

    def counted(*arguments: Any, **options: Any) -> Any:
        nonlocal commits
        commits += 1
        return write(*arguments, **options)

    with patch.object(log.store, "write", counted):
        for turn in range(200):
            search(log, f"query {turn}")
        deadline = time.monotonic() + 60
        while written(log) < 200:
            assert time.monotonic() < deadline
            time.sleep(0.005)
    assert commits < 20


WRITER = """
import sys, threading
from diptych.collection.store.dialect import Connection
from diptych.collection.store.opening import open_store
from diptych.service.clicks.click_log import ClickLog

store = open_store(sys.argv[1])
log = ClickLog(store)
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
store.close()
"""


def test_no_acknowledged_click_is_lost_when_the_process_is_killed(log: ClickLog, place: str) -> None:
    command = [sys.executable, "-c", WRITER, place, "100000", "run"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        acknowledged = [process.stdout.readline() for _ in range(100)]
        process.send_signal(signal.SIGKILL)
        acknowledged += [line for line in process.stdout if line.endswith("\n")]
    kept = {row["query"] for row in rows(log, "triads")}
    assert len(acknowledged) >= 100
    assert {line.strip() for line in acknowledged} <= kept


def test_several_processes_write_to_one_store(log: ClickLog, place: str) -> None:
    processes = [
        subprocess.Popen([sys.executable, "-c", WRITER, place, "25", name], stdout=subprocess.DEVNULL)
        for name in ("one", "two")
    ]
    assert [process.wait(timeout=50) for process in processes] == [0, 0]
    assert (log.counts().searches, log.counts().clicks) == (200, 200)
    assert len({row["visitor"] for row in rows(log, "events")}) == 1


def test_a_click_may_reach_another_process_than_its_search(
    log: ClickLog, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a loaded machine the search is written later than after the fifth of a second that a click waits for it.
    monkeypatch.setattr("diptych.service.clicks.click_log.BATCH_SECONDS", 0.5)
    with ClickLog(store) as other:
        assert other.record_click(search_id=search(log), item=ITEMS[0], position=1, kind="open") == 1


def test_a_store_that_cannot_be_written_costs_clicks_and_no_search(store: Store) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise NoRoomError(Path("here"), 1)

    with ClickLog(store, most_waiting=50) as log:
        log.record_click(search_id=search(log), item=ITEMS[0], position=1, kind="open")
        with patch.object(store, "write", refuse):
            waiting = [search(log, f"query {turn}") for turn in range(50)]
            facts = {"retriever": "r", "fingerprint": "f", "target": "images", "no_good_match": False}
            beyond = log.record_search(query="more", shown=[("x", 1)], best_probability=0.5, **facts)
            assert beyond is None, "what cannot be written is not gathered for ever"
            with pytest.raises(NoRoomError):
                log.record_click(search_id=waiting[0], item=ITEMS[0], position=1, kind="open")
            assert (log.counts().searches, log.counts().clicks) == (1, 1), "what was written can still be read"
        log.flush()
        assert log.counts().searches == 51


def test_a_closed_log_takes_nothing_more(store: Store) -> None:
    log = ClickLog(store)
    search_id = search(log)
    log.close()
    assert written(log) == 1
    with pytest.raises(CollectionError, match="closed"):
        log.record_click(search_id=search_id, item=ITEMS[0], position=1, kind="open")
    facts = {"retriever": "r", "fingerprint": "f", "target": "images", "no_good_match": False}
    assert log.record_search(query="x", shown=[], best_probability=None, **facts) is None


def test_memory_does_not_grow_with_the_log(log: ClickLog) -> None:
    def use(turns: int) -> int:
        for turn in range(turns):
            search_id = search(log, f"query {turn}", items=[f"{turn} {place}" for place in range(30)])
            if turn % 50 == 0:
                log.record_click(search_id=search_id, item=f"{turn} 0", position=1, kind="open")
        log.flush()
        # The thread that writes holds the last batch: a small one.
        search(log, "the last query", items=["last"])
        log.flush()
        # Other threads of this process allocate, too.
        of_the_log = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, "*/service/clicks/*")])
        return sum(trace.size for trace in of_the_log.traces)

    tracemalloc.start()
    try:
        before = use(500)
        after = max(use(500), use(500))
    finally:
        tracemalloc.stop()
    assert after - before < 100_000


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
@settings(on_one_store, max_examples=25)
def test_exports_are_what_counting_by_hand_gives(store: Store, history: list[dict[str, Any]]) -> None:
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
    with emptied_log(store) as log:
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
    for query in ('say "hi", now', "über\tmaß", "dog"):
        search_id = search(log, query, ["a\tb", 'c,"d"\ne', "f"])
        log.record_click(search_id=search_id, item='c,"d"\ne', position=2, kind="open", caption_id=None)
    expected = rows(log, what)
    assert expected
    stream = io.BytesIO()
    assert log.export(stream, what, "csv") == len(expected)
    table = csv.DictReader(io.StringIO(stream.getvalue().decode(), newline=""))
    assert list(table) == [
        {name: "" if value is None else str(value) for name, value in row.items()} for row in expected
    ]


def test_no_spreadsheet_takes_a_query_for_a_formula(log: ClickLog, tmp_path: Path) -> None:
    queries = ["=1+1", "+dog", "-snow", "@me", "'=1", "plain"]
    for query in queries:
        log.record_click(search_id=search(log, query, ["=item"]), item="=item", position=1, kind="open")
    path = tmp_path / "log.csv"
    with path.open("wb") as stream:
        log.export(stream, "triads", "csv")
    cells = [cell for line in path.read_text().splitlines() for cell in line.split(",")]
    assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@"))]
    read = read_clicks(path)
    assert sorted(read.queries) == sorted(queries)
    assert list(read.images) == ["=item"]
    read.write(tmp_path / "again.csv")
    assert sorted(read_clicks(tmp_path / "again.csv").queries) == sorted(queries)


def test_an_unknown_export_is_refused_by_name(log: ClickLog) -> None:
    with pytest.raises(LookupError, match="jsonl"):
        log.export(io.BytesIO(), format="xlsx")
    with pytest.raises(LookupError, match="triads"):
        log.export(io.BytesIO(), "triad")


def test_an_export_takes_no_more_memory_for_more_queries(log: ClickLog, store: Store) -> None:
    def fill(db: Connection) -> None:
        numbers = range(1, 10_001)
        db.load("query", ["id", "text"], ((n, f"query {n}") for n in numbers))
        columns = ["id", "name", "time", "query", "plain", "target", "model", "fingerprint", "no_good_match"]
        db.load("search", columns, ((n, str(n), n, n, 1, "images", "r", "f", 0) for n in numbers))
        columns = ["search", "first", "length", "time", "items"]
        db.load("page", columns, ((n, 1, 1, 0, '["x"]') for n in numbers))
        columns = ["search", "item", "position", "kind", "time"]
        db.load("click", columns, ((n, "x", 1, "open", 1) for n in numbers))

    store.write(fill)
    tracemalloc.start()
    with open(os.devnull, "wb") as nowhere:
        counts = [log.export(nowhere, what, "csv") for what in ("triads", "impressions")]
    searches = sum(len(clicked) for *_, clicked in text_query_searches(store))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [*counts, searches] == [10_000] * 3
    assert peak < 8_000_000


def test_what_is_forgotten_is_nowhere_in_the_files(store: Store, tmp_path: Path) -> None:
    def found(words: bytes) -> bool:
        return any(words in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())

    now = [1000.0]
    is_file = store.engine == "sqlite"
    with ClickLog(store, clock=lambda: now[0]) as log:
        for turn in range(300):
            old = search(log, f"embarrassing question {turn}", items=["secret picture"], visitor="ann")
            if turn % 10 == 0:
                log.record_click(search_id=old, item="secret picture", position=1, kind="open")
        log.flush()
        now[0] = 2000.0
        new = search(log, "plain question", items=["public picture"])
        log.record_click(search_id=new, item="public picture", position=1, kind="open")
        assert found(b"embarrassing") == is_file
        log.forget(before=1500.0)
        assert [row["query"] for row in rows(log, "triads")] == ["plain question"]
        assert not found(b"embarrassing")
        assert not found(b"secret picture")
        assert found(b"plain question") == is_file
        log.forget()
        assert not found(b"plain question")
        assert log.counts().searches == log.counts().clicks == log.counts().queries == 0
        with store.reading() as db:
            assert db.value("SELECT count(*) FROM visitor_salt") == 0
