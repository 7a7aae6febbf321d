from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from diptych.service import AsyncClient, Client, ServiceError
from diptych.service.client import Operation, Operations
from diptych.service.security.tokens import own_token

Start = Callable[..., Any]

# What only a browser needs, and what has another way in the client.
DELIBERATELY_ABSENT = {
    ("GET", "/v1/session"): "the page's",
    ("POST", "/v1/session"): "the page's",
    ("DELETE", "/v1/session"): "the page's",
    ("GET", "/v1/collections/{collection}/search"): "search sends a document",
    ("HEAD", "/v1/collections/{collection}/items/{item_id}/original"): "for download programs",
    ("GET", "/v1/collections/{collection}/jobs/{job_id}/events"): "wait asks for the job again",
    ("GET", "/health"): "for supervisors",
    ("GET", "/metrics"): "for Prometheus",
}


@pytest.fixture
def client(service: Any) -> Iterator[Client]:
    with Client(service.url, service.token) as opened:
        yield opened


def test_every_way_to_search(client: Client, service: Any) -> None:
    words = client.search("a red boat", limit=5)
    assert [answer.rank for answer in words.answers] == [1, 2, 3, 4, 5]
    assert all("red" in answer.metadata["colour"] for answer in words.answers[:1])
    best = words.answers[0]
    picture = service.folders["scenes"] / str(best.name)
    with_picture = client.search_picture(picture, limit=3)
    assert with_picture.answers[0].id == best.id
    upload = client.upload(picture)
    assert client.upload_preview(upload.id).startswith(b"\xff\xd8")
    same = client.search(terms=[{"upload": upload.id}], limit=3)
    assert [answer.id for answer in same.answers] == [answer.id for answer in with_picture.answers]
    texts = client.search(
        terms=[{"item": best.id, "weight": 2}, {"text": "night", "weight": -1}], target="texts", limit=3
    )
    assert texts.query == f"2:item:{best.id} - night"
    assert all(answer.caption for answer in texts.answers)


def test_items_come_and_go(client: Client, service: Any) -> None:
    assert len(list(client.items(limit=25))) == 60
    assert {item.labels[0] for item in client.items("label:fish")} == {"fish"}
    assert [item.id for item in client.items(order="asc")][::-1] == [item.id for item in client.items()]
    picture = next(service.folders["scenes"].glob("*.png"))
    added = client.add(picture, captions=["a purple elephant"], labels=["elephant"], metadata={"year": 2010}, id="mine")
    assert added.id == "mine"
    assert client.original("mine") == picture.read_bytes()
    assert client.thumbnail("mine").startswith(b"\xff\xd8")
    changed = client.update("mine", captions=["a purple elephant", "an elephant"])
    assert changed.captions == ["a purple elephant", "an elephant"]
    assert changed.labels == ["elephant"]
    assert client.item("mine") == changed
    client.remove("mine")
    with pytest.raises(ServiceError) as refused:
        client.item("mine")
    assert (refused.value.status, refused.value.kind) == (404, "no-such-item")
    text = client.add_text(["an umbrella in the rain"])
    assert not text.picture
    found = client.search("an umbrella in the rain", target="texts", hybrid=1.0, limit=1)
    assert found.answers[0].id == text.id


def test_albums_and_saved_searches(client: Client, service: Any) -> None:
    ids = [item.id for item in client.items()][:4]
    assert client.set_album("Boats", ids[:2]).items == ids[:2]
    changed = client.change_album("boats", add=[ids[3], ids[0]], remove=[ids[1]], title="At sea")
    assert (changed.title, changed.items) == ("At sea", [ids[0], ids[3]])
    client.set_album("At sea", [ids[3], ids[0]])
    assert [item.id for item in client.items(album="At sea", limit=1)] == [ids[3], ids[0]]
    assert client.albums().albums[0].items == [ids[3], ids[0]]
    page = httpx.get(f"{service.url}/v1/collections/scenes/albums/At sea/items", params={"limit": 1}).json()
    client.change_album("At sea", remove=[ids[0]])
    beyond = {"limit": 1, "cursor": page["next"]}
    assert httpx.get(f"{service.url}/v1/collections/scenes/albums/At sea/items", params=beyond).json()["items"] == []
    client.change_album("At sea", add=[ids[0]])
    assert {item.id for item in client.items('album:"at sea"')} == {ids[0], ids[3]}
    client.set_album("Other", [])
    for refused, kind in (
        (lambda: client.change_album("Other", title="AT SEA"), "name-taken"),
        (lambda: client.change_album("Other", add=["nothing"]), "no-such-item"),
        (lambda: client.change_album("Nothing", add=ids), "no-such-album"),
        (lambda: client.set_album("x" * 81, ids), "invalid-input"),
        (lambda: list(client.items("album:Nothing")), "invalid-input"),
    ):
        with pytest.raises(ServiceError) as error:
            refused()
        assert error.value.kind == kind
    client.delete_album("Other")
    assert [album.title for album in client.albums().albums] == ["At sea"]

    saved = client.save_search("Red boats", "a red boat", filter="label:boat", mode="both")
    assert client.saved_searches().searches == [saved]
    found = client.run_saved_search("red BOATS", limit=3)
    asked = client.search("a red boat", filter="label:boat", mode="both", limit=3)
    assert [one.id for one in found.answers] == [one.id for one in asked.answers]
    assert found.search_id is None
    client.save_search("Labels", filter="label:boat")
    with pytest.raises(ServiceError) as error:
        client.run_saved_search("Labels")
    assert error.value.kind == "no-words"
    with pytest.raises(ServiceError) as error:
        client.rename_saved_search("Labels", "red boats")
    assert (error.value.status, error.value.kind) == (409, "name-taken")
    with pytest.raises(ServiceError) as error:
        client.save_search("Upload", "upload.png")
    assert error.value.kind == "invalid-input"
    assert client.rename_saved_search("Labels", "By label").filter == "label:boat"
    client.delete_saved_search("By label")
    assert [one.name for one in client.saved_searches().searches] == ["Red boats"]


