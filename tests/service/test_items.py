from __future__ import annotations

import io
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from PIL import Image

from diptych.collection import Collection, Record
from diptych.collection.storage.place import write_lock
from diptych.service.problems import Problem
from diptych.service.security.limits import ConcurrencyLimit
from diptych.service.settings import Limits
from diptych.service.uploads import UploadStore

Start = Callable[..., Any]
ITEMS = "/v1/collections/scenes/items"


@pytest.fixture
def service(running_service: Start) -> Any:
    return running_service()


@pytest.fixture
def client(service: Any) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=service.url, headers=service.headers, timeout=60) as opened:
        yield opened


@pytest.fixture
def reader(scene_service: Any) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=scene_service.url, timeout=30) as opened:
        yield opened


def picture(mode: str = "RGB", size: tuple[int, int] = (40, 30), kind: str = "PNG", **options: Any) -> bytes:
    content = io.BytesIO()
    Image.linear_gradient("L").resize(size).convert(mode).save(content, kind, **options)
    return content.getvalue()


def problem(answer: httpx.Response) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/problem+json"
    return answer.status_code, answer.json()["type"].removeprefix("/problems/")


def first_item(client: httpx.Client) -> dict[str, Any]:
    item: dict[str, Any] = client.get(ITEMS, params={"limit": 1}).json()["items"][0]
    return item


def test_items_are_listed_in_pages(reader: httpx.Client) -> None:
    seen: list[str] = []
    offset: int | None = 0
    while offset is not None:
        page = reader.get(ITEMS, params={"limit": 25, "offset": offset}).json()
        assert page["total"] == 60
        seen += [item["id"] for item in page["items"]]
        offset = page["next_offset"]
    assert len(set(seen)) == 60
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
        ITEMS,
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
    again = client.post(ITEMS, files={"picture": ("x", content)})
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
    picture_too = client.post(ITEMS, files={"picture": ("x", picture())}, data={"item": body})
    assert problem(picture_too) == (422, "invalid-input")
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
    item = client.post(ITEMS, files={"picture": ("x", picture())}).json()
    other = client.post(ITEMS, files={"picture": ("x", picture(size=(50, 30)))}).json()
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
            assert problem(client.post(ITEMS, files={"picture": ("x", picture())})) == (503, "busy")
        refused = client.post(ITEMS, files={"picture": ("x", picture())}, data={"item": '{"captions": ["a\\u0000"]}'})
        assert problem(refused) == (422, "invalid-input")
        taken = client.post(ITEMS, files={"picture": ("x", picture())}).json()
        again = client.post(ITEMS, files={"picture": ("x", picture())}, data={"item": '{"id": "another"}'})
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
        assert client.search([{"item": ".."}], target="texts", limit=1).answers


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", (415, "not-a-picture")),
        (b"<!DOCTYPE svg [<!ENTITY a 'b'>]><svg xmlns='http://www.w3.org/2000/svg'/>", (415, "not-a-picture")),
        (b"%PDF-1.7", (415, "not-a-picture")),
        (picture()[:100], (422, "unreadable-picture")),
        (picture(size=(400, 300)), (413, "picture-too-large")),
        (bytes(70_000), (413, "picture-too-large")),
    ],
    ids=["nothing", "svg", "pdf", "cut-off", "many-pixels", "many-bytes"],
)
def test_what_is_no_picture_is_refused(shared_service: Start, content: bytes, expected: tuple[int, str]) -> None:
    service = shared_service(limits={"upload_pixels": 100_000, "upload_bytes": 60_000})
    with httpx.Client(base_url=service.url, headers=service.headers) as client:
        for address in (ITEMS, "/v1/uploads", "/v1/collections/scenes/search/picture"):
            assert problem(client.post(address, files={"picture": ("p.png", content)})) == expected
        assert client.get("/v1/collections/scenes").json()["items"] == 60
        assert not (service.folders["scenes"] / "uploads").exists()


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ({"data": {"item": "{"}, "files": {"picture": ("p", picture())}}, (422, "invalid-request")),
        ({"data": {"item": '{"captions": "a"}'}, "files": {"picture": ("p", picture())}}, (422, "invalid-request")),
        ({"data": {"item": '{"id": "../x"}'}, "files": {"picture": ("p", picture())}}, (422, "invalid-request")),
        ({"data": {"other": "x"}, "files": {"picture": ("p", picture())}}, (422, "invalid-request")),
        ({"files": {"item": ("i", b'{"captions": ["from a file"], "nonsense": 1}')}}, (422, "invalid-request")),
        ({"json": {"labels": ["no caption"]}}, (422, "invalid-input")),
        ({"json": {"captions": ["x"], "metadata": {"a": "\x00"}, "more": 1}}, (422, "invalid-request")),
        ({"content": b"<item/>", "headers": {"Content-Type": "application/xml"}}, (415, "unsupported-media-type")),
        ({"content": b"--x", "headers": {"Content-Type": "multipart/form-data"}}, (400, "malformed-form")),
    ],
)
def test_broken_forms_are_refused(shared_service: Start, form: dict[str, Any], expected: tuple[int, str]) -> None:
    service = shared_service()
    with httpx.Client(base_url=service.url, headers=service.headers) as client:
        assert problem(client.post(ITEMS, **form)) == expected
        assert client.get("/v1/collections/scenes").json()["items"] == 60


