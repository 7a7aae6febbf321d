from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from diptych import Retriever
from diptych.collection import Collection, Record
from diptych.collection.store.sqlite import write_lock
from tests.service.item_requests import ITEMS, PICTURES, Start, first_item, picture, problem


def listed(reader: httpx.Client, **asked: str) -> list[str]:
    """Return the ids of all items, from pages of 25."""
    page = reader.get(ITEMS, params={"limit": 25, **asked}).json()
    seen = [item["id"] for item in page["items"]]
    while page["next"] is not None:
        assert page["total"] == 60
        page = reader.get(ITEMS, params={"limit": 25, "cursor": page["next"], **asked}).json()
        seen += [item["id"] for item in page["items"]]
    return seen


def test_items_are_listed_in_pages(reader: httpx.Client) -> None:
    seen = listed(reader)
    assert len(set(seen)) == 60
    assert listed(reader, order="asc") == seen[::-1]
    names = [reader.get(f"{ITEMS}/{item_id}").json()["name"] for item_id in listed(reader, sort="name")]
    assert names == sorted(names)
    assert problem(reader.get(ITEMS, params={"cursor": "nothing"})) == (422, "invalid-input")
    assert problem(reader.get(ITEMS, params={"sort": "score"})) == (422, "invalid-request")
    item = reader.get(f"{ITEMS}/{seen[5]}").json()
    assert item["path"] == item["name"]
    assert item["picture"]
    assert problem(reader.get(f"{ITEMS}/nobody")) == (404, "no-such-item")
    # A path, which a collection knows as well, is no name of an item.
    assert problem(reader.get(f"{ITEMS}/{item['path']}")) == (404, "no-such-item")
    assert problem(reader.get(ITEMS, params={"filter": "year >"})) == (422, "invalid-input")


def test_a_picture_is_added_once_under_its_content(client: httpx.Client, service: Any) -> None:
    content = picture()
    answer = client.post(
        PICTURES,
        files={"picture": ("../../evil name.exe", content)},
        data={"item": json.dumps({"captions": ["a grey slope"], "labels": ["grey"], "metadata": {"year": 2010}})},
    )
    assert answer.status_code == 201, answer.text
    item = answer.json()
    assert client.get(answer.headers["location"]).json() == item
    assert (item["width"], item["height"], item["captions"]) == (40, 30, ["a grey slope"])
    stored = service.folders["scenes"] / item["path"]
    assert stored.parent == service.folders["scenes"] / "uploads"
    assert stored.read_bytes() == content
    assert stored.suffix == ".png"
    again = client.post(PICTURES, files={"picture": ("x", content)})
    assert again.json()["id"] == item["id"]
    assert [path.name for path in stored.parent.iterdir()] == [stored.name]
    found = client.post("/v1/collections/scenes/search/picture", files={"picture": ("x", content)}).json()
    assert found["answers"][0]["id"] == item["id"]


def test_texts_are_added_changed_and_removed(client: httpx.Client) -> None:
    added = client.post(ITEMS, json={"captions": ["a whale in the garden"], "id": "whale-1"})
    assert added.status_code == 201, added.text
    assert problem(client.post(ITEMS, json={"captions": ["another"], "id": "whale-1"})) == (409, "id-taken")
    changed = client.patch(f"{ITEMS}/whale-1", json={"captions": ["a whale"], "metadata": {"size": 3}})
    assert (changed.json()["captions"], changed.json()["metadata"]) == (["a whale"], {"size": 3})
    assert problem(client.patch(f"{ITEMS}/whale-1", json={"captions": []})) == (422, "invalid-input")
    assert problem(client.patch(f"{ITEMS}/nobody", json={"captions": ["a"]})) == (404, "no-such-item")
    assert problem(client.get(f"{ITEMS}/whale-1/thumbnail")) == (404, "no-picture")
    assert problem(client.get(f"{ITEMS}/whale-1/original")) == (404, "no-picture")
    removed = client.delete(f"{ITEMS}/whale-1")
    assert (removed.status_code, removed.content) == (204, b"")
    assert problem(client.delete(f"{ITEMS}/whale-1")) == (404, "no-such-item")


