"""What is counted of a click log: reports, interleavings, and searches to learn from."""

from __future__ import annotations

import io
import json
import random
import secrets
import time
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import partial
from math import comb
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diptych.collection.store.store import Store
from diptych.errors import InvalidInputError
from diptych.metrics import draft_winner
from diptych.service.clicks.click_log import ClickLog
from diptych.service.clicks.exports import text_query_searches
from diptych.service.clicks.interleavings import sign_test
from diptych.service.clicks.records import InterleavedPage, InterleavingError
from diptych.service.clicks.reports import FREQUENT_SEARCHES, DayCount, PositionCount, VisualSearches
from diptych.service.clicks.searches import SALT_DAYS, visitor_number
from tests.service.test_click_log import emptied_log, on_one_store

NOW = datetime(2026, 3, 31, 15, 30).timestamp()
QUERIES = ["dog", "cat", "a bird"]

ASKED = st.lists(
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


@given(ASKED, st.integers(1, 9))
@settings(on_one_store, max_examples=30)
def test_the_report_is_what_counting_by_hand_gives(store: Store, searches: list[dict[str, Any]], days: int) -> None:
    clock = Clock()
    with emptied_log(store, clock) as log:
        history = replay(log, clock, searches)
        report = log.report(days)
    today = datetime.fromtimestamp(NOW).date()
    wanted = [today - timedelta(days=ago) for ago in range(days - 1, -1, -1)]
    of_day = defaultdict(list)
    for entry in history:
        of_day[datetime.fromtimestamp(entry["time"]).date()].append(entry)
    counted = [entry for day in wanted for entry in of_day[day]]

    assert report.per_day == tuple(
        DayCount(day.isoformat(), len(of_day[day]), sum(entry["n_clicks"] for entry in of_day[day])) for day in wanted
    )
    assert report.searches == len(counted)
    assert report.clicks == sum(entry["n_clicks"] for entry in counted)

    groups = defaultdict(list)
    for entry in counted:
        groups[entry["query"]].append(entry)
    assert {entry.query for entry in report.top} == groups.keys()
    assert [entry.searches for entry in report.top] == sorted((len(group) for group in groups.values()), reverse=True)
    for line in report.top:
        group = groups[line.query]
        assert line.searches == len(group)
        assert line.clicked_share == pytest.approx(sum(bool(entry["used"]) for entry in group) / len(group))
        assert line.no_good_match == all(entry["no_good_match"] for entry in group)
        newest = max(entry["time"] for entry in group)
        assert line.last == datetime.fromtimestamp(newest, UTC).isoformat(timespec="seconds")
    failing = {
        query
        for query, group in groups.items()
        if all(entry["no_good_match"] for entry in group)
        or (len(group) >= FREQUENT_SEARCHES and not any(entry["used"] for entry in group))
    }
    assert {line.query for line in report.failing} == failing

    shown: Counter[int] = Counter()
    clicked: Counter[int] = Counter()
    for entry in counted:
        shown.update(range(1, entry["shown"] + 1))
        clicked.update(entry["used"])
    assert report.positions == tuple(PositionCount(place, shown[place], clicked[place]) for place in sorted(shown))


A, B = ("one", "f1"), ("two", "f2")
SEARCHES = st.lists(
    st.tuples(
        st.lists(st.sampled_from("ab"), min_size=1, max_size=6),
        st.lists(st.tuples(st.integers(1, 6), st.sampled_from(["open", "original", "less_like"])), max_size=5),
        st.booleans(),
    ),
    max_size=12,
)


def shown(log: ClickLog, interleaving: int, teams: list[Any], *, first: int = 1, **more: Any) -> str:
    draw = more.pop("draw", None) or secrets.token_hex(16)
    search_id = log.record_search(
        query="a dog",
        retriever="one + two",
        fingerprint="f",
        target="images",
        shown=[(f"item {first + place}", first + place) for place in range(len(teams))],
        no_good_match=False,
        best_probability=0.5,
        page=InterleavedPage(interleaving, draw, teams),
        **more,
    )
    assert search_id is not None
    return search_id


@given(st.integers(0, 60), st.integers(0, 60))
def test_the_sign_test_is_exact(wins: int, losses: int) -> None:
    n = wins + losses
    tail = sum((Fraction(comb(n, i), 2**n) for i in range(min(wins, losses) + 1)), Fraction(0))
    for a, b in ((wins, losses), (losses, wins)):
        assert sign_test(a, b) == pytest.approx(float(min(Fraction(1), 2 * tail)), rel=1e-12)


@given(SEARCHES)
@settings(on_one_store, max_examples=20)
def test_clicks_are_credited_as_counting_by_hand_does(store: Store, searches: list[Any]) -> None:
    """Each clicked item counts once, for the team that picked it, on whichever page it stood."""
    won = []
    clicks = {"a": 0, "b": 0}
    with emptied_log(store) as log:
        number = log.start_interleaving(a=A, b=B).number
        for teams, clicked, has_pages in searches:
            search_id = shown(log, number, teams)
            following = ["b"] * len(teams) if has_pages else []
            if following:
                assert shown(log, number, following, first=len(teams) + 1, continues=search_id) == search_id
            places = [place for place, _ in clicked if place <= len(teams + following)]
            kinds = dict.fromkeys(places, False)
            for place, kind in clicked:
                if place in kinds:
                    log.record_click(search_id=search_id, item=f"item {place}", position=place, kind=kind)
                    kinds[place] |= kind != "less_like"
            credited = [(teams + following)[place - 1] for place, is_wanted in kinds.items() if is_wanted]
            for team in credited:
                clicks[team] += 1
            won += [draft_winner(credited)] if credited else []
        (report,) = log.interleavings()
    assert report.searches == len(searches)
    assert (report.clicks_a, report.clicks_b) == (clicks["a"], clicks["b"])
    assert (report.wins_a, report.wins_b, report.ties) == (won.count("a"), won.count("b"), won.count(None))


def test_every_process_knows_what_runs_and_a_restart_forgets_nothing(store: Store) -> None:
    with ClickLog(store) as one, ClickLog(store) as other:
        assert other.interleaving() is None
        started = one.start_interleaving(a=A, b=B)
        assert other.interleaving() == started
        with pytest.raises(InterleavingError, match="'one' and 'two' are interleaved now"):
            other.start_interleaving(a=B, b=A)
        search_id = shown(one, started.number, ["a", "b"])
        one.flush()
        other.record_click(search_id=search_id, item="item 2", position=2, kind="open")
    with ClickLog(store) as again:
        assert again.interleaving() == started
        (report,) = again.interleavings()
        assert (report.searches, report.clicks_a, report.clicks_b, report.wins_b) == (1, 0, 1, 1)
        assert again.stop_interleaving().stopped is not None
        assert again.interleaving() is None
        with pytest.raises(InterleavingError, match="no retrievers are interleaved"):
            again.stop_interleaving()
        with pytest.raises(InvalidInputError, match="with itself"):
            again.start_interleaving(a=A, b=("another name", A[1]))
        again.start_interleaving(a=B, b=A)
        assert [report.searches for report in again.interleavings()] == [0, 1]


def test_forgetting_takes_the_counts_and_leaves_what_runs(store: Store) -> None:
    with ClickLog(store) as log:
        shown(log, log.start_interleaving(a=A, b=B).number, ["a"])
        log.stop_interleaving()
        running = log.start_interleaving(a=A, b=B)
        shown(log, running.number, ["b"])
        log.forget()
        assert log.interleaving() == running
        assert [(report.a, report.b, report.searches) for report in log.interleavings()] == [("one", "two", 0)]


def test_an_id_that_belongs_to_another_search_is_not_taken(store: Store) -> None:
    with ClickLog(store) as log:
        number = log.start_interleaving(a=A, b=B).number
        taken = shown(log, number, ["a"], draw="ab" * 16)
        assert taken == "ab" * 16
        other = log.record_search(
            query="a cat",
            retriever="one + two",
            fingerprint="f",
            target="images",
            shown=[("x", 1)],
            no_good_match=False,
            best_probability=0.5,
            page=InterleavedPage(number, taken, ["a"]),
        )
        assert other not in (None, taken)


DAY = 86_400.0


def asked(log: ClickLog, query: str = "a dog", items: str = "abc", first: int = 1, **facts: Any) -> str:
    usual = {"retriever": "r", "fingerprint": "f", "target": "images", "no_good_match": False, "best_probability": 0.5}
    shown = [(item, first + place) for place, item in enumerate(items)]
    search_id = log.record_search(query=query, shown=shown, **{**usual, **facts})
    assert search_id is not None
    return search_id


def visitors(store: Store) -> list[str | None]:
    with store.reading() as db:
        return [visitor for (visitor,) in db.rows("SELECT visitor FROM search ORDER BY id")]


def test_a_number_lasts_as_long_as_its_salt(store: Store) -> None:
    def number(visitor: str, time: float) -> str:
        return store.write(lambda db: visitor_number(db, visitor, time))

    def salts() -> list[tuple[Any, ...]]:
        with store.reading() as db:
            return db.rows("SELECT period, salt FROM visitor_salt")

    ann, bob = number("ann", 0.0), number("bob", 0.0)
    assert len({ann, bob, number("ann", SALT_DAYS * DAY - 1)}) == 2
    (old,) = salts()
    assert number("ann", SALT_DAYS * DAY) not in (ann, bob)
    (new,) = salts()
    assert (old[0], new[0]) == (0, 1)
    assert old[1] != new[1]


def test_only_numbers_of_visitors_are_kept(store: Store, tmp_path: Path) -> None:
    with ClickLog(store) as log:
        first = asked(log, visitor="ann@example.org")
        asked(log, items="def", first=4, continues=first, visitor="bob")
        asked(log, "a cat", visitor="ann@example.org")
        asked(log, "a cat")
        stream = io.BytesIO()
        log.record_click(search_id=first, item="a", position=1, kind="open")
        log.export(stream, "events", "jsonl")
    ann, again, nobody = visitors(store)
    assert ann == again is not None
    assert nobody is None
    assert json.loads(stream.getvalue())["visitor"] == ann
    assert not any(b"example.org" in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert {row[3]: row[1] for row in text_query_searches(store)} == {"a dog": ann, "a cat": None}
    assert [row[1] for row in text_query_searches(store)] == [ann, ann, ann, None]


def test_a_click_tells_who_searched_but_changes_nobody(store: Store) -> None:
    with ClickLog(store) as log:
        searches = [asked(log, visitor="ann"), asked(log)]
        for search in searches:
            log.record_click(search_id=search, item="a", position=1, kind="open", visitor="bob")
    ann, bob = (store.write(partial(visitor_number, visitor=name, time=time.time())) for name in ("ann", "bob"))
    assert visitors(store) == [ann, bob]


def test_forgetting_everything_forgets_the_salt(store: Store) -> None:
    with ClickLog(store) as log:
        asked(log, visitor="ann")
        log.forget(before=0.0)
        asked(log, visitor="ann")
        log.flush()
        assert len(set(visitors(store))) == 1
        log.forget()
        asked(log, visitor="ann")
        log.flush()
        with store.reading() as db:
            assert db.value("SELECT count(*) FROM visitor_salt") == 1


def test_searches_to_learn_from_are_all_that_was_shown_and_clicked(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(0)
    moment = [0.0]
    expected = []
    with ClickLog(store, clock=lambda: moment[0]) as log:
        for number in range(1, 60):
            # Clocks are set back now and then.
            moment[0] = 1e9 + rng.randrange(1000)
            query, visitor = rng.choice(["a dog", "a cat"]), rng.choice(["ann", "bob", None])
            items = rng.sample("abcdefghij", 10)
            kind = rng.choice(["images", "images", "images", "texts"])
            search = asked(log, query, "".join(items[:4]), visitor=visitor, target=kind)
            further = rng.random() < 0.4
            if further:
                moment[0] += 5000
                asked(log, query, "".join(items[4:]), first=5, continues=search, target=kind)
                moment[0] -= 5000
            places = rng.sample(range(1, 11 if further else 5), rng.randrange(4))
            for place in places:
                for _ in range(rng.randrange(1, 3)):
                    log.record_click(search_id=search, item=items[place - 1], position=place, kind="open")
            unwanted = items[0]
            log.record_click(search_id=search, item=unwanted, position=1, kind="less_like")
            named = visitor and store.write(partial(visitor_number, visitor=visitor, time=moment[0]))
            if kind == "images":
                start = (number, named, moment[0], query)
                expected.append((*start, 1, tuple(items[:4]), frozenset(place for place in places if place <= 4)))
                if further:
                    clicked = frozenset(place for place in places if place > 4)
                    expected.append((*start, 5, tuple(items[4:]), clicked))
        asked(log, "item:7")
    monkeypatch.setattr("diptych.service.clicks.exports._ROWS_AT_ONCE", 7)
    with store.reading() as db:
        numbers = {stored: place for place, (stored,) in enumerate(db.rows("SELECT id FROM search ORDER BY id"), 1)}
    found = [(numbers[search], *facts) for search, *facts in text_query_searches(store)]
    assert found == sorted(expected, key=lambda row: (row[2], row[0], row[4]))


def test_pictures_that_were_sent_are_no_queries(store: Store) -> None:
    with ClickLog(store) as log:
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
    assert [row.query for row in (*report.top, *report.failing)] == ["a dog - a cat"] * 2


def test_visible_words_are_marked_and_visual_searches_counted(store: Store) -> None:
    clock = Clock()
    with ClickLog(store, clock=clock) as log:
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
    lines = {line.query: line for line in report.top}
    dogs = lines["two 🐕 dogs in a trash can"]
    assert dogs.visualness == pytest.approx(2 / 3)
    assert [(dogs.query[span.start : span.end], span.concept) for span in dogs.visible] == [
        ("dogs", "dog"),
        ("trash can", "trash can"),
    ]
    assert (lines["item:17"].visualness, lines["item:17"].visible) == (None, ())
    assert [(line.query, line.visualness) for line in report.failing] == [("funny quotes", 0)]
    # Half visible is not above half, and a search for a picture is not counted.
    assert report.visual == VisualSearches(threshold=0.5, searches=1 / 4, clicked=1 / 2)
