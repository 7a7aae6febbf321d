from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from diptych.collection.browse.live_items import LiveItems, Part
from diptych.collection.browse.segment import MemorySegment
from hypothesis import given, settings
from hypothesis import strategies as st

from diptych.collection import Collection, Facet, Filter, Item, Record
from diptych.errors import InvalidInputError

NAMES = st.sampled_from(["colour", "path", "shot by", "a.b", "meta.x", "Größe", "and", 'q"uote', "back\\slash", "x=y"])
TEXTS = st.one_of(
    st.sampled_from(["red", "a b", "=1", "<x", ">=2", 'say "hi"', "(x)", "é\n", "back\\", "or", " "]),
    st.text(st.characters(exclude_categories=["Cs", "Nd"]), min_size=1, max_size=5),
)
VALUES = st.one_of(TEXTS, st.booleans(), st.integers(-3, 3), st.sampled_from([0.5, 1.5, float("nan")]))


def live(items: Iterable[Item], n_parts: int = 1) -> LiveItems:
    """Return items spread over some segments."""
    every = list(items)
    return LiveItems(tuple(Part(MemorySegment(every[part::n_parts])) for part in range(n_parts)))


def items_of(*metadata: dict[str, Any]) -> LiveItems:
    return live((Item(str(n), None, None, metadata=data, added_ns=n) for n, data in enumerate(metadata)), 3)


def facets_of(items: LiveItems, limit: int = 10) -> dict[str, Facet]:
    return {facet.field: facet for facet in items.facets(None, limit)}


@settings(deadline=None, max_examples=25)
@given(
    st.lists(st.tuples(st.dictionaries(NAMES, VALUES, max_size=3), st.lists(TEXTS, max_size=3)), max_size=8),
    st.integers(1, 4),
    st.integers(1, 3),
)
def test_the_filter_of_a_value_finds_as_many_items_as_it_counts(
    records: list[tuple[dict[str, Any], list[str]]], limit: int, n_parts: int
) -> None:
    items = live(
        (Item(str(n), None, None, labels=tuple(labels), metadata=data) for n, (data, labels) in enumerate(records)),
        n_parts,
    )
    for facet in items.facets(None, limit):
        assert len(facet.values) <= limit
        counts = [value.count for value in facet.values]
        assert counts == sorted(counts, reverse=True)
        for value in facet.values:
            wanted = Filter.parse(value.filter)
            assert str(wanted) == value.filter
            assert len(items.matching(wanted)) == value.count
            narrowed = items.facets(wanted, limit)
            again = {each.filter: each.count for one in narrowed for each in one.values}
            assert again.get(value.filter, value.count) == value.count


def test_many_numbers_are_a_range_and_few_are_values() -> None:
    items = items_of(*({"year": 2000 + n, "stars": n % 3} for n in range(20)))
    facets = facets_of(items)
    assert (facets["year"].kind, facets["year"].minimum, facets["year"].maximum) == ("range", 2000, 2019)
    assert [(value.value, value.count) for value in facets["stars"].values] == [(0, 7), (1, 7), (2, 6)]
    (_, year) = items.facets(Filter.parse("year>=2005 and stars=1"), 10)
    assert (year.minimum, year.maximum) == (2007, 2019)
    assert items.facets(Filter.parse("year=1"), 10) == []


def test_names_and_descriptions_are_no_facets_but_nested_and_several_values_are() -> None:
    items = items_of(
        *({"title": f"title {n}", "exif": {"iso": 100 * (n % 2)}, "tags": ["x", "x", "y"][: n % 4]} for n in range(20))
    )
    facets = facets_of(items)
    assert set(facets) == {"exif.iso", "tags"}
    assert [(value.value, value.count) for value in facets["tags"].values] == [("x", 15), ("y", 5)]
    assert facets["exif.iso"].values[0].filter == "exif.iso=0"


def test_facets_follow_the_collection(collection: Collection) -> None:
    collection.add([Record(captions=["a"], id="1", labels=["dog", "snow"]), Record(captions=["b"], id="2")])
    assert [(value.value, value.count) for value in collection.facets()[0].values] == [("dog", 1), ("snow", 1)]
    collection.update("2", labels=["dog"], metadata={"year": 2020})
    labels, years = collection.facets("year>=2000")
    assert [(value.value, value.count, value.filter) for value in labels.values] == [("dog", 1, "label=dog")]
    assert years.values[0].value == 2020
    collection.remove("2")
    assert [facet.field for facet in collection.facets()] == ["label"]
    with pytest.raises(InvalidInputError, match="limit"):
        collection.facets(limit=0)


def test_a_misspelt_field_is_named(collection: Collection) -> None:
    collection.add([Record(captions=["a"], metadata={"year": 2020, "path": "x"})])
    answers = collection.search("a", target="texts", filter="yaer>=2010 or label:dog or width>5 or Meta.path=x")
    (first, second) = answers.notes
    assert first.startswith("no item has a field 'Meta.path'; fields are id, path, name,")
    assert second.startswith("no item has a field 'yaer'")
    assert second.endswith("modified, year, meta.path")
    assert collection.search("a", target="texts", filter="year>2100 or meta.path=y").notes == ()
    assert collection.search("a", target="texts").notes == ()


def test_many_items_are_counted_exactly() -> None:
    dice = np.random.default_rng(0)
    colours = dice.integers(0, 7, 20_000)
    items = items_of(*({"colour": f"c{colour}", "n": int(colour)} for colour in colours))
    counts = {value.value: value.count for value in facets_of(items)["colour"].values}
    assert counts == {f"c{colour}": int((colours == colour).sum()) for colour in range(7)}