@pytest.mark.parametrize("metadata", ['{"a":' * 300 + "1" + "}" * 300, '{"a": 1%s}' % ("0" * 400), '{"": 1}'])
def test_an_item_that_lists_could_not_show_is_not_stored(client: httpx.Client, metadata: str) -> None:
    headers = {"Content-Type": "application/json"}
    body = f'{{"captions": ["a whale"], "id": "whale", "metadata": {metadata}}}'
    assert problem(client.post(ITEMS, content=body, headers=headers)) == (422, "invalid-input")
    picture_too = client.post(PICTURES, files={"picture": ("x", picture())}, data={"item": body})
    assert problem(picture_too)[0] == 422
    assert problem(client.get(f"{ITEMS}/whale")) == (404, "no-such-item")
    item = first_item(client)
    change = client.patch(f"{ITEMS}/{item['id']}", content=f'{{"metadata": {metadata}}}', headers=headers)
    assert problem(change) == (422, "invalid-input")
    assert first_item(client) == item
    assert client.get(ITEMS).json()["total"] == 60
    assert client.get("/v1/collections/scenes/facets").status_code == 200


def test_removing_leaves_the_file(client: httpx.Client, service: Any) -> None:
    item = first_item(client)
    assert client.delete(f"{ITEMS}/{item['id']}").status_code == 204
    assert (service.folders["scenes"] / item["path"]).is_file()


def test_what_was_sent_goes_with_its_item(client: httpx.Client, service: Any) -> None:
    root = service.folders["scenes"]
    item = client.post(PICTURES, files={"picture": ("x", picture())}).json()
    other = client.post(PICTURES, files={"picture": ("x", picture(size=(50, 30)))}).json()
    assert client.delete(f"{ITEMS}/{item['id']}").status_code == 204
    assert [path.name for path in (root / "uploads").iterdir()] == [other["name"]]
    # The next look at the folder finds nothing that was deleted.
    collection = service.context.hosted["scenes"].collection
    assert collection.refresh().added == 0
    assert problem(client.get(f"{ITEMS}/{item['id']}")) == (404, "no-such-item")


def test_what_is_refused_leaves_no_file(running_service: Start) -> None:
    service = running_service(limits={"write_wait_seconds": 0.1})
    root = service.folders["scenes"]
    with httpx.Client(base_url=service.url, headers=service.headers, timeout=30) as client:
        with write_lock(root / ".diptych" / "write.lock"):
            assert problem(client.post(PICTURES, files={"picture": ("x", picture())})) == (503, "busy")
        item = {"item": '{"captions": ["a\\u0000"]}'}
        refused = client.post(PICTURES, files={"picture": ("x", picture())}, data=item)
        assert problem(refused) == (422, "invalid-input")
        taken = client.post(PICTURES, files={"picture": ("x", picture())}).json()
        again = client.post(PICTURES, files={"picture": ("x", picture())}, data={"item": '{"id": "another"}'})
        assert problem(again) == (422, "not-added")
    assert [path.name for path in (root / "uploads").iterdir()] == [taken["name"]]


def test_an_id_may_hold_anything(running_service: Start, own_scene_collection: Path) -> None:
    names = ["a/b", "ü ?&#%", "x/original/y", "..", "a'b\""]
    with Collection.open(own_scene_collection / ".diptych") as collection:
        collection.add([Record(captions=[f"text {name}"], id=name) for name in names])
    from diptych.service import Client

    service = running_service()
    with Client(service.url, service.token) as client:
        for name in set(names) - {".."}:
            assert client.item(name).captions == [f"text {name}"]
        assert client.search(terms=[{"item": ".."}], target="texts", limit=1).answers