def test_every_kind_of_picture_is_taken(client: httpx.Client) -> None:
    turned = Image.Exif()
    turned[0x0112] = 6
    kinds = {
        "cmyk": picture("CMYK", kind="JPEG"),
        "grey": picture("L", kind="WEBP"),
        "turned": picture(kind="JPEG", exif=turned),
        "animated": picture("P", kind="GIF", save_all=True, append_images=[Image.new("P", (40, 30))]),
    }
    for name, content in kinds.items():
        answer = client.post("/v1/uploads", files={"picture": ("x", content)})
        assert answer.status_code == 201, (name, answer.text)
        size = (30, 40) if name == "turned" else (40, 30)
        assert (answer.json()["width"], answer.json()["height"]) == size
        preview = client.get(answer.headers["location"])
        assert preview.headers["content-type"] == "image/jpeg"
        with Image.open(io.BytesIO(preview.content)) as shown:
            assert (shown.size, shown.mode, shown.format) == (size, "RGB", "JPEG")


def test_uploads_are_forgotten(running_service: Start) -> None:
    service = running_service(limits={"kept_uploads": 3, "upload_seconds": 1.0})
    with httpx.Client(base_url=service.url, headers=service.headers) as client:
        names = [client.post("/v1/uploads", files={"picture": ("x", picture())}).json()["id"] for _ in range(4)]
        assert len({len(name) for name in names}) == 1
        assert problem(client.get(f"/v1/uploads/{names[0]}")) == (404, "no-such-upload")
        assert client.get(f"/v1/uploads/{names[3]}").status_code == 200
        threading.Event().wait(1.2)
        assert problem(client.get(f"/v1/uploads/{names[3]}")) == (404, "no-such-upload")
        for name in ("..", "x", "0" * 32, "%2e%2e%2fetc"):
            assert client.get(f"/v1/uploads/{name}").status_code == 404


def test_searches_do_not_wait_behind_pictures(running_service: Start) -> None:
    service = running_service()
    service.context.decoding_limit = ConcurrencyLimit(1, max_waiting=0)
    with httpx.Client(base_url=service.url, headers=service.headers, timeout=30) as client:
        busy = client.post("/v1/uploads", files={"picture": ("x", picture())})
        assert problem(busy) == (503, "busy")
        assert int(busy.headers["retry-after"]) > 0
        assert problem(client.post(ITEMS, files={"picture": ("x", picture())})) == (503, "busy")
        assert client.get("/v1/collections/scenes/search", params={"q": "a boat"}).status_code == 200


ENDLESS = (
    b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><filter id="f"><feTurbulence numOctaves="99999999"/>'
    b'</filter><rect width="9" height="9" filter="url(#f)"/></svg>'
)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="processes are found as Linux tells them")
def test_a_crowd_that_sends_pictures_leaves_a_core_to_searches(running_service: Start) -> None:
    service = running_service()
    at_once = max(1, len(os.sched_getaffinity(0)) - 1)

    def send(_: int) -> int:
        sent = {"picture": ("x", ENDLESS)}
        return httpx.post(f"{service.url}/v1/uploads", headers=service.headers, files=sent, timeout=60).status_code

    with ThreadPoolExecutor(at_once + 3) as crowd:
        answers = [crowd.submit(send, number) for number in range(at_once + 3)]
        deadline = time.monotonic() + 30
        while service.context.decoding_limit.waiting < 3 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert service.context.decoding_limit.waiting == 3
        found = httpx.get(f"{service.url}/v1/collections/scenes/search", params={"q": "a boat"}, timeout=60)
        assert found.status_code == 200
        assert service.context.decoding_limit.waiting == 3
        # Nobody has to see the end of the drawings.
        while not all(answer.done() for answer in answers):
            for process in _decoding_processes():
                os.kill(process, signal.SIGKILL)
            time.sleep(0.05)
    assert {answer.result() for answer in answers} <= {415, 422}


