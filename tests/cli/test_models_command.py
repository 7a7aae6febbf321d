from __future__ import annotations

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from tests.cli.command_line import Program, Run, World
from tests.doubles.hub import COMMIT, LATER_COMMIT, FakeHub, RemoteFile, onnx_repository

FIXTURES = Path(__file__).parents[1] / "encoders" / "joint" / "fixtures"


def repository_of(folder: Path) -> dict[str, RemoteFile | bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_the_list_needs_neither_network_nor_the_library_of_the_hub(models: Path) -> None:
    code = "import sys; from diptych.cli import main; sys.argv[1:] = ['models', 'list', '--json']\ntry: main()\n"
    code += "finally: assert not sys.modules.keys() & {'huggingface_hub', 'httpx2', 'onnxruntime'}"
    (models / "mine").mkdir(parents=True)
    (models / ".partial" / "owner--large").mkdir(parents=True)
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    listed = {row["name"]: row for row in json.loads(ended.stdout)}
    assert listed["siglip2-b16"]["size"] == 785
    assert listed["siglip2-b16"]["state"] == ""
    assert listed["mobileclip-s1"]["research_only"]
    assert listed["owner--large"]["state"] == "in part"
    assert (listed["mine"]["state"], listed["mine"]["folder"]) == ("here, unlocked", str(models / "mine"))


def test_a_model_is_fetched_checked_updated_and_removed(hub: FakeHub, run: Run, models: Path) -> None:
    remote = repository_of(FIXTURES / "exported")
    hub.add("Xenova/clip-vit-base-patch32", remote, licence=None)
    folder = models / "clip-b32"
    result = run("models", "get", "clip-b32", "--yes")
    assert result.exit_code == 0, result.stderr
    assert result.stdout == f"{folder}\n"
    for words in (
        f"clip-b32 from {hub.endpoint}/Xenova/clip-vit-base-patch32\n",
        f"revision {COMMIT[:7]} (of main), 6 files, 0 MB, to {folder}",
        "licence apache-2.0 (of timm/vit_base_patch32_clip_224.openai; this card states none)",
        "Nothing about your pictures is sent.",
        "To use it: diptych index PICTURES --model clip-b32",
    ):
        assert words in result.stderr
    n_requests = len(hub.requests)
    again = json.loads(run("models", "get", "clip-b32", "--json").stdout)
    assert (again["state"], again["commit"], again["files"]) == ("here", COMMIT, 6)
    assert len(hub.requests) == n_requests
    checked = json.loads(run("models", "check", "clip-b32", "--json").stdout)
    assert (checked["problem"], checked["family"], checked["n_features"]) == (None, "clip", 24)
    assert checked["lock"]["commit"] == COMMIT
    assert "at the newest revision" in run("models", "update", "clip-b32").stderr

    hub.add("Xenova/clip-vit-base-patch32", {**remote, "README.md": b"News"}, commit=LATER_COMMIT, licence="mit")
    updated = run("models", "update", "clip-b32", "--yes")
    assert updated.exit_code == 0, updated.stderr
    assert f"revision {COMMIT[:7]} → {LATER_COMMIT[:7]}, 1 of 7 files changed, 0 MB" in updated.stderr
    assert "licence mit (of timm/vit_base_patch32_clip_224.openai: apache-2.0); before: apache-2.0" in updated.stderr
    assert len(hub.asked("GET", f"resolve/{LATER_COMMIT}")) == 1
    assert (folder / "README.md").read_text() == "News"

    assert "add --yes" in run("models", "remove", "clip-b32").stderr
    assert json.loads(run("models", "remove", "clip-b32", "--yes", "--json").stdout)["state"] == "removed"
    assert not folder.exists()
    assert "there is no model clip-b32 here" in run("models", "remove", "clip-b32").stderr


def test_a_new_revision_that_cannot_be_used_leaves_the_old_one(hub: FakeHub, run: Run, models: Path) -> None:
    remote = repository_of(FIXTURES / "exported")
    hub.add("owner/clip", remote)
    assert run("models", "get", "hub:owner/clip", "--yes").exit_code == 0
    hub.add("owner/clip", {**remote, "onnx/text_model.onnx": b"no graph"}, commit=LATER_COMMIT)
    result = run("models", "update", "hub:owner/clip", "--yes")
    assert result.exit_code == 2
    assert "the new revision cannot be used, and the old one stays" in result.stderr
    assert json.loads(run("models", "check", "hub:owner/clip", "--json").stdout)["lock"]["commit"] == COMMIT


def test_nothing_is_fetched_without_a_yes(hub: FakeHub, run: Run, models: Path) -> None:
    hub.add("owner/clip", onnx_repository(size=1000))
    result = run("models", "get", "hub:owner/clip", "--json")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "would be fetched; add --yes" in result.stderr
    assert not hub.asked("HEAD")
    assert not models.exists()


def test_a_licence_for_research_is_accepted_by_its_name(hub: FakeHub, run: Run) -> None:
    hub.add("Xenova/mobileclip_s1", onnx_repository(size=1000), licence=None)
    hub.add("owner/clip", onnx_repository(size=1000), licence="cc-by-nc-4.0")
    result = run("models", "get", "mobileclip-s1", "--yes")
    assert result.exit_code == 2
    assert "add --accept-licence apple-amlr" in result.stderr
    assert not hub.requests
    assert "--accept-licence apple-amlr" in run("models", "get", "mobileclip-s1", "--accept-licence", "mit").stderr
    assert run("models", "get", "mobileclip-s1", "--accept-licence", "apple-amlr").exit_code == 0
    stated = run("models", "get", "hub:owner/clip", "--yes")
    assert (stated.exit_code, "add --accept-licence cc-by-nc-4.0" in stated.stderr) == (2, True)


def test_failures_are_one_line_and_a_status(hub: FakeHub, run: Run, models: Path) -> None:
    for words, message in (
        (("get", "clip-b32", "--yes"), "there is no repository Xenova/clip-vit-base-patch32"),
        (("get", "clip-b23"), "did you mean 'clip-b32'"),
        (("update", "clip-b32"), "diptych models get clip-b32"),
        (("remove", "../.."), "there is no model ../.. here"),
    ):
        result = run("models", *words)
        assert (result.exit_code, message in result.stderr) == (2, True), result.stderr
        assert result.stderr.count("\n") == 1
    (models / "clip-b32").mkdir(parents=True)
    assert "was not fetched; use it as it is" in run("models", "get", "clip-b32", "--yes").stderr
    assert run("models", "get", "clip-b32").exit_code == 2


def test_the_switch_for_working_offline_is_respected(hub: FakeHub, program: Program) -> None:
    result = program("models", "get", "clip-b32", "--yes", HF_HUB_OFFLINE="1")
    assert result.returncode == 2
    assert "HF_HUB_OFFLINE is set, so nothing is fetched" in result.stderr
    assert not hub.requests


def test_in_a_terminal_it_asks_and_ctrl_c_keeps_what_came(hub: FakeHub, models: Path) -> None:
    hub.add("owner/clip", onnx_repository(size=4_000_000))
    hub.faults.wait = threading.Event()
    controller, terminal = pty.openpty()
    command = [sys.executable, "-m", "diptych", "models", "get", "hub:owner/clip"]

    def hear_interrupts() -> None:
        # Tests that run in the background of a shell ignore them, and so would what they start.
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    process = subprocess.Popen(
        command,
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
        env={**os.environ, "CI": ""},
        preexec_fn=hear_interrupts,
    )
    os.close(terminal)
    shown = ""

    def read_until(words: str) -> None:
        nonlocal shown
        deadline = time.monotonic() + 60
        while words not in shown and time.monotonic() < deadline:
            try:
                shown += os.read(controller, 65536).decode(errors="replace")
            except OSError:
                return

    read_until("Fetch? [y/N]")
    assert "licence mit" in shown
    os.write(controller, b"y\n")
    read_until("getting owner--clip")
    parts = models / ".partial"
    deadline = time.monotonic() + 60
    while not [path for path in parts.rglob("*.part") if path.stat().st_size > 500_000]:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    # Python loses an interrupt that comes while an object is being deleted; a person presses the keys again.
    is_told = threading.Event()

    def press() -> None:
        while not is_told.is_set():
            process.send_signal(signal.SIGINT)
            is_told.wait(5)

    pressing = threading.Thread(target=press)
    pressing.start()
    read_until("the same command goes on")
    is_told.set()
    pressing.join()
    os.close(controller)
    assert process.wait(60) == 130
    assert re.search(r"error: stopped at [0-6] of 6 MB; the same command goes on", shown), shown
    hub.faults.wait.set()
    came = sum(path.stat().st_size for path in parts.rglob("*.part"))
    ended = subprocess.run([*command, "--yes", "--quiet"], capture_output=True, text=True, check=True)
    assert ended.stderr == ""
    assert f"bytes={came}-" in {request.headers.get("range") for request in hub.requests}


def test_a_folder_is_checked_without_a_lock(run: Run) -> None:
    printed = json.loads(run("models", "check", str(FIXTURES / "exported"), "--json").stdout)
    assert (printed["layout"], printed["family"], printed["problem"], printed["lock"]) == ("ONNX", "clip", None, None)
    assert min(printed["pictures_per_second"], printed["texts_per_second"]) > 0


def test_what_is_missing_is_named(run: Run, models: Path) -> None:
    assert "There is no joint model here" in run("models", "check").stdout
    folder = models / "clip"
    shutil.copytree(FIXTURES / "exported", folder)
    (folder / "tokenizer.json").unlink()
    result = run("models", "check")
    assert result.exit_code == 1
    assert "unlocked" in result.stdout
    assert "lacks tokenizer.json; copy the whole model folder" in " ".join(result.stdout.split())
    assert run("doctor").exit_code == 1


def test_damage_is_found(hub: FakeHub, run: Run, models: Path) -> None:
    hub.add("owner/clip", repository_of(FIXTURES / "exported"))
    run("models", "get", "hub:owner/clip", "--yes", "--quiet")
    weights = models / "owner--clip" / "onnx" / "text_model.onnx"
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    assert run("models", "check", "hub:owner/clip", "--fast").exit_code == 0
    found = run("models", "check", "hub:owner/clip")
    assert found.exit_code == 1
    assert "text_model.onnx has changed; make it again: diptych models get hub:owner/clip@main" in found.stdout


def test_pictures_are_indexed_by_the_name_of_a_model(
    hub: FakeHub, run: Run, scenery: World, tmp_path: Path, nothing_indexed: Path
) -> None:
    world = scenery.copied(tmp_path / "pictures")
    asked = run("index", world.pictures, "--model", "clip-b32")
    assert asked.exit_code == 2
    assert "clip-b32 is not here; fetch it with: diptych models get clip-b32 (610 MB)" in asked.stderr
    assert not hub.requests
    hub.add("Xenova/clip-vit-base-patch32", repository_of(FIXTURES / "exported"))
    assert run("models", "get", "clip-b32", "--yes", "--quiet").exit_code == 0
    assert run("index", world.pictures, "--model", "clip-b32", "--quiet").exit_code == 0
    assert json.loads(run("status", "--json").stdout)["retriever"] == "clip-b32"
    assert run("models", "remove", "clip-b32", "--yes").exit_code == 0


def test_a_folder_that_is_exported_already_is_refused(run: Run, tmp_path: Path) -> None:
    result = run("models", "export", str(FIXTURES / "exported"), "--to", str(tmp_path / "twice"))
    assert (result.exit_code, list(tmp_path.glob("twice*"))) == (2, [])
    assert "is exported already" in result.stderr