def test_answers_are_downloaded_as_zip_files(client: Client, service: Any, tmp_path: Path) -> None:
    ids = [item.id for item in client.items()][:3]
    client.set_album("Best", [ids[2], ids[0]])
    (tmp_path / "album.zip").write_bytes(client.export(album="best"))
    with zipfile.ZipFile(tmp_path / "album.zip") as archive:
        first, second = sorted(name for name in archive.namelist() if name.endswith(".png"))
        assert archive.read(first) == client.original(ids[2])
        assert archive.read(second) == client.original(ids[0])
    (tmp_path / "gallery.zip").write_bytes(client.export(q="a red boat", filter="label:boat", kind="gallery", limit=4))
    with zipfile.ZipFile(tmp_path / "gallery.zip") as archive:
        assert archive.testzip() is None
        assert "Answers to “a red boat”, only label:boat" in archive.read("index.html").decode()
        assert str(service.folders["scenes"]).encode() not in b"".join(map(archive.read, archive.namelist()))
    client.save_search("Boats", filter="label:boat")
    (tmp_path / "saved.zip").write_bytes(client.export(saved="Boats"))
    with zipfile.ZipFile(tmp_path / "saved.zip") as archive:
        assert len(archive.namelist()) == 1 + len(list(client.items("label:boat")))
    for wrong, kind in (
        ({"q": "x", "album": "best"}, "invalid-request"),
        ({"album": "nothing"}, "no-such-album"),
        ({"saved": "nothing"}, "no-such-saved-search"),
        ({"filter": "label:("}, "invalid-input"),
    ):
        with pytest.raises(ServiceError) as error:
            client.export(**wrong)
        assert error.value.kind == kind


def test_an_export_has_its_limit(running_service: Start, tmp_path: Path) -> None:
    service = running_service(limits={"exported_items": 5})
    with Client(service.url, service.token) as client:
        with pytest.raises(ServiceError) as error:
            client.export()
        assert error.value.kind == "too-many-items"
        (tmp_path / "five.zip").write_bytes(client.export(q="a red boat", mode="similarity"))


def test_what_helps_to_ask(client: Client) -> None:
    fields = {facet.field: facet for facet in client.facets().facets}
    assert {"label", "colour", "shape"} <= set(fields)
    value = fields["colour"].values[0]
    assert len(list(client.items(value.filter))) == value.count
    assert any(suggestion.text.startswith("re") for suggestion in client.suggestions("re").suggestions)


def test_when_and_where(client: Client) -> None:
    known = {"taken": "2019-07-14T18:05:31+01:00", "latitude": 38.72, "longitude": -9.14, "place": "Lisbon"}
    item = next(client.items())
    client.update(item.id, metadata={**item.metadata, **known})
    (month,) = client.timeline().periods
    (cell,) = client.world("near:Lisbon").cells
    assert (month.period, month.count, cell.place, cell.count) == ("2019-07", 1, "Lisbon", 1)
    for found in (month, cell):
        assert [one.id for one in client.items(found.filter)] == [item.id]
    assert client.world(south=40, west=-10, north=50, east=0).cells == ()
    with pytest.raises(ServiceError, match="within -90 to 90"):
        client.world(south=50, north=40)
    with pytest.raises(ServiceError, match="Lisbon"):
        client.timeline("near:Lisbn")
    client.update(item.id, metadata=item.metadata)


