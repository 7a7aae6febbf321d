"""Search by the words of captions, in scripts of all kinds."""

from __future__ import annotations

from pathlib import Path

import pytest

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


def test_capitals_accents_and_missing_spaces_do_not_matter(described: Collection) -> None:
    assert {words: answers_by_words(described, words) for words in FOUND} == FOUND


def test_a_word_is_held_where_a_value_has_it_and_not_where_a_field_is_called_so(
    collection: Collection, photos: Path
) -> None:
    folder = photos / "holidays"
    folder.mkdir()
    (folder / "1.png").write_text("picture")
    collection.add([Record(folder / "1.png", metadata={"B52": "sandy", "kind": "C64"})])
    for words, is_held in (("X15", False), ("B52", False), ("C64", True), ("Sandy", True)):
        assert [answer.has_words for answer in collection.search(words, hybrid=0.5)] == [is_held], words
