from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import httpx
import pytest

from diptych.collection import Collection
from tests.service.item_requests import ITEMS, Start, first_item, picture, problem


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


@pytest.mark.parametrize("part", ["original", "rendering"])
def test_a_file_that_has_changed_is_not_sent(client: httpx.Client, service: Any, part: str) -> None:
    item = first_item(client)
    address = f"{ITEMS}/{item['id']}/{part}"
    etag = client.get(address).headers["etag"]
    file = service.folders["scenes"] / item["path"]
    content = file.read_bytes()
    file.write_bytes(content + b"more")
    changed = client.get(address, headers={"If-None-Match": etag, "Range": "bytes=0-1", "If-Range": etag})
    assert problem(changed) == (404, "original-changed")
    assert "index its folder again" in changed.json()["detail"]
    file.write_bytes(content)
    assert client.get(address, headers={"If-None-Match": etag}).status_code == 304


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
    paths[3].symlink_to(root / ".diptych" / "collection.sqlite")
    kinds = [problem(client.get(f"{ITEMS}/{item['id']}/original")) for item in items]
    outside, gone = (404, "outside-the-collection"), (404, "original-gone")
    assert kinds == [outside, gone, gone, outside]
    # Small pictures lie in the collection itself.
    assert {client.get(f"{ITEMS}/{item['id']}/thumbnail").status_code for item in items} == {200}
    paths[0].unlink()
    assert problem(client.get(f"{ITEMS}/{items[0]['id']}/original")) == gone
    # A link inside the root may lead to the same content, and to no other.
    other = client.get(ITEMS, params={"limit": 11}).json()["items"][10]
    paths[0].symlink_to(root / other["path"])
    assert problem(client.get(f"{ITEMS}/{items[0]['id']}/original")) == (404, "original-changed")
    (root / other["path"]).rename(root / "moved.png")
    (root / other["path"]).symlink_to(root / "moved.png")
    assert client.get(f"{ITEMS}/{other['id']}/original").content == (root / "moved.png").read_bytes()


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
    assert problem(httpx.get(f"{service.url}{ITEMS}/{name}/original")) == (404, "outside-the-collection")
