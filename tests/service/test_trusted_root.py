"""A collection from elsewhere names its root itself: no file is sent that its user has not named the folder of."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pytest

from diptych.collection import Collection
from diptych.collection.state import ROOT
from diptych.collection.store.opening import open_store
from diptych.collection.store.store import put_setting
from diptych.data.folders import state_folder
from tests.service.item_requests import ITEMS, Start, first_item, picture, problem

PASSWORDS = Path("/etc/passwd")


@pytest.fixture
def hostile(own_scene_collection: Path, tmp_path: Path) -> Path:
    """A collection whose root is the file system, with items that are the list of users and the service's token."""
    token = state_folder() / "token"
    token.parent.mkdir(parents=True, exist_ok=True)
    token.write_text("a-token-that-nobody-else-should-ever-read")
    made = own_scene_collection / ".diptych"
    with Collection.open(made) as collection:
        point = np.ones((1, collection.points("image")[1].shape[1]), np.float32)
        secrets = [str(PASSWORDS), str(token)]
        hashes = [hashlib.sha256(Path(path).read_bytes()).hexdigest() for path in secrets]
        table = pa.table(
            {
                "id": ["passwords", "token"],
                "path": secrets,
                "content_hash": hashes,
                "image_point": pa.array(np.repeat(point, 2, axis=0).tolist(), pa.list_(pa.float32(), point.shape[1])),
            }
        )
        assert collection.load(table) == 2
    foreign = Path(shutil.copytree(made, tmp_path / "foreign"))
    store = open_store(foreign)
    store.write(lambda db: put_setting(db, ROOT, "/"))
    store.close()
    return foreign


def test_a_hostile_collection_delivers_no_file_of_this_machine(running_service: Start, hostile: Path) -> None:
    service: Any = running_service(collections={"scenes": hostile})
    for name in ("passwords", "token", first_item(httpx.Client(base_url=service.url))["id"]):
        for part in ("original", "rendering"):
            answer = httpx.get(f"{service.url}{ITEMS}/{name}/{part}")
            assert problem(answer) == (404, "untrusted-root")
            assert "`diptych serve --root FOLDER`" in answer.json()["detail"]
    exported = httpx.get(f"{service.url}/v1/collections/scenes/export", params={"filter": "id:token"}).content
    assert b"a-token-that" not in exported
    found = httpx.get(f"{service.url}/v1/collections/scenes/search", params={"q": "a circle"})
    assert found.json()["answers"]
    sent = httpx.post(
        f"{service.url}{ITEMS}/picture",
        headers=service.headers,
        files={"picture": ("x.png", picture()), "item": (None, "{}")},
    )
    assert sent.status_code >= 400


def test_a_named_root_delivers_its_pictures_alone(
    running_service: Start, hostile: Path, own_scene_collection: Path
) -> None:
    service: Any = running_service(collections={"scenes": hostile}, roots={"scenes": own_scene_collection})
    for name in ("passwords", "token"):
        assert problem(httpx.get(f"{service.url}{ITEMS}/{name}/original")) == (404, "outside-the-collection")
    item = first_item(httpx.Client(base_url=service.url))
    sent = httpx.get(f"{service.url}{ITEMS}/{item['id']}/original")
    assert sent.content == (own_scene_collection / item["path"]).read_bytes()


def test_naming_the_folder_that_holds_a_collection_names_its_root(service_process: Any) -> None:
    # The state of this process is another user's to the program.
    service = service_process("--workers", "2")
    item = first_item(httpx.Client(base_url=service.url))
    assert httpx.get(f"{service.url}{ITEMS}/{item['id']}/original").status_code == 200
