from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from PIL import Image

from diptych.collection import Collection, Record

# Points are stored with eleven bits of precision; explanations compute with the features.
SCORE_ERROR = 1e-3


def ask(service: Any, **body: Any) -> httpx.Response:
    return httpx.post(f"{service.url}/v1/collections/scenes/explanations", json=body, timeout=30)


def search(service: Any, **body: Any) -> dict[str, Any]:
    answer = httpx.post(f"{service.url}/v1/collections/scenes/search", json={"limit": 5, **body}, timeout=30)
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


def explained(service: Any, **body: Any) -> dict[str, Any]:
    answer = ask(service, **body)
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


@pytest.mark.parametrize("target", ["images", "texts"])
def test_words_are_explained_with_the_score_of_the_search(service: Any, target: str) -> None:
    for answer in search(service, query="a red car", target=target)["answers"]:
        wanted = {} if target == "images" else {"caption_id": answer["caption_id"]}
        document = explained(service, query="a red car", item=answer["id"], target=target, **wanted)
        assert document["score"] == pytest.approx(answer["score"], abs=SCORE_ERROR)
        words = document["views"][0]
        assert words["kind"] == "words"
        assert [bar["name"] for bar in words["bars"]] == ["a", "red", "car"]


def test_a_combined_query_is_explained_term_by_term(service: Any) -> None:
    other = search(service, query="a house")["answers"][0]["id"]
    terms = [{"text": "a red car", "weight": 2}, {"item": other}, {"text": "snow", "weight": -1}]
    answer = search(service, terms=terms)["answers"][0]
    document = explained(service, terms=terms, item=answer["id"])
    assert document["score"] == pytest.approx(answer["score"], abs=SCORE_ERROR)
    assert [term["weight"] for term in document["terms"]] == [2, 1, -1]
    assert sum(term["contribution"] for term in document["terms"]) == pytest.approx(answer["score"], abs=SCORE_ERROR)
    assert {bar["term"] for bar in document["views"][0]["bars"]} == {0, 2}, "the item is a picture, which has no words"


def test_an_uploaded_picture_is_explained(service: Any) -> None:
    picture = io.BytesIO()
    Image.new("RGB", (40, 40), (200, 30, 30)).save(picture, "PNG")
    files = {"picture": ("red.png", picture.getvalue(), "image/png")}
    url = f"{service.url}/v1/collections/scenes/search/picture"
    found = httpx.post(url, files=files, timeout=30).json()
    document = explained(service, terms=[{"upload": found["upload"]}], item=found["answers"][0]["id"])
    assert document["score"] == pytest.approx(found["answers"][0]["score"], abs=SCORE_ERROR)
    assert document["views"] == []


def test_each_picture_of_a_query_goes_by_its_own_name(service: Any) -> None:
    picture = io.BytesIO()
    Image.new("RGB", (40, 40), (200, 30, 30)).save(picture, "PNG")
    files = {"picture": ("red.png", picture.getvalue(), "image/png")}
    found = httpx.post(f"{service.url}/v1/collections/scenes/search/picture", files=files, timeout=30).json()
    first, second = found["answers"][:2]
    terms = [{"upload": found["upload"]}, {"item": first["id"]}, {"item": second["id"], "weight": -0.3}]
    document = explained(service, terms=terms, item=first["id"])
    assert [term["name"] for term in document["terms"]] == ["picture", first["name"], second["name"]]


def test_a_picture_is_explained_as_it_was_indexed(service: Any) -> None:
    """Neither a file that is gone nor one that was replaced changes why its item was found."""
    first, second = search(service, query="a red car")["answers"][:2]
    before = [explained(service, query="a red car", item=answer["id"]) for answer in (first, second)]
    (service.folders["scenes"] / first["name"]).unlink()
    Image.new("RGB", (64, 64), (0, 250, 0)).save(service.folders["scenes"] / second["name"])
    assert [explained(service, query="a red car", item=answer["id"]) for answer in (first, second)] == before
    assert before[0]["score"] == pytest.approx(first["score"], abs=SCORE_ERROR)
    assert [view["kind"] for view in before[0]["views"]] == ["words"]


@pytest.mark.parametrize(
    ("change", "status", "kind"),
    [
        ({"item": "nobody"}, 404, "no-such-item"),
        ({"retriever": "nobody"}, 404, "no-such-retriever"),
        ({"target": "texts", "caption_id": "nobody"}, 404, "no-such-caption"),
        ({"caption_id": "x"}, 422, "invalid-request"),
        ({"terms": [{"text": "x"}]}, 422, "invalid-request"),
        ({"query": None}, 422, "invalid-request"),
        ({"query": "item:nobody"}, 404, "no-such-item"),
        ({"query": None, "terms": [{"upload": "0" * 32}]}, 404, None),
    ],
)
def test_what_cannot_be_explained_is_a_problem(
    shared_service: Callable[..., Any], change: dict[str, Any], status: int, kind: Any
) -> None:
    service = shared_service()
    item = search(service, query="a red car")["answers"][0]["id"]
    answer = ask(service, **{"query": "a red car", "item": item, **change})
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert kind is None or answer.json()["type"].endswith(kind)


def test_sides_that_an_item_does_not_have(service: Any) -> None:
    with Collection.open(service.folders["scenes"] / ".diptych") as collection:
        collection.add([Record(captions=["only words"])])
        text = next(item.id for item in collection if item.path is None)
    answer = ask(service, query="words", item=text)
    assert (answer.status_code, answer.json()["type"]) == (422, "/problems/invalid-input")
    document = explained(service, query="words", item=text, target="texts")
    assert document["views"][0]["kind"] == "words"
