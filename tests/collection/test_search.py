from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from diptych.collection import Collection, Query, Record
from diptych.errors import InvalidInputError
from tests.doubles import WIDTH, ToyRetriever

WORDS = [f"text {number}" for number in range(40)]


@pytest.fixture
def filled(collection: Collection, photos: Path) -> Collection:
    for number in range(12):
        (photos / f"{number}.png").write_text(f"file {number}")
    collection.add(
        Record(
            photos / f"{number}.png",
            captions=[f"caption {number}", "a shared boat" if number % 3 == 0 else f"word{number} sea"],
            labels=["even" if number % 2 == 0 else "odd"],
            metadata={"year": 2000 + number},
        )
        for number in range(12)
    )
    return collection


def brute_force(collection: Collection, points: np.ndarray, weights: list[float], side: str) -> list[str]:
    """Rank items by the weighted sum of cosines, from the files and captions themselves."""
    retriever = ToyRetriever()
    if side == "images":
        keys = [item.id for item in collection]
        gallery = retriever.encode_images([collection.path_of(item) for item in collection])
    else:
        keys = [caption for item in collection for caption in item.caption_ids]
        gallery = retriever.encode_texts([text for item in collection for text in item.captions])
    scores = np.array(weights) @ retriever.space.compare(points, gallery)
    return [keys[row] for row in np.argsort(-scores, kind="stable")]


@pytest.mark.parametrize("target", ["images", "texts"])
def test_words_and_pictures_rank_as_the_space_does(filled: Collection, photos: Path, target: str) -> None:
    retriever = ToyRetriever()
    by_words = filled.search("some words", k=30, target=target)
    expected = brute_force(filled, retriever.encode_texts(["some words"]), [1], target)
    assert [answer.caption_id or answer.id for answer in by_words] == expected
    by_picture = filled.search(photos / "3.png", k=30, target=target)
    expected = brute_force(filled, retriever.encode_images([photos / "3.png"]), [1], target)
    assert [answer.caption_id or answer.id for answer in by_picture] == expected
    assert [answer.rank for answer in by_picture] == list(range(1, len(by_picture) + 1))


def test_terms_add_up_with_weights_and_signs(filled: Collection, photos: Path) -> None:
    retriever = ToyRetriever()
    found = filled.search('"2:golden retriever" + 3.png - snow', k=12)
    points = np.vstack(
        [retriever.encode_texts(["golden retriever", "snow"]), retriever.encode_images([photos / "3.png"])]
    )
    assert [answer.id for answer in found] == brute_force(filled, points, [2, -1, 1], "images")
    units = points / np.linalg.norm(points, axis=1, keepdims=True)
    cosine = retriever.space.compare(np.array([[2.0, -1.0, 1.0]]) @ units, retriever.encode_images([found[0].path]))
    assert found[0].score == pytest.approx(cosine[0, 0], abs=1e-3)
    each = retriever.space.compare(points, retriever.encode_images([found[0].path]))[:, 0]
    odds = np.array([2.0, -1.0, 1.0]) @ each / 3
    assert found[0].probability == pytest.approx(float(retriever.probability(odds, "")), abs=1e-3)


def test_a_lone_negative_term_turns_the_ranking(filled: Collection) -> None:
    wanted = [answer.id for answer in filled.search("snow", k=12)]
    assert [answer.id for answer in filled.search("- snow", k=12)] == wanted[::-1]


def test_filters_fill_the_page(filled: Collection) -> None:
    found = filled.search("x", k=4, filter="label:even year<2008")
    assert (len(found), found.considered) == (4, 4)
    assert {answer.metadata["year"] for answer in found if answer.metadata} == {2000, 2002, 2004, 2006}
    texts = filled.search("x", k=50, filter="year=2001", target="texts")
    assert {answer.path for answer in texts} == {filled.path_of(filled["1.png"])}
    assert len(filled.search("x", filter="label:nothing")) == 0
    assert filled.search("x", filter="label:nothing").no_good_match


def test_hybrid_brings_up_captions_with_the_words(filled: Collection) -> None:
    found = filled.search("boat", k=4, hybrid=1.0)
    assert {answer.path.name for answer in found if answer.path} == {"0.png", "3.png", "6.png", "9.png"}
    assert all("words" in answer.matched_by for answer in found)
    captions = filled.search("boat", k=4, hybrid=True, target="texts")
    assert {answer.caption for answer in captions} == {"a shared boat"}
    filtered = filled.search("boat", k=12, hybrid=True, filter="year>=2006")
    assert len(filtered) == 6
    unhelpful = filled.search("nowhere", k=12, hybrid=True)
    assert [answer.id for answer in unhelpful] == [answer.id for answer in filled.search("nowhere", k=12)]
    with pytest.raises(InvalidInputError, match="words"):
        filled.search(filled.path_of(filled["1.png"]), hybrid=True)


