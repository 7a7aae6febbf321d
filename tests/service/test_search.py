from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from diptych import Retriever
from diptych.collection import Collection, Record
from diptych.encoders import ColourEdgeHistograms, SentenceEncoder
from diptych.models import CCA
from diptych.retriever import Calibration

SEARCH = "/v1/collections/scenes/search"


@pytest.fixture
def client(scene_service: Any) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=scene_service.url, timeout=30) as opened:
        yield opened


@pytest.fixture(scope="module")
def collection(scene_collection: Path) -> Iterator[Collection]:
    with Collection.open(scene_collection / ".diptych") as opened:
        yield opened


def ids(answer: httpx.Response) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [found["caption_id"] or found["id"] for found in answer.json()["answers"]]


@pytest.mark.parametrize("target", ["images", "texts"])
@pytest.mark.parametrize("words", ["a red boat", "2:fish + night - red", '"a house"'])
def test_answers_are_those_of_the_collection(
    client: httpx.Client, collection: Collection, words: str, target: Any
) -> None:
    expected = collection.search(words, 7, target=target)
    answer = client.get(SEARCH, params={"q": words, "limit": 7, "target": target, "log": False})
    found = answer.json()
    assert ids(answer) == [one.caption_id or one.id for one in expected]
    for one, other in zip(found["answers"], expected, strict=True):
        assert one["score"] == pytest.approx(other.score, abs=1e-6)
        assert one["probability"] == pytest.approx(other.probability, abs=1e-6)
        assert one["good"] == (one["probability"] >= found["cutoff"] or other.has_words)
        assert one["rank"] == other.rank
    assert found["considered"] == expected.considered
    assert found["no_good_match"] == expected.no_good_match
    assert ids(client.post(SEARCH, json={"query": words, "limit": 7, "target": target})) == ids(answer)


def test_a_picture_finds_itself_and_its_texts(client: httpx.Client, collection: Collection) -> None:
    item = collection.items()[7]
    path = collection.path_of(item)
    assert path is not None
    for target in ("images", "texts"):
        with path.open("rb") as file:
            answer = client.post(
                f"{SEARCH}/picture", files={"picture": (path.name, file)}, data={"limit": "5", "target": target}
            )
        expected = collection.search(path, 5, target=target)  # type: ignore[arg-type]
        assert ids(answer) == [one.caption_id or one.id for one in expected]
        upload = answer.json()["upload"]
        again = client.post(SEARCH, json={"terms": [{"upload": upload}], "limit": 5, "target": target})
        assert ids(again) == ids(answer)
        assert str(path.parent) not in again.text


def test_pages_fit_together(client: httpx.Client) -> None:
    whole = ids(client.get(SEARCH, params={"q": "a boat", "limit": 60}))
    assert len(set(whole)) == 60
    seen: list[str] = []
    offset: int | None = 0
    while offset is not None:
        page = client.get(SEARCH, params={"q": "a boat", "limit": 17, "offset": offset})
        assert [one["rank"] for one in page.json()["answers"]] == list(range(offset + 1, offset + 1 + len(ids(page))))
        seen += ids(page)
        offset = page.json()["next_offset"]
    assert seen == whole


def test_filters_hybrid_and_the_cut_off(client: httpx.Client, collection: Collection) -> None:
    red = client.get(SEARCH, params={"q": "a boat", "filter": "colour=red and label:boat", "limit": 200}).json()
    expected = collection.items("colour=red and label:boat")
    assert {one["id"] for one in red["answers"]} == {item.id for item in expected}
    assert red["considered"] == len(expected)
    assert red["next_offset"] is None
    words = client.get(SEARCH, params={"q": "sailboat", "hybrid": 1.0, "limit": 3}).json()
    assert "words" in words["answers"][0]["matched_by"]
    sure = client.get(SEARCH, params={"q": "a boat", "min_probability": 0.3, "limit": 60}).json()
    assert all(one["probability"] >= 0.3 for one in sure["answers"])
    assert len(sure["answers"]) < 60


