"""Every operation of the service, asked by everyone who should not be let in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

Start = Callable[..., Any]

SESSION = "/v1/session"
# They compute and change nothing, so everyone on this machine may ask.
ASKING = {"search", "searchWithPicture", "explainAnswer"}
# What people did is theirs: it is not shown without token or page.
PRIVATE = {"exportClicks", "getQueryLog", "getLearning", "listRehearsals"}
# What a service that only reads still remembers.
REMEMBERED = {"recordClick", "upload"}


@pytest.fixture(scope="module")
def operations(shared_service: Start) -> list[tuple[str, str, str]]:
    """Every operation as its method, its address and its name."""
    document = httpx.get(f"{shared_service().url}/v1/openapi.json", timeout=60).json()
    names = {"{collection}": "scenes", "{name}": "scenes", "{title}": "x"}
    names |= {"{item_id}": "x", "{job_id}": "x", "{upload_id}": "x"}
    found = []
    for path, methods in document["paths"].items():
        address = path
        for name, value in names.items():
            address = address.replace(name, value)
        assert "{" not in address, path
        found += [(method.upper(), address, each["operationId"]) for method, each in methods.items()]
    assert len(found) >= 40
    return found


@pytest.fixture
def ask() -> Iterator[Callable[..., tuple[int, str]]]:
    """Ask for an operation and return the status with the kind of problem."""
    with httpx.Client(timeout=30) as client:

        def status(service: Any, method: str, address: str, headers: dict[str, str]) -> tuple[int, str]:
            client.cookies.clear()
            answer = client.request(method, service.url + address, headers=headers)
            is_problem = answer.headers.get("content-type") == "application/problem+json" and answer.content
            return answer.status_code, answer.json()["type"].rpartition("/")[2] if is_problem else ""

        yield status


def is_guarded(method: str, address: str, name: str) -> bool:
    is_change = method not in ("GET", "HEAD") and name not in ASKING
    return name in PRIVATE or (is_change and address != SESSION)


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer wrong-token-of-someone"}, {"Cookie": "diptych=1"}])
def test_beyond_this_machine_nothing_is_told_to_strangers(
    shared_service: Start, operations: list[tuple[str, str, str]], ask: Any, headers: dict[str, str]
) -> None:
    service = shared_service(public=True)
    private = [each for each in operations if each[1] == "/metrics" or each[1].startswith("/v1")]
    for method, address, name in private:
        if address != SESSION:
            status, kind = ask(service, method, address, headers)
            assert (status, kind) in ((401, "token-needed"), (401, "")), name
    assert ask(service, "GET", "/v1/openapi.json", headers)[0] == 401


@pytest.mark.parametrize("public", [False, True])
@pytest.mark.parametrize("forged", [{"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://elsewhere.example"}])
def test_other_sites_use_nothing_even_with_the_token(
    shared_service: Start, operations: list[tuple[str, str, str]], ask: Any, forged: dict[str, str], public: bool
) -> None:
    service = shared_service(public=True) if public else shared_service()
    for method, address, name in operations:
        if address.startswith("/v1/") or address == "/metrics":
            headers = {} if address == SESSION else service.headers
            given = ask(service, method, address, {**headers, **forged})
            # A request to sign in is read before its sender is looked at.
            assert given[0] == 403 or name == "signIn", name


def test_changing_and_private_things_need_token_or_page(
    shared_service: Start, operations: list[tuple[str, str, str]], ask: Any
) -> None:
    service = shared_service()
    signed_in = httpx.post(service.url + SESSION, json={"token": service.token})
    cookie = signed_in.headers["set-cookie"].partition(";")[0]
    guarded = [each for each in operations if is_guarded(*each)]
    assert len(guarded) >= 14
    for method, address, name in guarded:
        assert ask(service, method, address, {}) == (401, "token-needed"), name
        assert ask(service, method, address, {"Authorization": "Bearer wrong"}) == (401, "token-needed"), name
        assert ask(service, method, address, {"Cookie": cookie}) == (403, "wrong-csrf"), name
        forged = {"Cookie": cookie, "X-Diptych-CSRF": "0" * 64}
        assert ask(service, method, address, forged) == (403, "wrong-csrf"), name


def test_a_service_that_only_reads_changes_no_collection(
    shared_service: Start, operations: list[tuple[str, str, str]], ask: Any
) -> None:
    service = shared_service(read_only=True)
    changing = [
        each for each in operations if is_guarded(*each) and each[2] not in REMEMBERED | PRIVATE and each[0] != "GET"
    ]
    assert len(changing) >= 9
    for method, address, name in changing:
        assert ask(service, method, address, service.headers) == (403, "read-only"), name