def test_clicks_and_the_log(client: Client) -> None:
    search = client.search("a red boat", limit=3)
    client.click(search_id=search.search_id, item=search.answers[1].id, position=search.answers[1].rank, kind="open")
    assert b"a red boat" in client.clicks("csv")
    assert b"open" in client.clicks("jsonl", what="events")
    other = client.search("a red boat", limit=3, log=False)
    assert other.search_id is None
    assert client.query_log(days=7).clicks == 1
    client.forget(older_than_days=1)
    assert client.query_log(days=7).searches == 1
    client.forget()
    assert client.query_log(days=7).searches == 0


def test_jobs_are_waited_for(client: Client) -> None:
    seen: list[str] = []
    job = client.wait(client.start("index"), lambda step: seen.append(step.state))
    assert job.state == seen[-1] == "done"
    assert job.result is not None
    assert job.result["unchanged"] == 60
    assert [one.id for one in client.jobs().jobs] == [job.id]
    assert client.cancel(job.id).state == "done"
    with pytest.raises(ServiceError) as refused:
        client.map()
    assert refused.value.kind == "no-map"


def test_retrievers_and_readiness(client: Client) -> None:
    deadline = time.monotonic() + 30
    while not client.ready().ready:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert client.ready().collections == {"scenes": "ready"}
    stored = client.retrievers()
    assert [one.name for one in stored.retrievers] == ["scenes"]
    assert stored.available == ["default", "strong"]
    assert client.activate_retriever("scenes").name == "scenes"
    with pytest.raises(ServiceError) as refused:
        client.remove_retriever("scenes")
    assert (refused.value.status, refused.value.kind) == (409, "retriever-active")
    for unknown in (client.activate_retriever, client.remove_retriever):
        with pytest.raises(ServiceError) as refused:
            unknown("nobody")
        assert refused.value.kind == "no-such-retriever"


def test_the_collection_is_named_where_there_are_several(running_service: Start, own_scene_collection: Path) -> None:
    service = running_service(collections={"one": own_scene_collection, "two": own_scene_collection})
    with Client(service.url, service.token) as client, pytest.raises(ServiceError, match="one, two"):
        client.search("a boat")
    with Client(service.url, service.token, "two") as client:
        assert client.status().name == "two"
        assert [collection.name for collection in client.collections().collections] == ["one", "two"]


def test_a_token_of_this_machine_stays_on_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("DIPTYCH_TOKEN", raising=False)
    assert own_token()
    with Client("http://127.0.0.1:1") as here, Client("http://example.org") as there:
        assert "authorization" in here._http.headers
        assert "authorization" not in there._http.headers


def test_a_service_that_is_not_there_is_one_clear_error() -> None:
    with Client("http://127.0.0.1:1", "token") as client, pytest.raises(ServiceError, match="diptych serve"):
        client.status()


def test_client_and_document_agree(service: Any) -> None:
    """Every call of the client is in the document, and every operation of the document is in the client."""
    document = httpx.get(f"{service.url}/v1/openapi.json").json()
    described = {
        (method.upper(), path)
        for path, operations in document["paths"].items()
        for method in operations
        if method in ("get", "post", "patch", "put", "delete", "head")
    }
    called = {
        (
            one.method,
            one.path if one.path.startswith("/") else "/v1/" + one.path.replace("~", "collections/{collection}"),
        )
        for one in vars(Operations).values()
        if isinstance(one, Operation)
    }
    assert called <= described
    assert described - called == set(DELIBERATELY_ABSENT)


def test_the_same_with_an_event_loop(service: Any) -> None:
    async def ask() -> tuple[Any, Any]:
        async with AsyncClient(service.url, service.token) as client:
            found = await asyncio.gather(*(client.search(words, limit=2) for words in ("a red boat", "a fish")))
            with pytest.raises(ServiceError) as refused:
                await client.item("nothing")
            assert refused.value.kind == "no-such-item"
            return found[0], await client.thumbnail(found[0].answers[0].id)

    found, thumbnail = asyncio.run(ask())
    assert "red" in found.answers[0].metadata["colour"]
    assert thumbnail.startswith(b"\xff\xd8")


def test_what_an_address_needs_is_named(client: Client) -> None:
    with pytest.raises(TypeError, match="item_id"):
        client.item()


def test_the_guide_calls_methods_that_exist() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "reference" / "rest-api.md").read_text(encoding="utf-8")
    called = set(re.findall(r"\bclient\.(\w+)\(", guide))
    assert len(called) > 10
    assert {name for name in called if not hasattr(Client, name)} == set()
    for block in re.findall(r"^```py\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL):
        compile(block, "docs/reference/rest-api.md", "exec")


def test_importing_the_service_brings_no_web_package() -> None:
    listing = "import sys, diptych.service; print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", listing], capture_output=True, text=True, check=True).stdout.split()
    assert {"fastapi", "starlette", "uvicorn", "pydantic", "httpx"}.isdisjoint(loaded)
