"""The service against its own description: every operation with valid, borderline and wrong input."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis.configuration import storage_directory

from diptych.collection.store.sqlite import write_lock

Start = Callable[..., Any]

# Queries and filters are languages, and pictures are files, so much of what the schema allows is still refused.
EXCLUDED = "positive_data_acceptance"


@pytest.fixture
def without_jobs(own_scene_collection: Path) -> Iterator[None]:
    """Be the one who runs the jobs of the scenes, and run none: the tester starts dozens."""
    state = own_scene_collection / ".diptych" / "service"
    state.mkdir(exist_ok=True)
    with write_lock(state / "jobs.lock"):
        yield


@pytest.mark.usefixtures("without_jobs")
def test_no_answer_contradicts_the_document(running_service: Start, tmp_path: Path) -> None:
    service = running_service()
    document = httpx.get(f"{service.url}/v1/openapi.json", timeout=60).json()
    # As many captions as are allowed, each as long as is allowed, are fifty megabytes, refused unread as too large.
    captions, _ = document["components"]["schemas"]["NewItem"]["properties"]["captions"]["anyOf"]
    assert captions.pop("maxItems") * captions["items"]["maxLength"] > service.settings.limits.body_bytes
    # Of one kind of character, up to so many, the tester makes an expression and gives it up as too large, in seconds.
    # It leaves alternatives alone, and these two say the same.
    for name in ("NewItem", "ItemChange"):
        caption = document["components"]["schemas"][name]["properties"]["captions"]["anyOf"][0]["items"]
        caption["pattern"] = f"{caption['pattern']}|{caption['pattern']}"
    (tmp_path / "document.json").write_text(json.dumps(document))
    items = httpx.get(f"{service.url}/v1/collections/scenes/items?limit=2").json()["items"]
    kept, removed = (item["id"] for item in items)
    config = tmp_path / "schemathesis.toml"
    config.write_text(
        # A body that is too large is refused (413) before anybody looks what is wrong in it.
        '[checks.negative_data_rejection]\nexpected-statuses = ["4xx", "5xx"]\n'
        # The router refuses methods that an address does not have; there is a test for that below.
        "[phases.coverage]\nunexpected-methods = []\n"
        f'[parameters]\n"path.collection" = "scenes"\n"path.item_id" = "{kept}"\n'
        f'[[operations]]\ninclude-operation-id = "removeItem"\nparameters = {{ "path.item_id" = "{removed}" }}\n'
    )
    run = subprocess.run(
        [
            *(sys.executable, "-m", "schemathesis.cli", "--config-file", str(config)),
            *("run", "document.json", "--url", service.url, "--header", f"Authorization: Bearer {service.token}"),
            *("--phases", "examples,coverage,fuzzing", "--max-examples", "1", "--seed", "1"),
            *("--exclude-checks", EXCLUDED, "--request-timeout", "60", "--continue-on-failure", "--no-color"),
            *("--generation-database", "none", "--report-dir", str(tmp_path / "reports")),
            # A stream lasts as long as its job waits; it has tests of its own.
            *("--exclude-operation-id", "followJob"),
        ],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={
            # The client reads every variable with each request, in search of a proxy.
            **{name: os.environ[name] for name in ("PATH", "PYTHONPATH", "HOME") if name in os.environ},
            # In a folder of its own it would look at every character there is, to learn which can be encoded.
            "HYPOTHESIS_STORAGE_DIRECTORY": str(storage_directory().path),
        },
    )
    # Bodies of megabytes are shown as well, and would hide what is wrong with them.
    assert run.returncode == 0, "\n".join(line[:300] for line in run.stdout.splitlines())[-12_000:]
    selected, tested = re.search(r"Selected: (\d+)/", run.stdout), re.search(r"Tested: (\d+)", run.stdout)
    assert selected is not None
    assert tested is not None
    assert int(tested[1]) == int(selected[1]) >= 40
    assert httpx.get(f"{service.url}/health").json() == {"status": "ok"}


@pytest.fixture(scope="module")
def document(shared_service: Start) -> dict[str, Any]:
    found: dict[str, Any] = httpx.get(f"{shared_service().url}/v1/openapi.json", timeout=60).json()
    return found


def operations(document: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [(verb, path, operation) for path, each in document["paths"].items() for verb, operation in each.items()]


def test_a_page_shows_the_whole_document_without_anything_from_elsewhere(
    shared_service: Start, document: dict[str, Any]
) -> None:
    answer = httpx.get(f"{shared_service().url}/docs", timeout=60)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "script-src 'self'" in answer.headers["content-security-policy"]
    page = answer.text
    assert "<script" not in page
    assert "style=" not in page
    assert set(re.findall(r'(?:href|src)="([^"#]+)', page)) == {
        *("/", "/v1/openapi.json", "/static/icon.svg", "/static/css/base.css", "/static/css/api.css")
    }
    for _, path, operation in operations(document):
        assert f'<details id="{operation["operationId"]}">' in page
        assert escape(path) in page
    anchors = set(re.findall(r'id="([^"]+)"', page))
    assert set(re.findall(r'href="#([^"]+)"', page)) <= anchors
    assert {f"schema-{name}" for name in document["components"]["schemas"]} <= anchors


def test_the_document_is_complete(document: dict[str, Any]) -> None:
    assert document["openapi"].startswith("3.1")
    names = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(names) == len(set(names)) >= 40
    known_tags = {tag["name"] for tag in document["tags"]}
    for verb, path, operation in operations(document):
        where = f"{verb} {path}"
        assert operation["summary"], where
        assert operation["description"], where
        assert set(operation["tags"]) <= known_tags, where
        assert any(status.startswith("2") for status in operation["responses"]), where
        for parameter in operation.get("parameters", []):
            assert parameter.get("description"), f"{where}: {parameter['name']} is not described"
        for status, answer in operation["responses"].items():
            if status.startswith(("4", "5")) and (path, status) != ("/ready", "503"):
                assert list(answer["content"]) == ["application/problem+json"], f"{where} {status}"


def test_writing_is_marked_as_guarded(document: dict[str, Any]) -> None:
    guarded = [{"token": []}, {"page": [], "csrf": []}]
    reads = {"search", "searchWithPicture", "explainAnswer", "signIn", "signOut"}
    for verb, path, operation in operations(document):
        if verb not in ("get", "head") and operation["operationId"] not in reads:
            assert operation["security"] == guarded, f"{verb} {path}"
    assert set(document["components"]["securitySchemes"]) == {"token", "page", "csrf"}


def test_every_member_of_every_document_is_described(document: dict[str, Any]) -> None:
    for name, schema in document["components"]["schemas"].items():
        assert schema.get("description"), name
        for member, about in schema.get("properties", {}).items():
            assert about.get("description"), f"{name}.{member}"


def test_what_stands_under_a_member_describes_it(document: dict[str, Any]) -> None:
    def said(name: str, member: str) -> str | None:
        text: str | None = document["components"]["schemas"][name]["properties"][member].get("description")
        return text

    # Of its own, of a document that it is one of, over several lines, and of a dataclass of the library.
    assert said("SearchResponse", "considered") == "How many pictures or texts the filter left."
    assert said("SearchRequest", "limit") == "How many answers."
    assert "\n" in str(said("SearchRequest", "mode"))
    assert said("Facet", "field") == "The name that filters use: label, or that of a metadatum."
    assert said("ItemDocument", "width") == "Of the picture, in pixels; 0 without one."
    assert said("AnswerDocument", "rank") == "The place of the answer, from 1."


def test_the_methods_of_an_address_are_listed(shared_service: Start) -> None:
    url = shared_service().url
    refused = httpx.put(f"{url}/v1/collections/scenes/items/any/id")
    assert refused.status_code == 405
    assert refused.headers["allow"] == "DELETE, GET, PATCH"
    refused = httpx.patch(f"{url}/v1/collections/scenes/items/any/original")
    assert refused.headers["allow"] == "GET, HEAD"
