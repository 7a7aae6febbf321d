"""Two retrievers on live traffic: what is shown, what is counted, and who may start it."""

from __future__ import annotations

import secrets
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from fractions import Fraction
from math import comb
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diptych import Retriever
from diptych.collection import Collection
from diptych.errors import InvalidInputError
from diptych.metrics import draft_winner
from diptych.models import CCA
from diptych.service import Client, ServiceError
from diptych.service.clicks import ClickLog
from diptych.service.clicks.interleaving import sign_test
from diptych.service.clicks.records import InterleavedPage, InterleavingError

Start = Callable[..., Any]
A, B = ("one", "f1"), ("two", "f2")
NAMES = ("scenes", "small")

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
    assert sign_test(wins, losses) == pytest.approx(float(min(Fraction(1), 2 * tail)), rel=1e-12)
    assert sign_test(wins, losses) == sign_test(losses, wins)


@given(SEARCHES)
@settings(max_examples=20, deadline=None)
def test_clicks_are_credited_as_counting_by_hand_does(searches: list[Any]) -> None:
    """Each clicked item counts once, for the team that picked it, on whichever page it stood."""
    won = []
    clicks = {"a": 0, "b": 0}
    with tempfile.TemporaryDirectory() as folder, ClickLog(Path(folder) / "c.sqlite") as log:
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
    assert report.p_value == sign_test(won.count("a"), won.count("b"))


def test_every_process_knows_what_runs_and_a_restart_forgets_nothing(tmp_path: Path) -> None:
    file = tmp_path / "c.sqlite"
    with ClickLog(file) as one, ClickLog(file) as other:
        assert other.interleaving() is None
        started = one.start_interleaving(a=A, b=B)
        assert other.interleaving() == started
        with pytest.raises(InterleavingError, match="'one' and 'two' are interleaved now"):
            other.start_interleaving(a=B, b=A)
        search_id = shown(one, started.number, ["a", "b"])
        one.flush()
        other.record_click(search_id=search_id, item="item 2", position=2, kind="open")
    with ClickLog(file) as again:
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


def test_forgetting_takes_the_counts_and_leaves_what_runs(tmp_path: Path) -> None:
    with ClickLog(tmp_path / "c.sqlite") as log:
        shown(log, log.start_interleaving(a=A, b=B).number, ["a"])
        log.stop_interleaving()
        running = log.start_interleaving(a=A, b=B)
        shown(log, running.number, ["b"])
        log.forget()
        assert log.interleaving() == running
        assert [(report.interleaving, report.searches) for report in log.interleavings()] == [(running, 0)]


def test_an_id_that_belongs_to_another_search_is_not_taken(tmp_path: Path) -> None:
    with ClickLog(tmp_path / "c.sqlite") as log:
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