def test_a_mode_chooses_words_or_meaning(client: httpx.Client, collection: Collection) -> None:
    number = next(item for item in collection).path
    name = str(number).removesuffix(".png").partition("-")[2]
    found = client.get(SEARCH, params={"q": name, "limit": 3}).json()
    assert (found["mode"], found["no_good_match"]) == ("both", False)
    first = found["answers"][0]
    assert (first["name"], first["matched_fields"], first["has_words"], first["good"]) == (
        number,
        ["file name"],
        True,
        True,
    )
    meaning = client.get(SEARCH, params={"q": name, "limit": 3, "mode": "similarity"}).json()
    assert {tuple(one["matched_by"]) for one in meaning["answers"]} == {("points",)}
    quoted = client.post(SEARCH, json={"terms": [{"text": "nowhere at all", "quoted": True}], "limit": 1}).json()
    assert (quoted["query"], quoted["mode"]) == ('"nowhere at all"', "similarity")
    assert "quotation marks" in quoted["notes"][0]
    assert client.get(SEARCH, params={"q": name, "mode": "guess"}).status_code == 422


def test_good_answers_are_sorted_and_such_a_search_is_not_remembered(client: httpx.Client) -> None:
    asked = {"q": "a red boat", "limit": 60}
    good = [one["name"] for one in client.get(SEARCH, params=asked).json()["answers"] if one["good"]]
    by_name = client.get(SEARCH, params={**asked, "sort": "name"}).json()
    assert [one["name"] for one in by_name["answers"]] == sorted(good)
    assert by_name["search_id"] is None
    second = client.get(SEARCH, params={**asked, "sort": "name", "limit": 1, "offset": 1}).json()["answers"]
    assert [(one["name"], one["rank"]) for one in second] == [(sorted(good)[1], 2)]
    assert client.get(SEARCH, params={**asked, "sort": "size"}).status_code == 422


def test_a_search_is_remembered_and_continued(client: httpx.Client) -> None:
    first = client.get(SEARCH, params={"q": "a blue car", "limit": 5}).json()
    assert first["search_id"]
    following = {"q": "a blue car", "limit": 5, "offset": 5, "search_id": first["search_id"]}
    assert client.get(SEARCH, params=following).json()["search_id"] == first["search_id"]
    assert client.get(SEARCH, params={"q": "a blue car", "log": False}).json()["search_id"] is None


def test_unwanted_words_and_misspelt_ones_are_told(client: httpx.Client) -> None:
    found = client.get(SEARCH, params={"q": "a boat but no people", "log": False}).json()
    assert (found["query"], found["unwanted"]) == ("a boat - 0.5:people", ["people"])
    found = client.get(SEARCH, params={"q": "swiming pool", "log": False}).json()
    assert (found["query"], found["did_you_mean"], found["is_corrected"]) == ("swiming pool", "swimming pool", True)
    quoted = client.get(SEARCH, params={"q": '"swiming pool"', "log": False}).json()
    assert (quoted["did_you_mean"], quoted["is_corrected"], quoted["unwanted"]) == (None, False, [])


def test_files_of_the_server_are_never_looked_up(client: httpx.Client, scene_collection: Path) -> None:
    picture = next(scene_collection.glob("*.png"))
    refused = client.get(SEARCH, params={"q": str(picture)})
    assert refused.status_code == 422
    as_words = client.get(SEARCH, params={"q": f"the words {picture.name}"})
    assert as_words.json()["query"] == f"the words {picture.name}"
    upload = client.post(SEARCH, json={"terms": [{"upload": f"../../{picture.name}"}]})
    assert (upload.status_code, upload.json()["type"]) == (404, "/problems/no-such-upload")


@pytest.mark.parametrize(
    ("body", "status", "kind"),
    [
        ({}, 422, "invalid-request"),
        ({"query": "a", "terms": [{"text": "b"}]}, 422, "invalid-request"),
        ({"terms": []}, 422, "invalid-request"),
        ({"terms": [{"text": "a", "item": "b"}]}, 422, "invalid-request"),
        ({"terms": [{"text": "a", "weight": 0}]}, 422, "invalid-request"),
        ({"terms": [{"text": "a", "weight": 1e9}]}, 422, "invalid-request"),
        ({"query": "200:a + b"}, 422, "weight-too-large"),
        ({"query": " + ".join("abcdefghijklmnopqrst")}, 422, "invalid-input"),
        ({"query": "   "}, 422, "invalid-input"),
        ({"query": "a" * 2001}, 422, "invalid-request"),
        ({"terms": [{"text": "a" * 1500}, {"text": "b" * 1500}]}, 422, "invalid-input"),
        ({"query": "a", "limit": 201}, 422, "invalid-request"),
        ({"query": "a", "offset": 10_001}, 422, "invalid-request"),
        ({"query": "a", "filter": "((("}, 422, "invalid-input"),
        ({"query": "a", "unknown": 1}, 422, "invalid-request"),
        ({"query": "a", "retriever": "nobody"}, 404, "no-such-retriever"),
        ({"terms": [{"item": "nobody"}]}, 404, "no-such-item"),
        ({"query": "item:nobody"}, 404, "no-such-item"),
    ],
)
def test_mistakes_are_named(client: httpx.Client, body: Any, status: int, kind: str) -> None:
    answer = client.post(SEARCH, json=body)
    assert (answer.status_code, answer.json()["type"]) == (status, f"/problems/{kind}")
    assert answer.headers["content-type"] == "application/problem+json"


