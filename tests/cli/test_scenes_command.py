from __future__ import annotations

import json
from pathlib import Path

from PIL import Image

from diptych.data.datasets.scenes import make_scene
from tests.cli.command_line import Program, Run


def test_scenes_are_written_and_the_folder_is_the_only_result(program: Program, tmp_path: Path) -> None:
    folder = tmp_path / "pictures"
    result = program("datasets", "scenes", folder, "--n", "3", "--seed", "5", "--size", "40")
    assert result.returncode == 0
    assert result.stdout == f"{folder}\n"
    assert "painting 3 scenes" in result.stderr
    pictures = json.loads((folder / "captions.json").read_text())["pictures"]
    assert [entry["captions"] for entry in pictures] == [list(make_scene(number, 5).captions) for number in range(3)]
    assert all(Image.open(folder / entry["file"]).size == (40, 40) for entry in pictures)


def test_a_folder_with_other_files_is_left_alone(run: Run, tmp_path: Path) -> None:
    (tmp_path / "diary.txt").write_text("dear diary")
    result = run("datasets", "scenes", tmp_path, "--n", "1")
    assert result.exit_code == 2
    assert "diary.txt" in result.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["diary.txt"]


def test_quiet_says_nothing_beside_the_result(run: Run, tmp_path: Path) -> None:
    assert run("datasets", "scenes", tmp_path / "new", "--n", "1", "--size", "32", "--quiet").stderr == ""
