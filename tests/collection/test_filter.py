from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diptych.collection import Filter, Item
from diptych.collection.store.columns import ColumnCache
from diptych.collection.store.filtering import matching_items
from diptych.collection.store.items import items_by_id
from diptych.collection.store.opening import create_store
from diptych.collection.store.store import Store
from diptych.collection.store.writing import put_items
from diptych.errors import InvalidInputError

ITEM = Item(
    "1",
    "holiday/2010/Sea [1].jpg",
    "00" * 32,
    size=1000,
    width=640,
    labels=("Dog", "big dog"),
    captions=("A boat on the sea",),
    caption_ids=("c",),
    metadata={"year": 2010, "camera": "X T", "exif": {"iso": 100}, "taken": "2024-05-17", "ok": True, "path": "meta"},
    added_ns=1_714_900_000_000_000_000,
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = create_store(tmp_path / "store", "process")
    yield made
    made.close()


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store of one item."""
    made = create_store(tmp_path_factory.mktemp("filled") / "store", "process")
    put(made, ITEM)
    made.write(lambda db: db.run("UPDATE item SET added_ns = ?", (ITEM.added_ns,)))
    yield made
    made.close()


def put(store: Store, *items: Item) -> None:
    store.write(lambda db: put_items(db, items))


def ids(store: Store, text: str) -> list[str]:
    with store.reading() as db:
        found = matching_items(db, ColumnCache(store).current(db), Filter.parse(text))
        return [item.id for item in items_by_id(db, found.nonzero()[0])]


@pytest.mark.parametrize(
    "text",
    [
        "label:dog",
        "label:DO?",
        "not label:do",
        "label:big*",
        "path:holiday/*",
        "path:*.JPG",
        "path:[1]",
        'path:"sea [1]*" or name:"sea [1]*"',
        "name:sea",
        "caption:boat",
        "not caption:boats",
        "year>=2010",
        "year=2010.0",
        "year<2011 year>2009.5",
        "not year>2010",
        "year!=2011",
        "missing!=2011",
        "not missing>=0",
        'camera="X T"',
        'not camera="x t"',
        "camera:x",
        "exif.iso>=100",
        "taken<=2024-05",
        "taken>=2024-05-17 and taken<2024-06",
        "not taken>2024-05",
        "added>=2024-05 AND added<=2024",
        "added=2024-05-05 or added=2024-05",
        "ok=true",
        "kind=picture",
        "width>600",
        "meta.path=meta",
        "(label:cat or label:dog) and not (year<2000 or year>2020)",
        "label:cat or label:dog year=2010",
        "path:not or label:dog",
    ],
)
def test_conditions_that_the_item_meets(filled: Store, text: str) -> None:
    assert ids(filled, text) == ["1"]


@pytest.mark.parametrize(
    "text",
    ["", "label", "label:", "(label:dog", "label:dog)", "and label:dog", "label:dog or", "not", 'camera="X', "=3"],
)
def test_what_is_no_filter_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="filter"):
        Filter.parse(text)


def test_deep_nesting_is_refused_and_a_long_filter_is_not(filled: Store) -> None:
    for text in ("(" * 900, "(" * 660 + "a:b" + ")" * 660, "not " * 490 + "a:b", "not (" * 60 + "a:b" + ")" * 60):
        with pytest.raises(InvalidInputError, match="nested"):
            Filter.parse(text)
    assert ids(filled, "not (" * 24 + "label:dog" + ")" * 24) == ["1"]
    assert ids(filled, " or ".join(["label:cat"] * 900 + ["label:dog"])) == ["1"]


def test_threads_that_filter_differently_do_not_disturb_each_other(filled: Store) -> None:
    cache = ColumnCache(filled)
    problems = []

    def ask(number: int) -> None:
        try:
            for turn in range(50):
                with filled.reading() as db:
                    found = matching_items(db, cache.current(db), Filter("=", field="year", value=f"{2009 + number}"))
                    assert found.sum() == (number == 1)
                    assert f"{number}.{turn}" not in cache.current(db).field_counts
        except Exception as problem:
            problems.append(problem)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert problems == []


def test_a_filter_is_a_value() -> None:
    assert Filter.parse("a:b  and c>1") == Filter.parse("(a:b) c>1")
    assert len({Filter.parse("a:b"), Filter.parse("a:b")}) == 1


values = st.one_of(st.integers(-5, 5).map(str), st.text('ab* "\\()', min_size=1, max_size=4))
comparisons = st.builds(
    Filter,
    st.sampled_from([":", "=", "!=", ">=", "<=", ">", "<"]),
    st.just(()),
    st.sampled_from(["x", "y", "label"]),
    values,
)
filters = st.recursive(
    comparisons,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda pair: pair[0] & pair[1]),
        st.tuples(inner, inner).map(lambda pair: pair[0] | pair[1]),
        inner.map(lambda part: ~part),
    ),
    max_leaves=8,
)
rows = st.fixed_dictionaries(
    {"label": st.lists(st.sampled_from(["a", "b", "ab"]), max_size=2)},
    optional={"x": st.integers(-5, 5), "y": st.text("ab", max_size=2)},
)


@given(filters, rows)
def test_a_filter_written_down_means_the_same(wanted: Filter, row: dict[str, Any]) -> None:
    assert Filter.parse(str(wanted)).matches(row.get) == wanted.matches(row.get)


@given(filters, filters, rows)
def test_filters_combine_as_logic_does(left: Filter, right: Filter, row: dict[str, Any]) -> None:
    first, second = left.matches(row.get), right.matches(row.get)
    assert (left & right).matches(row.get) == (first and second)
    assert (left | right).matches(row.get) == (first or second)
    assert (~left).matches(row.get) != first


def test_a_field_in_dots_may_be_a_plain_name(store: Store) -> None:
    put(store, Item("1", None, None, metadata={"a.b": 1, "c": {"d": {"e": 2}}, "a": {"b": 3}}))
    assert [ids(store, text) for text in ("a.b=1", "a.b=3", "c.d.e=2", "c.x.e=2")] == [["1"], [], ["1"], []]
    with store.reading() as db:
        columns = ColumnCache(store).current(db)
        assert {"a.b", "c.d", "c.d.e", "c"} <= set(columns.field_counts)
        assert "c.x.e" not in columns.field_counts


@pytest.mark.parametrize(
    ("stored", "text", "expected"),
    [
        ("12e9999999999999", "id=9e99999999999999", False),
        ("007", "id=7", False),
        ("007", "id!=7", True),
        ("007", "id=007", True),
        ("1e3", "code>=1000", True),
        (7, "n=7.0", True),
        (7.5, "n!=7.5", False),
        ("2024-05-17", "taken=2024-05", True),
    ],
)
def test_texts_are_equal_as_texts_and_numbers_as_numbers(stored: Any, text: str, expected: bool) -> None:
    assert Filter.parse(text).matches(lambda field: stored) is expected


def test_the_name_of_the_label_field_is_understood_in_any_case(store: Store) -> None:
    put(store, Item("1", "a.jpg", "00" * 32, labels=("hotdog",)), Item("2", "b.jpg", "11" * 32, labels=("dog",)))
    assert ids(store, "Label:dog") == ["2"]
