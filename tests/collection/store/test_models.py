"""Stored search models: states, files and history."""

from __future__ import annotations

from pathlib import Path

import pytest

from diptych.collection.retrievers import (
    activate,
    add_model,
    finish,
    remove_model,
    rename_model,
    save_again,
    saved_model,
)
from diptych.collection.store.model_history import LearningRecord, from_to, records, remember
from diptych.collection.store.models import (
    Model,
    active_model,
    all_models,
    followed_models,
    load_model,
    model_named,
    models,
    pending_model,
)
from diptych.collection.store.store import Store
from diptych.errors import CollectionError, UnknownRetrieverError
from tests.doubles import ToyRetriever


def put(store: Store, turn: int, state: str, name: str = "") -> Model:
    saved = saved_model(ToyRetriever(turn))
    return store.write(lambda db: add_model(db, saved, name or f"toy {turn}", state))  # type: ignore[arg-type]


def states(store: Store) -> list[tuple[str, str]]:
    with store.reading() as db:
        return [(model.name, model.state) for model in all_models(db)]


def test_a_change_keeps_the_old_model_for_the_way_back(store: Store) -> None:
    put(store, 0, "active")
    put(store, 1, "kept")
    new = put(store, 2, "pending")
    with store.reading() as db:
        assert [model.name for model in models(db)] == ["toy 0", "toy 1"]
        assert pending_model(db) == new
    store.write(lambda db: activate(db, new, "resting"))
    assert states(store) == [("toy 2", "active"), ("toy 1", "kept"), ("toy 0", "resting")]
    with store.reading() as db:
        assert [model.name for model in followed_models(db)] == ["toy 2", "toy 1"]
        assert pending_model(db) is None
        old = model_named(db, "toy 0")
    store.write(lambda db: finish(db, old))
    store.write(lambda db: activate(db, old))
    assert states(store) == [("toy 0", "active"), ("toy 2", "kept"), ("toy 1", "kept")]
    store.write(lambda db: remove_model(db, new))
    assert states(store) == [("toy 0", "active"), ("toy 1", "kept")]


def test_names_stay_unique(store: Store) -> None:
    put(store, 0, "active", "trained")
    new = put(store, 1, "pending", "trained")
    store.write(lambda db: activate(db, new, "resting"))
    store.write(lambda db: rename_model(db, new))
    assert states(store) == [("trained 2", "active"), ("trained", "resting")]
    with store.reading() as db:
        assert active_model(db).name == "trained 2"
        assert model_named(db, "trained").fingerprint == "toy-cosine-0"
        with pytest.raises(UnknownRetrieverError, match=r"'none' .* 'trained 2', 'trained'"):
            model_named(db, "none")


def test_a_failed_change_is_undone_with_its_record(store: Store) -> None:
    put(store, 0, "active")
    other = put(store, 1, "kept")

    def fail(db: object) -> None:
        activate(db, other)  # type: ignore[arg-type]
        remember(db, LearningRecord("2026", "changed", **from_to(other, other)))  # type: ignore[arg-type]
        raise KeyError

    with pytest.raises(KeyError):
        store.write(fail)
    assert states(store)[0] == ("toy 0", "active")
    with store.reading() as db:
        assert records(db) == []
    record = LearningRecord("2026", "changed", **from_to(other, other), gained=(("a", 0.1, 0.2),), gate={"a": [1]})
    store.write(lambda db: remember(db, record))
    with store.reading() as db:
        assert records(db) == [record]


def test_files_travel_with_the_database(store: Store) -> None:
    class Large(ToyRetriever):
        def save(self, folder: object) -> None:
            super().save(folder)  # type: ignore[arg-type]
            (Path(str(folder)) / "deep").mkdir()
            (Path(str(folder)) / "deep" / "weights").write_bytes(b"0123456789")
            (Path(str(folder)) / "empty").touch()

    saved = saved_model(Large(3))
    model = store.write(lambda db: add_model(db, saved, "toy", "active"))

    def load(folder: Path) -> ToyRetriever:
        assert (folder / "deep" / "weights").read_bytes() == b"0123456789"
        assert (folder / "empty").read_bytes() == b""
        return ToyRetriever.load(folder)

    assert load_model(store, model, load).fingerprint == model.fingerprint
    # A reader that looked before it was saved again finds the new form.
    store.write(lambda db: save_again(db, model, saved_model(Large(3))))
    assert load_model(store, model, load).fingerprint == model.fingerprint
    store.write(lambda db: db.run("UPDATE model_file SET body = ? WHERE name = 'deep/weights'", (b"x",)))
    with pytest.raises(CollectionError, match="deep/weights of the retriever 'toy' is damaged"):
        load_model(store, model, load)


def test_files_are_written_nowhere_else(store: Store, tmp_path: Path) -> None:
    model = put(store, 0, "active")
    for name in (f"{tmp_path}/file", "../../file"):
        store.write(lambda db, name=name: db.run("UPDATE model_file SET name = ?", (name,)))  # type: ignore[misc]
        with pytest.raises(CollectionError, match="file of the retriever 'toy 0' is damaged"):
            load_model(store, model, ToyRetriever.load)
    assert not (tmp_path / "file").exists()


def test_a_retriever_that_makes_other_points_is_refused(store: Store) -> None:
    model = put(store, 0, "active")
    with pytest.raises(CollectionError, match="weights"):
        load_model(store, model, lambda folder: ToyRetriever(4))
