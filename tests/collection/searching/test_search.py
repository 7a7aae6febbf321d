from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from diptych.arrays import unit_rows
from diptych.collection.filter import Filter
from diptych.collection.item import Item
from diptych.collection.retriever_protocol import PointKind
from diptych.collection.root import Root
from diptych.collection.searching import rankings
from diptych.collection.searching.encoded_query import QueryEmbeddingCache
from diptych.collection.searching.query import Answers, Query, SearchRequest
from diptych.collection.searching.rankings import SearchedModel, SearchView
from diptych.collection.searching.search import nearest, search
from diptych.collection.store.columns import ColumnCache
from diptych.collection.store.filtering import matching_items
from diptych.collection.store.models import models
from diptych.collection.store.points import create_point_tables, encoder_id, put_features, put_points
from diptych.collection.store.scoring import Scoring
from diptych.collection.store.store import Store
from diptych.collection.store.writing import put_items, put_picture_texts, remove_items
from diptych.collection.vectors.vector_index import vector_index
from diptych.encoders.image.picture_parts import REGIONS, PictureText, PictureWord
from diptych.errors import InvalidInputError, UnknownItemError, UnsearchableItemError
from tests.doubles import ToyRetriever

KINDS: tuple[PointKind, ...] = ("image", "text", "region")
TOLERANCE = 5e-3


class ToyCodes(ToyRetriever):
    """The toy with the numbers that its bits are the signs of."""

    def __init__(self) -> None:
        super().__init__(0, "hamming")

    def images_to_outputs(self, features: np.ndarray) -> np.ndarray:
        return np.asarray(features, dtype=np.float64) @ self._matrix

    texts_to_outputs = images_to_outputs


def picture(name: str, *captions: str, content: str = "", taken: str = "", **fields: Any) -> Item:
    """Return an item whose picture consists of its name, or of a content that others may share."""
    digest = hashlib.sha256((content or name).encode()).hexdigest()
    given = {"metadata": {"taken": taken}} if taken else {}
    ids = tuple(f"{name}-{number}" for number in range(len(captions)))
    return Item(name, f"{name}.jpg", digest, captions=captions, caption_ids=ids, **given | fields)


def text(name: str, *captions: str) -> Item:
    """Return an item without a picture."""
    return Item(name, None, None, captions=captions, caption_ids=tuple(f"{name}-{n}" for n in range(len(captions))))


class Searches:
    """A store with items and the points that a toy makes of them, and what it is asked."""

    def __init__(self, store: Store, items: Sequence[Item], toy: ToyRetriever | None = None) -> None:
        self.store, self.toy, self.items = store, toy or ToyRetriever(), list(items)
        self.columns = ColumnCache(store)
        names = ("toy", self.toy.fingerprint, "toy", "toy", "saved", "active")
        columns = "name, fingerprint, image_fingerprint, text_fingerprint, saved, state"
        statement = f"INSERT INTO model ({columns}) VALUES (?, ?, ?, ?, ?, ?)"
        store.write(lambda db: db.run(statement, names))
        with store.reading() as db:
            number = models(db)[0].id
        self.scoring = {kind: Scoring(self.toy.space, f"{other(kind)}_query") for kind in KINDS}  # type: ignore[arg-type]
        width = self.toy.encode_texts(["a"]).shape[1]
        store.write(lambda db: create_point_tables(db, number, width, self.scoring["image"].form))
        store.write(lambda db: put_items(db, self.items))
        self.contents: dict[str, int] = {}
        for kind, table in (("image", "item"), ("text", "caption")):
            with store.reading() as db:
                named = dict(db.rows(f"SELECT name, content FROM {table} WHERE content IS NOT NULL"))
            self.contents |= named
            features = {number: self.features(name) for name, number in named.items()}
            self.put(number, kind, list(features), list(features.values()))  # type: ignore[arg-type]
        self.model = number

    def put(self, model: int, kind: PointKind, contents: Sequence[int], features: Sequence[np.ndarray]) -> None:
        if len(contents):
            rows = np.array(features, dtype=np.float32)
            points = self.scoring[kind].stored(self.toy.images_to_points(rows))
            self.store.write(lambda db: put_points(db, model, kind, contents, points))
            self.store.write(
                lambda db: put_features(db, encoder_id(db, "toy", kind, rows.shape[1]), contents, rows)  # type: ignore[arg-type]
            )

    def features(self, name: str) -> np.ndarray:
        """Return the features of an item's picture, or of a caption."""
        for item in self.items:
            if item.id == name:
                return self.toy.text_features([str(item.content_hash)])[0]
            if name in item.caption_ids:
                return self.toy.text_features([item.captions[item.caption_ids.index(name)]])[0]
        raise KeyError(name)

    def __call__(self, query: Query | str, **options: Any) -> Answers:
        wanted = options.pop("filter", None)
        asked = Query.of(query)
        request = SearchRequest(asked, filter=None if wanted is None else Filter.parse(wanted), **options)
        with self.view() as view:
            return search(view, request)

    @contextmanager
    def view(self) -> Iterator[SearchView]:
        with self.store.reading() as db:
            model = models(db)[0]
            indexes = {kind: vector_index(self.store, model.id, kind, self.scoring[kind]) for kind in KINDS}
            searched = SearchedModel(model, self.toy, indexes, QueryEmbeddingCache(self.toy))
            yield SearchView(db, self.columns.current(db), searched, Root(Path("/photos")))

    def scores(self, query: Query, names: Sequence[str]) -> dict[str, float]:
        """Compare a query of words with points one by one, as the space says."""
        points = self.toy.images_to_points(np.array([self.features(name) for name in names]))
        terms = [(term.weight, self.toy.encode_texts([term.value])) for term in query.terms]
        space = self.toy.space
        if space.name == "cosine":
            joined = unit_rows(sum(weight * unit_rows(point) for weight, point in terms))
            scores = (joined @ unit_rows(points).T)[0]
        else:
            each = [weight * space.compare(point, points, "text_query")[0] for weight, point in terms]
            scores = np.sum(each, axis=0) / sum(abs(weight) for weight, _ in terms)
        return dict(zip(names, np.asarray(scores, dtype=float).tolist(), strict=True))


