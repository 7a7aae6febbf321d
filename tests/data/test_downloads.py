from __future__ import annotations

import hashlib
import json
import random
import shutil
import stat
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diptych.data import Download, describe_datasets, fetch_downloads
from diptych.data.downloads import unpack_zip
from diptych.data.transfer import Transfer
from diptych.errors import InvalidInputError, MissingDataError
from tests.data.breaking_server import BreakingServer, breaking_server, zip_of

BYTES = random.Random(0).randbytes(400_000)
PHOTOS = {f"photos/{number}.jpg": random.Random(number).randbytes(50_000) for number in range(4)}


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def server() -> Iterator[BreakingServer]:
    with breaking_server() as running:
        yield running


def transfer(server: BreakingServer, folder: Path, **options: Any) -> Transfer:
    return Transfer(server.url("file"), folder / "file", **{"pause": 0.001, "timeout": 5.0, **options})


def test_a_file_arrives_whole_with_progress(server: BreakingServer, tmp_path: Path) -> None:
    server.add("file", BYTES)
    seen: list[tuple[int, int | None]] = []
    transfer(server, tmp_path, progress=lambda done, total: seen.append((done, total))).run().finish()
    assert (tmp_path / "file").read_bytes() == BYTES
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert seen[-1] == (len(BYTES), len(BYTES))
    assert seen == sorted(seen)


def test_a_broken_connection_goes_on_where_it_stopped(server: BreakingServer, tmp_path: Path) -> None:
    remote = server.add("file", BYTES, breaks=[100_000, 50_000, 0])
    assert transfer(server, tmp_path).run().path.read_bytes() == BYTES
    assert remote.asked_ranges == [None, "bytes=100000-", "bytes=150000-", "bytes=150000-"]
    assert [request.get("If-Range") for request in remote.requests[1:]] == ['"first"'] * 3


@given(breaks=st.lists(st.integers(0, 120_000), max_size=6))
@settings(max_examples=20)
def test_wherever_it_breaks_the_bytes_are_right(tmp_path_factory: pytest.TempPathFactory, breaks: list[int]) -> None:
    with breaking_server() as running:
        running.add("file", BYTES, breaks=list(breaks))
        got = transfer(running, tmp_path_factory.mktemp("got"), attempts=8).run()
        assert got.path.read_bytes() == BYTES


def test_a_later_run_goes_on(server: BreakingServer, tmp_path: Path) -> None:
    remote = server.add("file", BYTES, breaks=[123_456, 0, 0])
    with pytest.raises(MissingDataError, match=r"ended after .* 123,456 bytes are kept, so run the command again"):
        transfer(server, tmp_path, attempts=2).run()
    remote.breaks = []
    assert transfer(server, tmp_path).run().path.read_bytes() == BYTES
    assert remote.asked_ranges[-1] == "bytes=123456-"


def test_progress_renews_the_attempts(server: BreakingServer, tmp_path: Path) -> None:
    remote = server.add("file", BYTES, breaks=[20_000] * 19)
    assert transfer(server, tmp_path, attempts=2).run().path.read_bytes() == BYTES
    assert len(remote.requests) == 20


def test_a_server_without_ranges_sends_everything_again(server: BreakingServer, tmp_path: Path) -> None:
    remote = server.add("file", BYTES, breaks=[100_000, 200_000], knows_ranges=False)
    assert transfer(server, tmp_path).run().path.read_bytes() == BYTES
    assert len(remote.requests) == 3


def test_a_server_without_ranges_that_always_breaks_is_given_up(server: BreakingServer, tmp_path: Path) -> None:
    remote = server.add("file", BYTES, breaks=[100_000] * 50, knows_ranges=False)
    with pytest.raises(MissingDataError, match="could not be got"):
        transfer(server, tmp_path, attempts=4).run()
    assert len(remote.requests) == 4


@pytest.mark.parametrize("knows_if_range", [True, False])
def test_versions_are_never_mixed(server: BreakingServer, tmp_path: Path, knows_if_range: bool) -> None:
    remote = server.add("file", BYTES, breaks=[100_000, 0, 0], knows_if_range=knows_if_range)
    with pytest.raises(MissingDataError):
        transfer(server, tmp_path, attempts=2).run()
    remote.content, remote.etag, remote.breaks = BYTES[::-1], '"second"', []
    assert transfer(server, tmp_path).run().path.read_bytes() == BYTES[::-1]


