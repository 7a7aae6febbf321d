"""Files that browsers cannot show, over HTTP: rendered to look at, whole to save, and never anything that could run."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from PIL import Image

from diptych.collection import Collection
from diptych.encoders import read_picture
from diptych.service.jobs.work import JOB_FUNCTIONS, Reporter
from tests.doubles.picture_samples import picture, write_picture, write_video

ITEMS = "/v1/collections/scenes/items"
SCRIPT = b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><script>alert(1)</script></svg>'


@pytest.fixture
def client(running_service: Callable[..., Any]) -> Iterator[Any]:
    service = running_service()
    with httpx.Client(base_url=service.url, headers=service.headers, timeout=60) as opened:
        opened.folder = service.folders["scenes"]  # type: ignore[attr-defined]
        yield opened


def sent(client: httpx.Client, path: Path) -> dict[str, Any]:
    answer = client.post(f"{ITEMS}/picture", files={"picture": ("name", path.read_bytes())})
    assert answer.status_code == 201, answer.text
    document: dict[str, Any] = answer.json()
    return document


def unlike(content: bytes, image: Image.Image) -> float:
    return float(np.abs(read_picture(content, size=image.size).astype(int) - np.asarray(image)).mean())


@pytest.mark.parametrize("kind", ["heic", "tif", "psd", "svg"])
def test_what_browsers_cannot_show_is_rendered(client: httpx.Client, tmp_path: Path, kind: str) -> None:
    write_picture(tmp_path / f"a.{kind}", picture(2))
    item = sent(client, tmp_path / f"a.{kind}")
    assert (item["name"] or "").endswith(f".{kind}")
    assert item["seconds"] is None
    shown = client.get(f"{ITEMS}/{item['id']}/rendering")
    assert shown.headers["content-type"] == ("image/png" if kind == "svg" else "image/jpeg")
    assert unlike(shown.content, picture(2)) < 4
    tag = shown.headers["etag"]
    assert client.get(f"{ITEMS}/{item['id']}/rendering", headers={"If-None-Match": tag}).status_code == 304
    whole = client.get(f"{ITEMS}/{item['id']}/original")
    assert whole.content == (tmp_path / f"a.{kind}").read_bytes()
    assert whole.headers["content-disposition"].startswith("attachment; filename*=")
    assert whole.headers["content-type"] == "application/octet-stream"
    assert whole.headers["x-content-type-options"] == "nosniff"


def test_what_browsers_show_is_sent_as_it_is(client: httpx.Client, tmp_path: Path) -> None:
    # The content counts, whatever the file is called.
    picture(1).save(tmp_path / "a.png")
    (client.folder / "photo.tif").write_bytes((tmp_path / "a.png").read_bytes())  # type: ignore[attr-defined]
    index(client)
    found = client.get(ITEMS, params={"filter": "name:photo.tif"}).json()["items"][0]
    shown = client.get(f"{ITEMS}/{found['id']}/rendering", headers={"Range": "bytes=0-7"})
    assert (shown.status_code, shown.content) == (206, b"\x89PNG\r\n\x1a\n")
    assert shown.headers["content-type"] == "image/png"


def test_a_drawing_with_a_script_is_only_ever_pixels(client: httpx.Client, tmp_path: Path) -> None:
    (tmp_path / "a.svg").write_bytes(SCRIPT)
    item = sent(client, tmp_path / "a.svg")
    shown = client.get(f"{ITEMS}/{item['id']}/rendering")
    assert Image.open(io.BytesIO(shown.content)).format == "PNG"
    assert client.get(f"{ITEMS}/{item['id']}/original").headers["content-type"] == "application/octet-stream"


def test_a_video_is_served_from_its_moments(client: httpx.Client, tmp_path: Path) -> None:
    write_video(tmp_path / "a.webm", [picture(1), picture(2)], seconds=3)
    first = sent(client, tmp_path / "a.webm")
    assert first["seconds"] == 0
    moments = client.get(ITEMS, params={"filter": "width=128", "order": "asc"}).json()["items"]
    assert [int(moment["seconds"]) for moment in moments] == [0, 3]
    later = moments[1]
    assert later["name"] == first["name"]
    assert unlike(client.get(f"{ITEMS}/{later['id']}/rendering").content, picture(2)) < 5
    assert unlike(client.get(f"{ITEMS}/{later['id']}/thumbnail").content, picture(2)) < 8
    video = client.get(f"{ITEMS}/{later['id']}/original", headers={"Range": "bytes=0-3"})
    assert (video.status_code, video.content) == (206, b"\x1aE\xdf\xa3")
    assert video.headers["content-type"] == "video/webm"
    assert video.headers["content-disposition"].startswith("inline")
    query = io.BytesIO()
    picture(2).save(query, "PNG")
    upload = client.post("/v1/uploads", files={"picture": ("q", query.getvalue())}).json()["id"]
    asked = {"terms": [{"upload": upload}], "limit": 1}
    answer = client.post("/v1/collections/scenes/search", json=asked).json()["answers"][0]
    assert (answer["id"], int(answer["seconds"])) == (later["id"], 3)


def index(client: Any) -> dict[str, Any]:
    """Do what the process of a job does, without the seconds that a process takes to start."""
    with Collection.open(client.folder / ".diptych") as collection:
        return JOB_FUNCTIONS["index"](collection, Reporter())


def test_a_job_names_the_kinds_that_it_could_not_read(client: Any) -> None:
    for name in ("a.jxl", "b.jxl", "c.xcf", "notes.txt"):
        (client.folder / name).write_bytes(b"\xff\x0a")
    (client.folder / "damaged.heic").write_bytes(b"\0\0\0\x18ftypheic\0\0\0\0mif1heic")
    result = index(client)
    assert result["unread_kinds"] == {"JXL": 2, "XCF": 1}
    assert result["notes"] == ["3 files of kinds that cannot be read: JXL, XCF; convert them to JPEG or PNG"]
    assert result["skipped"] == 4
    assert set(result["reasons"]) == {"a.jxl", "b.jxl", "c.xcf", "damaged.heic"}
