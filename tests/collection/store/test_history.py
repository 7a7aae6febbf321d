"""Earlier states: every one is as it was, and what is older than is kept goes."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from diptych.collection.filter import parse_filter
from diptych.collection.store.columns import ColumnCache
from diptych.collection.store.dialect import Connection
from diptych.collection.store.facets import facets
from diptych.collection.store.filtering import matching_items
from diptych.collection.store.history import (
    forget_all,
    forget_past,
    history_days,
    keep_history,
    moment,
    past_view,
    prune,
    versions,
)
from diptych.collection.store.items import items_after
from diptych.collection.store.store import Store
from diptych.errors import InvalidInputError

from .test_items import boat, put, remove

DAY_NS = 86_400 * 10**9


def state(db: Connection) -> list[object]:
    """Return everything that is asked of items, as it is seen now."""
    values = "SELECT item, field, text FROM item_value JOIN value ON value.id = value ORDER BY item, field, text"
    said = "SELECT item, caption, name, label, field, caption_words FROM said ORDER BY item, kind, caption"
    return [items_after(db, 0, 99), db.rows(values), db.rows(said)]


def test_every_state_is_as_it_was(store: Store) -> None:
    rng, there, seen = random.Random(0), set[int](), []
    for _ in range(12):
        some = rng.sample(range(6), 2)
        if there and rng.random() < 0.3:
            remove(store, gone := rng.choice(sorted(there)))
            there.remove(gone)
        else:
            texts = tuple(rng.choice(("a red boat", "the sea", "two dogs")) for _ in range(rng.randrange(3)))
            captions = tuple(f"{rng.random()}" for _ in texts)
            labels = tuple(rng.sample("abc", 2))
            there.update(
                put(store, *(boat(one, labels=labels) for one in some[:1]))
                + put(store, boat(some[1], captions=texts, caption_ids=captions))
            )
        with store.reading() as db:
            seen.append((versions(db)[-1], state(db)))
    for version, before in seen:
        with store.reading() as db:
            when, found = moment(db, version.number)
            past_view(db, when)
            assert (found, state(db)) == (version, before)
            assert len(before[0]) == version.items  # type: ignore[arg-type]
    with store.reading() as db:
        assert state(db) == seen[-1][1]


def test_moments_are_numbers_days_and_times_in_utc(store: Store) -> None:
    with store.reading() as db, pytest.raises(InvalidInputError, match="no earlier state"):
        moment(db, 1)
    put(store, boat())
    today = datetime.now(UTC)
    with store.reading() as db:
        assert moment(db, f"{today:%Y-%m-%d}")[1].number == 2
        assert moment(db, today.astimezone().isoformat())[1].number == 2
        assert moment(db, "1")[1].items == 0
        for early in ("2001-01-01", datetime(2001, 1, 1)):
            with pytest.raises(InvalidInputError, match="earliest"):
                moment(db, early)
        for wrong in ("yesterday", "2026-13-01", ""):
            with pytest.raises(InvalidInputError, match="version number, a day or a time"):
                moment(db, wrong)
        with pytest.raises(InvalidInputError, match=r"no version 99; kept are 1 .* to 2 "):
            moment(db, 99)


def test_what_is_older_than_is_kept_goes(store: Store) -> None:
    numbers = put(store, boat(0), boat(1), boat(2))
    remove(store, numbers[0])
    remove(store, numbers[1])

    def make_old(db: Connection) -> None:
        db.run("UPDATE version SET time_ns = time_ns - ? WHERE id < 4", (40 * DAY_NS,))
        db.run("UPDATE former_item SET until_ns = until_ns - ? WHERE id = ?", (40 * DAY_NS, numbers[0]))
        db.run("UPDATE change SET time_ns = time_ns - ? WHERE item = ?", (40 * DAY_NS, numbers[0]))

    store.write(make_old)
    assert store.write(history_days) == 30
    store.write(forget_past)
    with store.reading() as db:
        assert [one.number for one in versions(db)] == [3, 4]
        assert db.rows("SELECT id FROM former_item") == [(numbers[1],)]
    last = store.last_change()
    assert prune(store) == 1
    with store.reading() as db:
        assert db.value("SELECT count(*) FROM content WHERE kind = 0") == 2
        assert db.value("SELECT count(*) FROM change WHERE item = ?", (numbers[0],)) == 0
    assert store.last_change() == last
    store.write(lambda db: keep_history(db, 0))
    put(store, boat(2, labels=()))
    store.write(forget_past)
    with store.reading() as db:
        assert [one.number for one in versions(db)] == [5]
        assert db.value("SELECT count(*) FROM former_item") == 0
    with pytest.raises(InvalidInputError):
        store.write(lambda db: keep_history(db, -1))


def test_values_that_no_item_has_are_pruned(store: Store) -> None:
    cache = ColumnCache(store)
    put(store, boat(0, labels=("red", "old")), boat(1, labels=("blue",)))
    with store.reading() as db:
        cache.current(db)
    put(store, boat(0, labels=("red",)))
    prune(store)
    with store.reading() as db:
        # A former item has it still.
        assert db.value("SELECT count(*) FROM value WHERE text = 'old'") == 1
    store.write(forget_all)
    prune(store)
    with store.reading() as db:
        assert [text for (text,) in db.rows("SELECT text FROM value WHERE field = 'label' ORDER BY text")] == [
            "blue",
            "red",
        ]
        (labels,) = (facet for facet in facets(db, cache.current(db), None, 9) if facet.field == "label")
        assert [(value.value, value.count) for value in labels.values] == [("blue", 1), ("red", 1)]
    (number,) = put(store, boat(2, labels=("old",)))
    with store.reading() as db:
        found = matching_items(db, cache.current(db), parse_filter("label:old"))
        assert np.flatnonzero(found).tolist() == [number]


def test_the_past_can_be_ended(store: Store) -> None:
    put(store, boat(0))
    put(store, boat(0, facts={}))
    store.write(forget_all)
    with store.reading() as db:
        assert [replace(one, time_ns=0).items for one in versions(db)] == [1]
        assert {db.value(f"SELECT count(*) FROM former_{table}") for table in ("item", "caption", "value", "said")} == {
            0
        }
