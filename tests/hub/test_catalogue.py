from __future__ import annotations

from pathlib import Path

import pytest

from diptych.errors import DiptychError, ModelFileError
from diptych.hub.catalogue import catalogue, find_source, is_research_only
from diptych.hub.place import find_model, installed_models, models_folder


def test_every_entry_says_what_a_user_decides_by() -> None:
    assert len(catalogue()) > 30
    for name, source in catalogue().items():
        assert source.repository.count("/") == 1
        assert source.size
        assert source.languages
        assert source.licence or name == "mclip-b16plus"
    # Files that are known beforehand are known by a commit.
    assert all(source.is_pinned for source in catalogue().values() if source.pins)
    research = {name for name, source in catalogue().items() if is_research_only(source.licence)}
    assert {name.partition("-")[0] for name in research} == {"mobileclip", "mobileclip2", "nllb"}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("siglip2-b61", "did you mean 'siglip2-b16'"),
        ("laion/CLIP", "write hub:laion/CLIP"),
        ("hub:laion", "write hub:OWNER/REPOSITORY"),
        ("hub:../x", "is no address"),
        ("hub:a/b@../../c", "is no address"),
    ],
)
def test_mistaken_names_are_answered(name: str, message: str) -> None:
    with pytest.raises(DiptychError, match=message):
        find_source(name)


def test_models_are_found_by_name_and_one_that_is_not_here_names_the_command(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert models_folder() == models
    with pytest.raises(ModelFileError, match=r"diptych models get siglip2-b16 \(785 MB\)"):
        find_model("siglip2-b16")
    assert find_model("mine") is None
    for name in ("siglip2-b16", "mine"):
        (models / name).mkdir(parents=True)
    assert find_model("siglip2-b16") == models / "siglip2-b16"
    assert list(installed_models()) == ["mine", "siglip2-b16"]
    monkeypatch.delenv("DIPTYCH_MODELS")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert models_folder() == tmp_path / "data" / "diptych" / "models"
