"""The files under ``deploy/`` agree with each other, with the image and with the command line."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
import tomllib
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
import yaml
from typer.main import get_command

from diptych.cli import app
from diptych.service.operations.server import GRACE_SECONDS

DEPLOY = Path(__file__).parents[2] / "deploy"
CONTAINERFILE = (DEPLOY / "Containerfile").read_text()
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
DATABASE = COMPOSE["db"]
OURS = {name: service for name, service in COMPOSE.items() if name != "db"}
PODS = {
    document["metadata"]["name"]: document["spec"]["template"]["spec"]
    for document in yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text())
    if document["kind"] == "Deployment"
}
COMMANDS = {name: service["command"] for name, service in OURS.items()} | {
    f"pod {name}": pod["containers"][0]["args"] for name, pod in PODS.items()
}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_command_line_takes_every_command(name: str, tmp_path: Path) -> None:
    words = [str(tmp_path) if word == "/pictures" else word for word in COMMANDS[name]]
    group = get_command(app)
    program = group.get_command(group.make_context("diptych", ["--version"], resilient_parsing=True), words[0])  # type: ignore[attr-defined]
    parsed = program.make_context(words[0], words[1:]).params
    place = parsed["collection"] if words[0] == "index" else parsed["folders"][0]
    assert place == "postgresql://diptych@db/photos?schema=photos"
    assert parsed["watch"] if words[0] == "index" else parsed["host"] == "0.0.0.0"


def test_the_database_is_the_one_that_the_address_names() -> None:
    made = DATABASE["environment"]
    assert (made["POSTGRES_USER"], made["POSTGRES_DB"]) == ("diptych", "photos")
    assert all(service["environment"]["PGPASSWORD"] == made["POSTGRES_PASSWORD"] for service in OURS.values())


@pytest.mark.parametrize("name", PODS)
def test_pods_write_where_the_image_lets_them_and_nowhere_else(name: str) -> None:
    (container,) = PODS[name]["containers"]
    user = PODS[name]["securityContext"]
    assert f"USER {user['runAsUser']}:{user['runAsGroup']}\n" in CONTAINERFILE
    assert container["securityContext"]["readOnlyRootFilesystem"]
    mounted = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert mounted == {"pictures": "/pictures", "cache": "/collection", "tmp": "/tmp"}
    assert mounted.keys() == {volume["name"] for volume in PODS[name]["volumes"]}


def test_the_image_installs_nothing_without_a_hash_but_the_package_itself() -> None:
    installs = re.findall(r"pip (?:--python \S+ )?(?:install|wheel) [^&]*", CONTAINERFILE)
    assert len(installs) == 4
    for command in installs:
        hashed = re.search(r"--require-hashes .*--requirement requirements/(build|container)\.txt", command, re.DOTALL)
        assert hashed or "--no-build-isolation" in command or "--no-index" in command
        assert "--no-deps" in command
    project = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    copied = re.findall(r"^COPY (.*) \S+$", CONTAINERFILE, re.MULTILINE)
    assert {name.partition("/")[0] for name in project["license-files"]} <= {
        name for line in copied for name in line.split()
    }


def test_both_stages_start_from_the_base_that_is_pinned_in_one_place() -> None:
    (base,) = re.findall(r"^ARG BASE_IMAGE=(\S+)$", CONTAINERFILE, re.MULTILINE)
    assert re.fullmatch(r"docker\.io/library/python:3\.\d+-slim@sha256:[0-9a-f]{64}", base)
    assert re.findall(r"^FROM (\S+)", CONTAINERFILE, re.MULTILINE) == ["${BASE_IMAGE}", "${BASE_IMAGE}"]


def test_compose_builds_the_image_and_lets_it_write_where_it_may() -> None:
    for name, service in OURS.items():
        build = service["build"]
        assert (DEPLOY / build["context"] / build["dockerfile"]).resolve() == DEPLOY / "Containerfile"
        assert service["read_only"], name
        assert service["cap_drop"] == ["ALL"], name
        assert "/collection" in {volume.split(":")[1] for volume in service["volumes"]}, name


def test_running_requests_end_before_the_container_does() -> None:
    assert int(COMPOSE["service-1"]["stop_grace_period"].removesuffix("s")) >= GRACE_SECONDS + 10
    before = int(PODS["diptych"]["containers"][0]["lifecycle"]["preStop"]["exec"]["command"][-1])
    assert PODS["diptych"]["terminationGracePeriodSeconds"] >= before + GRACE_SECONDS + 10


def test_the_image_serves_a_folder_of_pictures_by_itself(tmp_path: Path) -> None:
    """As `docker run -v ~/Pictures:/pictures -p 8765:8765` does, but for the container around it."""
    pictures, home, programs = tmp_path / "pictures", tmp_path / "collection", tmp_path / "bin"
    for folder in (pictures, home, programs):
        folder.mkdir()
    shutil.copy(DEPLOY.parent / "src" / "diptych" / "data" / "photographs" / "rocket.jpg", pictures)
    for name, words in {"diptych": "-m diptych", "python": ""}.items():
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
        (programs / name).chmod(0o755)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    here = {"DIPTYCH_PICTURES": str(pictures), "DIPTYCH_HOME": str(home), "DIPTYCH_PORT": str(port)}
    path = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "XDG_STATE_HOME": str(home / "state")}
    environment = {name: value for name, value in os.environ.items() if name != "DIPTYCH_TOKEN"} | here | path
    process = subprocess.Popen([str(DEPLOY / "start.sh")], env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        token = process.stdout.readline().split()[-1]
        assert len(token) > 30
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as visitor:
            items: list[object] = []
            deadline = time.monotonic() + 300
            while not items:
                assert time.monotonic() < deadline
                assert process.poll() is None
                time.sleep(0.2)
                with suppress(httpx.TransportError):
                    assert visitor.get("/v1/collections").status_code == 401
                    visitor.headers["Authorization"] = f"Bearer {token}"
                    name = visitor.get("/v1/collections").json()["collections"][0]["name"]
                    items = visitor.get(f"/v1/collections/{name}/items").json()["items"]
                    del visitor.headers["Authorization"]
    finally:
        process.terminate()
        process.wait(timeout=60)
        process.stdout.close()  # type: ignore[union-attr]


def test_a_release_writes_the_address_of_its_repository_everywhere() -> None:
    root = DEPLOY.parent
    workflows = {path.stem: yaml.safe_load(path.read_text()) for path in (root / ".github" / "workflows").glob("*.yml")}
    assert workflows.keys() == {"tests", "release", "pages"}
    steps = workflows["release"]["jobs"]["wheel"]["steps"]
    (written,) = (step["run"] for step in steps if "example.org" in step.get("run", ""))
    shown = [
        root / name for name in ("pyproject.toml", "CITATION.cff", "README.md", "mkdocs.yml", "deploy/Containerfile")
    ]
    assert {path.name for path in shown if "example.org/diptych" in path.read_text()} == set(written.split()[-2:])
    assert workflows["release"]["jobs"]["pypi"]["permissions"] == {"id-token": "write"}
    quick, full = (workflows["tests"]["jobs"][name]["strategy"]["matrix"] for name in ("quick", "full"))
    assert quick == {"machine": ["ubuntu-24.04", "ubuntu-24.04-arm"], "python": ["3.11", "3.12", "3.13"]}
    makefile = (root / "Makefile").read_text()
    assert all(f"\ntest-{shard}:" in makefile for shard in full["shard"])
