from __future__ import annotations

from pathlib import Path

import pytest

from diptych.data import cache_folder, data_folder
from diptych.data.folders import _platform_caches


def test_the_data_variable_wins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DIPTYCH_DATA", str(tmp_path))
    assert data_folder() == tmp_path


def test_without_it_data_lives_in_the_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("DIPTYCH_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert data_folder() == cache_folder() == tmp_path / "diptych"


@pytest.mark.parametrize(
    ("platform", "local_app_data", "expected"),
    [
        ("linux", None, "/home/ada/.cache"),
        ("darwin", None, "/home/ada/Library/Caches"),
        ("win32", "/local", "/local"),
        ("win32", None, "/home/ada/AppData/Local"),
    ],
)
def test_platform_conventions(platform: str, local_app_data: str | None, expected: str) -> None:
    assert _platform_caches(platform, Path("/home/ada"), local_app_data) == Path(expected)