def test_without_a_validator_it_starts_anew(server: BreakingServer, tmp_path: Path) -> None:
    remote = server.add("file", BYTES, breaks=[100_000], etag=None)
    assert transfer(server, tmp_path).run().path.read_bytes() == BYTES
    assert remote.asked_ranges == [None, None]


def test_a_weak_tag_is_not_trusted_but_a_date_is(server: BreakingServer, tmp_path: Path) -> None:
    date = "Thu, 02 Jul 2020 00:00:00 GMT"
    remote = server.add("file", BYTES, breaks=[100_000], etag='W/"weak"', last_modified=date)
    assert transfer(server, tmp_path).run().path.read_bytes() == BYTES
    assert remote.requests[1]["If-Range"] == date


def test_a_file_of_unknown_length(server: BreakingServer, tmp_path: Path) -> None:
    server.add("file", BYTES, tells_length=False)
    assert transfer(server, tmp_path).run().path.read_bytes() == BYTES
    server.add("file", BYTES, tells_length=False, breaks=[1000, 0, 0])
    with pytest.raises(MissingDataError):
        transfer(server, tmp_path / "other", size=len(BYTES), attempts=2).run()


def test_busy_servers_are_asked_again_and_missing_files_are_not(server: BreakingServer, tmp_path: Path) -> None:
    remote = server.add("file", BYTES, statuses=[503, 429, 500])
    assert transfer(server, tmp_path).run().path.read_bytes() == BYTES
    assert len(remote.requests) == 4
    for status in (404, 403):
        remote = server.add("file", BYTES, statuses=[status])
        with pytest.raises(MissingDataError, match=f"answers {status} .*may have moved"):
            transfer(server, tmp_path / str(status)).run()
        assert len(remote.requests) == 1


def test_a_server_may_name_the_pause(server: BreakingServer, tmp_path: Path) -> None:
    server.add("file", BYTES, statuses=[503], headers={"Retry-After": "0"})
    assert transfer(server, tmp_path, pause=60.0).run().path.read_bytes() == BYTES


def test_a_silent_server_costs_one_timeout(server: BreakingServer, tmp_path: Path) -> None:
    remote = server.add("file", BYTES, breaks=[100_000], stalls=3.0)
    assert transfer(server, tmp_path, timeout=0.2).run().path.read_bytes() == BYTES
    assert remote.asked_ranges == [None, "bytes=100000-"]


def test_nobody_there(tmp_path: Path) -> None:
    with breaking_server() as running:
        url = running.url("file")
    with pytest.raises(MissingDataError, match=r"could not be got: .*refused"):
        Transfer(url, tmp_path / "file", attempts=2, pause=0.001).run()


def test_another_size_than_known_is_refused_before_the_bytes(server: BreakingServer, tmp_path: Path) -> None:
    server.add("file", BYTES)
    with pytest.raises(MissingDataError, match=r"has 400,000 bytes instead of 7: it is not the file"):
        transfer(server, tmp_path, size=7).run()
    assert list(tmp_path.iterdir()) == []


def test_a_part_longer_than_the_file_is_dropped(server: BreakingServer, tmp_path: Path) -> None:
    server.add("file", BYTES, breaks=[100_000, 0])
    with pytest.raises(MissingDataError):
        transfer(server, tmp_path, attempts=2).run()
    with (tmp_path / "file.part").open("ab") as part:
        part.write(BYTES)
    assert transfer(server, tmp_path).run().path.read_bytes() == BYTES


def test_a_damaged_note_costs_only_the_bytes(server: BreakingServer, tmp_path: Path) -> None:
    server.add("file", BYTES, breaks=[100_000, 0])
    with pytest.raises(MissingDataError):
        transfer(server, tmp_path, attempts=2).run()
    (tmp_path / "file.part.json").write_text('{"url": ')
    assert transfer(server, tmp_path).run().path.read_bytes() == BYTES


def test_a_full_disk_is_noticed_first(server: BreakingServer, tmp_path: Path) -> None:
    remote = server.add("set.zip", b"")
    vast = shutil.disk_usage(tmp_path).total * 10
    with pytest.raises(MissingDataError, match=r"bytes free, but .* are needed"):
        fetch_downloads([Download(server.url("set.zip"), size=vast)], tmp_path)
    assert remote.requests == []


def fetch(server: BreakingServer, folder: Path, **about: Any) -> None:
    fetch_downloads([Download(server.url("set.zip"), **about)], folder, pause=0.001, attempts=3)


