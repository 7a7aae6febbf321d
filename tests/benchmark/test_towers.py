"""Which towers agree: the command from a small captioned set."""

from __future__ import annotations

import json

from typer.testing import CliRunner

from diptych.cli.app import app

ENCODERS = ["--image-encoder", "ColourEdgeHistograms", "--text-encoder", "SentenceEncoder"]


def test_towers_are_compared_on_a_data_set() -> None:
    found = CliRunner().invoke(app, ["encoders", "--compare", "scenes", *ENCODERS, "--pairs", "60", "--json", "-q"])
    assert found.exit_code == 0, found.output
    (row,) = json.loads(found.stdout)
    assert (row["images"], row["texts"]) == ("ColourEdgeHistograms", "SentenceEncoder")
    # Scenes are told apart by their colours, and their captions name these.
    assert row["cka"] > 3 * row["cka_error"]
    assert row["neighbours_chance"] == 10 / 59
    assert row["recall"] > row["recall_chance"]
