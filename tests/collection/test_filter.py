from __future__ import annotations

import math
import sys
import threading
from typing import Any

import pytest
from diptych.collection.browse.columns import ColumnsBuilder, column_name
from diptych.collection.browse.live_items import LiveItems, Part
from diptych.collection.browse.segment import MemorySegment
from diptych.collection.storage.rows import item_rows
from hypothesis import given
from hypothesis import strategies as st

from diptych.collection import Filter, Item
from diptych.errors import InvalidInputError

ITEM = Item(
    "1",
    "holiday/2010/Sea [1].jpg",
    "hash",
    size=1000,
    width=640,
    labels=("Dog", "big dog"),
    captions=("A boat on the sea",),
    caption_ids=("c",),
    metadata={"year": 2010, "camera": "X T", "exif": {"iso": 100}, "taken": "2024-05-17", "ok": True, "path": "meta"},
    added_ns=1_714_900_000_000_000_000,
)


def live(*items: Item) -> LiveItems:
    return LiveItems((Part(MemorySegment(items)),))


def ids(items: LiveItems, text: str) -> list[str]:
    return [item.id for item in items.matching(Filter.parse(text))]


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
def test_conditions_that_the_item_meets(text: str) -> None:
    assert ids(live(ITEM), text) == ["1"]


@pytest.mark.parametrize(
    "text",
    ["", "label", "label:", "(label:dog", "label:dog)", "and label:dog", "label:dog or", "not", 'camera="X', "=3"],
)
def test_what_is_no_filter_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="filter"):
        Filter.parse(text)


def test_deep_nesting_is_refused_and_a_long_filter_is_not() -> None:
    for text in ("(" * 900, "(" * 660 + "a:b" + ")" * 660, "not " * 490 + "a:b", "not (" * 60 + "a:b" + ")" * 60):
        with pytest.raises(InvalidInputError, match="nested"):
            Filter.parse(text)
    assert ids(live(ITEM), "not (" * 24 + "label:dog" + ")" * 24) == ["1"]
    assert ids(live(ITEM), " or ".join(["label:cat"] * 900 + ["label:dog"])) == ["1"]


def test_threads_that_filter_differently_do_not_disturb_each_other() -> None:
    items = live(ITEM)
    problems = []

    def ask(number: int) -> None:
        try:
            for turn in range(500):
                assert items.matching(Filter("=", field="year", value=f"{number}.{turn}")) == []
                assert not items.has_field(f"{number}.{turn}")
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


def test_a_field_in_dots_may_be_a_plain_name() -> None:
    items = live(Item("1", None, None, metadata={"a.b": 1, "c": {"d": {"e": 2}}, "a": {"b": 3}}))
    assert [ids(items, text) for text in ("a.b=1", "a.b=3", "c.d.e=2", "c.x.e=2")] == [["1"], [], ["1"], []]
    assert [items.has_field(field) for field in ("a.b", "c.d", "c.d.e", "c.x.e", "meta.c")] == [1, 1, 1, 0, 1]


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


def test_the_name_of_the_label_field_is_understood_in_any_case() -> None:
    hotdog = live(Item("1", "a.jpg", "h", labels=("hotdog",)), Item("2", "b.jpg", "i", labels=("dog",)))
    assert ids(hotdog, "Label:dog") == ["2"]


STORED = st.one_of(
    st.booleans(),
    st.integers(-20, 20),
    st.sampled_from([1.5, 7.0, float("nan"), 10**400, 2**60]),
    st.sampled_from(["7", "007", "1e3", "2024-05-17", "2024-05-17 10:30:00", "2024", "Straße", "STRASSE", "a\nb", ""]),
    st.text('aAbB*?[] ".-0İß', max_size=4),
)
GIVEN = st.one_of(
    st.sampled_from(["7", "7.0", "007", "1000", "2024", "2024-05", "2024-05-17", "2024-05-17 10", "true", "strasse"]),
    st.text("aAbB*?[].-0ß", min_size=1, max_size=4),
)


@given(
    st.lists(st.one_of(STORED, st.lists(STORED, max_size=3), st.none()), min_size=1, max_size=6),
    st.sampled_from([":", "=", "!=", ">=", "<=", ">", "<"]),
    st.sampled_from(["x", "label"]),
    GIVEN,
)
def test_columns_compare_as_filters_do(stored: list[Any], operator: Any, field: str, given_text: str) -> None:
    """Each value by itself and all of them at once: the engine's comparison of columns is that of the language."""
    wanted = Filter(operator, field=field, value=given_text)
    builder, items = ColumnsBuilder(), []
    for place, value in enumerate(stored):
        texts = tuple(map(str, value if isinstance(value, list) else [value])) if field == "label" else ()
        metadata = {} if field == "label" or value is None else {"x": value}
        items.append(Item(str(place), None, None, labels=texts, metadata=metadata))
        stored[place] = texts if field == "label" else value
    builder.add(item_rows(items))
    found = builder.build().matching(wanted, len(stored))
    assert found.tolist() == [wanted.matches(lambda _, value=value: value) for value in stored]
    assert column_name(field) in ("=label", ".x")


@given(
    st.one_of(
        st.floats().map(str),
        st.text("0123456789._eE+-\u0661\uff11 \t\x0b\x1c\x85\xa0\u2003infaty", max_size=8),
    ),
    st.sampled_from(["", " ", "\x1f", "\u3000"]),
)
def test_every_text_that_python_reads_as_a_number_is_compared_as_one(text: str, around: str) -> None:
    stored = around + text + around
    builder = ColumnsBuilder()
    builder.add(item_rows([Item("1", None, None, metadata={"a": stored})]))
    values = builder.build()[".a"].values
    try:
        expected = float(stored)
    except ValueError:
        expected = math.nan
    assert values.number.tolist() == pytest.approx([expected], rel=0, abs=0, nan_ok=True)
    assert values.folded.to_pylist() == [stored.casefold()]
