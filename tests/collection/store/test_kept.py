"""Thumbnails, texts in pictures, albums and saved searches in the tables."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from diptych.collection.saved import Album, Albums, SavedSearch, SavedSearches
from diptych.collection.searching.query import SearchRequest
from diptych.collection.store.items import items_by_name, picture_texts, put_unread_files, thumbnails, unread_files
from diptych.collection.store.store import Store, put_setting, setting
from diptych.collection.store.writing import PICTURE, content_ids, put_items, put_picture_texts, put_thumbnails
from diptych.encoders.image.picture_parts import PictureText, PictureWord
from diptych.errors import InvalidInputError, UnknownItemError, UnknownNameError

from .test_items import boat, put, remove


@pytest.fixture
def albums(store: Store) -> Albums:
    put(store, *(boat(number, id=name) for number, name in enumerate("abc")))

    def numbers_of(names: Sequence[str]) -> list[int]:
        with store.reading() as db:
            known = items_by_name(db, names)
        if len(known) < len(names):
            raise UnknownItemError("not there")
        return [known[name][0] for name in names]

    return Albums(store, numbers_of)


def test_an_album_keeps_its_own_order_and_each_item_once(store: Store, albums: Albums) -> None:
    albums.add("Summer", ["c", "a"])
    assert albums.add(" summer ", ["b", "c"]) == Album("Summer", ("c", "a", "b"))
    assert [item.id for item in albums.items("SUMMER")] == ["c", "a", "b"]
    assert albums.set("Summer", ["b", "a"]).ids == ("b", "a")
    assert albums.remove("Summer", "b").ids == ("a",)
    assert list(albums) == [Album("Summer", ("a",))]
    remove(store, 1)
    assert albums["Summer"].ids == ()
    albums.delete("summer")
    assert "Summer" not in albums


def test_mistakes_in_names_change_nothing(store: Store, albums: Albums) -> None:
    albums.add("One", "a")
    albums.add("Two", "b")
    with pytest.raises(InvalidInputError, match="already"):
        albums.rename("One", "two")
    with pytest.raises(UnknownItemError):
        albums.add("One", ["c", "nothing"])
    with pytest.raises(UnknownNameError, match="did you mean 'Two'"):
        albums.remove("Twoo", "a")
    for name in ("", "a/b", "x" * 81, "bell\a"):
        with pytest.raises(InvalidInputError):
            albums.add(name, "a")
    assert albums.rename("One", "ONE").title == "ONE"
    assert [(one.title, one.ids) for one in albums] == [("ONE", ("a",)), ("Two", ("b",))]


def test_saved_searches_keep_their_order(store: Store) -> None:
    asked: list[SearchRequest] = []
    searches = SavedSearches(store, asked.append)  # type: ignore[arg-type]
    searches.save(SavedSearch("Dogs", "a dog", filter="year>=2020", mode="both"))
    searches.save(SavedSearch("Filter", filter="label:a"))
    searches.save(SavedSearch("dogs", "two dogs"))
    assert [(one.name, one.query) for one in searches] == [("dogs", "two dogs"), ("Filter", "")]
    searches.run("DOGS", 5)
    assert [(str(one.query), one.k) for one in asked] == [("two dogs", 5)]
    with pytest.raises(InvalidInputError, match="label:a"):
        searches.run("Filter")
    with pytest.raises(InvalidInputError, match="already"):
        searches.rename("dogs", "filter")
    assert searches.rename("dogs", "Hounds") == searches["hounds"]
    searches.delete("Hounds")
    with pytest.raises(UnknownNameError):
        searches.delete("Hounds")


def test_what_is_written_in_a_picture_is_found_until_the_last_copy_goes(store: Store) -> None:
    first, second = put(store, boat(0), boat(1, content_hash=boat(0).content_hash))
    box = ((0.1, 0.2), (0.3, 0.2), (0.3, 0.4), (0.1, 0.4))
    text = PictureText("EXIT Straße", (PictureWord("EXIT", box), PictureWord("Straße", box)))
    content = store.write(lambda db: content_ids(db, [str(boat(0).content_hash)], PICTURE))[str(boat(0).content_hash)]
    store.write(lambda db: put_picture_texts(db, {content: text}))
    put(store, boat(0, labels=()))
    with store.reading() as db:
        assert picture_texts(db, [content, 99]) == {content: text}
        assert db.rows("SELECT item, picture FROM said WHERE kind = 0 ORDER BY item") == [
            (first, "exit strasse"),
            (second, "exit strasse"),
        ]
    remove(store, first)
    with store.reading() as db:
        assert picture_texts(db, [content])
    remove(store, second)
    with store.reading() as db:
        assert not picture_texts(db, [content])


def test_thumbnails_settings_and_unread_files_are_replaced(store: Store) -> None:
    content = store.write(lambda db: content_ids(db, ["00" * 32], PICTURE))["00" * 32]
    for jpeg in (b"one", b"two"):
        store.write(lambda db, jpeg=jpeg: put_thumbnails(db, {content: jpeg}))
        store.write(lambda db, jpeg=jpeg: put_setting(db, "facts", jpeg.decode()))
        store.write(lambda db, jpeg=jpeg: put_unread_files(db, {f"{jpeg.decode()}\udcff": "damaged"}))
    with store.reading() as db:
        assert thumbnails(db, [content, 99]) == {content: b"two"}
        assert setting(db, "facts") == "two"
        assert setting(db, "other", "x") == "x"
        assert unread_files(db) == {"two?": "damaged"}


def test_an_item_that_comes_with_a_read_picture_is_found_by_its_text(store: Store) -> None:
    content = store.write(lambda db: content_ids(db, [str(boat(0).content_hash)], PICTURE))[str(boat(0).content_hash)]
    store.write(lambda db: put_picture_texts(db, {content: PictureText("EXIT", ())}))
    store.write(lambda db: put_items(db, [boat(0)]))
    with store.reading() as db:
        assert db.value("SELECT picture FROM said WHERE kind = 0") == "exit"
