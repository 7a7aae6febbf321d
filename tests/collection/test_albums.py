"""Saved searches and albums: kept in the collection, seen by others, and albums as a filter."""

from __future__ import annotations

from pathlib import Path

import pytest

from diptych.collection import (
    Album,
    Collection,
    Filter,
    Record,
    SavedSearch,
    backup_collection,
    restore_collection,
)
from diptych.errors import InvalidInputError, UnknownItemError, UnknownNameError


@pytest.fixture
def filled(collection: Collection, photos: Path) -> Collection:
    collection.add([Record(photos / f"{name}.png", labels=[name], id=name) for name in "abc"])
    return collection


def other(collection: Collection) -> Collection:
    """The same collection as another process sees it."""
    return Collection.open(collection.folder, load_retriever=type(collection.retriever).load)


def test_an_album_keeps_its_own_order_and_each_item_once(filled: Collection, photos: Path) -> None:
    filled.albums.add("Summer", ["c", photos / "a.png"])
    assert filled.albums.add(" summer ", ["b", "c"]) == Album("Summer", ("c", "a", "b"))
    assert [item.id for item in filled.albums.items("SUMMER")] == ["c", "a", "b"]
    assert filled.albums.set("Summer", ["b", "a"]).ids == ("b", "a")
    assert filled.albums.remove("Summer", "b").ids == ("a",)
    with other(filled) as seen:
        assert list(seen.albums) == [Album("Summer", ("a",))]
        assert "summer" in seen.albums
        assert "winter" not in seen.albums


def test_what_leaves_the_collection_leaves_its_albums_and_the_files_stay(filled: Collection, photos: Path) -> None:
    filled.albums.add("All", Filter.parse("label:*"))
    filled.remove("b")
    assert filled.albums["All"].ids == ("a", "c")
    # The next change forgets it for good, so that an item that gets the same id later is not taken for it.
    filled.albums.add("All", "a")
    filled.add(Record(photos / "b.png", id="b"))
    assert filled.albums["All"].ids == ("a", "c")
    filled.albums.delete("All")
    assert len(filled) == 3
    assert list(filled.albums) == []


def test_albums_are_a_field_of_filters(filled: Collection) -> None:
    filled.albums.add("Summer 2024", ["c", "a"])
    filled.albums.add("Best", ["a"])
    ids = lambda text: [item.id for item in filled.items(text)]  # noqa: E731
    assert ids('album:"summer 2024"') == ["a", "c"]
    assert ids("album:summer* and not album=Best") == ["c"]
    assert ids("album!=Best") == ["b", "c"]
    assert {answer.id for answer in filled.search("picture", filter="album:Best or label:b")} == {"a", "b"}
    assert filled.remove(Filter.parse("album:best")) == ["a"]
    assert ids("album:summer*") == ["c"]
    with pytest.raises(UnknownNameError, match="did you mean 'Best'"):
        filled.items("album:Bets")


def test_the_metadatum_called_album_has_its_other_name(filled: Collection) -> None:
    filled.update("a", metadata={"album": "Abbey Road"})
    assert [item.id for item in filled.items("meta.album:abbey*")] == ["a"]
    assert "meta.album" in [facet.field for facet in filled.facets()] or filled.facets() == []


def test_a_saved_search_is_asked_anew(filled: Collection, photos: Path) -> None:
    filled.saved_searches.save(SavedSearch("Letters", "picture", filter="not label:b", min_probability=0.0))
    assert {answer.id for answer in filled.saved_searches.run("letters")} == {"a", "c"}
    filled.remove("a")
    assert {answer.id for answer in filled.saved_searches.run("Letters", 5)} == {"c"}
    filled.saved_searches.rename("Letters", "Signs")
    with other(filled) as seen:
        assert [one.name for one in seen.saved_searches] == ["Signs"]
        assert len(seen.saved_searches.run("Signs", offset=1)) == 0
    filled.saved_searches.save(SavedSearch("signs", "other"))
    assert [(one.name, one.query) for one in filled.saved_searches] == [("signs", "other")]
    filled.saved_searches.delete("Signs")
    assert "Signs" not in filled.saved_searches


def test_a_saved_search_names_no_file(filled: Collection, photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(photos)
    with pytest.raises(InvalidInputError, match="no picture"):
        filled.saved_searches.save(SavedSearch("File", "a.png"))
    assert "File" not in filled.saved_searches


@pytest.mark.parametrize("name", ["", "  ", "a/b", "x" * 81, "bell\a"])
def test_names_are_fit_for_lists_and_addresses(filled: Collection, name: str) -> None:
    with pytest.raises(InvalidInputError):
        SavedSearch(name, "dog")
    with pytest.raises(InvalidInputError):
        filled.albums.add(name, "a")


def test_mistakes_are_named_and_change_nothing(filled: Collection) -> None:
    filled.albums.add("One", "a")
    filled.albums.add("Two", "b")
    with pytest.raises(InvalidInputError, match="already"):
        filled.albums.rename("One", "two")
    with pytest.raises(UnknownItemError):
        filled.albums.add("One", ["c", "nothing"])
    with pytest.raises(UnknownNameError):
        filled.albums.remove("Three", "a")
    with pytest.raises(InvalidInputError, match="words, a filter or both"):
        SavedSearch("Empty")
    with pytest.raises(InvalidInputError):
        SavedSearch("Bad", filter="label:(")
    filled.saved_searches.save(SavedSearch("Filter", filter="label:a"))
    with pytest.raises(InvalidInputError, match="label:a"):
        filled.saved_searches.run("Filter")
    assert [album.ids for album in filled.albums] == [("a",), ("b",)]
    assert filled.albums.rename("One", "ONE").title == "ONE"


def test_a_backup_has_them(filled: Collection, tmp_path: Path) -> None:
    filled.albums.add("Summer", ["c", "a"])
    filled.saved_searches.save(SavedSearch("Dogs", "a dog", mode="both", sort="name", regions=False))
    backup_collection(filled.folder, tmp_path / "backup")
    restore_collection(tmp_path / "backup", tmp_path / "again")
    with Collection.open(tmp_path / "again", load_retriever=type(filled.retriever).load) as again:
        assert again.albums["Summer"].ids == ("c", "a")
        dogs = again.saved_searches["Dogs"]
        assert (dogs.mode, dogs.sort, dogs.regions) == ("both", "name", False)
        assert [answer.id for answer in again.saved_searches.run("Dogs")] == [
            answer.id for answer in again.search("a dog", hybrid=0.5, sort="name")
        ]
