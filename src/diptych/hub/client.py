"""The client of the hub: facts by the library huggingface_hub, bytes by a loop of ours.

The library (2.4.0) neither goes on after a kill nor compares a digest over HTTP; this loop does both. Telemetry and the
second way of downloading, Xet, are off, and a token is sent only where a user asks for it.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeVar
from urllib.parse import urlsplit

from diptych._version import __version__
from diptych.atomic_files import sync_to_disk
from diptych.errors import InvalidInputError, MissingPackageError
from diptych.hub.catalogue import ModelSource
from diptych.hub.layouts import HubError, HubFile
from diptych.hub.lock import Digests

if TYPE_CHECKING:
    import httpx2
    from huggingface_hub import ModelCardData

DEFAULT_ENDPOINT = "https://huggingface.co"
_OFF = ("HF_HUB_DISABLE_TELEMETRY", "HF_HUB_DISABLE_XET", "HF_HUB_DISABLE_PROGRESS_BARS")
_TIMEOUT_S = 30.0
_ATTEMPTS = 6
_LONGEST_PAUSE_S = 16.0
_LONGEST_RETRY_AFTER_S = 120.0
_MAX_REDIRECTS = 5
_TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})
# Signed addresses expire; the next attempt asks for a new one.
_EXPIRED = frozenset({401, 403})
_CONTENT_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")

Result = TypeVar("Result")
Advance = Callable[[int], None]
"""Called with the bytes of a file that are here."""


@dataclass(frozen=True)
class Repository:
    """What the hub says of a repository at a commit."""

    name: str
    commit: str
    licence: str
    files: tuple[HubFile, ...]


class _BrokenTransferError(Exception):
    """A connection ended, or a server asks for patience; ``wait`` is how long, if it says so."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


