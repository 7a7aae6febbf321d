from __future__ import annotations

import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diptych.service.clicks import ClickLog
from diptych.service.clicks.report import FREQUENT_SEARCHES

NOW = datetime(2026, 3, 31, 15, 30).timestamp()
QUERIES = ["dog", "cat", "a bird"]

SEARCHES = st.lists(
    st.fixed_dictionaries(
        {
            "query": st.sampled_from(QUERIES),
            "hours_ago": st.floats(0, 24 * 8),
            "no_good_match": st.booleans(),
            "shown": st.integers(0, 6),
            "clicks": st.lists(st.tuples(st.integers(1, 6), st.sampled_from(["open", "less_like"])), max_size=3),
        }
    ),
    max_size=14,
)


class Clock:
    """Tells the time it was set to."""

    def __init__(self) -> None:
        self.time = NOW

    def __call__(self) -> float:
        return self.time


def replay(log: ClickLog, clock: Clock, searches: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for entry in searches:
        clock.time = NOW - 3600 * entry["hours_ago"]
        search_id = log.record_search(
            query=entry["query"],
            retriever="r",
            fingerprint="f",
            target="images",
            shown=[(f"item {place}", place) for place in range(1, entry["shown"] + 1)],
            no_good_match=entry["no_good_match"],
            best_probability=0.5,
        )
        assert search_id is not None
        entry["clicks"] = [(place, kind) for place, kind in entry["clicks"] if place <= entry["shown"]]
        for place, kind in entry["clicks"]:
            log.record_click(search_id=search_id, item=f"item {place}", position=place, kind=kind)
        entry["time"] = clock.time
        entry["used"] = {place for place, kind in entry["clicks"] if kind == "open"}
        entry["n_clicks"] = sum(kind == "open" for _, kind in entry["clicks"])
    clock.time = NOW
    return searches


@given(SEARCHES, st.integers(1, 9))
@settings(max_examples=30, deadline=None)
def test_the_report_is_what_counting_by_hand_gives(searches: list[dict[str, Any]], days: int) -> None:
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder, ClickLog(Path(folder) / "c.sqlite", clock=clock) as log:
        history = replay(log, clock, searches)
        report = log.report(days)
    today = datetime.fromtimestamp(NOW).date()
    wanted = [today - timedelta(days=ago) for ago in range(days - 1, -1, -1)]
    of_day = defaultdict(list)
    for entry in history:
        of_day[datetime.fromtimestamp(entry["time"]).date()].append(entry)
    counted = [entry for day in wanted for entry in of_day[day]]

    assert report.per_day == [
        {
            "day": day.isoformat(),
            "searches": len(of_day[day]),
            "clicks": sum(entry["n_clicks"] for entry in of_day[day]),
        }
        for day in wanted
    ]
    assert report.searches == len(counted)
    assert report.clicks == sum(entry["n_clicks"] for entry in counted)

    groups = defaultdict(list)
    for entry in counted:
        groups[entry["query"]].append(entry)
    assert {entry["query"] for entry in report.top} == groups.keys()
    assert [entry["searches"] for entry in report.top] == sorted(
        (len(group) for group in groups.values()), reverse=True
    )
    for line in report.top:
        group = groups[line["query"]]
        assert line["searches"] == len(group)
        assert line["clicked_share"] == pytest.approx(sum(bool(entry["used"]) for entry in group) / len(group))
        assert line["no_good_match"] == all(entry["no_good_match"] for entry in group)
        newest = max(entry["time"] for entry in group)
        assert line["last"] == datetime.fromtimestamp(newest, UTC).isoformat(timespec="seconds")
    reasons = {}
    for query, group in groups.items():
        if all(entry["no_good_match"] for entry in group):
            reasons[query] = "no good match"
        elif len(group) >= FREQUENT_SEARCHES and not any(entry["used"] for entry in group):
            reasons[query] = "never clicked"
    assert {line["query"]: line["reason"] for line in report.failing} == reasons

    shown: Counter[int] = Counter()
    clicked: Counter[int] = Counter()
    for entry in counted:
        shown.update(range(1, entry["shown"] + 1))
        clicked.update(entry["used"])
    assert report.positions == [
        {"position": place, "shown": shown[place], "clicked": clicked[place]} for place in sorted(shown)
    ]


def test_many_searches_are_reported(tmp_path: Path) -> None:
    with ClickLog(tmp_path / "c.sqlite") as log:
        fill(log, searches=20_000)
        report = log.report(30)
    assert report.searches == 20_000
    assert report.positions[0] == {"position": 1, "shown": 20_000, "clicked": 20_000 // 5}


def fill(log: ClickLog, searches: int) -> None:
    """Write many searches at once, over four weeks, every fifth clicked."""
    import sqlite3

    connection = sqlite3.connect(log.path)
    now = time.time()
    connection.execute("INSERT INTO retrievers VALUES (1, 'r', 'f')")
    connection.executemany("INSERT INTO queries VALUES (?, ?)", ((n, f"query {n}") for n in range(searches // 10)))
    connection.executemany(
        "INSERT INTO searches VALUES (?, ?, ?, ?, NULL, 1, 'images', 1, ?, 0.5, ?, NULL)",
        (
            (n, n.to_bytes(16), now - 2_400_000 * n / searches, n * 7919 % (searches // 10), n % 9 == 0, n % 5 == 0)
            for n in range(searches)
        ),
    )
    connection.executemany(
        "INSERT INTO pages VALUES (?, 1, 30, ?, '[]')", ((n, now - 2_400_000 * n / searches) for n in range(searches))
    )
    connection.executemany(
        "INSERT INTO clicks (search, item, position, kind, time) VALUES (?, 'x', 1, 'open', ?)",
        ((n, now - 2_400_000 * n / searches) for n in range(0, searches, 5)),
    )
    connection.commit()
    connection.close()


def test_the_report_over_http(running_service: Callable[..., Any]) -> None:
    service = running_service()
    base = f"{service.url}/v1/collections/scenes"
    found = httpx.post(f"{base}/search", json={"query": "A red circle", "limit": 5}).json()
    click = {"search_id": found["search_id"], "item": found["answers"][2]["id"], "position": 3, "kind": "more_like"}
    assert httpx.post(f"{base}/clicks", json=click, headers=service.headers).status_code == 201
    report = httpx.get(f"{base}/query-log", params={"days": 3}, headers=service.headers).json()
    assert (report["log"], report["searches"], report["clicks"], len(report["per_day"])) == (True, 1, 1, 3)
    assert (report["top"][0]["query"], report["top"][0]["clicked_share"]) == ("a red circle", 1.0)
    assert [line["clicked"] for line in report["positions"]] == [0, 0, 1, 0, 0]
    for days in ("0", "-1", "x", "99999999"):
        assert httpx.get(f"{base}/query-log?days={days}", headers=service.headers).status_code == 422


def test_pictures_that_were_sent_are_no_queries(tmp_path: Path) -> None:
    with ClickLog(tmp_path / "clicks.sqlite") as log:
        for query in ("upload:abc", "upload:def", "a dog + upload:abc", "a dog - a cat"):
            log.record_search(
                query=query,
                retriever="r",
                fingerprint="f",
                target="images",
                shown=[],
                no_good_match=True,
                best_probability=None,
            )
        report = log.report(days=1)
    assert report.searches == 4
    assert [row["query"] for row in (*report.top, *report.failing)] == ["a dog - a cat"] * 2


def test_visible_words_are_marked_and_visual_searches_counted(tmp_path: Path) -> None:
    clock = Clock()
    with ClickLog(tmp_path / "c.sqlite", clock=clock) as log:
        replay(
            log,
            clock,
            [
                {"query": query, "hours_ago": 1, "no_good_match": not clicks, "shown": 2, "clicks": clicks}
                for query, clicks in (
                    ("Two 🐕 Dogs in a Trash Can", [(1, "open")]),
                    ("funny quotes", []),
                    ("funny quotes", []),
                    ("tattoo design", [(2, "open")]),
                    ("item:17", [(1, "open")]),
                )
            ],
        )
        report = log.report(1)
    lines = {line["query"]: line for line in report.top}
    dogs = lines["two 🐕 dogs in a trash can"]
    assert dogs["visualness"] == pytest.approx(2 / 3)
    assert [(dogs["query"][span["start"] : span["end"]], span["concept"]) for span in dogs["visible"]] == [
        ("dogs", "dog"),
        ("trash can", "trash can"),
    ]
    assert (lines["item:17"]["visualness"], lines["item:17"]["visible"]) == (None, [])
    assert [(line["query"], line["visualness"]) for line in report.failing] == [("funny quotes", 0)]
    # Half visible is not above half, and a search for a picture is not counted.
    assert report.visual == {"threshold": 0.5, "searches": 1 / 4, "clicked": 1 / 2}