@pytest.fixture(scope="module")
def two_retrievers(scene_collection: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scenes with a second retriever of fewer dimensions."""
    folder = Path(shutil.copytree(scene_collection, tmp_path_factory.mktemp("two") / "scenes", symlinks=True))
    with Collection.open(folder / ".diptych") as collection:
        present = collection.retriever
        assert isinstance(present, Retriever)
        items = collection.items()
        images = present.image_features([collection.path_of(item) for item in items])
        texts = present.text_features([item.captions[0] for item in items])
        other = Retriever.load(next((folder / ".diptych" / "retrievers").iterdir()))
        other.set_params(cache=False)
        other.model_ = CCA(n_components=3).fit(images, texts)
        collection.add_retriever(other, name="small")
    return folder


@pytest.fixture
def service(running_service: Start, two_retrievers: Path, tmp_path: Path) -> Any:
    folder = shutil.copytree(two_retrievers, tmp_path / "live", symlinks=True)
    return running_service(collections={"scenes": Path(folder)})


@pytest.fixture
def client(service: Any) -> Iterator[Client]:
    with Client(service.url, service.token) as opened:
        yield opened


def ids(found: Any) -> list[str]:
    return [answer.id for answer in found.answers]


def recorded_teams(service: Any, search_id: str) -> str:
    service.context.click_logs["scenes"].flush()
    with closing(sqlite3.connect(f"file:{service.context.click_logs['scenes'].path}?mode=ro", uri=True)) as connection:
        rows = connection.execute(
            "SELECT teams FROM drafts JOIN searches ON number = search WHERE id = ? ORDER BY first",
            (bytes.fromhex(search_id),),
        )
        return "".join(teams for (teams,) in rows)


def test_both_answer_each_search_and_clicks_are_counted(client: Client, service: Any) -> None:
    alone = {name: ids(client.search("a red boat", limit=60, retriever=name)) for name in NAMES}
    assert client.search("a red boat").draw is None
    started = client.interleave(*NAMES)
    assert (started.a, started.b, started.state, started.searches) == (*NAMES, "running", 0)
    first = client.search("a red boat", limit=7)
    assert first.search_id == first.draw
    assert first.retriever.name == "scenes + small"
    assert [answer.rank for answer in first.answers] == list(range(1, 8))
    pages = [client.search("a red boat", limit=7, offset=offset, search_id=first.search_id) for offset in (7, 14)]
    assert {page.search_id for page in pages} == {first.search_id}
    together = [item for page in (first, *pages) for item in ids(page)]
    assert len(set(together)) == 21
    teams = recorded_teams(service, str(first.search_id))
    assert len(teams) == 21
    for team, name in zip("ab", NAMES, strict=True):
        own = [item for item, side in zip(together, teams, strict=True) if side == team]
        assert len(own) in (10, 11)
        assert own == sorted(own, key=alone[name].index)
    # The whole list at once is what the pages were, and ends where the collection does.
    whole = client.search("a red boat", limit=60, draw=first.draw, log=False)
    assert ids(whole)[:21] == together
    assert len(set(ids(whole))) == 60
    for place in (0, 2):
        client.click(first, first.answers[place])
    (counted,) = client.interleavings()
    clicked = teams[0] + teams[2]
    assert (counted.searches, counted.clicks_a, counted.clicks_b) == (1, clicked.count("a"), clicked.count("b"))
    assert counted.wins_a + counted.wins_b + counted.ties == 1
    stopped = client.stop_interleaving()
    assert (stopped.state, stopped.searches) == ("stopped", 1)
    assert ids(client.search("a red boat", limit=60)) == alone["scenes"]


def test_what_was_seen_before_it_was_logged_is_what_is_logged(client: Client) -> None:
    """The page asks while people type, and has only what they settle on remembered."""
    client.interleave(*NAMES)
    drawn = {tuple(ids(client.search("a boat", limit=4, log=False))) for _ in range(12)}
    assert len(drawn) > 1
    seen = client.search("a boat", limit=10, log=False)
    assert (seen.search_id, len(str(seen.draw))) == (None, 32)
    logged = client.search("a boat", limit=20, draw=seen.draw)
    assert (logged.search_id, ids(logged)[:10]) == (seen.draw, ids(seen))
    client.click(logged, logged.answers[3])
    (counted,) = client.interleavings()
    assert (counted.searches, counted.clicks_a + counted.clicks_b) == (1, 1)
    # A search that another process has not written yet goes on here; one of another query, or none at all, does not.
    elsewhere = "cd" * 16
    following = client.search("a boat", limit=5, offset=10, search_id=elsewhere)
    assert (following.search_id, following.draw) == (elsewhere, elsewhere)
    for other in (str(seen.draw), "no search"):
        begun = client.search("a red house", search_id=other)
        assert begun.search_id == begun.draw != other


def test_only_plain_searches_for_pictures_take_part(client: Client) -> None:
    client.interleave(*NAMES)
    one = client.search("a boat").answers[0].id
    assert client.search("a boat", filter="label:boat", hybrid=0.5).draw is not None
    for asked, options in (
        ("a boat", {"retriever": "small"}),
        ("a boat", {"target": "texts"}),
        ("a boat", {"min_probability": 0.0}),
        ("a boat - red", {}),
        ([{"item": one}], {}),
        ([{"text": "a boat"}, {"item": one, "weight": 0.5}], {}),
    ):
        assert client.search(asked, **options).draw is None, (asked, options)


def test_a_retriever_that_goes_leaves_the_active_one_to_answer(client: Client) -> None:
    client.interleave(*NAMES)
    alone = ids(client.search("a boat", retriever="scenes"))
    client.remove_retriever("small")
    found = client.search("a boat")
    assert (found.draw, found.retriever.name, ids(found)) == (None, "scenes", alone)
    assert client.interleavings()[0].state == "waiting"
    assert client.stop_interleaving().state == "stopped"


def test_who_may_start_it_and_with_what(client: Client, service: Any) -> None:
    address = f"{service.url}/v1/collections/scenes/interleaving"
    both = {"a": "scenes", "b": "small"}
    assert httpx.post(address, json=both).status_code in (401, 403)
    assert httpx.delete(address).status_code in (401, 403)
    for call, problem in (
        (lambda: client.stop_interleaving(), (404, "no-interleaving")),
        (lambda: client.interleave("scenes", "nobody"), (404, "no-such-retriever")),
        (lambda: client.interleave("scenes", "scenes"), (422, "invalid-input")),
        (lambda: client.interleave(*NAMES) and client.interleave(*NAMES), (409, "interleaving-running")),
        (lambda: client.search("a boat", draw="not a draw"), (422, "invalid-request")),
    ):
        with pytest.raises(ServiceError) as refused:
            call()
        assert (refused.value.status, refused.value.kind) == problem
    assert len(httpx.get(address).json()["interleavings"]) == 1


def test_a_service_that_only_reads_goes_on_but_starts_none(running_service: Start, two_retrievers: Path) -> None:
    reading = running_service(collections={"scenes": two_retrievers}, read_only=True)
    log = reading.context.click_logs["scenes"]
    with Client(reading.url, reading.token) as client:
        prints = {one.name: one.fingerprint for one in client.retrievers().retrievers}
        log.start_interleaving(a=("scenes", prints["scenes"]), b=("small", prints["small"]))
        assert client.search("a boat").draw is not None
        for call in (client.stop_interleaving, lambda: client.interleave(*NAMES)):
            with pytest.raises(ServiceError) as refused:
                call()
            assert (refused.value.status, refused.value.kind) == (403, "read-only")
        log.stop_interleaving()


def test_without_a_log_there_is_nothing_to_count(running_service: Start) -> None:
    service = running_service(log_clicks=False)
    answer = httpx.get(f"{service.url}/v1/collections/scenes/interleaving")
    assert (answer.status_code, answer.json()["type"]) == (404, "/problems/click-log-off")
