"""The outputs behind hash codes, kept beside them: the answers are those of the stored features, and it is faster."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from diptych.arrays import unit_rows
from diptych.collection import Collection, Record
from diptych.collection.search import retriever_state
from diptych.collection.search.folding import fold_lock
from diptych.collection.search.gallery import Gallery
from diptych.collection.search.snapshot import Target
from diptych.collection.storage.store import Store, _chosen, features_table
from diptych.errors import NoRoomError
from tests.doubles import ToyRetriever

N = 60
ROUNDING = 1e-5


class ToyCodes(ToyRetriever):
    """The toy with the numbers that its bits are the signs of."""

    def __init__(self, turn: int = 0, space: str = "hamming") -> None:
        super().__init__(turn, space)

    def images_to_outputs(self, features: np.ndarray) -> np.ndarray:
        return np.asarray(features, dtype=np.float64) @ self._matrix

    texts_to_outputs = images_to_outputs

    def image_features(self, items: Sequence[Any]) -> np.ndarray:
        return self._drawn([Path(item).read_bytes() for item in items])


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    folder = tmp_path / "pictures"
    folder.mkdir()
    for number in range(N):
        (folder / f"{number:02}.png").write_text(f"picture {number}")
    return folder


@pytest.fixture
def filed(pictures: Path) -> Iterator[Collection]:
    """A collection whose items are in search files, most of them in the first of two."""
    made = Collection.create(pictures.parent / "c", ToyCodes(), root=pictures, load_retriever=ToyCodes.load)
    with made as collection:
        records = [Record(path, [f"caption {path.stem}"]) for path in sorted(pictures.glob("*.png"))]
        for some in (records[: N - 10], records[N - 10 :]):
            collection.add(some)
            collection._state.fold()
        yield collection


def found(collection: Collection, target: Target = "images") -> list[str]:
    """Return what a search by features finds, after outputs that are being made are kept."""
    answers = collection.search("asked", k=2 * N, target=target, hybrid=False, rerank=2 * N, rerank_by="features")
    collection._state.close()
    return [answer.caption_id or answer.id for answer in answers]


def outputs_of(collection: Collection, target: Target = "images") -> list[np.ndarray | None]:
    gallery = collection._state.snapshot().galleries["image" if target == "images" else "text"]
    return [None if block.outputs is None else block.outputs(np.arange(len(block))) for block in gallery.blocks]


def from_store(collection: Collection, target: Target = "images") -> list[str]:
    """Return what is found where nothing is kept."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Gallery, "outputs", lambda _, rows, width: np.full((len(rows), width), np.nan, np.float32))
        return found(collection, target)


def is_by_brute_force(collection: Collection, names: list[str], target: Target = "images") -> bool:
    """Say whether all there is comes in the order of the numbers that the features of its contents give."""
    toy, contents = ToyCodes(), {}
    for item in collection:
        if target == "texts":
            texts = zip(item.caption_ids, item.captions, strict=True)
            contents |= {name: toy.text_features([text]) for name, text in texts}
        elif item.path is not None:
            contents[item.id] = toy.image_features([collection.path_of(item)])
    asked = unit_rows(toy.texts_to_outputs(toy.text_features(["asked"])))[0]
    gains = {name: float(unit_rows(toy.images_to_outputs(row))[0] @ asked) for name, row in contents.items()}
    in_order = np.array([gains[name] for name in names])
    return sorted(names) == sorted(gains) and bool((np.diff(in_order) < ROUNDING).all())


