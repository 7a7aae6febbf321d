"""The files under ``deploy/`` agree with each other, with the image and with the command line."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

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