class HubClient:
    """Asks the hub for facts and brings files.

    ``pause`` is the first wait between attempts, in seconds; it doubles. Only attempts without new bytes count.
    """

    def __init__(self, *, use_token: bool = False, pause: float = 1.0) -> None:
        for name in _OFF:
            os.environ[name] = "1"
        try:
            import huggingface_hub
            from huggingface_hub import constants
        except ImportError as error:
            raise MissingPackageError("fetching models", "'diptych[hub]'") from error
        # Where it was imported before, it has read the variables already.
        for name in _OFF:
            setattr(constants, name, True)
        self.endpoint = os.environ.get("HF_ENDPOINT", DEFAULT_ENDPOINT).rstrip("/")
        self._pause = pause
        # Without a token the library would send one that it finds on this machine.
        self._token = (huggingface_hub.get_token() or "") if use_token else False
        if self._token == "":
            raise InvalidInputError("--use-token needs a token: set HF_TOKEN, or run `hf auth login`")
        self._api = huggingface_hub.HfApi(
            endpoint=self.endpoint, token=self._token, library_name="diptych", library_version=__version__
        )
        huggingface_hub.get_session().timeout = _TIMEOUT_S

    @property
    def sends_token(self) -> bool:
        """Return True if the user's token goes along."""
        return bool(self._token)

    def repository(self, source: ModelSource) -> Repository:
        """Return the commit of a repository, its licence and its files."""
        from huggingface_hub.hf_api import RepoFile

        def ask() -> Repository:
            info = self._api.model_info(source.repository, revision=source.revision, timeout=_TIMEOUT_S)
            if info.sha is None:
                raise HubError(f"{self.endpoint} names no commit of {source.repository}; it is no hub of models")
            tree = self._api.list_repo_tree(source.repository, revision=info.sha, recursive=True, expand=False)
            files = tuple(
                HubFile(entry.path, entry.size, entry.lfs.sha256 if entry.lfs else entry.blob_id)
                for entry in tree
                if isinstance(entry, RepoFile)
            )
            return Repository(source.repository, info.sha, _licence(info.card_data), files)

        return self._patiently(source.repository, ask)

    def cached(self, repository: str, commit: str, path: str) -> Path | None:
        """Return the place of a file in the library's own cache, if other programs have fetched it."""
        import huggingface_hub

        found = huggingface_hub.try_to_load_from_cache(repository, path, revision=commit)
        return Path(found) if isinstance(found, str) else None

    def bring(self, repository: str, commit: str, file: HubFile, folder: Path, advance: Advance) -> str:
        """Bring one file into a folder and return its SHA-256.

        The bytes wait in ``file.part`` until all are there, through breaks and kills. Bytes that are not what the hub
        announced are deleted and fetched once more, then refused.
        """
        place, part = folder / file.path, folder / file.part
        place.parent.mkdir(parents=True, exist_ok=True)
        for _ in range(2):
            digests = self._fill(repository, commit, file, part, advance)
            if digests.fit(file.digest):
                sync_to_disk(part)
                os.replace(part, place)
                return digests.sha256
            part.unlink()
        raise HubError(
            f"{file.path} of {repository} is not what the hub announced; it was deleted. A proxy may alter files: try "
            "another network"
        )

    def _fill(self, repository: str, commit: str, file: HubFile, part: Path, advance: Advance) -> Digests:
        """Append to a part until it has all bytes; go on where it stops."""
        if part.is_symlink() or (part.exists() and part.stat().st_size > file.size):
            part.unlink()
        part.touch()
        digests = Digests.of(part, file.size)
        failures, furthest = 0, part.stat().st_size
        with part.open("ab", buffering=0) as stream:
            while (here := stream.tell()) < file.size:
                advance(here)
                try:
                    digests = self._append(repository, commit, file, stream, digests, advance)
                except _BrokenTransferError as error:
                    failures = 1 if stream.tell() > furthest else failures + 1
                    furthest = max(furthest, stream.tell())
                    self._wait_or_give_up(f"{file.path} of {repository}", failures, error)
        return digests

    def _append(
        self, repository: str, commit: str, file: HubFile, stream: BinaryIO, digests: Digests, advance: Advance
    ) -> Digests:
        """Append what one answer brings; return the digests of all bytes, begun anew where a range was ignored."""
        import httpx2

        with _explained(self.endpoint, repository):
            response = self._open(repository, commit, file, stream.tell())
            try:
                if _start_of(response, file) == 0 and stream.tell() > 0:
                    stream.truncate(0)
                    stream.seek(0)
                    digests = Digests(file.size)
                try:
                    for block in response.iter_raw():
                        # More than was announced is never kept.
                        rest = block[: file.size - stream.tell()]
                        stream.write(rest)
                        digests.update(rest)
                        advance(stream.tell())
                        if len(rest) < len(block):
                            break
                except httpx2.HTTPError as error:
                    raise _BrokenTransferError(str(error) or type(error).__name__) from error
            finally:
                response.close()
        if stream.tell() < file.size:
            raise _BrokenTransferError(f"the connection ended after {stream.tell():,} of {file.size:,} bytes")
        return digests

    def _open(self, repository: str, commit: str, file: HubFile, start: int) -> httpx2.Response:
        """Ask where the bytes are, and open the answer that has those from ``start`` on."""
        import huggingface_hub

        url = huggingface_hub.hf_hub_url(repository, file.path, revision=commit, endpoint=self.endpoint)
        facts = huggingface_hub.get_hf_file_metadata(url, token=self._token, timeout=_TIMEOUT_S, endpoint=self.endpoint)
        announced = (facts.commit_hash or commit, facts.etag, facts.size if facts.size is not None else file.size)
        if announced != (commit, file.digest, file.size):
            raise HubError(
                f"the hub's list and its answer disagree about {file.path} of {repository}; a proxy may alter "
                "it: try another network, or later"
            )
        headers = {"User-Agent": f"diptych/{__version__}", "Accept-Encoding": "identity"}
        if self._token and _origin(facts.location) == _origin(self.endpoint):
            headers["Authorization"] = f"Bearer {self._token}"
        if start:
            headers["Range"] = f"bytes={start}-"
        session = huggingface_hub.get_session()
        request = session.build_request("GET", facts.location, headers=headers)
        # The library drops the token of a request that goes on to another server.
        for _ in range(_MAX_REDIRECTS):
            if self.endpoint.startswith("https:") and request.url.scheme != "https":
                raise HubError(f"{self.endpoint} sends on to {request.url.host} without encryption; not followed")
            response = session.send(request, stream=True, follow_redirects=False)
            if response.next_request is None:
                return _checked(response, self.endpoint)
            request = response.next_request
            response.close()
        raise HubError(f"{self.endpoint} sends on and on for {file.path} of {repository}; try later")

    def _patiently(self, what: str, ask: Callable[[], Result]) -> Result:
        failures = 0
        while True:
            try:
                with _explained(self.endpoint, what):
                    return ask()
            except _BrokenTransferError as error:
                failures += 1
                self._wait_or_give_up(what, failures, error)

    def _wait_or_give_up(self, what: str, failures: int, error: _BrokenTransferError) -> None:
        if failures >= _ATTEMPTS:
            raise HubError(
                f"{what} could not be fetched from {self.endpoint}: {error}; what came is kept, and the same command "
                "goes on; HTTPS_PROXY names a proxy"
            ) from error
        pause = min(self._pause * 2 ** (failures - 1), _LONGEST_PAUSE_S)
        time.sleep(pause if error.wait is None else min(error.wait, _LONGEST_RETRY_AFTER_S))


