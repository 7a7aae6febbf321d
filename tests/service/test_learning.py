"""Learning from clicks over HTTP: the job, what changed, and the way back."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import ValidationError

from diptych import Retriever
from diptych.collection import Collection
from diptych.collection.learning import LearningRecord, LearningReport
from diptych.collection.learning.retriever_training import promote
from diptych.errors import InvalidInputError
from diptych.models import CCA
from diptych.service import Client, ServiceError
from diptych.service.api.jobs import JobRequest
from diptych.service.clicks import ClickLog
from diptych.service.jobs.work import JOB_FUNCTIONS, Reporter, learning_result

Start = Callable[..., Any]


def other_retriever(folder: Path) -> Retriever:
    """A retriever with the same encoders whose points are others."""
    with Collection.open(folder) as collection:
        present = collection.retriever
        assert isinstance(present, Retriever)
        other = copy.deepcopy(present).set_params(cache=False)
        other.name = "learned"
        items = collection.items()
        images = other.image_features([collection.path_of(item) for item in items[:30]])
        texts = other.text_features([item.captions[0] for item in items[:30]])
    other.model_ = CCA(n_components=3).fit(images, texts)
    return other


@pytest.fixture(scope="module")
def promoted(scene_collection: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scenes after something was learned from clicks."""
    folder = Path(shutil.copytree(scene_collection, tmp_path_factory.mktemp("learned") / "scenes", symlinks=True))
    record = LearningRecord(
        time="2026-03-01T10:00:00+00:00",
        action="promoted",
        before="",
        before_fingerprint="",
        after="",
        after_fingerprint="",
        reason="the fusion is better on held-out queries, by more than luck",
        compared_with="beneath",
        measure="NDCG@10",
        old=0.41,
        new=0.47,
        p_value=0.0004,
        alpha=0.01,
        n_queries=290,
        n_held_out=58,
        n_clicks=2100.0,
        answered=0.8,
        parts={"present": 0.6, "Text2Image": 0.4},
        gained=(("a red boat", 0.2, 0.9),),
        lost=(("a house", 0.8, 0.7),),
    )
    learned = other_retriever(folder / ".diptych")
    with Collection.open(folder / ".diptych") as collection:
        promote(collection, learned, record)
    return folder


def test_what_changed_is_told_and_undone(running_service: Start, promoted: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(promoted, tmp_path / "own", symlinks=True))
    service = running_service(collections={"scenes": folder})
    address = f"{service.url}/v1/collections/scenes/learning"
    with Client(service.url, service.token) as client:
        assert client.status().retriever.name == "learned"
        learning = client.learning()
        (step,) = learning.steps
        assert learning.rolls_back_to == "scenes"
        assert (step.action, step.before, step.after, step.old, step.new) == (
            "promoted",
            "scenes",
            "learned",
            0.41,
            0.47,
        )
        assert (step.compared_with, step.parts, step.n_held_out) == ("beneath", {"present": 0.6, "Text2Image": 0.4}, 58)
        assert (*step.gained, *step.lost) == (("a red boat", 0.2, 0.9), ("a house", 0.8, 0.7))
        # Queries are what people typed; neither they nor the way back are for everyone.
        assert httpx.get(address).status_code in (401, 403)
        assert httpx.post(f"{address}/rollback").status_code in (401, 403)
        back = client.roll_back()
        assert (back.action, back.before, back.after, back.old) == ("rolled back", "learned", "scenes", None)
        assert client.status().retriever.name == "scenes"
        assert [one.name for one in client.retrievers().retrievers] == ["scenes", "learned"]
        with pytest.raises(ServiceError) as refused:
            client.roll_back()
        assert (refused.value.status, refused.value.kind) == (409, "nothing-to-roll-back")
        after = client.learning()
        assert ([step.action for step in after.steps], after.rolls_back_to) == (["rolled back", "promoted"], None)


def test_a_service_that_only_reads_tells_but_goes_nowhere(running_service: Start, promoted: Path) -> None:
    service = running_service(collections={"scenes": promoted}, read_only=True)
    with Client(service.url, service.token) as client:
        assert client.learning().rolls_back_to == "scenes"
        for call in (client.roll_back, lambda: client.start("learn")):
            with pytest.raises(ServiceError) as refused:
                call()
            assert (refused.value.status, refused.value.kind) == (403, "read-only")


def test_without_a_retriever_to_go_back_to_there_is_no_way_back(
    running_service: Start, promoted: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(promoted, tmp_path / "own", symlinks=True))
    service = running_service(collections={"scenes": folder})
    with Client(service.url, service.token) as client:
        client.remove_retriever("scenes")
        assert client.learning().rolls_back_to is None
        with pytest.raises(ServiceError) as refused:
            client.roll_back()
        assert refused.value.kind == "nothing-to-roll-back"


def test_the_job_learns_from_what_was_served(own_scene_collection: Path) -> None:
    folder = own_scene_collection / ".diptych"
    reporter = Reporter()
    with Collection.open(folder) as collection:
        with pytest.raises(InvalidInputError, match="has no click"):
            JOB_FUNCTIONS["learn"](collection, reporter)
        assert reporter.progress == (0, 0, "reading the clicks")
        items = [item.id for item in collection][:3]
        with ClickLog(collection.store) as log:
            search = log.record_search(
                query="a red boat",
                retriever="scenes",
                fingerprint="f",
                target="images",
                shown=[(item, place) for place, item in enumerate(items, start=1)],
                no_good_match=False,
                best_probability=0.5,
            )
            log.record_click(search_id=str(search), item=items[1], position=2, kind="open")
        dry = JOB_FUNCTIONS["learn"](collection, reporter, dry_run=True)
        assert dry["record"]["action"] == "kept"
        assert "collect clicks on" in dry["record"]["reason"]
        assert collection.retriever_history() == []
        done = JOB_FUNCTIONS["learn"](collection, reporter, held_out=0.3)
        assert [record.action for record in collection.retriever_history()] == ["kept"]
        assert done["record"]["action"] == "kept"


def test_a_job_which_all_may_read_tells_no_query() -> None:
    record = LearningRecord(
        "", "kept", *("a", "f") * 2, new=0.5, gained=(("secret one", 0.1, 0.9),), lost=(("secret", 1.0, 0.0),)
    )
    told = learning_result(LearningReport(record, notes=("noted",)))
    assert (told["record"]["new"], told["notes"]) == (0.5, ["noted"])
    assert "secret" not in json.dumps(told)


def test_the_parameters_of_the_job_are_checked() -> None:
    asked = JobRequest.model_validate({"kind": "learn", "held_out": 0.3, "dry_run": True})
    assert asked.model_dump(exclude_unset=True) == {"kind": "learn", "held_out": 0.3, "dry_run": True}
    for wrong in ({"held_out": 1.0}, {"alpha": 0.0}, {"seed": -1}, {"dry_run": "yes"}, {"force": True}):
        with pytest.raises(ValidationError):
            JobRequest.model_validate({"kind": "learn", **wrong})
