from __future__ import annotations

import io
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from PIL import Image

from diptych.service.problems import Problem
from diptych.service.security.limits import ConcurrencyLimit
from diptych.service.settings import Limits
from diptych.service.uploads import UploadStore
from tests.service.item_requests import ITEMS, PICTURES, Start, picture, problem


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
        for address in (PICTURES, "/v1/uploads", "/v1/collections/scenes/search/picture"):
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
        ({"files": {"item": ("i", b'{"captions": ["from a file"]}')}}, (422, "invalid-request")),
        ({"content": b"--x", "headers": {"Content-Type": "multipart/form-data"}}, (400, "malformed-request")),
    ],
)
def test_broken_forms_are_refused(shared_service: Start, form: dict[str, Any], expected: tuple[int, str]) -> None:
    service = shared_service()
    with httpx.Client(base_url=service.url, headers=service.headers) as client:
        assert problem(client.post(PICTURES, **form)) == expected
        assert client.get("/v1/collections/scenes").json()["items"] == 60


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ({"json": {"labels": ["no caption"]}}, (422, "invalid-input")),
        ({"json": {"captions": ["x"], "metadata": {"a": "\x00"}, "more": 1}}, (422, "invalid-request")),
        ({"content": b"<item/>", "headers": {"Content-Type": "application/xml"}}, (422, "invalid-request")),
    ],
)
def test_broken_texts_are_refused(shared_service: Start, text: dict[str, Any], expected: tuple[int, str]) -> None:
    service = shared_service()
    with httpx.Client(base_url=service.url, headers=service.headers) as client:
        assert problem(client.post(ITEMS, **text)) == expected


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
        assert problem(client.post(PICTURES, files={"picture": ("x", picture())})) == (503, "busy")
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
            _kill_decoding_processes()
            time.sleep(0.05)
    assert {answer.result() for answer in answers} <= {415, 422}


def _kill_decoding_processes() -> None:
    for thread in Path("/proc/self/task").iterdir():
        # Threads and processes end while they are looked at.
        with suppress(OSError):
            for child in (thread / "children").read_text().split():
                with suppress(OSError):
                    if b"decoding_worker" in Path(f"/proc/{child}/cmdline").read_bytes():
                        os.kill(int(child), signal.SIGKILL)


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