def test_a_write_waits_for_its_turn_and_then_says_so(running_service: Start) -> None:
    service = running_service(limits={"write_wait_seconds": 0.3})
    lock = service.folders["scenes"] / ".diptych" / "write.lock"
    with httpx.Client(base_url=service.url, headers=service.headers, timeout=30) as client:
        with write_lock(lock):
            busy = client.post(ITEMS, json={"captions": ["a whale"]})
            assert problem(busy) == (503, "busy")
            assert int(busy.headers["retry-after"]) > 0
            assert client.get("/v1/collections/scenes/search", params={"q": "a boat"}).status_code == 200
        assert client.post(ITEMS, json={"captions": ["a whale"]}).status_code == 201


def test_many_threads_write_and_read_at_once(client: httpx.Client) -> None:
    failures: list[str] = []

    def write(number: int) -> None:
        answer = client.post(ITEMS, json={"captions": [f"whale number {number}"], "id": f"whale-{number}"})
        if answer.status_code != 201:
            failures.append(answer.text)

    def read() -> None:
        answer = client.get("/v1/collections/scenes/search", params={"q": "a whale", "target": "texts"})
        if answer.status_code != 200:
            failures.append(answer.text)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    threads += [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert client.get(ITEMS, params={"limit": 1}).json()["total"] == 68


def test_writes_that_wait_together_are_made_one_after_the_other_and_fail_alone(running_service: Any) -> None:
    service = running_service()
    folder = service.folders["scenes"] / ".diptych"
    with Collection.open(folder) as collection, httpx.Client(base_url=service.url, headers=service.headers) as client:
        pictures = [item for item in collection if item.path is not None]
        edited, removed = pictures[:10], pictures[10:15]
        texts = [client.post(ITEMS, json={"captions": [f"note {number}"]}).json()["id"] for number in range(2)]
        asked: list[tuple[str, str, dict[str, Any]]] = [
            *(("POST", ITEMS, {"captions": [f"a kite, number {number}"]}) for number in range(20)),
            *(("POST", ITEMS, {"captions": ["the same text"]}) for _ in range(3)),
            *(("POST", ITEMS, {"captions": ["named"], "id": "one-name"}) for _ in range(2)),
            *(("PATCH", f"{ITEMS}/{item.id}", {"labels": ["edited"]}) for item in edited),
            ("PATCH", f"{ITEMS}/{texts[0]}", {"captions": []}),
            ("PATCH", f"{ITEMS}/{texts[1]}", {"captions": ["other words"]}),
            *(("DELETE", f"{ITEMS}/{item.id}", {}) for item in removed),
        ]
        with ThreadPoolExecutor(len(asked) + 1) as pool:

            def ask(method: str, path: str, body: dict[str, Any]) -> Any:
                return pool.submit(client.request, method, path, json=body or None, timeout=60)

            with write_lock(folder / "write.lock"):
                writes = service.context.hosted["scenes"].writes
                answers = [ask(*each) for each in asked]
                while writes.waiting < len(asked) - 1:
                    time.sleep(0.01)
            statuses = [answer.result().status_code for answer in answers]
        assert statuses[:23] == [201] * 23
        assert sorted(statuses[23:25]) == [201, 409]
        assert statuses[25:] == [*[200] * 10, 422, 200, *[204] * 5]
        assert len(collection.items("label:edited")) == 10
        assert collection[texts[1]].captions == ("other words",)
        assert not any(item.id in collection for item in removed)
        assert len({answer.result().json()["id"] for answer in answers[20:23]}) == 1


def test_a_caption_that_cannot_be_encoded_fails_its_own_request_alone(
    running_service: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    encode = Retriever.text_features

    def picky(self: Retriever, texts: Sequence[str]) -> Any:
        if any("refused" in text for text in texts):
            raise ValueError("math domain error")
        return encode(self, texts)

    monkeypatch.setattr(Retriever, "text_features", picky)
    service = running_service()
    with httpx.Client(base_url=service.url, headers=service.headers, timeout=60) as client:
        captions = [*(f"a kite, number {number}" for number in range(11)), "refused"]
        with ThreadPoolExecutor(len(captions)) as pool:
            answers = list(pool.map(lambda caption: client.post(ITEMS, json={"captions": [caption]}), captions))
        assert [answer.status_code for answer in answers] == [*[201] * 11, 422]
        assert "cannot be encoded" in answers[-1].json()["detail"]