def other(kind: PointKind) -> str:
    return "image" if kind == "text" else "text"


def ids(answers: Answers) -> list[str]:
    return [answer.caption_id or answer.id for answer in answers]


ITEMS = [
    picture("beach", "two dogs run", labels=("dog",), taken="2019-05-01"),
    picture("copy", content="beach", taken="2021-01-01"),
    picture("sign", "a street", metadata={"camera": "Kodak B52", "taken": "2018-01-01"}),
    picture("street", "a street with a dog", "no cars", labels=("dog", "city")),
    text("poem", "a dog", "so much depends"),
    picture("sea", labels=("water",)),
]
PICTURES = [item.id for item in ITEMS if item.path]
CAPTION_IDS = [name for item in ITEMS for name in item.caption_ids]


@pytest.fixture
def asked(store: Store) -> Searches:
    return Searches(store, ITEMS)


@pytest.mark.parametrize("space", ["cosine", "dot", "euclidean", "hamming", "kl"])
@pytest.mark.parametrize("target", ["images", "texts"])
def test_points_are_ranked_as_the_space_does(store: Store, space: str, target: Any) -> None:
    names = PICTURES if target == "images" else CAPTION_IDS
    asked = Searches(store, ITEMS, ToyRetriever(0, space))
    queries = [Query.text("boats")]
    if space != "dot":
        queries += [2 * Query.text("boats") + Query.text("cars"), Query.text("boats") - Query.text("a dog")]
    for query in queries:
        answers = asked(query, target=target, hybrid=False)
        expected = asked.scores(query, names)
        found = {name: answer.score for name, answer in zip(ids(answers), answers, strict=True)}
        assert found == pytest.approx(expected, abs=TOLERANCE * max(1, *map(abs, expected.values())))
        assert (np.diff([answer.score for answer in answers]) < 1e-5).all()
        assert (answers.considered, answers.exact, answers.mode) == (len(names), True, "similarity")


def test_equal_pictures_come_in_the_order_of_addition(asked: Searches) -> None:
    found = ids(asked("boats", hybrid=False))
    assert found.index("copy") == found.index("beach") + 1


def test_pages_continue_each_other(asked: Searches) -> None:
    for options in ({"hybrid": False}, {"hybrid": 0.5}, {"sort": "name", "min_probability": 0.0}, {}):
        whole = asked("dog", k=10, **options)
        pages = [asked("dog", k=2, offset=start, **options) for start in range(0, 6, 2)]
        assert [name for page in pages for name in ids(page)] == ids(whole)
        assert [answer.rank for page in pages for answer in page] == list(range(1, len(whole) + 1))


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(["label:dog", "not label:dog", "kind:picture", "label:none", "caption:dog"]), st.booleans())
def test_filters_leave_the_others_in_order(asked: Searches, wanted: str, exact: bool) -> None:
    chosen = Filter.parse(wanted)
    with asked.store.reading() as db:
        columns = asked.columns.current(db)
        mask = matching_items(db, columns, chosen)
        allowed = {name for name, number in db.rows("SELECT name, id FROM item") if mask[number]}
    for target in ("images", "texts"):
        answers = asked("boats", hybrid=False, target=target, filter=wanted, exact=exact)
        everything = asked("boats", hybrid=False, target=target)
        assert ids(answers) == [answer.caption_id or answer.id for answer in everything if answer.id in allowed]
        assert answers.considered == len(answers)