def test_no_good_match_is_said_and_weak_answers_can_be_left_out(filled: Collection, photos: Path) -> None:
    sure = filled.search(photos / "3.png", k=1)
    assert not sure.no_good_match
    assert sure[0].probability == pytest.approx(1 / (1 + np.exp(-1)), abs=1e-3)
    strict = filled.search(photos / "3.png", k=12, min_probability=0.7)
    assert (len(strict), strict.no_good_match) == (1, False)
    hopeless = filled.search("x", k=12, min_probability=0.99)
    assert (len(hopeless), hopeless.no_good_match) == (0, True)


def test_arrays_of_points_are_searched_in_bulk(filled: Collection) -> None:
    points = ToyRetriever().encode_texts(["one", "two", "three"])
    ids, scores = filled.nearest(points, 4)
    for row, words in enumerate(["one", "two", "three"]):
        answers = filled.search(words, k=4)
        assert ids[row].tolist() == [answer.id for answer in answers]
        np.testing.assert_allclose(scores[row], [answer.score for answer in answers], atol=1e-3)
    assert filled.nearest(points, 20)[0][:, 12:].tolist() == [[""] * 8] * 3


def test_an_empty_collection_has_no_good_match(collection: Collection) -> None:
    for target in ("images", "texts"):
        found = collection.search("x", target=target)
        assert (len(found), found.no_good_match, found.considered) == (0, True, 0)
    assert collection.nearest(np.ones((2, 8), dtype=np.float32), 3)[0].tolist() == [[""] * 3] * 2


