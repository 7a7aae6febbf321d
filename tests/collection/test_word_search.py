"""Search by the words of captions, in scripts of all kinds."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from diptych.collection.storage import word_index

from diptych.collection import Collection, Record

CAPTIONS = [
    "un café sous la pluie",
    "l'ÉCOLE primaire",
    "die Straße im Regen",
    "Mädchen läuft nach Łódź",
    "a dog-friendly T-shirt in IMG_2034",
    "一只狗在跑",
    "两只猫睡在沙发上",
    "東京タワーの夜景",
    "犬が砂浜を走っている",
    "개가 해변을 달린다",
    "고양이는 소파에서 잔다",
    "สุนัขวิ่งบนชายหาด",
    "красная Собака",
    "kırmızı bir köpek",
]
FOUND = {
    "cafe": [0],
    "CAFÉ": [0],
    "cafe\u0301": [0],
    "école": [1],
    "Ecole": [1],
    "strasse": [2],
    "STRASSE": [2],
    "straße": [2],
    "madchen": [3],
    "lodz": [3],
    "shirt": [4],
    "2034": [4],
    "狗": [5],
    "猫": [6],
    "沙发": [6],
    "夜景": [7],
    "東京": [7],
    "犬": [8],
    "砂浜": [8],
    "개": [9],
    "개는": [9],
    "해변": [9],
    "해변에서": [9],
    "고양이": [10],
    "소파": [10],
    "สุนัข": [11],
    "ชายหาด": [11],
    "СОБАКА": [12],
    "kirmizi": [13],
    "bird": [],
}


def answers_by_words(collection: Collection, words: str) -> list[int]:
    found = collection.search(words, k=len(CAPTIONS), target="texts", hybrid=1.0)
    return sorted(CAPTIONS.index(answer.caption or "") for answer in found if "words" in answer.matched_by)


@pytest.fixture
def described(collection: Collection) -> Collection:
    collection.add(Record(id=str(number), captions=[caption]) for number, caption in enumerate(CAPTIONS))
    return collection


@pytest.mark.parametrize("indexed", [False, True])
def test_capitals_accents_and_missing_spaces_do_not_matter(described: Collection, indexed: bool) -> None:
    """Of new captions, which the engine reads, and of those in its index."""
    if indexed:
        described.repair()
    assert {words: answers_by_words(described, words) for words in FOUND} == FOUND


@pytest.mark.parametrize(
    "words",
    [["beach"], ["beach", "2019"], ["beach", "sunny"], ["holidays", "beach"], ["nowhere"], ["nowhere", "beach"]],
)
def test_columns_asked_one_by_one_hold_what_joined_ones_hold(
    words: list[str], collection: Collection, photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = photos / "beach holidays"
    folder.mkdir()
    for number in range(6):
        (folder / f"{2016 + number}.png").write_text(f"picture of the beach {number}")
    records = [
        Record(path, labels=["sunny beach"] if number % 2 else ["rain"], metadata={"place": "Beach Road", "year": 2019})
        for number, path in enumerate(sorted(folder.iterdir()))
    ]
    collection.add([*records, Record(captions=["a sunny beach"])])

    def found(few_rows: int) -> list[dict[tuple[str, Any], float]]:
        monkeypatch.setattr(word_index, "_FEW_ROWS", few_rows)
        index, scores = collection._state.store.words, [Counter(), Counter()]
        for total, hits in zip(
            scores, (index.all_of([(word,) for word in words], 100), index.any_of(words[0], 100)), strict=True
        ):
            for one in hits:
                for key, score in zip(one.keys, one.scores, strict=True):
                    total[one.holder, key] += score
        return scores

    for joined, apart in zip(found(10**6), found(0), strict=True):
        assert joined.keys() == apart.keys()
        assert [joined[key] for key in joined] == pytest.approx([apart[key] for key in joined], rel=1e-4)
    # So many hold all of them that nobody is told how good each one is.
    monkeypatch.setattr(word_index, "_FEW_ROWS", 0)
    (paths,) = (hits for hits in collection._state.store.words.all_of([("beach",), ("holidays",)], 3) if hits.keys)
    assert len(paths.keys) == 3


def test_a_word_that_nothing_holds_is_asked_for_once(
    collection: Collection, photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = photos / "holidays"
    folder.mkdir()
    (folder / "1.png").write_text("picture")
    # A field is called by what is a value of another one.
    collection.add([Record(folder / "1.png", metadata={"B52": "sandy", "kind": "B52"})])
    asked: list[str] = []
    any_of = word_index.WordIndex.any_of

    def noted(index: Any, words: str, limit: int, **options: Any) -> Any:
        asked.append(words)
        return any_of(index, words, limit, **options)

    monkeypatch.setattr(word_index.WordIndex, "any_of", noted)
    assert [answer.has_words for answer in collection.search("X15")] == [False]
    assert asked == []
    assert [answer.has_words for answer in collection.search("B52")] == [True]
    assert [words.lower() for words in asked] == ["b52"]