def test_an_item_does_not_find_itself_among_its_kind(asked: Searches) -> None:
    assert ids(asked("item:beach"))[0] == "copy"
    assert "beach" not in ids(asked("item:beach"))
    assert "poem" in ids(asked("item:poem", target="images")) or len(asked("item:poem")) == len(PICTURES)
    assert not any(answer.id == "poem" for answer in asked("item:poem", target="texts"))
    assert any(answer.id == "beach" for answer in asked("item:beach", target="texts"))
    with pytest.raises(UnknownItemError, match="take the id"):
        asked("item:nothing")
    asked.store.write(lambda db: put_items(db, [text("new", "words")]))
    with pytest.raises(UnsearchableItemError, match="neither"):
        asked("item:new")


def test_what_holds_a_name_comes_first(asked: Searches) -> None:
    answers = asked("B52")
    assert (answers[0].id, answers[0].matched_fields, answers[0].has_words) == ("sign", ("camera",), True)
    assert (answers.mode, answers.no_good_match) == ("both", False)
    assert len(answers) == len(PICTURES)
    assert {answer.id for answer in asked("dog")[:2]} == {"beach", "street"}
    assert asked("dog")[0].matched_by == ("points", "words")
    assert asked("xylograph7").mode == "similarity"
    quoted = asked('"with a dog"')
    assert quoted[0].id == "street"
    assert asked('"dog with a"').notes != ()
    assert ids(asked('"much depends"', target="texts"))[0] == "poem-1"


def test_words_in_pictures_are_found_with_their_boxes(asked: Searches) -> None:
    box = ((0.0, 0.0), (0.5, 0.0), (0.5, 0.5), (0.0, 0.5))
    seen = PictureText("Kaufland closed", (PictureWord("Kaufland", box), PictureWord("closed", box)))
    asked.store.write(lambda db: put_picture_texts(db, {asked.contents["sea"]: seen}))
    (best, *_) = asked("kaufland")
    assert (best.id, best.matched_fields, best.picture_words) == ("sea", ("text in picture",), seen.words[:1])


def test_words_alone_and_joined(asked: Searches) -> None:
    words = asked("dog street", hybrid=1.0)
    assert (words.mode, words[0].id) == ("words", "street")
    assert {answer.id for answer in words if "words" in answer.matched_by} == {"beach", "sign", "street"}
    assert len(words) == len(PICTURES)
    assert asked("dog street", hybrid=True).mode == "both"
    captions = asked("dog street", hybrid=1.0, target="texts")
    worded = [answer.caption_id for answer in captions if "words" in answer.matched_by]
    assert worded[0] == "street-0"
    assert set(worded) == {"sign-0", "street-0", "poem-0"}


def test_removed_items_are_not_found(asked: Searches) -> None:
    with asked.store.reading() as db:
        number = db.value("SELECT id FROM item WHERE name = 'street'")
    asked.store.write(lambda db: remove_items(db, [number]))
    answers = asked("dog")
    assert "street" not in ids(answers)
    assert answers.considered == len(PICTURES) - 1


def test_good_answers_in_another_order(asked: Searches) -> None:
    assert ids(asked("boats", sort="name", min_probability=0.0)) == sorted(PICTURES)
    assert ids(asked("boats", sort="added", min_probability=0.0)) == PICTURES[::-1]
    assert ids(asked("boats", sort="taken", min_probability=0.0))[:3] == ["copy", "beach", "sign"]
    good = {answer.id for answer in asked("boats", hybrid=False) if answer.probability >= 0.5}
    assert set(ids(asked("boats", hybrid=False, sort="name"))) == good


def test_probabilities_decide_what_is_left_out(asked: Searches) -> None:
    answers = asked("boats", hybrid=False)
    middle = answers[2].probability
    assert ids(asked("boats", hybrid=False, min_probability=middle)) == ids(answers)[:3]
    assert asked("boats", hybrid=False, min_probability=0.99).no_good_match
    assert answers.cutoff == 0.5


def test_unknown_fields_are_named(asked: Searches) -> None:
    (note,) = asked("boats", filter="camra:x").notes
    assert note.startswith("no item has a field 'camra'; fields are id, path, ")
    assert note.endswith(", taken, camera")


