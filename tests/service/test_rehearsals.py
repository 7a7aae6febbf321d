"""Trying another retriever over HTTP: the job, the report, and who may read it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from diptych import Retriever
from diptych.collection import Collection
from diptych.errors import InvalidInputError, UnknownNameError
from diptych.models import CCA
from diptych.service import Client, ServiceError
from diptych.service.api.rehearsals import read_rehearsals
from diptych.service.clicks import ClickLog
from diptych.service.jobs.work import JOB_FUNCTIONS, Reporter

Start = Callable[..., Any]
ADDRESS = "/v1/collections/scenes/rehearsals"


@pytest.fixture
def folder(own_scene_collection: Path) -> Path:
    """Scenes with a second retriever beside the active one, and a query that somebody clicked an answer of."""
    folder = own_scene_collection / ".diptych"
    with Collection.open(folder) as collection:
        present = collection.retriever
        assert isinstance(present, Retriever)
        _, images = collection.features("image")
        texts = present.text_features([item.captions[0] for item in collection])
        other = copy.deepcopy(present).set_params(cache=False)
        other.model_ = CCA(n_components=3).fit(images, texts)
        collection.add_retriever(other, name="small")
        shown = [(item.id, place) for place, item in enumerate(list(collection)[:3], start=1)]
    with Collection.open(folder) as collection, ClickLog(collection.store) as log:
        asked = {"retriever": "scenes", "fingerprint": "f", "target": "images", "best_probability": 0.5}
        search = log.record_search(query="a private wish", shown=shown, no_good_match=False, **asked)
        assert search is not None
        log.record_click(search_id=search, item=shown[1][0], position=2, kind="open")
    return folder


def test_a_retriever_is_tried_and_the_report_read_and_forgotten(running_service: Start, folder: Path) -> None:
    service = running_service(collections={"scenes": folder.parent})
    with Client(service.url, service.token) as client:
        assert client.rehearsals().rehearsals == []
        job = client.wait(client.start("rehearse", retriever="small", sample=20))
        assert job.state == "done", job
        assert job.result is not None
        assert set(job.result) == {"retriever", "outcome", "verdict"}
        # Jobs are read without the token, and queries are what people typed.
        assert "private wish" not in str(job)
        assert httpx.get(service.url + ADDRESS).status_code in (401, 403)
        (report,) = client.rehearsals().rehearsals
        assert (report.retriever, report.old, report.new, report.n_sample) == ("small", "scenes", "small", 20)
        assert report.verdict == job.result["verdict"]
        assert [group.kind for group in report.questions] == ["captions", "queries"]
        assert not report.reads_pictures
        question = report.questions[0].lost[0]
        assert len(question.old_answers) == len(question.new_answers) == 10
        assert client.status().retriever.name == "scenes"
        client.forget()
        assert client.rehearsals().rehearsals == []


def test_what_cannot_be_tried_is_refused(running_service: Start, folder: Path) -> None:
    service = running_service(collections={"scenes": folder.parent}, read_only=True)
    with Client(service.url, service.token) as client:
        with pytest.raises(ServiceError) as refused:
            client.start("rehearse", retriever="small")
        assert (refused.value.status, refused.value.kind) == (403, "read-only")
        assert client.rehearsals().rehearsals == []
    service = running_service(collections={"scenes": folder.parent})
    with Client(service.url, service.token) as client:
        with pytest.raises(ServiceError) as wrong:
            client.start("rehearse", retriever="small", sample=1)
        assert wrong.value.status == 422
    with Collection.open(folder) as collection:
        reporter = Reporter()
        with pytest.raises(InvalidInputError, match="uses this search model already"):
            JOB_FUNCTIONS["rehearse"](collection, reporter, retriever="scenes")
        with pytest.raises(UnknownNameError, match="did you mean 'small'"):
            JOB_FUNCTIONS["rehearse"](collection, reporter, retriever="samll")


def test_there_is_one_report_for_each_retriever(folder: Path) -> None:
    with Collection.open(folder) as collection:
        for seed in (0, 1):
            JOB_FUNCTIONS["rehearse"](collection, Reporter(), retriever="small", random_state=seed, sample=20)
        (report,) = read_rehearsals(collection.store)
        assert report.random_state == 1
        older = report.model_copy(update={"made": "2001-01-01"}).model_dump_json()
        collection.store.write(
            lambda db: db.run("INSERT INTO rehearsal VALUES (?, ?, ?)", ("another", "2001-01-01", older))
        )
        assert [each.made for each in read_rehearsals(collection.store)] == [report.made, "2001-01-01"]
        with ClickLog(collection.store) as log:
            log.forget()
        assert read_rehearsals(collection.store) == []
