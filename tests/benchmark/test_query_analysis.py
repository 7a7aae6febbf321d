"""What a table of clicks says about its queries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from scipy.stats import spearmanr

from diptych.benchmark.query_analysis import analyse_queries
from diptych.data.clicks import read_clicks
from diptych.encoders import Visualness

# Table II of Dong et al. (2018): visualness and clicks.
TABLE = {
    "flower": (1, 220_747),
    "soccer ball": (1, 25_575),
    "dog and cat": (1, 3_423),
    "tattoo design": (1 / 2, 59_854),
    "barack obama family": (1 / 3, 1_001),
    "hot weather girl": (1 / 3, 31),
    "funny": (0, 578_659),
    "saying and quote": (0, 3_687),
}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """The queries of table II, the clicks of each on two pictures."""
    rows = [
        f"{query}\t{picture}\t{part}\n"
        for query, (_, clicks) in TABLE.items()
        for picture, part in (("a.jpg", 1), ("b.jpg", clicks - 1))
    ]
    file = tmp_path / "log.tsv"
    file.write_text("query\timage\tclicks\n" + "".join(rows))
    return file


def report_of(log: Path, *names: str, top: int = 20) -> dict[str, Any]:
    return analyse_queries(read_clicks(log), Visualness(names), top=top)


def test_a_table_of_clicks_is_counted_by_length_visualness_and_threshold(table: Path) -> None:
    report = report_of(table)
    total = sum(clicks for _, clicks in TABLE.values())
    assert (report["queries"], report["clicks"]) == (8, total)
    assert [group["queries"] for group in report["by_length"]] == [2, 2, 4, 0, 0, 0]
    assert [group["queries"] for group in report["by_visualness"]] == [2, 2, 1, 0, 3]
    assert report["by_visualness"][4]["clicks"] == 220_747 + 25_575 + 3_423
    assert report["by_visualness"][3]["clicks_per_query"] is None
    for row in report["thresholds"]:
        above = [clicks for visualness, clicks in TABLE.values() if visualness > row["threshold"]]
        assert row["share_of_queries"] == pytest.approx(len(above) / 8)
        assert row["share_of_clicks"] == pytest.approx(sum(above) / total)
    assert [row["share_of_queries"] for row in report["thresholds"] if row["threshold"] == 0.5] == [3 / 8]


def test_correlations_are_those_of_ranks_with_ties(table: Path) -> None:
    report = report_of(table)
    scores, clicks = zip(*TABLE.values(), strict=True)
    inverse = [1 / len(query.split()) for query in TABLE]
    expected = [spearmanr(scores, clicks), spearmanr(inverse, clicks), spearmanr(scores, inverse)]
    assert [row["coefficient"] for row in report["spearman"]] == pytest.approx([each.statistic for each in expected])
    assert [row["p_value"] for row in report["spearman"]] == pytest.approx([each.pvalue for each in expected])


def test_the_most_frequent_queries_come_with_their_spans(table: Path) -> None:
    report = report_of(table, top=3)
    assert [row["marked"] for row in report["top"]] == ["funny", "[flower]", "[tattoo] design"]
    assert report["top"][2]["spans"] == [{"start": 0, "end": 6, "concept": "tattoo"}]


def test_vocabularies_make_queries_more_visual(table: Path) -> None:
    marked = {row["query"]: row["marked"] for row in report_of(table, "Barack Obama", "funny")["top"]}
    assert marked["barack obama family"] == "[barack obama] [family]"
    assert marked["funny"] == "[funny]"