def test_a_region_answers_for_its_picture(asked: Searches) -> None:
    point = asked.scoring["region"].stored(asked.toy.encode_texts(["boats"]))
    rows = np.concatenate([-point] * 4 + [point] + [-point] * (len(REGIONS) - 5))
    contents = [asked.contents["sea"]] * len(REGIONS)
    asked.store.write(lambda db: put_points(db, asked.model, "region", contents, rows, range(len(REGIONS))))
    best = asked("boats", hybrid=False)[0]
    assert (best.id, best.region, best.score) == ("sea", REGIONS[4], pytest.approx(1, abs=TOLERANCE))
    assert asked("boats", hybrid=False, regions=False)[0].score < 1 - TOLERANCE
    assert asked("boats", hybrid=False, filter="not label:water")[0].region is None


@pytest.mark.parametrize("by", ["codes", "features"])
def test_codes_are_ordered_by_finer_scores(store: Store, by: Any) -> None:
    toy = ToyCodes()
    asked = Searches(store, ITEMS, toy)
    answers = asked("boats", hybrid=False, rerank=100, rerank_by=by)
    query = toy.texts_to_outputs(toy.text_features(["boats"]))[0]
    outputs = {name: toy.images_to_outputs(asked.features(name)[None, :])[0] for name in PICTURES}
    if by == "codes":
        outputs = {name: np.where(row > 0, 1.0, -1.0) for name, row in outputs.items()}
    gains = [float(query @ outputs[name] / np.linalg.norm(outputs[name])) for name in ids(answers)]
    assert sorted(ids(answers)) == sorted(PICTURES)
    assert (np.diff(gains) < 1e-6).all()


def test_only_codes_can_be_scored_again(asked: Searches) -> None:
    with pytest.raises(InvalidInputError, match="no binary codes"):
        asked("boats", rerank=10)


def test_an_empty_store_answers(store: Store) -> None:
    answers = Searches(store, [])("dog", filter="label:x")
    assert (len(answers), answers.considered, answers.no_good_match, answers.notes) == (0, 0, True, ())


@pytest.mark.parametrize(
    "options",
    [{"k": 0}, {"offset": -1}, {"target": "sounds"}, {"hybrid": 2.0}, {"rerank": 0}, {"rerank_by": "x"}, {"sort": "x"}],
)
def test_bad_requests_say_so(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        SearchRequest(Query.text("dog"), **options)
    with pytest.raises(InvalidInputError, match="has none"):
        SearchRequest(Query.item("1"), hybrid=0.5)


rankings_of = st.lists(st.integers(0, 20), max_size=10, unique=True)


@given(rankings_of, rankings_of)
def test_fusion_is_by_reciprocal_rank(first: list[int], second: list[int]) -> None:
    fused = rankings.fuse_rankings(first, second, 0.3)
    gains = dict.fromkeys(first + second, 0.0)
    for ranking, share in ((first, 0.7), (second, 0.3)):
        for rank, row in enumerate(ranking, start=1):
            gains[row] += share / (60 + rank)
    assert sorted(fused) == sorted(gains)
    assert [gains[row] for row in fused] == sorted(gains.values(), reverse=True)


@pytest.mark.parametrize("exact", [False, True])
def test_arrays_of_points_are_searched_in_bulk(asked: Searches, exact: bool) -> None:
    points = asked.toy.encode_texts(["boats", "cars"])
    with asked.view() as view:
        names, scores = nearest(view, points, 7, side="image", exact=exact)
        captions, _ = nearest(view, points, 2, side="text", exact=exact)
    for row, words in enumerate(["boats", "cars"]):
        answers = asked(words, hybrid=False)
        assert names[row].tolist() == [*ids(answers), "", ""]
        assert scores[row, :5] == pytest.approx([answer.score for answer in answers], abs=1e-5)
        assert captions[row].tolist() == ids(asked(words, hybrid=False, target="texts", k=2))


def test_a_model_without_points_finds_nothing(store: Store) -> None:
    asked = Searches(store, [])
    store.write(lambda db: [db.run(f"DROP TABLE point_{asked.model}_{kind}") for kind in KINDS])
    store.write(lambda db: db.run("UPDATE model SET width = 0"))
    store.write(lambda db: put_items(db, ITEMS))
    for target in ("images", "texts"):
        assert (len(asked("dog", target=target)), asked("dog").considered) == (0, 0)
    with asked.view() as view:
        assert nearest(view, np.ones((2, 8), dtype=np.float32), 1, side="text")[0].tolist() == [[""], [""]]
    with pytest.raises(UnsearchableItemError):
        asked("item:beach")
