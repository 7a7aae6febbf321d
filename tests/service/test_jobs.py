from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import httpx
import pytest

from diptych.collection import Collection
from diptych.errors import DiptychError
from diptych.service.jobs.store import Job, JobKind
from diptych.service.jobs.work import JOB_FUNCTIONS, Reporter

Start = Callable[..., Any]
JOBS = "/v1/collections/scenes/jobs"


def started(client: httpx.Client, kind: str, **parameters: Any) -> dict[str, Any]:
    answer = client.post(JOBS, json={"kind": kind, **parameters})
    assert answer.status_code == 202, answer.text
    job: dict[str, Any] = answer.json()
    assert answer.headers["location"] == f"{JOBS}/{job['id']}"
    assert job["state"] == "waiting"
    return job


def ended(client: httpx.Client, job: dict[str, Any], seconds: float = 60) -> dict[str, Any]:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found: dict[str, Any] = client.get(f"{JOBS}/{job['id']}").json()
        if found["state"] not in ("waiting", "running"):
            return found
        time.sleep(0.05)
    raise AssertionError(f"the job goes on: {found}")


def done_here(client: Any, kind: JobKind, **parameters: Any) -> dict[str, Any]:
    """Do what the process of a job does, without the seconds that a process takes to start; return the result."""
    with Collection.open(client.folder / ".diptych") as collection:
        return JOB_FUNCTIONS[kind](collection, Reporter(), **parameters)


@pytest.fixture
def client(running_service: Start) -> Any:
    service = running_service()
    with httpx.Client(base_url=service.url, headers=service.headers, timeout=30) as opened:
        opened.folder = service.folders["scenes"]  # type: ignore[attr-defined]
        yield opened


