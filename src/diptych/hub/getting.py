"""Fetching a whole model: a plan to show, its files, the lock file, and at last its folder at once."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from diptych._version import __version__
from diptych.atomic_files import exclusive_lock, make_durable
from diptych.data.transfer import check_free_space
from diptych.errors import InvalidInputError, MissingPackageError
from diptych.hub.catalogue import ModelSource
from diptych.hub.layouts import Choice, HubError, HubFile, choose_files
from diptych.hub.lock import Digests, LockedFile, ModelLock
from diptych.hub.place import folder_of, partial_folder

if TYPE_CHECKING:
    from diptych.hub.client import HubClient

Progress = Callable[[int, int], None]
"""Called with the bytes that are here and the bytes in all."""


@dataclass(frozen=True)
class Plan:
    """What will be fetched from where; nothing is written before it is carried out."""

    source: ModelSource
    endpoint: str
    commit: str
    stated_licence: str
    choice: Choice

    @property
    def folder(self) -> Path:
        """The folder that the model will have."""
        return folder_of(self.source.name)

    @property
    def licence(self) -> str:
        """The licence: what the card states, or what is known of the original."""
        return self.stated_licence or self.source.licence

    @property
    def missing_bytes(self) -> int:
        """The bytes that are not in an unfinished or earlier folder of this model; digests are compared later."""
        files = (*self.choice.files, *self.choice.beside_graphs)
        return sum(file.size - min(file.size, _bytes_here(self, file)) for file in files)


def _bytes_here(plan: Plan, file: HubFile) -> int:
    partial = partial_folder(plan.source.name)
    places = (partial / file.path, partial / file.part, plan.folder / file.path)
    return max((place.stat().st_size for place in places if place.is_file()), default=0)


def make_plan(client: HubClient, source: ModelSource, edition: str | None, *, max_bytes: int) -> Plan:
    """Ask the hub what a model consists of; refuse one that is unusable, too large, or not as pinned."""
    repository = client.repository(source)
    choice = choose_files(source.repository, repository.files, edition or source.edition)
    for file in choice.files:
        pin = source.pins.get(file.path) if repository.commit == source.revision else None
        if pin not in (None, (file.size, file.digest)):
            raise HubError(
                f"{file.path} of {source.repository} is not the one that is pinned; another network may alter it"
            )
    if choice.size > max_bytes:
        raise InvalidInputError(
            f"{source.repository} has {choice.size / 1e9:,.1f} GB to fetch; if that is meant, add "
            f"--max-size {choice.size / 1e9 + 0.1:.1f}"
        )
    return Plan(source, client.endpoint, repository.commit, repository.licence, choice)


def fetch_model(
    client: HubClient,
    plan: Plan,
    *,
    accepted: str = "",
    progress: Progress | None = None,
    check: Callable[[Path], None] | None = None,
) -> ModelLock:
    """Bring all files of a plan, write the lock file, and put the folder in its place, over an earlier one.

    What was there already, in an unfinished or earlier folder or in the cache of huggingface_hub, is taken where its
    digest is right. ``check`` looks at the complete folder and raises to keep the earlier one.
    """
    partial = partial_folder(plan.source.name)
    with _alone(plan.source.name):
        partial.mkdir(parents=True, exist_ok=True)
        check_free_space(partial, plan.missing_bytes + plan.choice.size // 20)
        files: dict[str, LockedFile] = {}
        _bring_all(client, plan, plan.choice.files, files, progress)
        if plan.choice.beside_graphs:
            named = _weights_of_graphs(partial, files)
            beside = tuple(file for file in plan.choice.beside_graphs if file.path in named)
            _bring_all(client, plan, beside, files, progress)
            if not named <= files.keys():
                raise HubError(f"{plan.source.repository} lacks {min(named - files.keys())}, which a graph needs")
        for path in [path for path in partial.rglob("*") if path.is_file()]:
            if path.relative_to(partial).as_posix() not in files:
                path.unlink()
        lock = ModelLock(
            name=plan.source.name,
            repository=plan.source.repository,
            endpoint=plan.endpoint,
            revision=plan.source.revision,
            commit=plan.commit,
            layout=plan.choice.layout,
            edition=plan.choice.edition,
            licence=plan.licence,
            accepted=accepted,
            fetched=datetime.now(UTC).isoformat(timespec="seconds"),
            versions={"diptych": __version__, "huggingface_hub": version("huggingface_hub")},
            files=files,
        )
        lock.write(partial)
        make_durable(partial)
        if check is not None:
            check(partial)
        _put_in_place(partial, plan.folder)
    return lock


def _bring_all(
    client: HubClient, plan: Plan, chosen: tuple[HubFile, ...], files: dict[str, LockedFile], progress: Progress | None
) -> None:
    partial = partial_folder(plan.source.name)
    total = sum(file.size for file in chosen) + sum(file.size for file in files.values())
    for file in chosen:
        before = sum(one.size for one in files.values())

        def advance(here: int, before: int = before) -> None:
            if progress is not None:
                progress(before + here, total)

        place = partial / file.path
        earlier = (plan.folder / file.path, client.cached(plan.source.repository, plan.commit, file.path))
        digest = _digest_if_right(place, file) or next(
            (found for one in earlier if one is not None and (found := _copied(one, place, file))), None
        )
        if digest is None:
            digest = client.bring(plan.source.repository, plan.commit, file, partial, advance)
        advance(file.size)
        files[file.path] = LockedFile(file.size, digest, file.digest)


def _digest_if_right(place: Path, file: HubFile) -> str | None:
    """Return the SHA-256 of a file that is as announced; one that is not is deleted."""
    if not place.is_file():
        return None
    if place.stat().st_size == file.size:
        digests = Digests.of(place)
        if digests.fit(file.digest):
            return digests.sha256
    place.unlink()
    return None


def _copied(source: Path, place: Path, file: HubFile) -> str | None:
    if not source.is_file() or source.stat().st_size != file.size:
        return None
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, place)
    return _digest_if_right(place, file)


def _weights_of_graphs(folder: Path, files: dict[str, LockedFile]) -> set[str]:
    """Return the paths of the weights that graphs have beside them."""
    try:
        import onnx
    except ImportError as error:
        raise MissingPackageError("this model, whose weights are files beside a graph,", "'diptych[search]'") from error
    named: set[str] = set()
    for path in [path for path in files if path.endswith(".onnx")]:
        graph = onnx.load(folder / path, load_external_data=False).graph
        entries = [entry for tensor in graph.initializer for entry in tensor.external_data]
        names = {str(entry.value) for entry in entries if entry.key == "location"}
        if any("/" in name or "\\" in name or name in ("", ".", "..") for name in names):
            raise HubError(f"{path} has weights outside its folder; such a model is not used")
        named |= {str(PurePosixPath(path).parent / name) for name in names}
    return named


@contextmanager
def _alone(name: str) -> Iterator[None]:
    """Keep other processes from fetching the same model."""
    try:
        with exclusive_lock(partial_folder(f"{name}.lock")):
            yield
    except BlockingIOError as error:
        raise InvalidInputError(f"{name} is being fetched by another process; wait for it") from error


def _put_in_place(partial: Path, folder: Path) -> None:
    old = partial_folder(f"{folder.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        os.replace(folder, old)
    os.replace(partial, folder)
    shutil.rmtree(old, ignore_errors=True)


def remove_model(name: str) -> None:
    """Delete the folder of a model and what an unfinished one has left."""
    with _alone(name):
        shutil.rmtree(partial_folder(name), ignore_errors=True)
        if folder_of(name).is_dir():
            shutil.rmtree(folder_of(name))
