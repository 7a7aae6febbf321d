"""Facets, months and map cells: what is counted is what the filter of a count finds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from diptych.collection.filter import Filter
from diptych.collection.item import Item
from diptych.collection.store import facets as facets_module
from diptych.collection.store.columns import ColumnCache, Columns
from diptych.collection.store.dialect import Connection
from diptych.collection.store.facets import Facet, facets, field_names, map_cells, timeline
from diptych.collection.store.filtering import matching_items
from diptych.collection.store.store import Store
from diptych.collection.store.writing import put_items, remove_items
from diptych.data.photo_facts.places import Box

NAMES = st.sampled_from(["colour", "path", "shot by", "a.b", "meta.x", "Größe", "and", 'q"uote', "back\\slash", "x=y"])
TEXTS = st.one_of(
    st.sampled_from(["red", "a b", "=1", "<x", ">=2", 'say "hi"', "(x)", "é\n", "back\\", "or", " "]),
    st.text(st.characters(exclude_categories=["Cs", "Nd"], exclude_characters="\0"), min_size=1, max_size=5),
)
VALUES = st.one_of(TEXTS, st.booleans(), st.integers(-3, 3), st.sampled_from([0.5, 1.5, 2.0]))


def put(store: Store, records: list[tuple[dict[str, Any], list[str]]]) -> None:
    def job(db: Connection) -> None:
        remove_items(db, db.ids("SELECT id FROM item"))
        items = [
            Item(str(n), None, None, labels=tuple(labels), metadata=data) for n, (data, labels) in enumerate(records)
        ]
        put_items(db, items)

    store.write(job)


def found_by(db: Connection, columns: Columns, text: str) -> int:
    wanted = Filter.parse(text)
    assert str(wanted) == text
    return int(np.count_nonzero(matching_items(db, columns, wanted)))


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.dictionaries(NAMES, VALUES, max_size=3), st.lists(TEXTS, max_size=3)), max_size=8),
    st.integers(1, 4),
)
def test_the_filter_of_a_value_finds_as_many_items_as_it_counts(
    store: Store, records: list[tuple[dict[str, Any], list[str]]], limit: int
) -> None:
    put(store, records)
    with store.reading() as db:
        columns = ColumnCache(store).current(db)
        for facet in facets(db, columns, None, limit):
            assert len(facet.values) <= limit
            counts = [value.count for value in facet.values]
            assert counts == sorted(counts, reverse=True)
            for value in facet.values:
                assert found_by(db, columns, value.filter) == value.count
                narrowed = facets(db, columns, Filter.parse(value.filter), limit)
                again = {each.filter: each.count for one in narrowed for each in one.values}
                assert again.get(value.filter, value.count) == value.count


def facets_of(store: Store, wanted: str | None = None, limit: int = 10) -> dict[str, Facet]:
    with store.reading() as db:
        columns = ColumnCache(store).current(db)
        return {facet.field: facet for facet in facets(db, columns, Filter.of(wanted), limit)}


@pytest.mark.parametrize("max_compared", [50_000, 2])
def test_many_numbers_are_a_range_and_few_are_values(
    store: Store, monkeypatch: pytest.MonkeyPatch, max_compared: int
) -> None:
    monkeypatch.setattr(facets_module, "MAX_COMPARED", max_compared)
    put(store, [({"year": 2000 + n, "stars": "abc"[n % 3], "iso": 100 * (n % 2)}, []) for n in range(20)])
    found = facets_of(store)
    assert list(found) == ["stars", "year", "iso"]
    assert (found["year"].kind, found["year"].minimum, found["year"].maximum) == ("range", 2000, 2019)
    assert [(value.value, value.count) for value in found["stars"].values] == [("a", 7), ("b", 7), ("c", 6)]
    year = facets_of(store, "year>=2005 and stars=b")["year"]
    assert (year.minimum, year.maximum) == (2007, 2019)
    assert facets_of(store, "year=1") == {}
    with store.reading() as db:
        columns = ColumnCache(store).current(db)
        assert field_names(columns) == ("iso", "stars", "year")


@pytest.mark.parametrize("max_compared", [50_000, 2])
def test_names_and_descriptions_are_no_facets_but_nested_and_several_values_are(
    store: Store, monkeypatch: pytest.MonkeyPatch, max_compared: int
) -> None:
    monkeypatch.setattr(facets_module, "MAX_COMPARED", max_compared)
    put(
        store,
        [
            ({"title": f"title {n}", "exif": {"iso": 100 * (n % 2)}, "tags": ["x", "x", "y"][: n % 4]}, [])
            for n in range(20)
        ],
    )
    found = facets_of(store)
    assert set(found) - {"exif"} == {"exif.iso", "tags"}
    assert [(value.value, value.count) for value in found["tags"].values] == [("x", 15), ("y", 5)]
    assert found["exif.iso"].values[0].filter == "exif.iso=0"


def test_months_and_map_cells_count_what_their_filters_find(store: Store) -> None:
    places = [
        (38.7, -9.1, "Lisbon"),
        (38.71, -9.12, "Lisbon"),
        (52.5, 13.4, "Berlin"),
        (90, 180, "end"),
        (-90, -180, None),
    ]
    dates = ["2024-05-17", "2024-05-18T10:00:00", "2024", "yesterday", "2023-01"]
    put(
        store,
        [
            ({"latitude": north, "longitude": east, "place": place, "taken": date}, [])
            for (north, east, place), date in zip(places, dates, strict=True)
        ],
    )
    with store.reading() as db:
        columns = ColumnCache(store).current(db)
        periods = timeline(db, columns, None)
        assert [(one.period, one.count) for one in periods] == [("2023-01", 1), ("2024", 1), ("2024-05", 2)]
        assert found_by(db, columns, periods[2].filter) == 2
        assert [one.period for one in timeline(db, columns, Filter.parse("place:*"))] == ["2024", "2024-05"]
        cells = map_cells(db, columns, None, Box(-90, -180, 90, 180))
        assert sum(cell.count for cell in cells) == 5
        assert (cells[0].count, cells[0].place) == (2, "Lisbon")
        for cell in cells:
            assert found_by(db, columns, cell.filter) == cell.count
        (only,) = map_cells(db, columns, Filter.parse("place:berlin"), Box(0, 0, 90, 90))
        assert (only.latitude, only.longitude, only.count, only.place) == (52.5, 13.4, 1, "Berlin")
