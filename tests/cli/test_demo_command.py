from __future__ import annotations

from pathlib import Path

import pytest

from diptych.cli.commands.demo import demo_collection
from diptych.cli.console.progress import Stages
from diptych.data.sample_photographs import PHOTOGRAPHS_FOLDER
from diptych.retriever import Retriever, precision


@pytest.mark.usefixtures("nothing_indexed")
def test_photographs_are_encoded_in_what_the_machine_does_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `diptych index` does; a demonstration keeps the precision that it was made with, captions and credits."""
    monkeypatch.setattr(precision, "MIN_PICTURES", 0)
    for has_instructions in (True, False):
        monkeypatch.setattr(precision, "multiplies_bytes", lambda has=has_instructions: has)
        with demo_collection(Stages(quiet=True)) as collection:
            retriever = collection.retriever
            assert isinstance(retriever, Retriever)
            assert precision.precision_of(retriever.image_encoder_) == "int8"
            items = collection.items()
            assert len(items) >= 40
            for item in items:
                assert Path(collection.path_of(item) or "").parent == PHOTOGRAPHS_FOLDER
                assert item.captions
                assert set(item.metadata) == {"author", "licence"}