@pytest.mark.parametrize("target", ["images", "texts"])
def test_answers_are_the_same_and_do_not_ask_the_store(
    filed: Collection, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = found(filed, target)
    assert is_by_brute_force(filed, before, target)
    assert [None if kept is None else len(kept) for kept in outputs_of(filed, target)] == [N - 10, 10]
    assert filed.verify().is_whole
    other = Collection.open(filed.folder, load_retriever=ToyCodes.load)
    monkeypatch.setattr(Store, "vectors_by_key", None)
    assert found(filed, target) == found(other, target) == before


def test_the_next_search_sees_changes(filed: Collection, pictures: Path) -> None:
    found(filed)
    reader = Collection.open(filed.folder, load_retriever=ToyCodes.load)
    found(reader, "texts")

    def is_right() -> bool:
        return all(
            is_by_brute_force(one, found(one, target), target) and found(one, target) == from_store(one, target)
            for one in (filed, reader)
            for target in ("images", "texts")
        )

    (pictures / "07.png").write_text("another picture")
    (pictures / "new.png").write_text("a new picture")
    filed.add([pictures / "new.png", pictures / "07.png"])
    filed.update("03.png", captions=["other words", "caption 04"])
    filed.remove(["10.png", "55.png"])
    assert is_right()
    filed._state.fold(everything=True)
    assert is_right()
    assert [None if kept is None else len(kept) for kept in outputs_of(filed)] == [N - 1]
    (pictures / "new.png").write_text("a picture that has changed in a file")
    filed.refresh()
    assert is_right()


def test_equal_pictures_keep_the_order_of_their_codes(filed: Collection, pictures: Path) -> None:
    """Wherever their numbers come from: a product may round them differently."""
    for name in ("00 again.png", "00 once more.png"):
        shutil.copy(pictures / "00.png", pictures / name)
    found(filed)
    filed.add([pictures / "00 again.png"])
    filed._state.fold()
    filed.add([pictures / "00 once more.png"])
    ids = [filed[name].id for name in ("00.png", "00 again.png", "00 once more.png")]
    names = found(filed)
    first = names.index(ids[0])
    assert names[first : first + 3] == ids
    assert found(filed) == from_store(filed)


def test_of_the_latest_changes_only_the_last_is_asked_for(
    filed: Collection, pictures: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found(filed)
    table, asked = features_table(filed._state.layout.retriever, "image"), []
    read = Store.read_vectors

    def noting(store: Store, name: str, keys: Sequence[str] | None = None) -> Any:
        asked.extend(keys or () if name == table else ())
        return read(store, name, keys)

    monkeypatch.setattr(Store, "read_vectors", noting)
    for name in ("first.png", "second.png"):
        (pictures / name).write_text(name)
        filed.add([pictures / name])
        asked.clear()
        assert is_by_brute_force(filed, found(filed))
        assert found(filed) == found(filed)
        assert asked == [filed[name].content_hash]


def kept_file(collection: Collection) -> Path:
    return max(
        (collection.folder / "index").glob("*/image-*/outputs/outputs.npy"), key=lambda path: path.stat().st_size
    )


@pytest.mark.parametrize("harm", ["cut", "foreign", "gone"])
def test_what_cannot_be_read_is_made_anew(filed: Collection, harm: str) -> None:
    before = found(filed)
    path = kept_file(filed)
    whole = path.read_bytes()
    if harm == "cut":
        path.write_bytes(whole[:-40])
    elif harm == "foreign":
        np.save(path, np.zeros((3, 8), dtype=np.float32))
    else:
        shutil.rmtree(path.parent)
    with Collection.open(filed.folder, load_retriever=ToyCodes.load) as other:
        assert found(other) == before
        assert path.read_bytes() == whole
        assert found(other) == before
        assert other.verify().is_whole


def test_a_check_finds_changed_bytes(filed: Collection) -> None:
    found(filed)
    path = kept_file(filed)
    assert filed._state.segment_files.damaged() == {}
    damaged = bytearray(path.read_bytes())
    damaged[-2] ^= 64
    path.write_bytes(damaged)
    (name,) = filed._state.segment_files.damaged()
    assert filed.folder / "index" / name == path


def test_without_room_the_store_is_asked(filed: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def full(folder: Path, n_bytes: int) -> None:
        tried.append(n_bytes)
        raise NoRoomError(folder, n_bytes)

    monkeypatch.setattr(retriever_state, "check_room", full)
    assert is_by_brute_force(filed, found(filed))
    assert found(filed) == from_store(filed)
    # Once for each of the files, not with every search.
    assert len(tried) == 2
    assert not list(filed.folder.glob("index/*/*/outputs"))


def test_one_process_makes_them(filed: Collection) -> None:
    with fold_lock(filed.folder / "index", "outputs.lock") as is_ours:
        assert is_ours
        assert is_by_brute_force(filed, found(filed))
        assert outputs_of(filed) == [None, None]
    found(filed)
    assert all(kept is not None for kept in outputs_of(filed))


def test_what_had_no_features_gets_them_from_the_store_later(filed: Collection) -> None:
    table = features_table(filed._state.layout.retriever, "image")
    store, content = filed._state.store, str(filed["05.png"].content_hash)
    features = store.vectors_by_key(table, [content])[content]
    store.delete_rows(table, [content])
    found(filed)
    assert sum(int(np.isnan(kept).any(axis=1).sum()) for kept in outputs_of(filed) if kept is not None) == 1
    store.add_vectors(table, [content], features[None, :])
    assert is_by_brute_force(filed, found(filed))
    assert found(filed) == from_store(filed)


@pytest.mark.parametrize("n_asked", [1, 50])
def test_few_rows_and_most_of_a_table_are_read_alike(
    filed: Collection, n_asked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = features_table(filed._state.layout.retriever, "image")
    store = filed._state.store
    keys = store.keys(table).to_pylist()[:n_asked]
    expected = {key: row.tolist() for key, row in store.vectors_by_key(table, keys).items()}
    assert sorted(expected) == sorted(keys)
    monkeypatch.setattr("diptych.collection.storage.store._MANY_KEYS", 0)
    whole = []
    chosen = _chosen
    monkeypatch.setattr("diptych.collection.storage.store._chosen", lambda *read: whole.append(1) or chosen(*read))
    assert {key: row.tolist() for key, row in store.vectors_by_key(table, keys).items()} == expected
    assert bool(whole) == (n_asked > 1)


def test_points_that_are_made_anew_have_their_own_outputs(filed: Collection) -> None:
    before = found(filed)
    filed._state.forget_points(filed._state.layout.retriever)
    assert not list(filed.folder.glob("index/*/*/outputs"))
    assert found(filed) == before
    assert all(kept is not None for kept in outputs_of(filed))


def test_other_searches_keep_nothing(filed: Collection) -> None:
    filed.search("asked", hybrid=False)
    filed.search("asked", rerank=N)
    found(filed.at(filed.history()[-1].number))
    filed._state.close()
    assert outputs_of(filed) == [None, None]