def _licence(card: ModelCardData | None) -> str:
    """Return the licence that a card states; one that is none of the usual ones has a name."""
    return "" if card is None else str(card.get("license_name") or card.get("license") or "")


def _start_of(response: httpx2.Response, file: HubFile) -> int:
    """Return the place of the first byte of an answer, which a server may move to 0 but not elsewhere."""
    if response.headers.get("Content-Encoding", "identity") != "identity":
        raise HubError(f"{file.path} came compressed, which was not asked for; a proxy may alter files")
    if response.status_code != 206:
        return 0
    found = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
    asked = response.request.headers.get("Range", "bytes=0-")
    if found is None or asked != f"bytes={found[1]}-" or found[2] not in ("*", str(file.size)):
        raise HubError(f"another part of {file.path} came than was asked for; a proxy may alter files")
    return int(found[1])


def _checked(response: httpx2.Response, endpoint: str) -> httpx2.Response:
    """Return an answer with bytes; any other raises."""
    from huggingface_hub import hf_raise_for_status

    if response.status_code in (200, 206):
        return response
    try:
        if response.status_code in _EXPIRED and _origin(str(response.request.url)) != _origin(endpoint):
            raise _BrokenTransferError(f"{response.request.url.host} answers {response.status_code}")
        response.read()
        hf_raise_for_status(response)
    finally:
        response.close()
    raise HubError(f"{response.request.url.host} answers {response.status_code}, which brings no file; try later")


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port


@contextmanager
def _explained(endpoint: str, repository: str) -> Iterator[None]:
    """Turn what the library raises into our errors, what may pass into a broken transfer."""
    import httpx2
    from huggingface_hub import errors

    try:
        yield
    except errors.OfflineModeIsEnabled as error:
        raise InvalidInputError(
            "HF_HUB_OFFLINE is set, so nothing is fetched; unset it, or copy the model's folder by hand"
        ) from error
    except errors.GatedRepoError as error:
        raise HubError(
            f"{repository} is for those who accept its conditions: accept them at {endpoint}/{repository}, then add "
            "--use-token"
        ) from error
    except errors.RepositoryNotFoundError as error:
        raise HubError(f"there is no repository {repository} at {endpoint}, or it is private (--use-token)") from error
    except errors.RevisionNotFoundError as error:
        raise HubError(f"{repository} has no such revision; see {endpoint}/{repository}/commits") from error
    except errors.HFValidationError as error:
        raise InvalidInputError(f"{repository!r} is no name of a repository; write hub:OWNER/REPOSITORY") from error
    except errors.HfHubHTTPError as error:
        status = error.response.status_code
        if status in _TRANSIENT:
            asked = error.response.headers.get("Retry-After", "")
            raise _BrokenTransferError(f"it answers {status}", float(asked) if asked.isdigit() else None) from error
        raise HubError(f"{endpoint} answers {status} for {repository}; it may have moved, see the page") from error
    except httpx2.HTTPError as error:
        raise _BrokenTransferError(str(error) or type(error).__name__) from error