def test_a_data_set_is_got_checked_unpacked_and_noted(server: BreakingServer, tmp_path: Path) -> None:
    content = zip_of(PHOTOS | {"readme.txt": b"hello"})
    digest = hashlib.sha256(content).hexdigest()
    remote = server.add("set.zip", content, breaks=[70_000])
    fetch(server, tmp_path / "set", sha256=digest, size=len(content), members=("photos/*.jpg",))
    for name, data in PHOTOS.items():
        assert (tmp_path / "set" / name).read_bytes() == data
    assert sorted(path.name for path in (tmp_path / "set").iterdir()) == ["downloads.json", "photos"]
    receipt = json.loads((tmp_path / "set" / "downloads.json").read_text())[server.url("set.zip")]
    assert receipt == {"bytes": len(content), "sha256": digest, "holds": ["photos"]}
    asked = len(remote.requests)
    fetch(server, tmp_path / "set", sha256=digest, members=("photos/*.jpg",))
    assert len(remote.requests) == asked
    shutil.rmtree(tmp_path / "set" / "photos")
    fetch(server, tmp_path / "set", sha256=digest, members=("photos/*.jpg",))
    assert (tmp_path / "set" / "photos" / "3.jpg").exists()


def test_a_wrong_digest_leaves_nothing(server: BreakingServer, tmp_path: Path) -> None:
    server.add("set.zip", zip_of(PHOTOS))
    with pytest.raises(InvalidInputError, match=rf"instead of {'0' * 64}; the bytes were deleted"):
        fetch(server, tmp_path, sha256="0" * 64)
    assert list(tmp_path.iterdir()) == []


def test_without_a_digest_damage_is_found_by_the_archive(server: BreakingServer, tmp_path: Path) -> None:
    content = bytearray(zip_of(PHOTOS))
    content[60_000] ^= 1
    server.add("set.zip", bytes(content))
    with pytest.raises(InvalidInputError, match="damaged archive"):
        fetch(server, tmp_path)
    assert list(tmp_path.iterdir()) == []
    server.add("set.zip", b"<html>please log in</html>")
    with pytest.raises(InvalidInputError, match="damaged archive"):
        fetch(server, tmp_path)


def test_an_archive_that_was_not_unpacked_is_not_got_again(server: BreakingServer, tmp_path: Path) -> None:
    remote = server.add("set.zip", zip_of(PHOTOS))
    (tmp_path / "set.zip").write_bytes(remote.content)
    (tmp_path / ".unpacking").mkdir()
    (tmp_path / ".unpacking" / "left over").touch()
    fetch(server, tmp_path)
    assert remote.requests == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["downloads.json", "photos"]
    (tmp_path / "set.zip").write_bytes(b"something else")
    shutil.rmtree(tmp_path / "photos")
    fetch(server, tmp_path, sha256=hashlib.sha256(remote.content).hexdigest())
    assert len(remote.requests) == 1


def test_stages_are_reported(server: BreakingServer, tmp_path: Path) -> None:
    server.add("set.zip", zip_of(PHOTOS))
    stages: dict[str, tuple[int, int | None]] = {}
    downloads = [Download(server.url("set.zip"))]
    fetch_downloads(downloads, tmp_path, report=lambda doing, done, total: stages.update({doing: (done, total)}))
    assert list(stages) == ["getting set.zip", "checking set.zip", "unpacking set.zip"]
    assert all(done == total for done, total in stages.values())


def link(name: str, kind: int = stat.S_IFLNK) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.external_attr = (kind | 0o777) << 16
    return info


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("../evil.jpg", "leads out of its folder"),
        ("photos/../../evil.jpg", "leads out of its folder"),
        ("/etc/evil.jpg", "leads out of its folder"),
        ("C:/evil.jpg", "leads out of its folder"),
        ("photos\\..\\..\\evil.jpg", "leads out of its folder"),
        (link("link.jpg"), "a link or a special file"),
        (link("pipe.jpg", stat.S_IFIFO), "a link or a special file"),
        ("good.jpg/evil.jpg", "holds good.jpg as a file and as a folder"),
        ("e" * 300 + ".jpg", "a name too long"),
        ("photos/" + "é" * 150 + "/evil.jpg", "a name too long"),
        ("downloads.json", "holds downloads.json, where downloads are noted"),
        ("Downloads.JSON", "where downloads are noted"),
    ],
)
def test_hostile_archives_write_nothing(tmp_path: Path, name: str | zipfile.ZipInfo, message: str) -> None:
    with zipfile.ZipFile(tmp_path / "evil.zip", "w") as archive:
        archive.writestr("good.jpg", b"fine")
        archive.writestr(name, b"/etc/passwd")
    folder = tmp_path / "set"
    folder.mkdir()
    with pytest.raises(InvalidInputError, match=message):
        unpack_zip(tmp_path / "evil.zip", folder)
    assert list(folder.iterdir()) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["evil.zip", "set"]