def test_an_unknown_collection_is_named(client: httpx.Client) -> None:
    answer = client.get("/v1/collections/nowhere/search", params={"q": "a"})
    assert (answer.status_code, answer.json()["type"]) == (404, "/problems/no-such-collection")


def test_neighbours_do_not_hold_the_item_itself(client: httpx.Client, collection: Collection) -> None:
    item = collection.items()[3]
    answer = client.post("/v1/collections/scenes/search", json={"terms": [{"item": item.id}], "limit": 59})
    assert len(ids(answer)) == 59
    assert item.id not in ids(answer)


def test_what_a_collection_says_of_itself(client: httpx.Client, collection: Collection, scene_collection: Path) -> None:
    answer = client.get("/v1/collections")
    (only,) = answer.json()["collections"]
    assert only == client.get("/v1/collections/scenes").json()
    status = collection.status()
    assert (only["items"], only["captions"]) == (60, status.captions)
    assert only["retriever"] == {"name": status.retriever, "fingerprint": status.fingerprint}
    assert only["map"] == "none"
    assert str(scene_collection) not in answer.text


def test_facets_lead_to_their_items(client: httpx.Client) -> None:
    facets = client.get("/v1/collections/scenes/facets", params={"limit": 3}).json()["facets"]
    assert {facet["field"] for facet in facets} >= {"label", "colour", "shape"}
    for facet in facets:
        assert len(facet["values"]) <= 3
        for value in facet["values"]:
            found = client.get("/v1/collections/scenes/items", params={"filter": value["filter"], "limit": 1}).json()
            assert found["total"] == value["count"]


def test_suggestions_go_on_with_what_was_typed(client: httpx.Client) -> None:
    found = client.get("/v1/collections/scenes/suggestions", params={"prefix": "a red b", "limit": 4}).json()
    assert 0 < len(found["suggestions"]) <= 4
    assert all(one["text"].startswith("a red b") for one in found["suggestions"])


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("(" * 900, "invalid-input"),
        ("not " * 490 + "label:car", "invalid-input"),
        (" or ".join(["label:car"] * 33), "filter-too-long"),
    ],
)
def test_a_filter_that_costs_too_much_is_refused(client: httpx.Client, text: str, kind: str) -> None:
    for address, query in (("items", {}), ("facets", {}), ("search", {"q": "car"})):
        answer = client.get(f"/v1/collections/scenes/{address}", params={"filter": text, **query})
        assert (answer.status_code, answer.json()["type"]) == (422, f"/problems/{kind}")
    allowed = " or ".join(["label:car"] * 32)
    assert client.get("/v1/collections/scenes/items", params={"filter": allowed}).status_code == 200


def test_an_answer_says_which_language_is_not_understood(running_service: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    retriever = Retriever(cache=False)
    retriever.image_encoder_, retriever.text_encoder_ = ColourEdgeHistograms(size=32), SentenceEncoder()
    retriever.model_ = CCA(n_components=4).fit(rng.normal(size=(20, 5)), rng.normal(size=(20, 384)))
    retriever.calibration_ = Calibration.assumed(10.0, -5.0)
    with Collection.create(tmp_path / "texts", retriever) as made:
        made.add([Record(captions=["two dogs on a beach"]), Record(captions=["a red car"])])
        assert made.search("dva psi na pláži + два пса", target="texts").notes == (
            "This looks like a language that the search model does not understand well; try English.",
        )
    url = running_service(collections={"scenes": tmp_path / "texts"}).url
    notes = [
        httpx.get(url + SEARCH, params={"q": words, "target": "texts"}, timeout=60).json()["notes"]
        for words in ("dva psi na pláži", "two dogs on a beach")
    ]
    assert notes == [["This looks like a language that the search model does not understand well; try English."], []]


def test_words_learned_from_the_collection_are_understood_in_any_language(client: httpx.Client) -> None:
    assert client.get(SEARCH, params={"q": "dva psi na pláži"}).json()["notes"] == []