def test_index_adds_what_is_new_and_removes_what_is_gone(client: Any) -> None:
    pictures = sorted(client.folder.glob("*.png"))
    shutil.move(pictures[0], client.folder / "moved.png")
    pictures[1].unlink()
    (client.folder / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\nnothing")
    content = pictures[2].read_bytes()
    (client.folder / "new.png").write_bytes(content)
    job = ended(client, started(client, "index"))
    assert job["state"] == "done", job
    result = job["result"]
    assert (result["added"], result["renamed"], result["removed"], result["skipped"]) == (1, 1, 1, 1)
    assert list(result["reasons"]) == ["broken.png"]
    assert job["done"] == job["total"] == 61
    assert client.get("/v1/collections/scenes").json()["items"] == 60
    (client.folder / "new.png").unlink()
    assert done_here(client, "index", remove_missing=False)["removed"] == 0


def test_training_compares_and_the_better_one_takes_over(client: Any) -> None:
    before = client.get("/v1/collections/scenes").json()["retriever"]
    forced = {"method": "cca", "parameters": {"n_components": 4}, "held_out": 0.5, "force": True}
    job = ended(client, started(client, "train", **forced))
    assert job["state"] == "done", job
    assert job["result"]["activated"]
    comparison = job["result"]["comparison"]
    assert comparison["n_held_out"] == 60
    assert comparison["forced"] == (not comparison["passes"])
    assert 0 <= comparison["new"] <= 1
    after = client.get("/v1/collections/scenes").json()["retriever"]
    assert after["name"] == job["result"]["retriever"] == "trained cca"
    assert after["fingerprint"] != before["fingerprint"]
    names = {one["name"]: one for one in client.get("/v1/collections/scenes/retrievers").json()["retrievers"]}
    assert names["trained cca"]["active"]
    assert names[before["name"]]["fingerprint"] == before["fingerprint"]
    assert not done_here(client, "train", method="random", held_out=0.5)["activated"]
    assert client.get("/v1/collections/scenes").json()["retriever"] == after


def test_text_is_read_from_the_pictures_that_are_there(client: Any) -> None:
    pytest.importorskip("rapidocr")
    for picture in sorted(client.folder.glob("*.png"))[2:]:
        picture.unlink()
    result = done_here(client, "read_text")
    assert (result["read"], result["known"], result["skipped"]) == (2, 0, 58)
    collection = client.get("/v1/collections/scenes").json()
    assert collection["texts_read"] == 2
    ids = [item["id"] for item in client.get("/v1/collections/scenes/items", params={"limit": 60}).json()["items"]]
    read = [client.get(f"/v1/collections/scenes/items/{one}").json()["picture_text"] for one in ids]
    assert sum(text is not None for text in read) == 2
    assert done_here(client, "read_text")["known"] == 2


def test_parts_of_the_pictures_are_searched_when_they_were_looked_at(client: Any) -> None:
    for picture in sorted(client.folder.glob("*.png"))[3:]:
        picture.unlink()
    result = done_here(client, "regions")
    assert (result["read"], result["known"], result["skipped"]) == (3, 0, 57)
    assert client.get("/v1/collections/scenes").json()["with_regions"] == 3
    queries = ("a red ball", "a green tree", "a yellow house", "a blue boat", "a white cat")
    asked = [{"q": words, "limit": 60, "min_probability": 0} for words in queries]
    address = "/v1/collections/scenes/search"
    found = [answer for how in asked for answer in client.get(address, params=how).json()["answers"]]
    regions = {answer["id"]: answer["region"] for answer in found if answer["region"] is not None}
    assert 0 < len(regions) <= 3
    assert all(0 <= region["left"] < region["right"] <= 1 and region["place"] for region in regions.values())
    without = client.get(address, params={**asked[0], "regions": False}).json()["answers"]
    assert all(answer["region"] is None for answer in without)
    with pytest.raises(DiptychError, match="nobody"):
        done_here(client, "regions", retriever="nobody")


def test_a_failing_job_says_why(client: Any) -> None:
    with pytest.raises(DiptychError, match="did you mean"):
        done_here(client, "train", method="ccca")
    with pytest.raises(DiptychError, match="names a file of the machine that serves"):
        done_here(client, "train", method="mm-nn", parameters={"checkpoint": "/tmp/elsewhere"})
    for picture in client.folder.glob("*.png"):
        picture.unlink()
    with pytest.raises(DiptychError, match="no picture in the folder"):
        done_here(client, "index")
    # Where the collection lies on this machine is not a reader's business.
    broken = ended(client, started(client, "train"))
    assert broken["state"] == "failed"
    assert broken["error"].startswith("no picture in the folder has a caption")
    assert str(client.folder.parent) not in str(broken)
    assert client.get("/v1/collections/scenes").json()["items"] == 60


@pytest.mark.parametrize(
    "request_body",
    [
        {"kind": "delete"},
        {"kind": "index", "remove": True},
        {"kind": "train", "held_out": 1.5},
        {"kind": "retriever", "name": "/etc"},
        {"kind": "retriever"},
        {},
        [],
    ],
)
def test_a_job_that_nobody_can_do_is_refused(shared_service: Start, request_body: Any) -> None:
    service = shared_service()
    answer = httpx.post(service.url + JOBS, json=request_body, headers=service.headers)
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"


def test_jobs_run_one_after_the_other_and_can_be_cancelled(client: Any) -> None:
    first = started(client, "train", method="cca", parameters={"n_components": 4})
    second = started(client, "index")
    third = started(client, "index")
    cancelled = client.delete(f"{JOBS}/{third['id']}").json()
    assert cancelled["state"] == "cancelled"
    client.delete(f"{JOBS}/{first['id']}")
    assert ended(client, first, 20)["state"] == "cancelled"
    assert ended(client, second)["state"] == "done"
    listed = client.get(JOBS).json()["jobs"]
    assert [job["id"] for job in listed] == [third["id"], second["id"], first["id"]]
    stopped, ran = client.get(f"{JOBS}/{first['id']}").json(), client.get(f"{JOBS}/{second['id']}").json()
    assert ran["started"] >= stopped["finished"]
    # One that is over stays as it is.
    assert client.delete(f"{JOBS}/{second['id']}").json()["state"] == "done"
    assert client.get(f"{JOBS}/unknown").status_code == 404
    assert client.delete(f"{JOBS}/unknown").status_code == 404


def test_a_job_is_followed_until_it_is_over_or_the_service_ends(running_service: Start) -> None:
    service = running_service()
    store = service.context.jobs["scenes"].store
    service.context.jobs["scenes"].stop()
    with httpx.Client(base_url=service.url, headers=service.headers, timeout=30) as client:
        job, other = started(client, "index"), started(client, "index")
        with client.stream("GET", f"{JOBS}/{job['id']}/events") as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            events = (json.loads(line[6:]) for line in answer.iter_lines() if line.startswith("data"))
            assert next(events) == job
            claimed = store.claim()
            assert claimed.id == job["id"]
            assert next(events)["state"] == "running"
            store.advance(claimed, 3, 8, "reading")
            advanced = next(events)
            assert (advanced["done"], advanced["total"], advanced["message"]) == (3, 8, "reading")
            store.finish(claimed, "done", result={"added": 5})
            assert [(event["state"], event["result"]) for event in events] == [("done", {"added": 5})]
        assert client.get(f"{JOBS}/unknown/events").status_code == 404
        with client.stream("GET", f"{JOBS}/{other['id']}/events") as answer:
            lines = (line for line in answer.iter_lines() if line.startswith("data"))
            assert json.loads(next(lines)[6:])["state"] == "waiting"
            service.context.job_streams = 16
            assert client.get(f"{JOBS}/{other['id']}/events").headers["retry-after"] == "2"
            service.stop()
            # The answer ends as it should, and the server does not wait for it.
            assert list(lines) == []


def test_jobs_survive_the_end_of_the_service(running_service: Start) -> None:
    service = running_service()
    with httpx.Client(base_url=service.url, headers=service.headers) as client:
        running = started(client, "train")
        waiting = started(client, "index")
        deadline = time.monotonic() + 60
        while client.get(f"{JOBS}/{running['id']}").json()["state"] != "running":
            assert time.monotonic() < deadline
            time.sleep(0.02)
    service.stop()
    again = running_service()
    with httpx.Client(base_url=again.url, headers=again.headers) as client:
        assert ended(client, running)["state"] == "interrupted"
        assert ended(client, waiting)["state"] == "done"


def test_a_job_ends_with_its_service(own_scene_collection: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "diptych.service.jobs.work"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdin is not None
    job = Job("1", "train", {}, "running", "")
    request = {"collection": str(own_scene_collection / ".diptych"), "root": None, "job": asdict(job)}
    process.stdin.write(json.dumps(request).encode() + b"\n")
    process.stdin.close()
    assert process.wait(20) == -signal.SIGTERM


def test_the_process_of_a_job_needs_no_web_packages() -> None:
    listing = "import sys, diptych.service.jobs.work; print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", listing], capture_output=True, text=True, check=True).stdout.split()
    assert {"fastapi", "starlette", "uvicorn", "pydantic", "httpx"}.isdisjoint(loaded)