def test_a_file_in_the_way_is_one_clear_error_and_costs_no_bytes(server: BreakingServer, tmp_path: Path) -> None:
    server.add("set.zip", zip_of(PHOTOS))
    (tmp_path / "photos").write_text("a file of this name")
    with pytest.raises(MissingDataError, match="cannot be unpacked into"):
        fetch(server, tmp_path)
    assert (tmp_path / "set.zip").exists()
    (tmp_path / "photos").unlink()
    fetch(server, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["downloads.json", "photos"]


def test_no_archive_grows_a_hundredfold(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(7):
            archive.writestr(f"{number}.jpg", bytes(2**24))
    (tmp_path / "set").mkdir()
    with pytest.raises(InvalidInputError, match="would become 117,440,512 bytes"):
        unpack_zip(tmp_path / "bomb.zip", tmp_path / "set")
    assert list((tmp_path / "set").iterdir()) == []


def test_nothing_is_written_through_a_link(server: BreakingServer, tmp_path: Path) -> None:
    server.add("set.zip", zip_of(PHOTOS))
    elsewhere, folder = tmp_path / "elsewhere", tmp_path / "set"
    elsewhere.mkdir()
    folder.mkdir()
    (elsewhere / "file").write_text("mine")
    (folder / "set.zip.part").symlink_to(elsewhere / "file")
    (folder / ".unpacking").symlink_to(elsewhere)
    (folder / "photos").symlink_to(elsewhere)
    with pytest.raises(InvalidInputError, match="photos is a link"):
        fetch(server, folder)
    (folder / "photos").unlink()
    fetch(server, folder)
    assert sorted(path.name for path in (folder / "photos").iterdir()) == ["0.jpg", "1.jpg", "2.jpg", "3.jpg"]
    assert [(path.name, path.read_text()) for path in elsewhere.iterdir()] == [("file", "mine")]


def test_redirections_stay_with_the_server_or_go_to_public_addresses(server: BreakingServer, tmp_path: Path) -> None:
    server.add("file", BYTES, statuses=[302], headers={"Location": server.url("moved")})
    server.add("moved", BYTES)
    assert transfer(server, tmp_path).run().path.read_bytes() == BYTES
    port = server.address.rpartition(":")[2]
    for place in (
        "http://169.254.169.254/latest",
        f"http://localhost:{port}/moved",
        "http://10.0.0.1/",
        "http://[::1]/",
    ):
        file = server.add("file", BYTES, statuses=[302], headers={"Location": place})
        with pytest.raises(MissingDataError, match="no public address"):
            transfer(server, tmp_path / "other").run()
        assert len(file.requests) == 1


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_an_archive_that_names_a_file_twice_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "twice.zip", "w") as archive:
        archive.writestr("a.jpg", b"one")
        archive.writestr("a.jpg", b"two")
    with pytest.raises(InvalidInputError, match=r"holds a\.jpg twice"):
        unpack_zip(tmp_path / "twice.zip", tmp_path)


def test_unpacking_adds_to_what_is_there_and_can_drop_folders(tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / "part.zip").write_bytes(zip_of({f"photos/deep/{number}.jpg": b"%d" % number}))
        unpack_zip(tmp_path / "part.zip", tmp_path)
    assert sorted(path.name for path in (tmp_path / "photos" / "deep").iterdir()) == ["1.jpg", "2.jpg"]
    assert unpack_zip(tmp_path / "part.zip", tmp_path, ["*2.jpg"], flat=True) == ("2.jpg",)
    with pytest.raises(InvalidInputError, match=r"holds no \*\.png"):
        unpack_zip(tmp_path / "part.zip", tmp_path, ["*.jpg", "*.png"])


def test_declared_downloads_are_complete() -> None:
    """Whatever can be downloaded holds all declared files; everything else says what to do."""
    for dataset in describe_datasets():
        if not dataset.files:
            assert not dataset.downloads
            continue
        assert bool(dataset.downloads) != bool(dataset.steps)
        for download in dataset.downloads:
            assert (download.sha256 is not None and download.size is not None) or download.note
            assert download.sha256 is None or len(bytes.fromhex(download.sha256)) == 32


@pytest.mark.parametrize("url", ["ftp://example.org/a.zip", "file:///etc/passwd", "http://example.org/"])
def test_only_files_over_http(url: str) -> None:
    with pytest.raises(InvalidInputError, match="http address of a file"):
        Download(url)
