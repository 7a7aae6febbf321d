"""Two retrievers on live traffic: what is shown, what is counted, and who may start it."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from diptych import Retriever
from diptych.collection import Collection
from diptych.models import CCA
from diptych.service import Client, ServiceError

Start = Callable[..., Any]
NAMES = ("scenes", "small")


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
        other = copy.deepcopy(present)
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
    log = service.context.click_logs["scenes"]
    log.flush()
    with log.store.reading() as db:
        rows = db.rows(
            "SELECT teams FROM draft JOIN search ON search.id = draft.search WHERE name = ? ORDER BY first",
            (search_id,),
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
        client.click(search_id=first.search_id, item=first.answers[place].id, position=first.answers[place].rank)
    (counted,) = client.interleavings().interleavings
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
    client.click(search_id=logged.search_id, item=logged.answers[3].id, position=logged.answers[3].rank)
    (counted,) = client.interleavings().interleavings
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
    for asked in (
        {"query": "a boat", "retriever": "small"},
        {"query": "a boat", "target": "texts"},
        {"query": "a boat", "min_probability": 0.0},
        {"query": "a boat - red"},
        {"terms": [{"item": one}]},
        {"terms": [{"text": "a boat"}, {"item": one, "weight": 0.5}]},
    ):
        assert client.search(**asked).draw is None, asked


def test_a_retriever_that_goes_leaves_the_active_one_to_answer(client: Client) -> None:
    client.interleave(*NAMES)
    alone = ids(client.search("a boat", retriever="scenes"))
    client.remove_retriever("small")
    found = client.search("a boat")
    assert (found.draw, found.retriever.name, ids(found)) == (None, "scenes", alone)
    assert client.interleavings().interleavings[0].state == "waiting"
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
