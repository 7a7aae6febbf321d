from __future__ import annotations

import pytest

from diptych.collection import Collection, Record
from diptych.errors import InvalidInputError


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
    assert second.endswith("modified, meta.path, year")
    assert collection.search("a", target="texts", filter="year>2100 or meta.path=y").notes == ()
    assert collection.search("a", target="texts").notes == ()
