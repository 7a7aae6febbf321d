from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from diptych import Retriever
from diptych.collection import Collection
from diptych.models import CCA

Start = Callable[..., Any]
RETRIEVERS = "/v1/collections/scenes/retrievers"
SEARCH = "/v1/collections/scenes/search"


@pytest.fixture
def client(running_service: Start, own_scene_collection: Path) -> Iterator[httpx.Client]:
    """A service with two retrievers, the second with fewer dimensions."""
    with Collection.open(own_scene_collection / ".diptych") as collection:
        present = collection.retriever
        assert isinstance(present, Retriever)
        items = collection.items()
        images = present.image_features([collection.path_of(item) for item in items])
        texts = present.text_features([item.captions[0] for item in items])
        other = copy.deepcopy(present)
        other.set_params(cache=False)
        other.model_ = CCA(n_components=3).fit(images, texts)
        collection.add_retriever(other, name="small")
    service = running_service()
    with httpx.Client(base_url=service.url, headers=service.headers, timeout=30) as opened:
        yield opened


def test_searches_choose_their_retriever(client: httpx.Client) -> None:
    listed = client.get(RETRIEVERS).json()
    assert [(one["name"], one["active"], one["ready"], one["missing"]) for one in listed["retrievers"]] == [
        ("scenes", True, True, 0),
        ("small", False, True, 0),
    ]
    assert {one["explains"] for one in listed["retrievers"]} == {"words"}
    assert {one["kind"] for one in listed["retrievers"]} == {"CCA"}
    answers = {
        name: client.get(SEARCH, params={"q": "a red boat", "retriever": name, "limit": 60}).json()
        for name in ("scenes", "small")
    }
    for one in listed["retrievers"]:
        assert answers[one["name"]]["retriever"] == {"name": one["name"], "fingerprint": one["fingerprint"]}
    orders = [[answer["id"] for answer in answers[name]["answers"]] for name in ("scenes", "small")]
    assert orders[0] != orders[1]
    assert sorted(orders[0]) == sorted(orders[1])
    default = client.get(SEARCH, params={"q": "a red boat", "limit": 60}).json()
    assert [answer["id"] for answer in default["answers"]] == orders[0]


def test_another_retriever_takes_over_and_the_old_one_can_go(client: httpx.Client) -> None:
    assert client.delete(f"{RETRIEVERS}/scenes").status_code == 409
    activated = client.post(f"{RETRIEVERS}/small/activate")
    assert activated.json()["retriever"]["name"] == "small"
    assert client.get(SEARCH, params={"q": "a red boat"}).json()["retriever"]["name"] == "small"
    assert client.delete(f"{RETRIEVERS}/scenes").status_code == 204
    assert [one["name"] for one in client.get(RETRIEVERS).json()["retrievers"]] == ["small"]
    gone = client.get(SEARCH, params={"q": "a red boat", "retriever": "scenes"})
    assert (gone.status_code, gone.json()["type"]) == (404, "/problems/no-such-retriever")


def test_a_retriever_that_another_process_removes_is_said_to_be_gone(
    client: httpx.Client, own_scene_collection: Path
) -> None:
    asked = {"q": "a red boat", "retriever": "small"}
    assert client.get(SEARCH, params=asked).status_code == 200
    with Collection.open(own_scene_collection / ".diptych") as writer:
        writer.remove_retriever("small")
    gone = client.get(SEARCH, params=asked)
    assert (gone.status_code, gone.json()["type"]) == (404, "/problems/no-such-retriever")
    assert client.get(SEARCH, params={"q": "a red boat"}).status_code == 200


def test_searches_and_changes_of_retrievers_at_once(client: httpx.Client) -> None:
    """Every answer names the retriever that made it, whatever becomes of the retrievers meanwhile."""
    listed = {one["name"]: one["fingerprint"] for one in client.get(RETRIEVERS).json()["retrievers"]}
    orders = {
        name: [found["id"] for found in client.get(SEARCH, params={"q": "a boat", "retriever": name}).json()["answers"]]
        for name in listed
    }
    assert orders["scenes"] != orders["small"]
    is_over = threading.Event()
    answers = []

    def search() -> None:
        while not is_over.is_set():
            answers.append(client.get(SEARCH, params={"q": "a boat", "log": False}))

    threads = [threading.Thread(target=search) for _ in range(3)]
    for thread in threads:
        thread.start()
    for name in ("small", "scenes") * 5:
        assert client.post(f"{RETRIEVERS}/{name}/activate").status_code == 200
    is_over.set()
    for thread in threads:
        thread.join()
    for answer in answers:
        found = answer.json()
        assert answer.status_code == 200
        assert found["retriever"]["fingerprint"] == listed[found["retriever"]["name"]]
        assert [one["id"] for one in found["answers"]] == orders[found["retriever"]["name"]]


def test_a_new_item_is_found_with_both(client: httpx.Client) -> None:
    added = client.post("/v1/collections/scenes/items", json={"captions": ["a red boat at night"]}).json()
    for name in ("scenes", "small"):
        query = {"q": "a red boat at night", "retriever": name, "target": "texts", "limit": 5}
        assert added["id"] in [answer["id"] for answer in client.get(SEARCH, params=query).json()["answers"]]


@pytest.mark.parametrize("name", ["/etc/passwd", "trained", "", None, 3])
def test_only_known_retrievers_can_be_added(shared_service: Start, name: Any) -> None:
    service = shared_service()
    request = {"kind": "retriever", "name": name}
    refused = httpx.post(f"{service.url}/v1/collections/scenes/jobs", json=request, headers=service.headers)
    assert refused.status_code == 422
