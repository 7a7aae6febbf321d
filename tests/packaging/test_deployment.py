"""The files under ``deploy/`` agree with each other, with the image, with the command line and with the service."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from fastapi.routing import APIRoute
from typer.main import get_command

from diptych.cli import app
from diptych.collection import plan_collection
from diptych.service.app import ROUTERS
from diptych.service.operations.server import GRACE_SECONDS

DEPLOY = Path(__file__).parents[2] / "deploy"
MANIFESTS = sorted(path for path in (DEPLOY / "kubernetes").glob("*.yaml") if path.name != "kustomization.yaml")
CONTAINERFILE = (DEPLOY / "Containerfile").read_text()
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
OBJECTS = [document for path in MANIFESTS for document in yaml.safe_load_all(path.read_text())]
WORKLOADS = {one["metadata"]["name"]: one for one in OBJECTS if "template" in one.get("spec", {})}
OURS = ("writer", "replica", "index")


def of_kind(kind: str) -> dict[str, dict[str, Any]]:
    return {one["metadata"]["name"]: one for one in OBJECTS if one["kind"] == kind}


def pod(name: str) -> dict[str, Any]:
    return WORKLOADS[name]["spec"]["template"]["spec"]


def container(name: str) -> dict[str, Any]:
    (only,) = pod(name)["containers"]
    return only


def labels(name: str) -> dict[str, str]:
    return WORKLOADS[name]["spec"]["template"]["metadata"]["labels"]


def commands() -> Iterator[Any]:
    """Yield every command that is given to the image."""
    for name, service in COMPOSE.items():
        if service["image"] == "diptych":
            yield pytest.param(service["command"], id=f"compose {name}")
    for name in OURS:
        yield pytest.param(container(name)["args"], id=f"kubernetes {name}")


@pytest.mark.parametrize(
    "document", [pytest.param(one, id=f"{one['kind']} {one['metadata']['name']}") for one in OBJECTS]
)
def test_kubernetes_takes_every_object(document: dict[str, Any]) -> None:
    kubernetes_validate.validate(document, "1.31", strict=True)


def test_all_manifests_are_applied_together() -> None:
    listed = yaml.safe_load((DEPLOY / "kubernetes" / "kustomization.yaml").read_text())
    assert sorted(listed["resources"]) == [path.name for path in MANIFESTS]
    assert {entry["name"] for entry in listed["images"]} == {container(name)["image"] for name in OURS}


@pytest.mark.parametrize("words", list(commands()))
def test_the_command_line_takes_every_command(words: list[str]) -> None:
    program = get_command(app).commands[words[0]]  # type: ignore[attr-defined]
    parsed = program.make_context(words[0], words[1:]).params
    place = parsed["collection"] if words[0] == "index" else parsed["folders"][0]
    assert Path(place) == Path("s3://diptych/photos")
    assert words[0] == "index" or parsed["host"] == "0.0.0.0"


def test_replicas_find_the_writer_under_a_name_that_it_answers_to() -> None:
    port = of_kind("Service")["writer"]["spec"]["ports"][0]["port"]
    for writer, replica in (
        (COMPOSE["writer"]["command"], COMPOSE["replica-1"]["command"]),
        (container("writer")["args"], container("replica")["args"]),
    ):
        assert f"http://{writer[writer.index('--allow-host') + 1]}:{port}" == replica[replica.index("--writer") + 1]
        assert "--writer" not in writer
    assert COMPOSE["replica-1"]["command"] == COMPOSE["replica-2"]["command"]


@pytest.mark.parametrize("name", ["writer", "replica"])
def test_probes_ask_routes_of_the_service(name: str) -> None:
    routes = {route.path for router in ROUTERS for route in router.routes if isinstance(route, APIRoute)}
    (port,) = container(name)["ports"]
    assert f"EXPOSE {port['containerPort']}\n" in CONTAINERFILE
    probes = {kind: container(name)[f"{kind}Probe"]["httpGet"] for kind in ("startup", "readiness", "liveness")}
    assert {kind: probe["path"] for kind, probe in probes.items()} == {
        "startup": "/health",
        "readiness": "/ready",
        "liveness": "/health",
    }
    assert {probe["path"] for probe in probes.values()} <= routes
    assert {probe["port"] for probe in probes.values()} == {port["name"]}


@pytest.mark.parametrize("name", ["writer", "replica"])
def test_running_requests_end_before_the_pod_does(name: str) -> None:
    before = int(container(name)["lifecycle"]["preStop"]["exec"]["command"][-1])
    assert pod(name)["terminationGracePeriodSeconds"] >= before + GRACE_SECONDS + 10
    assert COMPOSE["writer"]["stop_grace_period"] == "60s"


@pytest.mark.parametrize("name", [*OURS, "storage"])
def test_pods_have_no_more_rights_than_they_need(name: str) -> None:
    assert pod(name)["securityContext"]["runAsNonRoot"]
    assert pod(name)["automountServiceAccountToken"] is False
    own = container(name)["securityContext"]
    assert own["readOnlyRootFilesystem"]
    assert not own["allowPrivilegeEscalation"]
    assert own["capabilities"] == {"drop": ["ALL"]}
    assert {"cpu", "memory"} <= container(name)["resources"]["requests"].keys()


@pytest.mark.parametrize("name", OURS)
def test_pods_write_where_the_image_lets_them(name: str) -> None:
    user = pod(name)["securityContext"]
    assert f"USER {user['runAsUser']}:{user['runAsGroup']}\n" in CONTAINERFILE
    mounted = {mount["name"]: mount["mountPath"] for mount in container(name)["volumeMounts"]}
    assert {"copy": "/collection", "tmp": "/tmp"}.items() <= mounted.items()
    assert re.search(r"XDG_CACHE_HOME=/collection/", CONTAINERFILE)
    claimed = WORKLOADS[name]["spec"].get("volumeClaimTemplates", [])
    there = {volume["name"] for volume in pod(name)["volumes"]} | {claim["metadata"]["name"] for claim in claimed}
    assert mounted.keys() == there
    claims = {volume.get("persistentVolumeClaim", {}).get("claimName") for volume in pod(name)["volumes"]}
    assert claims - {None, "pictures"} <= of_kind("PersistentVolumeClaim").keys()


def test_pods_get_what_the_plan_that_they_name_asks_for() -> None:
    (words,) = set(re.findall(r"# diptych plan (.*)", "".join(path.read_text() for path in MANIFESTS)))
    given = get_command(app).commands["plan"].make_context("plan", words.split()).params  # type: ignore[attr-defined]
    plan = plan_collection(int(float(given["items"])), given["qps"], cores=given["cores"])
    claims = {
        "replica": WORKLOADS["replica"]["spec"]["volumeClaimTemplates"][0],
        "writer": of_kind("PersistentVolumeClaim")["writer"],
        "storage": WORKLOADS["storage"]["spec"]["volumeClaimTemplates"][0],
    }
    sizes = {"replica": plan.replica_disk, "writer": plan.writer_disk, "storage": plan.bucket}
    for name, claim in claims.items():
        assert gibibytes(claim["spec"]["resources"]["requests"]["storage"]) >= sizes[name], name
    for name in ("writer", "replica"):
        asked = container(name)["resources"]["requests"]
        assert gibibytes(asked["memory"]) >= plan.memory
        assert int(asked["cpu"]) == plan.cores
    assert WORKLOADS["replica"]["spec"]["replicas"] >= plan.replicas
    assert f"--workers {plan.cores} " in " ".join(container("replica")["args"])


def gibibytes(quantity: str) -> int:
    return int(quantity.removesuffix("Gi")) * 2**30


def test_one_writes_and_several_search() -> None:
    assert (WORKLOADS["writer"]["spec"]["replicas"], WORKLOADS["writer"]["spec"]["strategy"]) == (
        1,
        {"type": "Recreate"},
    )
    assert (
        WORKLOADS["replica"]["spec"]["replicas"] > of_kind("PodDisruptionBudget")["replica"]["spec"]["maxUnavailable"]
    )
    assert of_kind("PodDisruptionBudget")["replica"]["spec"]["selector"]["matchLabels"] == labels("replica")


def test_services_and_policies_speak_of_pods_that_there_are() -> None:
    all_labels = [labels(name) for name in WORKLOADS]
    for name, service in of_kind("Service").items():
        (chosen,) = [one for one in WORKLOADS if labels(one) == service["spec"]["selector"]]
        names = {port["name"]: port["containerPort"] for port in container(chosen)["ports"]}
        for port in service["spec"]["ports"]:
            assert names[port["targetPort"]] == port["port"], name
    for text in [yaml.safe_dump(policy) for policy in of_kind("NetworkPolicy").values()]:
        named = set(re.findall(r"app\.kubernetes\.io/component: (\w+)", text))
        assert named <= {one["app.kubernetes.io/component"] for one in all_labels}
    assert {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]} in [
        policy["spec"] for policy in of_kind("NetworkPolicy").values()
    ]


def test_secrets_and_settings_are_those_that_the_pods_use() -> None:
    given = of_kind("Secret")["diptych"]["stringData"] | of_kind("ConfigMap")["diptych"]["data"]
    assert given.keys() == COMPOSE["writer"]["environment"].keys()
    for name in OURS:
        sources = [reference["name"] for source in container(name)["envFrom"] for reference in source.values()]
        assert sources == ["diptych", "diptych"]
    # Nobody starts a service with the words of the template.
    assert len(given["DIPTYCH_TOKEN"]) < 16


def test_the_storage_is_the_same_everywhere_and_where_the_settings_say() -> None:
    assert container("storage")["image"] == COMPOSE["storage"]["image"] == COMPOSE["bucket"]["image"]
    assert container("storage")["args"] == COMPOSE["storage"]["command"]
    port = of_kind("Service")["storage"]["spec"]["ports"][0]["port"]
    endpoint = of_kind("ConfigMap")["diptych"]["data"]["AWS_ENDPOINT_URL"]
    assert endpoint == COMPOSE["writer"]["environment"]["AWS_ENDPOINT_URL"] == f"http://storage:{port}"
    assert f"-s3.port={port}" in container("storage")["args"]


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


def test_compose_builds_the_image_that_can_use_the_storage() -> None:
    build = COMPOSE["writer"]["build"]
    assert (DEPLOY / build["context"] / build["dockerfile"]).resolve() == DEPLOY / "Containerfile"
    for name, service in COMPOSE.items():
        if service["image"] == "diptych":
            assert service["read_only"], name
            assert "/collection" in {volume.split(":")[1] for volume in service["volumes"]}, name
