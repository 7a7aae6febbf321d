from __future__ import annotations

import pytest

from diptych.collection import Collection, CollectionError
from diptych.collection.learning import LearningRecord, learning_history, rollback
from diptych.collection.learning.promotion import announce, base_name, history_file, promote, remember, utc_now
from kill_trials import ToyRetriever


def compared(collection: Collection) -> LearningRecord:
    now = collection.retrievers()[0]
    gained = (("a dog", 0.1, 0.9),)
    return LearningRecord(
        utc_now(), "kept", now.name, now.fingerprint, now.name, now.fingerprint, old=0.1, new=0.2, gained=gained
    )


def active_name(collection: Collection) -> str:
    return collection.retrievers()[0].name


def test_a_promotion_is_remembered_and_taken_back(collection: Collection) -> None:
    collection.add(collection.root)
    assert learning_history(collection) == []
    done = promote(collection, ToyRetriever(1), compared(collection))
    assert (done.action, done.before, done.after) == ("promoted", "toy 0", "toy 1")
    assert active_name(collection) == "toy 1"
    assert learning_history(collection) == [done]
    back = rollback(collection)
    assert (back.action, back.before, back.after) == ("rolled back", "toy 1", "toy 0")
    assert active_name(collection) == "toy 0"
    assert [record.action for record in learning_history(collection)] == ["promoted", "rolled back"]
    assert {each.name for each in collection.retrievers()} == {"toy 0", "toy 1"}
    with pytest.raises(CollectionError, match="nothing to roll back to"):
        rollback(collection)


def test_two_promotions_lead_back_step_by_step_and_share_a_base(collection: Collection) -> None:
    collection.add(collection.root)
    for turn in (1, 2):
        promote(collection, ToyRetriever(turn), compared(collection))
    assert base_name(collection) == "toy 0"
    rollback(collection)
    assert active_name(collection) == "toy 1"
    rollback(collection)
    assert active_name(collection) == "toy 0"
    promote(collection, ToyRetriever(2), compared(collection))
    rollback(collection)
    assert active_name(collection) == "toy 0"


class Killed(BaseException):
    """As sudden as the end of a process."""


def test_whoever_is_killed_midway_leaves_the_old_state_or_the_new_one_with_a_way_back(
    collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    collection.add(collection.root)
    before = [answer.item.id for answer in collection.search("anything")]

    def die(*_: object, **__: object) -> None:
        raise Killed

    for moment_of_death in ("add_retriever", "activate_retriever"):
        with monkeypatch.context() as patch:
            patch.setattr(Collection, moment_of_death, die)
            with pytest.raises(Killed):
                promote(collection, ToyRetriever(1), compared(collection))
        with Collection.open(collection.folder, load_retriever=ToyRetriever.load) as again:
            assert active_name(again) == "toy 0"
            assert learning_history(again) == []
            assert [answer.item.id for answer in again.search("anything")] == before
    with monkeypatch.context() as patch:
        patch.setattr("diptych.collection.learning.promotion.remember", die)
        with pytest.raises(Killed):
            promote(collection, ToyRetriever(1), compared(collection))
    with Collection.open(collection.folder, load_retriever=ToyRetriever.load) as again:
        assert active_name(again) == "toy 1"
        assert [record.action for record in learning_history(again)] == ["promoted"]
        rollback(again)
        assert active_name(again) == "toy 0"


def test_half_a_line_is_no_record_and_swallows_none(collection: Collection) -> None:
    first = compared(collection)
    remember(collection, first)
    with history_file(collection).open("a") as stream:
        stream.write('{"time": "2026-')
    remember(collection, first)
    assert learning_history(collection) == [first, first]
    announce(collection, LearningRecord(utc_now(), "promoted", "a", "fa", "b", "fb"))
    assert learning_history(collection) == [first, first]


def test_without_the_former_retriever_there_is_no_way_back(collection: Collection) -> None:
    collection.add(collection.root)
    promote(collection, ToyRetriever(1), compared(collection))
    collection.remove_retriever("toy 0")
    assert base_name(collection) == "toy 1"
    with pytest.raises(CollectionError, match="no longer stored"):
        rollback(collection)


def test_what_is_in_use_is_not_promoted_again_and_keeps_its_way_back(collection: Collection) -> None:
    collection.add(collection.root)
    promote(collection, ToyRetriever(1), compared(collection))
    again = promote(collection, ToyRetriever(1), compared(collection))
    assert (again.action, again.before, again.after) == ("kept", "toy 1", "toy 1")
    assert "same clicks" in again.reason
    assert rollback(collection).after == "toy 0"


def test_what_is_promoted_again_after_another_leads_back_to_the_beginning(collection: Collection) -> None:
    collection.add(collection.root)
    for turn in (1, 2, 1):
        promote(collection, ToyRetriever(turn), compared(collection))
        assert base_name(collection) == "toy 0"
    assert [rollback(collection).after for _ in range(3)] == ["toy 2", "toy 1", "toy 0"]
    collection.activate_retriever("toy 1")
    assert rollback(collection).after == "toy 2"


def test_an_interrupted_promotion_is_not_forgotten_by_the_next_step(
    collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    collection.add(collection.root)

    def die(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr("diptych.collection.learning.promotion.remember", die)
        with pytest.raises(Killed):
            promote(collection, ToyRetriever(1), compared(collection))
    remember(collection, compared(collection))
    assert [record.action for record in learning_history(collection)] == ["promoted", "kept"]
    promote(collection, ToyRetriever(2), compared(collection))
    assert base_name(collection) == "toy 0"
    assert [rollback(collection).after for _ in range(2)] == ["toy 1", "toy 0"]
