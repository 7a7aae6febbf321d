"""Stored search models: states, files and history."""

from __future__ import annotations

from pathlib import Path

import pytest

from diptych.collection.store.model_history import LearningRecord, from_to, records, remember
from diptych.collection.store.models import (
    Model,
    activate,
    active_model,
    add_model,
    all_models,
    delete_derived,
    finish,
    followed_models,
    load_model,
    model_named,
    models,
    next_model,
    remove_model,
    save_again,
    saved_model,
    set_next,
    switch,
)
from diptych.collection.store.store import Store
from diptych.errors import CollectionError, UnknownRetrieverError
from tests.doubles import ToyRetriever


def put(store: Store, turn: int, state: str, name: str = "") -> Model:
    saved = saved_model(ToyRetriever(turn))
    return store.write(lambda db: add_model(db, saved, name or f"toy {turn}", state))  # type: ignore[arg-type]


def states(store: Store) -> list[tuple[str, str, bool]]:
    with store.reading() as db:
        return [(model.name, model.state, model.is_next) for model in all_models(db)]


def test_a_change_keeps_the_old_model_for_the_way_back(store: Store) -> None:
    put(store, 0, "active")
    put(store, 1, "kept")
    saved = saved_model(ToyRetriever(2))
    assert store.write(lambda db: set_next(db, saved, keeps_old=True)) == []
    with store.reading() as db:
        assert [model.name for model in models(db)] == ["toy 0", "toy 1"]
    # Another change takes its place, to one that is stored and stays so meanwhile.
    (left,) = store.write(lambda db: set_next(db, saved_model(ToyRetriever(1)), keeps_old=True))
    store.write(lambda db: remove_model(db, left))
    assert states(store) == [("toy 0", "active", False), ("toy 1", "kept", True)]
    old, new = store.write(switch)
    assert (old.state, new.state) == ("resting", "active")
    assert states(store) == [("toy 1", "active", False), ("toy 0", "resting", False)]
    with store.reading() as db:
        assert [model.name for model in followed_models(db)] == ["toy 1"]
        assert next_model(db) is None
    with pytest.raises(CollectionError, match="pending"):
        store.write(switch)
    store.write(lambda db: finish(db, old))
    store.write(lambda db: activate(db, old))
    assert states(store) == [("toy 0", "active", False), ("toy 1", "kept", False)]


def test_names_stay_unique_and_a_model_that_is_not_kept_goes(store: Store) -> None:
    put(store, 0, "active", "trained")
    same = ToyRetriever(1)
    same.name = "trained"
    store.write(lambda db: set_next(db, saved_model(same), keeps_old=False))
    other = put(store, 2, "kept")
    store.write(lambda db: activate(db, other))
    old, new = store.write(switch)
    assert (old.name, old.state, new.name) == ("toy 2", "pending", "trained 2")
    assert store.write(lambda db: remove_model(db, old))
    assert states(store) == [("trained 2", "active", False), ("trained", "kept", False)]
    with store.reading() as db:
        assert active_model(db).name == "trained 2"
        assert model_named(db, "trained").fingerprint == "toy-cosine-0"
        with pytest.raises(UnknownRetrieverError, match=r"'none' .* 'trained 2', 'trained'"):
            model_named(db, "none")


def test_the_next_model_is_removed_out_of_sight(store: Store) -> None:
    put(store, 0, "active")
    put(store, 1, "kept")
    store.write(lambda db: set_next(db, saved_model(ToyRetriever(1)), keeps_old=True))
    assert not store.write(lambda db: remove_model(db, model_named(db, "toy 1")))
    with store.reading() as db:
        assert [model.name for model in models(db)] == ["toy 0"]
    store.write(switch)
    assert states(store) == [("toy 1", "active", False), ("toy 0", "resting", False)]


def test_a_failed_change_is_undone_with_its_record(store: Store) -> None:
    put(store, 0, "active")
    other = put(store, 1, "kept")

    def fail(db: object) -> None:
        activate(db, other)  # type: ignore[arg-type]
        remember(db, LearningRecord("2026", "changed", **from_to(other, other)))  # type: ignore[arg-type]
        raise KeyError

    with pytest.raises(KeyError):
        store.write(fail)
    assert states(store)[0] == ("toy 0", "active", False)
    with store.reading() as db:
        assert records(db) == []
    record = LearningRecord("2026", "changed", **from_to(other, other), gained=(("a", 0.1, 0.2),), gate={"a": [1]})
    store.write(lambda db: remember(db, record))
    with store.reading() as db:
        assert records(db) == [record]


def test_files_travel_with_the_database_and_are_unpacked_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("diptych.collection.store.models.PART_BYTES", 4)

    class Large(ToyRetriever):
        def save(self, folder: object) -> None:
            super().save(folder)  # type: ignore[arg-type]
            (Path(str(folder)) / "deep").mkdir()
            (Path(str(folder)) / "deep" / "weights").write_bytes(b"0123456789")
            (Path(str(folder)) / "empty").touch()

    saved = saved_model(Large(3))
    model = store.write(lambda db: add_model(db, saved, "toy", "active"))
    seen: list[Path] = []

    def load(folder: Path) -> ToyRetriever:
        assert (folder / "deep" / "weights").read_bytes() == b"0123456789"
        assert (folder / "empty").read_bytes() == b""
        seen.append(folder)
        return ToyRetriever.load(folder)

    assert load_model(store, model, load).fingerprint == model.fingerprint
    (seen[0] / "deep" / "weights").write_bytes(b"damaged")
    assert load_model(store, model, load).fingerprint == model.fingerprint
    assert seen[0] == seen[1]
    # A reader that looked before it was saved again finds the new form, and the old one goes.
    store.write(lambda db: save_again(db, model, saved_model(Large(3))))
    delete_derived(store)
    assert list(seen[0].parent.iterdir()) == []
    assert load_model(store, model, load).fingerprint == model.fingerprint
    store.write(lambda db: db.run("UPDATE model_file SET body = ? WHERE name = 'deep/weights' AND part = 1", (b"x",)))
    delete_derived(store)
    for path in seen[0].parent.iterdir():
        (path / "empty").unlink()
    with pytest.raises(CollectionError, match="deep/weights of the retriever 'toy' is damaged"):
        load_model(store, model, load)


def test_a_retriever_that_makes_other_points_is_refused(store: Store) -> None:
    model = put(store, 0, "active")
    with pytest.raises(CollectionError, match="weights"):
        load_model(store, model, lambda folder: ToyRetriever(4))
