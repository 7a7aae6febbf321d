"""What ``diptych clicks queries`` says about a log."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import spearmanr

from tests.cli.command_line import Run
from tests.doubles.toy_retriever import ToyRetriever

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


def report_of(run: Run, log: Path, *options: str | Path) -> dict[str, Any]:
    result = run("clicks", "queries", log, "--quiet", "--json", *options)
    assert result.exit_code == 0, result.output
    report: dict[str, Any] = json.loads(result.stdout)
    return report


def test_a_table_of_clicks_is_counted_by_length_visualness_and_threshold(run: Run, table: Path) -> None:
    report = report_of(run, table)
    total = sum(clicks for _, clicks in TABLE.values())
    assert (report["queries"], report["clicks"], report["searches"]) == (8, total, None)
    assert [group["queries"] for group in report["by_length"]] == [2, 2, 4, 0, 0, 0]
    assert [group["queries"] for group in report["by_visualness"]] == [2, 2, 1, 0, 3]
    assert report["by_visualness"][4]["clicks"] == 220_747 + 25_575 + 3_423
    assert report["by_visualness"][3]["clicks_per_query"] is None
    assert report["failing"] == []
    for row in report["thresholds"]:
        above = [clicks for visualness, clicks in TABLE.values() if visualness > row["threshold"]]
        assert row["share_of_queries"] == pytest.approx(len(above) / 8)
        assert row["share_of_clicks"] == pytest.approx(sum(above) / total)
    assert [row["share_of_queries"] for row in report["thresholds"] if row["threshold"] == 0.5] == [3 / 8]


def test_correlations_are_those_of_ranks_with_ties(run: Run, table: Path) -> None:
    report = report_of(run, table)
    scores, clicks = zip(*TABLE.values(), strict=True)
    inverse = [1 / len(query.split()) for query in TABLE]
    expected = [spearmanr(scores, clicks), spearmanr(inverse, clicks), spearmanr(scores, inverse)]
    assert [row["coefficient"] for row in report["spearman"]] == pytest.approx([each.statistic for each in expected])
    assert [row["p_value"] for row in report["spearman"]] == pytest.approx([each.pvalue for each in expected])


def test_the_most_frequent_queries_come_with_their_spans(run: Run, table: Path) -> None:
    report = report_of(run, table, "--top", "3")
    assert [row["marked"] for row in report["top"]] == ["funny", "[flower]", "[tattoo] design"]
    assert report["top"][2]["spans"] == [{"start": 0, "end": 6, "concept": "tattoo"}]
    printed = run("clicks", "queries", table, "--quiet").stdout
    assert "[dog] and [cat]" in printed


def test_vocabularies_make_queries_more_visual(run: Run, table: Path, tmp_path: Path) -> None:
    (tmp_path / "celebrities.txt").write_text("Barack Obama\n")
    (tmp_path / "more.txt").write_text("funny\n")
    options = ("--vocabulary", tmp_path / "celebrities.txt", "--vocabulary", tmp_path / "more.txt")
    marked = {row["query"]: row["marked"] for row in report_of(run, table, *options)["top"]}
    assert marked["barack obama family"] == "[barack obama] [family]"
    assert marked["funny"] == "[funny]"


def test_a_log_that_cannot_be_read_is_one_clear_error(run: Run, tmp_path: Path) -> None:
    for log, message in ((tmp_path / "none.tsv", "is not a file"), (tmp_path, "is no collection")):
        result = run("clicks", "queries", log, "--quiet")
        assert result.exit_code != 0
        assert message in result.output


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collection with the log of a service: visual queries are answered, others are not."""
    from diptych.collection import Collection
    from diptych.service.clicks import ClickLog

    folder = tmp_path_factory.mktemp("served") / "collection"
    with Collection.create(folder, ToyRetriever()) as collection, ClickLog(collection.store) as log:
        for query, times, answered in (("red flower", 12, 12), ("funny quotes", 12, 1), ("item:x", 3, 0)):
            for number in range(times):
                search = log.record_search(
                    query=query,
                    retriever="r",
                    fingerprint="f",
                    target="images",
                    shown=[("x", 1), ("y", 2)],
                    no_good_match=query == "funny quotes" and number % 2 == 0,
                    best_probability=0.5,
                )
                assert search is not None
                log.record_click(search_id=search, item="y", position=2, kind="less_like")
                for place, item in enumerate(("x", "y"), 1):
                    if number < answered:
                        log.record_click(search_id=search, item=item, position=place, kind="open")
    return folder


def test_the_log_of_a_service_tells_what_goes_unanswered(run: Run, served: Path) -> None:
    report = report_of(run, served)
    assert (report["queries"], report["searches"], report["clicks"]) == (2, 24, 26)
    assert report["answered_share"] == pytest.approx(13 / 24)
    assert report["no_good_match_share"] == pytest.approx(6 / 24)
    groups = {group["group"]: group for group in report["by_visualness"]}
    assert (groups["0–0.2"]["answered_share"], groups["0–0.2"]["fails"]) == (pytest.approx(1 / 12), True)
    assert (groups["0.8–1"]["answered_share"], groups["0.8–1"]["fails"]) == (1, False)
    assert [group["group"] for group in report["failing"]] == ["2 words, visualness 0–0.2"]
    # All are of two words: there is no other group to be worse than.
    assert not any(group["fails"] for group in report["by_length"])
    assert report["thresholds"][0] == {
        "threshold": 0.0,
        "share_of_queries": 0.5,
        "share_of_searches": 0.5,
        "share_of_clicks": pytest.approx(24 / 26),
    }
    assert report["spearman"][1]["coefficient"] is None
    assert report["success"] == "answered_share"
    assert not math.isnan(report["spearman"][0]["coefficient"])


def test_a_served_collection_is_printed_and_an_empty_log_is_one_clear_error(
    run: Run, served: Path, tmp_path: Path
) -> None:
    from diptych.collection import Collection

    printed = run("clicks", "queries", served, "--quiet").stdout
    assert "Groups that fail" in printed
    assert "[red] [flower]" in printed
    Collection.create(tmp_path / "empty", ToyRetriever()).close()
    assert "nothing was logged" in run("clicks", "queries", tmp_path / "empty", "--quiet").output