def _decoding_processes() -> list[int]:
    children = [pid for file in Path("/proc/self/task").glob("*/children") for pid in file.read_text().split()]
    return [int(pid) for pid in children if b"decoding_worker" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def test_what_takes_long_to_read_is_kept_as_it_is_seen(tmp_path: Path) -> None:
    uploads = UploadStore(tmp_path, Limits())
    plain, odd = picture(), picture(mode="P", size=(3000, 1200), kind="GIF")
    assert uploads.add(io.BytesIO(plain)).file.read_bytes() == plain
    kept = uploads.add(io.BytesIO(odd))
    assert (kept.width, kept.height) == (3000, 1200)
    with Image.open(kept.file) as shown:
        assert (shown.format, shown.size) == ("PNG", (1500, 600))


def test_limits_come_before_decoding(tmp_path: Path) -> None:
    # Cut right after the header: whoever decodes it to look for its rotation cannot know its size.
    content = picture(size=(3000, 2000))[:60]
    with pytest.raises(Problem) as raised:
        UploadStore(tmp_path, Limits(upload_pixels=5_999_999)).add(io.BytesIO(content))
    assert (raised.value.status, raised.value.kind) == (413, "picture-too-large")


def test_uploads_take_only_so_much_room(tmp_path: Path) -> None:
    content = picture(size=(200, 150), compress_level=0)
    uploads = UploadStore(tmp_path, Limits(kept_upload_bytes=4 * len(content)))
    kept = [uploads.add(io.BytesIO(content)) for _ in range(6)]
    sizes = [file.stat().st_size for file in tmp_path.rglob("*") if file.is_file()]
    assert 3 * len(content) < sum(sizes) <= 4 * len(content) + len(content) // 10
    assert uploads.read_preview(kept[-1].id)[1].startswith(b"\xff\xd8")
    for gone in (kept[0].id, "0" * 32, "../" + kept[-1].id):
        with pytest.raises(Problem, match="no uploaded picture"):
            uploads.read_preview(gone)


def test_thumbnails_are_kept_by_browsers(reader: httpx.Client) -> None:
    item = first_item(reader)
    address = f"{ITEMS}/{item['id']}/thumbnail"
    answer = reader.get(address, params={"v": item["content_hash"]})
    assert "immutable" in answer.headers["cache-control"]
    assert answer.headers["etag"] == f'"{item["content_hash"]}"'
    for other in ({}, {"v": "old"}):
        assert "no-cache" in reader.get(address, params=other).headers["cache-control"]
    unchanged = reader.get(address, headers={"If-None-Match": f'"other", {answer.headers["etag"]}'})
    assert (unchanged.status_code, unchanged.content) == (304, b"")


def test_originals_come_whole_and_in_parts(reader: httpx.Client, scene_service: Any) -> None:
    item = first_item(reader)
    address = f"{ITEMS}/{item['id']}/original"
    content = (scene_service.folders["scenes"] / item["path"]).read_bytes()
    size = len(content)
    whole = reader.get(address)
    assert whole.content == content
    assert whole.headers["content-type"] == "image/png"
    assert whole.headers["x-content-type-options"] == "nosniff"
    assert whole.headers["accept-ranges"] == "bytes"
    etag = whole.headers["etag"]
    for asked, part, span in (
        ("bytes=0-9", content[:10], f"0-9/{size}"),
        ("bytes=100-", content[100:], f"100-{size - 1}/{size}"),
        ("bytes=-7", content[-7:], f"{size - 7}-{size - 1}/{size}"),
        (f"bytes=5-{10 * size}", content[5:], f"5-{size - 1}/{size}"),
        (f"bytes=-{10 * size}", content, f"0-{size - 1}/{size}"),
    ):
        answer = reader.get(address, headers={"Range": asked, "If-Range": etag})
        assert (answer.status_code, answer.headers["content-range"]) == (206, f"bytes {span}")
        assert answer.content == part
        assert int(answer.headers["content-length"]) == len(part)
    for outside in (f"bytes={size}-", "bytes=9-3", "bytes=-0"):
        refused = reader.get(address, headers={"Range": outside})
        assert problem(refused) == (416, "no-such-range")
        assert refused.headers["content-range"] == f"bytes */{size}"
    # Several ranges, no ranges at all, and ranges of another version get the whole file.
    for asked, version in (("bytes=0-1,5-6", etag), ("lines=1-2", etag), ("bytes=x", etag), ("bytes=0-1", '"old"')):
        answer = reader.get(address, headers={"Range": asked, "If-Range": version})
        assert (answer.status_code, answer.content) == (200, content)
    # Ranges are for GET alone.
    for headers in ({}, {"Range": "bytes=0-1"}):
        head = reader.head(address, headers=headers)
        assert (head.status_code, head.headers["content-length"], head.content) == (200, str(size), b"")
    assert reader.get(address, headers={"If-None-Match": etag}).status_code == 304


def test_a_file_that_has_changed_is_another_version(client: httpx.Client, service: Any) -> None:
    item = first_item(client)
    address = f"{ITEMS}/{item['id']}/original"
    etag = client.get(address).headers["etag"]
    file = service.folders["scenes"] / item["path"]
    file.write_bytes(file.read_bytes() + b"more")
    changed = client.get(address, headers={"If-None-Match": etag, "Range": "bytes=0-1", "If-Range": etag})
    assert (changed.status_code, changed.content) == (200, file.read_bytes())
    assert changed.headers["etag"] != etag
    again = client.get(address, headers={"If-None-Match": changed.headers["etag"]})
    assert again.status_code == 304


def test_no_file_outside_the_root_is_handed_out(client: httpx.Client, service: Any, tmp_path: Path) -> None:
    secret = tmp_path / "secret.png"
    secret.write_bytes(picture())
    root = service.folders["scenes"]
    items = client.get(ITEMS, params={"limit": 4}).json()["items"]
    paths = [root / item["path"] for item in items]
    # A file that was a picture becomes a link to one outside, a folder, a pipe, and the service's own log.
    for path in paths:
        path.unlink()
    paths[0].symlink_to(secret)
    paths[1].mkdir()
    os.mkfifo(paths[2])
    paths[3].symlink_to(root / ".diptych" / "collection.json")
    kinds = [problem(client.get(f"{ITEMS}/{item['id']}/original")) for item in items]
    outside, gone = (403, "outside-the-collection"), (404, "original-gone")
    assert kinds == [outside, gone, gone, outside]
    # Neither is a small picture of what a link leads to; that of a picture that is gone stays.
    shown = [client.get(f"{ITEMS}/{item['id']}/thumbnail").status_code for item in items]
    assert shown == [403, 200, 200, 403]
    paths[0].unlink()
    assert problem(client.get(f"{ITEMS}/{items[0]['id']}/original")) == gone
    # A link inside the root is the collection's own business.
    other = root / client.get(ITEMS, params={"limit": 1, "offset": 10}).json()["items"][0]["path"]
    paths[0].symlink_to(other)
    assert client.get(f"{ITEMS}/{items[0]['id']}/original").content == other.read_bytes()


def test_a_folder_that_becomes_a_link_leads_nowhere(running_service: Start, own_scene_collection: Path) -> None:
    inside = own_scene_collection / "more"
    inside.mkdir()
    (inside / "one.png").write_bytes(picture())
    with Collection.open(own_scene_collection / ".diptych") as collection:
        collection.add(inside)
        name = collection["more/one.png"].id
    outside = own_scene_collection.parent / "outside"
    inside.rename(outside)
    inside.symlink_to(outside)
    service = running_service()
    assert problem(httpx.get(f"{service.url}{ITEMS}/{name}/original")) == (403, "outside-the-collection")


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


def test_writes_need_the_token(service: Any) -> None:
    with httpx.Client(base_url=service.url) as stranger:
        item = first_item(stranger)["id"]
        for answer in (
            stranger.post(ITEMS, json={"captions": ["a"]}),
            stranger.patch(f"{ITEMS}/{item}", json={}),
            stranger.delete(f"{ITEMS}/{item}"),
            stranger.post("/v1/uploads", files={"picture": ("x", picture())}),
        ):
            assert problem(answer) == (401, "token-needed")


def test_writes_that_wait_together_are_one_commit_and_fail_alone(running_service: Any) -> None:
    service = running_service()
    folder = service.folders["scenes"] / ".diptych"
    with Collection.open(folder) as collection, httpx.Client(base_url=service.url, headers=service.headers) as client:
        pictures = [item for item in collection if item.path is not None]
        edited, removed = pictures[:10], pictures[10:15]
        texts = [client.post(ITEMS, json={"captions": [f"note {number}"]}).json()["id"] for number in range(2)]
        before = collection._state.store.version()
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
                first = ask("POST", ITEMS, {"captions": ["it waits for the lock, and all others behind it"]})
                while not list(folder.glob("write.lock.*")):
                    time.sleep(0.01)
                answers = [ask(*each) for each in asked]
                while service.context.hosted["scenes"].writes.n_waiting < len(asked):
                    time.sleep(0.01)
            assert first.result().status_code == 201
            statuses = [answer.result().status_code for answer in answers]
        assert statuses[:23] == [201] * 23
        assert sorted(statuses[23:25]) == [201, 409]
        assert statuses[25:] == [*[200] * 10, 422, 200, *[204] * 5]
        assert len(collection.items("label:edited")) == 10
        assert collection[texts[1]].captions == ("other words",)
        assert not any(item.id in collection for item in removed)
        assert len({answer.result().json()["id"] for answer in answers[20:23]}) == 1
        assert collection._state.store.version() - before < 20
