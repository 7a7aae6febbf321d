"""Complete the bill of materials of the container: what the packages' metadata do not tell.

cyclonedx-py lists the packages of an environment. Added here are the hashes that the lock allows for each, the weights,
photographs and tables inside Diptych's own package with the hashes of their files, and the base image. `make sbom` runs
both; this script needs the environment of the tools.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from pathlib import Path
from typing import Any

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packaging.utils import canonicalize_name

from bundled import BUNDLED, PACKAGE, WEIGHT_PACKAGES, Bundled

ROOT = Path(__file__).parents[1]
_LOCK = ROOT / "requirements" / "container.txt"
Component = dict[str, Any]


def lock_hashes() -> dict[tuple[str, str], list[str]]:
    """Return the SHA-256 of every file that the lock allows, by package and version."""
    text = re.sub(r"\\\n", "", _LOCK.read_text(encoding="utf-8"))
    pins = re.findall(r"^([a-z0-9-]+)==([^\s;]+)(.*)$", text, re.MULTILINE)
    return {(name, version): re.findall("sha256:([0-9a-f]{64})", rest) for name, version, rest in pins}


def bundled_component(one: Bundled) -> Component:
    """Return the files of one origin as a component that holds a component for each file."""
    files = [
        {
            "type": "file",
            "bom-ref": f"file:{path.relative_to(PACKAGE).as_posix()}",
            "name": path.relative_to(PACKAGE).as_posix(),
            "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(path.read_bytes()).hexdigest()}],
        }
        for path in one.files()
    ]
    return {
        "type": one.kind,
        "bom-ref": f"bundled:{one.name}",
        "name": one.name,
        "description": " ".join(one.story.split()),
        "licenses": [{"expression": one.licence}],
        "components": files,
    }


def base_image() -> Component:
    """Return the image that the container starts from, with its digest if it is pinned."""
    (place,) = re.findall(r"^ARG BASE_IMAGE=(\S+)$", (ROOT / "deploy" / "Containerfile").read_text(), re.MULTILINE)
    name, _, digest = place.partition("@sha256:")
    name, _, tag = name.rpartition(":")
    found: Component = {"type": "container", "bom-ref": "base-image", "name": name, "version": tag}
    if digest:
        return found | {"hashes": [{"alg": "SHA-256", "content": digest}]}
    return found | {"description": "Not pinned by a digest; what is inside it is not listed here."}


def completed(bill: dict[str, Any]) -> dict[str, Any]:
    """Return the bill with everything added, and Diptych depending on it."""
    hashes = lock_hashes()
    for component in bill["components"]:
        name = canonicalize_name(component["name"])
        component.setdefault("externalReferences", []).append(
            {
                "type": "distribution",
                "url": f"https://pypi.org/simple/{name}/",
                "comment": "the files that requirements/container.txt allows",
                "hashes": [{"alg": "SHA-256", "content": each} for each in hashes[name, component["version"]]],
            }
        )
        if name in WEIGHT_PACKAGES:
            story = {"name": "diptych:terms", "value": " ".join(WEIGHT_PACKAGES[name].split())}
            component["properties"] = [*component.get("properties", ()), story]
    own = [*map(bundled_component, BUNDLED), base_image()]
    bill["components"] += own
    root = bill["metadata"]["component"]
    (version,) = re.findall(r'^__version__ = "(.+)"$', (PACKAGE / "_version.py").read_text(), re.MULTILINE)
    root["version"] = version
    (needs,) = [each for each in bill["dependencies"] if each["ref"] == root["bom-ref"]]
    needs["dependsOn"] = sorted({*needs.get("dependsOn", ()), *(each["bom-ref"] for each in own)})
    return bill


def main() -> None:
    """Read the bill from standard input and write it, checked against the schema of CycloneDX, to a file."""
    text = json.dumps(completed(json.load(sys.stdin)), indent=2, sort_keys=True) + "\n"
    if error := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        sys.exit(f"the bill does not follow CycloneDX 1.6: {error}")
    target = Path(sys.argv[1])
    target.parent.mkdir(exist_ok=True)
    target.write_text(text, encoding="utf-8")
    print(f"{len(json.loads(text)['components'])} components in {target}")


if __name__ == "__main__":
    main()
