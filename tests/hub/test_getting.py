from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from diptych.errors import InvalidInputError
from diptych.hub.catalogue import ModelSource, find_source
from diptych.hub.client import HubClient
from diptych.hub.getting import fetch_model, make_plan
from diptych.hub.layouts import HubError
from diptych.hub.lock import ModelLock, read_lock
from tests.doubles.hub import COMMIT, LATER_COMMIT, FakeHub, RemoteFile, onnx_repository

SOURCE = find_source("hub:owner/clip")
CHOSEN = {
    "README.md",
    "config.json",
    "onnx/text_model.onnx",
    "onnx/vision_model.onnx",
    "preprocessor_config.json",
    "tokenizer.json",
}


def fetched(
    source: ModelSource = SOURCE, *, edition: str | None = None, token: bool = False, **limits: Any
) -> ModelLock:
    client = HubClient(use_token=token, pause=0.001)
    return fetch_model(client, make_plan(client, source, edition, max_bytes=limits.get("max_bytes", 10**10)))


def files_in(folder: Path) -> set[str]:
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    return {path for path in found if not path.endswith(".lock")}


def size_of(lock: ModelLock) -> int:
    return sum(file.size for file in lock.files.values())


def test_a_model_is_fetched_whole_and_nothing_else_is_asked_for(hub: FakeHub, models: Path) -> None:
    remote = onnx_repository()
    hub.add("owner/clip", remote)
    lock = fetched()
    folder = models / "owner--clip"
    assert files_in(models) == {f"owner--clip/{path}" for path in (*CHOSEN, "diptych-model.json")}
    for path in CHOSEN:
        assert (folder / path).read_bytes() == remote[path].part(0, remote[path].size)
    assert read_lock(folder) == lock
    assert (lock.commit, lock.licence, lock.layout, lock.edition) == (COMMIT, "mit", "ONNX", "full")
    assert lock.damage(folder) == {}
    assert hub.sent == size_of(lock)
    allowed = re.compile(
        rf"GET /api/models/owner/clip/(revision/main|tree/{COMMIT}\?recursive=true.*)"
        rf"|(HEAD|GET) /owner/clip/resolve/{COMMIT}/(?P<path>.+)|GET /cdn/owner/clip/{COMMIT}/(?P<stored>.+)"
    )
    for request in hub.requests:
        found = allowed.fullmatch(f"{request.method} {request.path}")
        assert found is not None, request
        assert (found["path"] or found["stored"] or "config.json") in CHOSEN
        assert "authorization" not in request.headers


def test_a_line_that_breaks_forty_times_costs_nothing_twice(hub: FakeHub) -> None:
    hub.add("owner/clip", onnx_repository())
    hub.faults.breaks = [0, 1, 400, *[70_000] * 37]
    lock = fetched()
    assert not hub.faults.breaks
    assert hub.sent == size_of(lock)


def test_a_line_that_never_brings_anything_is_given_up_and_goes_on_later(hub: FakeHub, models: Path) -> None:
    hub.add("owner/clip", onnx_repository())
    hub.faults.breaks = [10**9, 10**9, 500_000, *[0] * 6]
    with pytest.raises(HubError, match="the same command goes on"):
        fetched()
    assert not (models / "owner--clip").exists()
    lock = fetched()
    assert hub.sent == size_of(lock)
    assert "bytes=500000-" in {request.headers.get("range") for request in hub.requests}


@pytest.mark.parametrize(("statuses", "retry_after"), [([503, 500, 429], "0"), ([429] * 3, None)])
def test_a_busy_hub_is_asked_again(hub: FakeHub, statuses: list[int], retry_after: str | None) -> None:
    hub.add("owner/clip", onnx_repository())
    hub.faults.statuses, hub.faults.retry_after = statuses, retry_after
    assert fetched().commit == COMMIT


def test_bytes_that_were_altered_once_are_fetched_again(hub: FakeHub) -> None:
    hub.add("owner/clip", onnx_repository())
    hub.faults.flip, hub.faults.flips = "onnx/vision_model.onnx", 1
    assert fetched().commit == COMMIT


@pytest.mark.parametrize("name", ["onnx/vision_model.onnx", "config.json"])
def test_bytes_that_are_always_altered_are_refused_and_deleted(hub: FakeHub, models: Path, name: str) -> None:
    hub.add("owner/clip", onnx_repository())
    hub.faults.flip = name
    with pytest.raises(HubError, match=f"{name} of owner/clip is not what the hub announced; it was deleted"):
        fetched()
    assert not [path for path in files_in(models) if name in path]
    assert not (models / "owner--clip").exists()


