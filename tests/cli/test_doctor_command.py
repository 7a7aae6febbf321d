from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.command_line import Run

MODELS = Path(__file__).parents[1] / "encoders" / "joint" / "fixtures"


@pytest.mark.parametrize(("name", "layout", "tokens"), [("clip", "Transformers", 20), ("exported", "ONNX", 20)])
def test_a_whole_model_is_ready_and_timed(run: Run, name: str, layout: str, tokens: int) -> None:
    printed = json.loads(run("doctor", "--joint", str(MODELS / name), "--json").stdout)
    assert (printed["layout"], printed["family"], printed["problem"]) == (layout, "clip", None)
    assert (printed["n_features"], printed["max_tokens"], printed["missing"]) == (24, tokens, [])
    assert printed["preparation"] == "shortest side 32 pixels, bicubic, middle 32 × 32"
    assert min(printed["pictures_per_second"], printed["texts_per_second"]) > 0


def test_what_is_missing_and_what_stands_in_are_shown(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "clip"
    shutil.copytree(MODELS / "clip", folder)
    (folder / "tokenizer.json").unlink()
    (folder / "preprocessor_config.json").rename(folder / "processor_config.json")
    result = run("doctor", "--joint", str(folder))
    assert result.exit_code == 1
    lines = {line.split()[0]: line for line in result.stdout.splitlines() if line.strip()}
    assert "missing" in lines["tokenizer.json"]
    assert "processor_config.json instead" in lines["preprocessor_config.json"]
    assert "copy the whole model folder" in result.stdout


def test_the_users_model_is_checked_and_without_one_its_place_is_named(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "diptych/joint" in run("doctor").stdout
    monkeypatch.setenv("DIPTYCH_JOINT_MODEL", str(MODELS / "siglip"))
    assert json.loads(run("doctor", "--json").stdout)["family"] == "siglip"


def test_the_files_of_a_known_model_have_their_places(run: Run) -> None:
    printed = json.loads(run("doctor", "--files", "Xenova/mobileclip_s1", "--json").stdout)
    assert "onnx/vision_model.onnx" in printed["files"]
    assert Path(printed["folder"]).parts[-3:] == ("diptych", "joint", "mobileclip_s1")
    shown = run("doctor", "--files", "siglip2-base-patch16-224").stdout
    assert "model.safetensors" in shown
    assert "google/siglip2-base-patch16-224" in shown


@pytest.mark.parametrize(
    ("name", "message"),
    [("apple/MobileCLIP-S1", "MobileCLIP is read from its ONNX export"), ("siglip2-base", "alike: siglip2-base-patch")],
)
def test_other_names_are_answered_with_what_to_take(run: Run, name: str, message: str) -> None:
    result = run("doctor", "--files", name)
    assert result.exit_code == 2
    assert message in result.stderr