def test_an_index_answers_like_the_comparison_of_all_and_a_damaged_one_is_not_used(
    collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("diptych.collection.vectors.vector_index.MAX_FLAT", 1000)
    monkeypatch.setattr("diptych.collection.vectors.vector_index.MIN_REBUILD_ROWS", 1000)
    # What adds so many leaves an index.
    collection.add(Record(captions=[f"text {number}"], id=f"{number}") for number in range(1200))
    monkeypatch.setattr("diptych.collection.vectors.vector_index.MIN_REBUILD_ROWS", 10_000)
    found = [collection.search(f"text {number}", k=1, target="texts") for number in range(20)]
    assert [answers[0].id for answers in found] == [f"{number}" for number in range(20)]
    assert not found[0].exact
    assert collection.search("text 7", target="texts", exact=True).exact
    recall = collection.status().recall
    assert recall is not None
    assert 0.9 <= recall <= 1
    collection.remove(["3"])
    collection.add([Record(captions=["later"], id="later")])

    def check(other: Collection, *, exact: bool) -> None:
        assert other.search("later", k=1, target="texts")[0].id == "later"
        assert other.search("text 3", k=1, target="texts")[0].id != "3"
        assert other.search("text 5", k=1, target="texts")[0].id == "5"
        assert other.search("text 5", k=1, target="texts").exact is exact

    def reopened() -> Collection:
        return Collection.open(collection.folder, load_retriever=ToyRetriever.load)

    check(collection, exact=False)
    check(reopened(), exact=False)
    (path,) = collection.folder.glob("derived/**/index.faiss")
    path.write_bytes(path.read_bytes()[:-100])
    damaged = reopened()
    check(damaged, exact=True)
    damaged.build_index()
    check(damaged, exact=False)


def test_points_are_compared_with_a_side_that_exists(filled: Collection) -> None:
    with pytest.raises(InvalidInputError, match="target"):
        filled.nearest(np.ones((1, 8), dtype=np.float32), target="image")


def test_hybrid_pages_fit_together(collection: Collection) -> None:
    words = ("boat", "sea", "house")
    collection.add([Record(captions=[f"{words[n % 3]} {words[n % 2]} {n}"]) for n in range(1500)])
    asked = {"target": "texts", "hybrid": 0.5}
    whole = [(a.caption_id, a.matched_by) for a in collection.search("boat", k=1500, **asked)]
    assert len({key for key, _ in whole}) == 1500
    pages = [
        (a.caption_id, a.matched_by)
        for offset in range(0, 1500, 100)
        for a in collection.search("boat", k=100, offset=offset, **asked)
    ]
    assert pages == whole


class KnowsFewWords(ToyRetriever):
    """A retriever that finds nothing in words of more than five letters."""

    def text_features(self, texts: Sequence[str]) -> np.ndarray:
        known = np.array([[len(text) <= 5] for text in texts])
        return super().text_features(texts) * known


def test_words_that_mean_nothing_match_nothing(photos: Path) -> None:
    made = Collection.create(photos / ".diptych", KnowsFewWords(), load_retriever=ToyRetriever.load)
    made.add([photos, *(Record(captions=[f"t{number}"]) for number in range(5))])
    for target in ("images", "texts"):
        answers = made.search("xqzvbnmkl", k=3, target=target)
        assert answers.no_good_match
        assert [answer.probability for answer in answers] == [0, 0, 0]
    assert made.search("t1", k=1, target="texts")[0].probability > 0.5
    both = made.search(Query.text("t1") + Query.text("xqzvbnmkl"), k=1, target="texts")
    alone = made.search("t1", k=1, target="texts")
    assert both[0].id == alone[0].id
    assert both[0].probability == pytest.approx(alone[0].probability / 2)
    pictures = [made.search(query, k=1)[0] for query in ("a.png", "a.png + xqzvbnmkl")]
    assert pictures[1].probability == pytest.approx(pictures[0].probability / 2)


class Loud(ToyRetriever):
    """A retriever whose points are written down, and whose pictures score three times as high among themselves."""

    def score_slope(self, direction: str) -> float:
        return 30.0 if direction == "text_to_image" else 10.0

    def probability(self, scores: np.ndarray, direction: str) -> np.ndarray:
        return super().probability(self.score_slope(direction) * np.asarray(scores) - 7, direction)

    @staticmethod
    def _drawn(contents: Sequence[bytes]) -> np.ndarray:
        rows = [[float(number) for number in content.split()] for content in contents]
        return np.array([row + [0.0] * (WIDTH - len(row)) for row in rows], dtype=np.float32).reshape(-1, WIDTH)


# A restaurant, a dog, anything else in a picture, and what all words share that no picture has.
RESTAURANT, DOG = "0.4 0 0 1", "0 1 0"


@pytest.fixture
def loud(tmp_path: Path, request: pytest.FixtureRequest) -> Collection:
    return of_written_points(tmp_path, Loud(0, getattr(request, "param", "cosine")))


def of_written_points(folder: Path, retriever: Loud) -> Collection:
    pictures = {"both": "0.6 0.5 0.62", "dogs": "0 1 0.1", "tables": "1 0 0.3", "neither": "0.1 0.1 1"}
    for name, point in {**pictures, "query": DOG}.items():
        (folder / f"{name}.png").write_text(point)
    made = Collection.create(folder / ".diptych", retriever, load_retriever=ToyRetriever.load)
    made.add(Record(folder / f"{name}.png", id=name) for name in pictures)
    return made


def test_a_picture_does_not_drown_the_words_beside_it(loud: Collection, tmp_path: Path) -> None:
    picture, words = Query.picture(tmp_path / "query.png"), Query.text(RESTAURANT)
    joined = loud.search(words + picture, k=4)
    assert [answer.id for answer in joined] == ["both", "tables", "dogs", "neither"]
    units = [np.array([0.4, 0, 0, 1]) / np.hypot(0.4, 1), np.array([0, 1, 0, 0])]
    asked = units[0] + units[1] / 3
    answer = np.array([0.6, 0.5, 0.62, 0]) / np.linalg.norm([0.6, 0.5, 0.62])
    assert joined[0].score == pytest.approx(asked @ answer / np.linalg.norm(asked), abs=1e-3)
    # Without a common scale the picture alone would decide.
    assert max(("both", "dogs"), key=lambda name: _plain_sum(name, units)) == "dogs"


def _plain_sum(name: str, units: list[np.ndarray]) -> float:
    point = {"both": np.array([0.6, 0.5, 0.62, 0]), "dogs": np.array([0, 1, 0.1, 0])}[name]
    return float(sum(units) @ point / np.linalg.norm(point))


@pytest.mark.parametrize("loud", ["cosine", "dot"], indirect=True)
def test_the_probability_of_a_joined_query_averages_the_odds(loud: Collection, tmp_path: Path) -> None:
    picture, words = Query.picture(tmp_path / "query.png"), Query.text(RESTAURANT)
    each = [{answer.id: answer.probability for answer in loud.search(query, k=4)} for query in (words, picture)]
    joined = loud.search(2 * words + picture, k=4)
    for answer in joined:
        odds = [found[answer.id] / (1 - found[answer.id]) for found in each]
        mean = (odds[0] ** 2 * odds[1]) ** (1 / 3)
        assert answer.probability == pytest.approx(mean / (1 + mean), rel=1e-3)
    probabilities = [answer.probability for answer in joined]
    assert probabilities == sorted(probabilities, reverse=True)


def test_terms_of_one_kind_have_nothing_to_be_scaled_to(loud: Collection, tmp_path: Path) -> None:
    (tmp_path / "other.png").write_text("0 0 1")
    pictures = Query.picture(tmp_path / "query.png") + 2 * Query.picture(tmp_path / "other.png")
    asked = np.array([0, 1, 2, 0]) / np.sqrt(5)
    answer = np.array([0.6, 0.5, 0.62, 0]) / np.linalg.norm([0.6, 0.5, 0.62])
    found = {answer.id: answer for answer in loud.search(pictures, k=4)}["both"]
    assert found.score == pytest.approx(asked @ answer, abs=1e-3)
    assert found.probability == pytest.approx(Loud().probability(asked @ answer, "image_to_image"), abs=1e-3)


class TellsWords(Loud):
    """Words have probabilities and cut-offs of their own; joined, another one."""

    def is_short_query(self, text: str) -> bool:
        return text in (RESTAURANT, DOG)

    def probability(self, scores: np.ndarray, direction: str, *, is_short: bool = False) -> np.ndarray:
        return super().probability(np.asarray(scores) + 0.1 * is_short, direction)

    def cutoff_among(self, count: int, *, is_short: bool = False, is_joined: bool = False) -> float:
        return (0.2 if is_joined else 0.4) if is_short else 0.1


class DrawsLines(TellsWords):
    """Captions need more; good answers are half as probable as the best one, those to words less."""

    def cutoff_of(self, text: np.ndarray, count: int, *, is_short: bool = False) -> float:
        assert len(text) == 1
        return 0.1 if is_short and count == 4 else 0.9999

    def line_share(self, *, is_short: bool = False) -> float:
        return 0.2 if is_short else 0.5


CAPTION = "0.3 0.4 0.1 0.9"


def test_whether_there_is_a_match_and_where_good_answers_end_are_two_decisions(tmp_path: Path) -> None:
    drawing = of_written_points(tmp_path, DrawsLines(0, "dot"))
    found = drawing.search(DOG, k=4)
    assert not found.no_good_match
    assert found.cutoff == pytest.approx(0.2 * found[0].probability)
    # The line is the same on every page.
    assert drawing.search(DOG, k=1, offset=2).cutoff == pytest.approx(drawing.search(DOG, k=1).cutoff)
    strange = drawing.search(CAPTION, k=4)
    assert strange.no_good_match
    assert strange.cutoff == pytest.approx(0.9999)


@pytest.fixture
def told(tmp_path: Path) -> Collection:
    return of_written_points(tmp_path, TellsWords(0, "dot"))


def test_joined_words_keep_their_probabilities_and_have_a_cut_off_of_their_own(told: Collection) -> None:
    each = [{answer.id: answer.probability for answer in told.search(text, k=4)} for text in (RESTAURANT, DOG)]
    joined = told.search(2 * Query.text(RESTAURANT) + Query.text(DOG), k=4)
    for answer in joined:
        mean = (each[0][answer.id] ** 2 * each[1][answer.id]) ** (1 / 3)
        assert answer.probability == pytest.approx(mean, rel=1e-4)
    assert joined.cutoff == pytest.approx(0.2)
    assert told.search(DOG).cutoff == pytest.approx(0.4)
    # A caption among the terms says enough for all: their own cut-offs, as one.
    assert told.search(f"{CAPTION} + {DOG}").cutoff == pytest.approx(np.sqrt(0.1 * 0.4))


def test_what_is_unwanted_makes_no_answer_more_probable(told: Collection) -> None:
    words = [{answer.id: answer.probability for answer in told.search(text, k=4)} for text in (DOG, RESTAURANT)]
    without = told.search(f"{DOG} - {RESTAURANT}", k=4)
    assert len(without) == 4
    for answer in without:
        wanted, unwanted = (found[answer.id] for found in words)
        assert answer.probability == pytest.approx(wanted * (1 - unwanted), rel=1e-4)
    assert without.cutoff == told.search(DOG).cutoff