def test_a_server_that_ignores_ranges_starts_over(hub: FakeHub) -> None:
    hub.add("owner/clip", onnx_repository())
    hub.faults.ignore_range = True
    hub.faults.breaks = [10**9, 10**9, 300_000]
    lock = fetched()
    assert hub.sent == size_of(lock) + 300_000


@pytest.mark.parametrize("changed", ["config.json", "onnx/text_model.onnx"])
def test_a_revision_that_moved_between_two_runs_is_never_mixed(hub: FakeHub, models: Path, changed: str) -> None:
    first = onnx_repository()
    hub.add("owner/clip", first)
    hub.faults.breaks = [10**9, 10**9, 1_000_000, *[0] * 6]
    with pytest.raises(HubError):
        fetched()
    later = {**first, changed: RemoteFile(size=first[changed].size, make=lambda start, end: b"x" * (end - start))}
    hub.add("owner/clip", later, commit=LATER_COMMIT)
    lock = fetched()
    assert lock.commit == LATER_COMMIT
    assert lock.damage(models / "owner--clip") == {}
    assert lock.files[changed].hub == later[changed].etag
    # What both revisions have alike is not fetched twice.
    assert hub.sent == size_of(lock) + (22 if changed == "config.json" else 1_000_000)
    assert files_in(models / ".partial") == set()


@pytest.mark.parametrize(
    "name",
    [
        "../evil.json",
        "/etc/evil.json",
        "onnx/../../evil.onnx_data",
        "a\\..\\evil.json",
        "C:/evil.json",
        "Config.json",
        "evil\n.json",
        "LICENSE/../../evil",
        "./evil.json",
        "a//b.json",
    ],
)
def test_evil_names_are_refused_before_anything_is_written(hub: FakeHub, models: Path, name: str) -> None:
    hub.add("owner/clip", onnx_repository())
    hub.faults.names = (name,)
    with pytest.raises(HubError, match="nothing was fetched"):
        fetched()
    assert not models.exists()
    assert not hub.asked("HEAD")


def test_pickles_are_never_fetched(hub: FakeHub, models: Path) -> None:
    names = ("config.json", "tokenizer.json", "preprocessor_config.json", "pytorch_model.bin")
    hub.add("owner/clip", dict.fromkeys(names, b"{}"))
    with pytest.raises(HubError, match="its weights are pickles"):
        fetched()
    assert not models.exists()


def test_a_model_with_conditions_needs_the_token_which_no_other_server_sees(
    hub: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.add("owner/clip", onnx_repository())
    hub.faults.gated = True
    with pytest.raises(InvalidInputError, match="--use-token needs a token"):
        HubClient(use_token=True)
    monkeypatch.setenv("HF_TOKEN", "let-me-in")
    with pytest.raises(HubError, match=f"accept them at {hub.endpoint}/owner/clip, then add --use-token"):
        fetched()
    assert not [request for request in hub.requests if "authorization" in request.headers]
    fetched(token=True)
    sent = {request.server for request in hub.requests if "authorization" in request.headers}
    assert sent == {"hub"}
    assert [request for request in hub.requests if request.server == "storage"]


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ({"compress": True}, "came compressed"),
        ({"disagree": "onnx/text_model.onnx"}, "the hub's list and its answer disagree about onnx/text_model.onnx"),
        ({"without": ("ETag",)}, "disagree about README.md"),
        ({"short": "config.json"}, "disagree about config.json"),
        ({"statuses": [404]}, "answers 404"),
        ({"without": ("Content-Range",), "breaks": [10**9, 10**9, 9]}, "another part of onnx/text_model.onnx came"),
    ],
)
def test_answers_that_make_no_sense_are_refused(hub: FakeHub, fault: dict[str, Any], message: str) -> None:
    hub.add("owner/clip", onnx_repository())
    hub.faults = replace(hub.faults, **fault)
    with pytest.raises(HubError, match=re.escape(message)):
        fetched()


def test_headers_that_are_of_no_use_may_be_missing(hub: FakeHub) -> None:
    hub.add("owner/clip", onnx_repository())
    hub.faults.without = ("X-Repo-Commit", "Accept-Ranges")
    assert fetched().commit == COMMIT


