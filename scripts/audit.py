"""Compare the locks with a copy of OSV's advisories on this machine, without a network.

    python scripts/audit.py all.zip                       # or a folder of its JSON files
    python scripts/audit.py all.zip --keep advisories.zip # and keep those on our packages, to be carried elsewhere

OSV publishes the advisories on packages of PyPI as one archive, https://osv-vulnerabilities.storage.googleapis.com/PyPI/all.zip.
The exit status is 1 if a locked version has a known weakness.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

ROOT = Path(__file__).parents[1]
Advisory = dict[str, Any]


def locked_versions() -> dict[str, set[Version]]:
    """Return every version of every package in the locks, and that of PyTorch, which lies beside them."""
    found = defaultdict(set)
    for lock in sorted((ROOT / "requirements").glob("*.txt")):
        for name, version in re.findall(r"^([a-z0-9-]+)==([^\s;]+)", lock.read_text(encoding="utf-8"), re.MULTILINE):
            found[name].add(Version(version))
    return dict(found)


def read_advisories(place: Path) -> Iterator[Advisory]:
    """Yield the records of an archive, or of a folder and those below it."""
    if place.is_dir():
        for path in sorted(place.rglob("*.json")):
            yield json.loads(path.read_bytes())
    else:
        with ZipFile(place) as archive:
            for name in sorted(archive.namelist()):
                if name.endswith(".json"):
                    yield json.loads(archive.read(name))


def parts_of(advisory: Advisory) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the packages of PyPI that an advisory is on, each with what it says, unless it was withdrawn."""
    for affected in advisory.get("affected", ()) if "withdrawn" not in advisory else ():
        about = affected.get("package", {})
        if about.get("ecosystem") == "PyPI":
            yield canonicalize_name(about["name"]), affected


def is_affected(version: Version, affected: dict[str, Any]) -> bool:
    """Whether a version is listed, or lies between two events of a range."""
    return any(version == parsed(each) for each in affected.get("versions", ())) or any(
        within(version, each["events"]) for each in affected.get("ranges", ()) if each["type"] == "ECOSYSTEM"
    )


def parsed(text: str) -> Version | None:
    """Return a version, or nothing for old ones that have no order."""
    try:
        return Version(text)
    except InvalidVersion:
        return None


def within(version: Version, events: list[dict[str, str]]) -> bool:
    """Whether the last event up to a version says that it is affected. ``introduced: "0"`` is the first of all."""
    known = [(parsed(text), kind) for event in events for kind, text in event.items()]
    inside = False
    for at, kind in sorted((event for event in known if event[0] is not None), key=lambda event: event[0]):
        if kind == "introduced" and version >= at:
            inside = True
        elif (kind == "fixed" and version >= at) or (kind == "last_affected" and version > at):
            inside = False
    return inside


def main() -> None:
    """Read the advisories, keep those on locked packages, and print those on locked versions."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("database", type=Path)
    parser.add_argument("--keep", type=Path, help="write the advisories on locked packages into this archive")
    parser.add_argument("--ignore", nargs="+", default=[], metavar="ID", help="advisories that do not concern Diptych")
    given = parser.parse_args()
    if not given.database.exists():
        parser.error(f"there is no {given.database}: fetch OSV's archive on a machine with a network, see above")
    locked = locked_versions()
    newest, count, kept, found = "", 0, {}, {}
    for advisory in read_advisories(given.database):
        count, newest = count + 1, max(newest, advisory.get("modified", ""))
        names = {advisory["id"], *advisory.get("aliases", ())}
        for package, affected in parts_of(advisory):
            for version in locked.get(package, ()):
                kept[advisory["id"]] = advisory
                if is_affected(version, affected) and names.isdisjoint(given.ignore):
                    found[package, version, advisory["id"]] = advisory
    if not count:
        parser.error(f"{given.database} holds no advisory: it should have a JSON file for each")
    if given.keep:
        with ZipFile(given.keep, "w", ZIP_DEFLATED) as archive:
            for name in sorted(kept):
                archive.writestr(f"{name}.json", json.dumps(kept[name], sort_keys=True))
    print(f"{len(locked)} packages; {count} advisories, {len(kept)} of them on these, the newest of {newest[:10]}")
    for (package, version, name), advisory in sorted(found.items(), key=lambda item: item[0]):
        names = ", ".join([name, *advisory.get("aliases", ())])
        print(f"{package} {version}: {names}: {advisory.get('summary') or advisory.get('details', '')[:100]}")
    sys.exit(f"{len(found)} known weaknesses" if found else 0)


if __name__ == "__main__":
    main()
