from __future__ import annotations

import pytest

from diptych.collection import Collection, CollectionError, retrievers
from diptych.collection.learning import LearningRecord, rollback
from diptych.collection.learning.retriever_training import base_name, promote
from diptych.collection.retrievers import RetrieverChanges
from diptych.collection.store.model_history import utc_now
from tests.doubles import Killed, ToyRetriever, interrupt_change


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
    assert collection.retriever_history() == []
    done = promote(collection, ToyRetriever(1), compared(collection))
    assert (done.action, done.before, done.after) == ("promoted", "toy 0", "toy 1")
    assert active_name(collection) == "toy 1"
    assert collection.retriever_history() == [done]
    back = rollback(collection)
    assert (back.action, back.before, back.after) == ("rolled back", "toy 1", "toy 0")
    assert active_name(collection) == "toy 0"
    assert [record.action for record in collection.retriever_history()] == ["promoted", "rolled back"]
    assert {each.name for each in collection.retrievers()} == {"toy 0", "toy 1"}
    with pytest.raises(CollectionError, match="nothing to roll back to"):
        rollback(collection)


def test_two_promotions_lead_back_step_by_step_and_share_a_base(collection: Collection) -> None:
    collection.add(collection.root)
    for turn in (1, 2):
        promote(collection, ToyRetriever(turn), compared(collection))
    assert base_name(collection, "clicks") == "toy 0"
    rollback(collection)
    assert active_name(collection) == "toy 1"
    rollback(collection)
    assert active_name(collection) == "toy 0"
    promote(collection, ToyRetriever(2), compared(collection))
    rollback(collection)
    assert active_name(collection) == "toy 0"


def test_whoever_is_killed_midway_leaves_the_old_state_or_the_new_one_with_a_way_back(
    collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    collection.add(collection.root)
    before = [answer.item.id for answer in collection.search("anything")]

    def die(*_: object, **__: object) -> None:
        raise Killed

    for what, moment_of_death in ((Collection, "add_retriever"), (retrievers, "remember")):
        with monkeypatch.context() as patch:
            patch.setattr(what, moment_of_death, die)
            with pytest.raises(Killed):
                promote(collection, ToyRetriever(1), compared(collection))
        with Collection.open(collection.folder, load_retriever=ToyRetriever.load) as again:
            assert active_name(again) == "toy 0"
            assert again.retriever_history() == []
            assert [answer.item.id for answer in again.search("anything")] == before
    with monkeypatch.context() as patch:
        patch.setattr(RetrieverChanges, "tidy", die)
        with pytest.raises(Killed):
            promote(collection, ToyRetriever(1), compared(collection))
    with Collection.open(collection.folder, load_retriever=ToyRetriever.load) as again:
        assert active_name(again) == "toy 1"
        assert [record.action for record in again.retriever_history()] == ["promoted"]
        rollback(again)
        assert active_name(again) == "toy 0"


def test_without_the_former_retriever_there_is_no_way_back(collection: Collection) -> None:
    collection.add(collection.root)
    promote(collection, ToyRetriever(1), compared(collection))
    collection.remove_retriever("toy 0")
    assert base_name(collection, "clicks") == "toy 1"
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
        assert base_name(collection, "clicks") == "toy 0"
    assert [rollback(collection).after for _ in range(3)] == ["toy 2", "toy 1", "toy 0"]
    collection.activate_retriever("toy 1")
    assert rollback(collection).after == "toy 0"


def test_an_interrupted_promotion_is_not_forgotten_by_the_next_step(
    collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    collection.add(collection.root)

    def die(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(RetrieverChanges, "tidy", die)
        with pytest.raises(Killed):
            promote(collection, ToyRetriever(1), compared(collection))
    collection.note_retriever(compared(collection))
    assert [record.action for record in collection.retriever_history()] == ["promoted", "kept"]
    promote(collection, ToyRetriever(2), compared(collection))
    assert base_name(collection, "clicks") == "toy 0"
    assert [rollback(collection).after for _ in range(2)] == ["toy 1", "toy 0"]


def test_every_change_of_retriever_can_be_taken_back(collection: Collection) -> None:
    collection.add(collection.root)
    answers = [answer.item.id for answer in collection.search("anything")]
    collection.set_retriever(ToyRetriever(1))
    # Former ones rest, and catch up on the way back.
    (collection.root / "d.png").write_text("picture d")
    collection.add(collection.root)
    assert {one.name: one.missing for one in collection.retrievers()} == {"toy 1": 0, "toy 0": 1}
    assert collection.verify().is_whole
    interrupt_change(collection.set_retriever, ToyRetriever(2))
    assert [(record.action, record.after) for record in collection.retriever_history()] == [("changed", "toy 1")]
    collection.reencode()
    collection.add_retriever(ToyRetriever(3))
    collection.activate_retriever("toy 3")
    origins = [(record.origin, record.before, record.after) for record in collection.retriever_history()]
    assert origins == [("switch", "toy 0", "toy 1"), ("switch", "toy 1", "toy 2"), ("choice", "toy 2", "toy 3")]
    assert [rollback(collection).after for _ in range(3)] == ["toy 2", "toy 1", "toy 0"]
    assert collection.retrievers()[0].missing == 0
    found = [answer.item.id for answer in collection.search("anything")]
    assert (len(found), [each for each in found if each in answers]) == (4, answers)


def test_the_last_three_former_retrievers_stay_and_what_a_person_added_is_theirs(collection: Collection) -> None:
    collection.add(collection.root)
    collection.add_retriever(ToyRetriever(7))
    for turn in range(1, 6):
        collection.set_retriever(ToyRetriever(turn))
    assert {each.name for each in collection.retrievers()} == {"toy 5", "toy 4", "toy 3", "toy 2", "toy 7"}
    assert collection.verify().is_whole
    assert [rollback(collection).after for _ in range(3)] == ["toy 4", "toy 3", "toy 2"]
    with pytest.raises(CollectionError, match="'toy 1' is no longer stored"):
        rollback(collection)


def test_learning_again_and_again_keeps_three_and_what_they_were_learned_upon(collection: Collection) -> None:
    collection.add(collection.root)
    for turn in range(1, 7):
        promote(collection, ToyRetriever(turn), compared(collection))
        assert base_name(collection, "clicks") == "toy 0"
    assert {each.name for each in collection.retrievers()} == {"toy 6", "toy 5", "toy 4", "toy 0"}
    assert collection.verify().is_whole
    assert rollback(collection).after == "toy 5"
    assert base_name(collection, "clicks") == "toy 0"


def test_whoever_is_killed_while_switching_finds_the_old_one_or_a_way_back(
    collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    collection.add(collection.root)
    interrupt_change(collection.set_retriever, ToyRetriever(1))

    def die(*_: object, **__: object) -> None:
        raise Killed

    for what, moment_of_death in ((retrievers, "remember"), (RetrieverChanges, "tidy")):
        with monkeypatch.context() as patch:
            patch.setattr(what, moment_of_death, die)
            with pytest.raises(Killed):
                collection.reencode()
        with Collection.open(collection.folder, load_retriever=ToyRetriever.load) as again:
            is_new = active_name(again) == "toy 1"
            assert is_new == (moment_of_death == "tidy")
            assert [record.after for record in again.retriever_history()] == (["toy 1"] if is_new else [])
    with Collection.open(collection.folder, load_retriever=ToyRetriever.load) as again:
        assert rollback(again).after == "toy 0"