def test_what_is_pinned_must_be_what_the_hub_has(hub: FakeHub, models: Path) -> None:
    remote = onnx_repository()
    hub.add("owner/clip", remote)
    right = (remote["config.json"].size, remote["config.json"].git)
    pinned = replace(SOURCE, revision=COMMIT, pins={"config.json": right})
    assert make_plan(HubClient(), pinned, None, max_bytes=10**10).commit == COMMIT
    with pytest.raises(HubError, match="not the one that is pinned"):
        fetched(replace(pinned, pins={"config.json": (right[0], 40 * "0")}))
    assert not models.exists()


def test_names_sizes_and_editions_are_checked_first(hub: FakeHub, models: Path) -> None:
    hub.add("owner/clip", onnx_repository())
    with pytest.raises(InvalidInputError, match=r"add --max-size 0\.1"):
        fetched(max_bytes=1_000_000)
    with pytest.raises(HubError, match="no edition 'q4' of both towers"):
        fetched(edition="q4")
    with pytest.raises(HubError, match="there is no repository owner/nothing"):
        fetched(find_source("hub:owner/nothing"))
    with pytest.raises(HubError, match="no such revision"):
        fetched(find_source("hub:owner/clip@v2"))
    assert not models.exists()
    assert fetched(edition="fp16").files.keys() & {"onnx/text_model_fp16.onnx", "onnx/text_model.onnx"} == {
        "onnx/text_model_fp16.onnx"
    }


def test_only_what_is_damaged_is_fetched_again(hub: FakeHub, models: Path) -> None:
    hub.add("owner/clip", onnx_repository())
    lock = fetched()
    folder = models / "owner--clip"
    (folder / "config.json").write_text("{}")
    (folder / "onnx" / "text_model.onnx").write_bytes(bytes(lock.files["onnx/text_model.onnx"].size))
    assert lock.damage(folder, fast=True) == {"config.json": "has 2 bytes instead of 22"}
    assert lock.damage(folder)["onnx/text_model.onnx"] == "has changed"
    before = hub.sent
    assert fetched().damage(folder) == {}
    assert hub.sent - before == lock.files["onnx/text_model.onnx"].size + 22


def test_weights_beside_a_graph_come_if_the_graph_names_them(hub: FakeHub, tmp_path: Path) -> None:
    import numpy as np
    import onnx

    weights = onnx.numpy_helper.from_array(np.ones((64, 64), np.float32), "W.weight")
    graph = onnx.helper.make_graph([], "tower", [], [], [weights])
    model = onnx.helper.make_model(graph)
    onnx.save(model, tmp_path / "model.onnx", save_as_external_data=True, location="W.weight", size_threshold=0)
    external = {name: (tmp_path / name).read_bytes() for name in ("model.onnx", "W.weight")}
    remote = {
        "config.json": b"{}",
        "visual/preprocess_cfg.json": b"{}",
        "textual/tokenizer.json": b"{}",
        "textual/model.onnx": b"",
        **{f"visual/{name}": content for name, content in external.items()},
        "visual/V.weight": b"of another graph",
        "visual/model.armnn": b"no",
        "visual/data.pkl": b"no",
        "visual/rknn/rk3588/model.rknn": b"no",
    }
    hub.add("owner/server", remote)
    lock = fetched(find_source("hub:owner/server"))
    assert lock.layout == "ONNX of a photo server"
    left_out = {"visual/V.weight", "visual/model.armnn", "visual/data.pkl", "visual/rknn/rk3588/model.rknn"}
    assert lock.files.keys() == remote.keys() - left_out


@pytest.mark.parametrize(
    ("names", "layout"),
    [
        (("open_clip_config.json", "open_clip_model.safetensors", "config.json", "model.safetensors"), "OpenCLIP"),
        (("config.json", "model.safetensors", "tokenizer.json", "preprocessor_config.json"), "Transformers"),
        (
            (
                "config.json",
                "model.safetensors.index.json",
                "model-00001-of-00001.safetensors",
                "vocab.txt",
                "processor_config.json",
            ),
            "Transformers",
        ),
    ],
)
def test_layouts_are_told_by_their_files(hub: FakeHub, names: tuple[str, ...], layout: str) -> None:
    hub.add("owner/other", dict.fromkeys(names, b"{}"))
    lock = fetched(find_source("hub:owner/other"))
    assert lock.layout == layout
    assert lock.files.keys() == ({*names[:2]} if layout == "OpenCLIP" else {*names})
