from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from diptych.benchmark import Catalogue
from diptych.benchmark.reporting import (
    MethodResults,
    Report,
    Sample,
    SampleSheet,
    Shown,
    build_report,
    group_records,
    leaderboard_table,
    published_beside,
    sample_sheets,
)
from diptych.benchmark.reporting.results import query_names, query_shares
from diptych.benchmark.results import Record, ResultFolder
from diptych.benchmark.tables import Table, as_latex
from diptych.cli.bench.run import bench_report
from diptych.errors import InvalidInputError
from diptych.space import DIRECTIONS
from tests.benchmark.made_up_records import FOLDS, METHODS, PER_CLASS, make_record


@pytest.fixture(scope="module")
def report(records: list[Record]) -> Report:
    picture = Shown(b"\xff\xd8jpeg", "a <picture>", "a")
    sample = Sample("text_query", Shown(None, "a dog & a cat", "a"), {"SM": ((picture, True), (picture, False))})
    return build_report(records, [SampleSheet("scenes", (sample,), "Fold 0.")])


@pytest.fixture(scope="module")
def page(report: Report) -> str:
    return report.as_html()


class PageReader(HTMLParser):
    """Checks that tags close in order, and collects what the tests ask for."""

    VOID = frozenset({"meta", "img", "br", "link"})

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.ids: list[str] = []
        self.targets: list[str] = []
        self.sources: list[str] = []
        self.tags: list[str] = []
        self.charts_without_name = 0
        self.pictures_without_name = 0
        self.tables: list[list[list[str]]] = []
        self.cell: list[str] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        assert len(found) == len(attrs), f"{tag} repeats an attribute"
        self.tags.append(tag)
        if "id" in found:
            self.ids.append(found["id"] or "")
        self.targets += [found["href"] or ""] if "href" in found else []
        self.sources += [found["src"] or ""] if "src" in found else []
        self.charts_without_name += tag == "svg" and not (found.get("aria-label") or found.get("aria-hidden"))
        self.pictures_without_name += tag == "img" and not found.get("alt")
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.cell = []
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        if tag in ("td", "th"):
            self.tables[-1][-1].append("".join(self.cell or []))
            self.cell = None

    def handle_data(self, data: str) -> None:
        if self.cell is not None:
            self.cell.append(data)


@pytest.fixture(scope="module")
def read(page: str) -> PageReader:
    reader = PageReader()
    reader.feed(page)
    reader.close()
    return reader


def test_the_page_is_whole(read: PageReader) -> None:
    assert read.open == []
    assert len(read.ids) == len(set(read.ids))
    assert {target.removeprefix("#") for target in read.targets} <= set(read.ids)
    assert {"html", "main", "nav", "svg", "table", "details", "figure"} <= set(read.tags)
    assert read.charts_without_name == read.pictures_without_name == 0
    assert all(len(row) == len(table[0]) for table in read.tables for row in table)


def test_the_page_needs_nothing_from_elsewhere(page: str, read: PageReader) -> None:
    assert all(target.startswith("#") for target in read.targets)
    assert read.sources
    assert all(source.startswith("data:image/jpeg;base64,") for source in read.sources)
    assert not re.search(r"https?://|@import|url\(", page)
    assert read.tags.count("script") == 1
    assert "link" not in read.tags


def test_the_page_shows_words_as_they_are(page: str) -> None:
    assert "a dog &amp; a cat" in page
    assert "a &lt;picture&gt;" in page
    assert 'aria-label="right">✓' in page
    assert 'aria-label="wrong">✗' in page


def test_numbers_of_the_tables_are_those_of_the_records(read: PageReader, records: list[Record]) -> None:
    tables = [table for table in read.tables if table[0][:2] == ["place", "method"]]
    assert len(tables) == 2
    for setting, table in zip(("seen", "unseen"), tables, strict=True):
        rows = {row[1]: dict(zip(table[0], row, strict=True)) for row in table[1:]}
        assert len(rows) == len(METHODS)
        for method, (title, *_) in METHODS.items():
            found = [one for one in records if one.method == method and one.setting == setting]
            both = [(one.measures["AP()"]["image_query"] + one.measures["AP()"]["text_query"]) / 2 for one in found]
            image = [one.measures["AP()"]["image_query"] for one in found]
            row = rows[title]
            assert row["average"] == f"{np.mean(both):.4f} ± {np.std(both, ddof=1):.4f}"
            assert row["image query"] == f"{np.mean(image):.4f} ± {np.std(image, ddof=1):.4f}"
            assert row["above chance"] == f"{np.mean(both) - 0.21:+.4f}".replace("-", "−")
        averages = [float(row[table[0].index("average")].split()[0]) for row in table[1:]]
        assert averages == sorted(averages, reverse=True)


def test_markdown_has_the_rows_of_the_page(report: Report, read: PageReader) -> None:
    lines = report.as_markdown().splitlines()
    for table in read.tables:
        if table[0][0] == "place":
            assert all(f"| {' | '.join(row)} |" in lines for row in table)


def test_latex_is_balanced_and_has_as_many_cells_as_columns(report: Report) -> None:
    text = report.as_latex()
    assert text.count(r"\begin{table}") == text.count(r"\end{table}") == text.count(r"\toprule") >= 3
    plain = re.sub(r"\\[{}]", "", text)
    assert plain.count("{") == plain.count("}")
    for body in re.findall(r"\\begin\{tabular\}\{([lr]+)\}(.*?)\\end\{tabular\}", text, re.S):
        rows = [line for line in body[1].splitlines() if line.endswith(r"\\")]
        assert all(len(re.split(r"(?<!\\)&", row)) == len(body[0]) for row in rows)
    assert not re.search(r"[±–−τ’“”]", text)


def test_latex_escapes_what_is_special() -> None:
    text = as_latex(Table("50 % of R&D_1", ("a",), (("x^2 ~ {y} \\",),)))
    assert r"50 \% of R\&D\_1" in text
    assert r"x\textasciicircum{}2 \textasciitilde{} \{y\} \textbackslash{}" in text


def test_csv_has_every_measure_with_all_digits(report: Report, records: list[Record]) -> None:
    rows = list(csv.DictReader(io.StringIO(report.as_csv())))
    assert len(rows) == 2 * len(METHODS) * 2 * 3
    for row in rows:
        if row["direction"] == "average":
            continue
        found = [
            one.measures[row["measure"]][row["direction"]]
            for one in records
            if one.method == row["method"] and one.task == row["task"]
        ]
        assert float(row["mean"]) == pytest.approx(np.mean(found), abs=1e-12)
        assert float(row["deviation"]) == pytest.approx(np.std(found, ddof=1), abs=1e-12)


def test_shares_of_queries_add_up_to_the_means(records: list[Record]) -> None:
    task = group_records(records)[0]
    shares = query_shares(task.complete, "AP()")
    assert shares is not None
    np.testing.assert_allclose(shares.sum(axis=0), [method.mean() for method in task.complete], atol=1e-6)
    # A pair counts once, in whichever folds and directions it is asked.
    assert len(shares) == len({name for one in records if one.setting == "seen" for name in one.classes}) * PER_CLASS


def test_a_query_has_the_same_name_in_every_fold() -> None:
    records = [make_record("sm", "seen", fold) for fold in range(FOLDS)]
    names = [
        set(query_names(record, "image_query", len(record.per_query["AP()"]["image_query"]))) for record in records
    ]
    for record, found in zip(records, names, strict=True):
        assert found == {(name, place) for name in record.classes for place in range(PER_CLASS)}


def test_letters_follow_the_tests(records: list[Record]) -> None:
    task = group_records(records)[0]
    compared = task.comparison()
    assert compared is not None
    for one, first in enumerate(task.complete):
        for other, second in enumerate(task.complete):
            shared = set(task.letters[first.name]) & set(task.letters[second.name])
            assert one == other or bool(shared) != (compared.adjusted[one, other] <= 0.05)
    assert not set(task.letters["sm"]) & set(task.letters["random"])


def test_a_method_without_all_folds_is_listed_and_not_compared(records: list[Record]) -> None:
    kept = [one for one in records if not (one.method == "cfa" and one.fold == 2)]
    task = group_records(kept)[0]
    assert "cfa" not in task.letters
    assert "sm" in task.letters
    board = leaderboard_table(task)
    assert any("Not run on all folds" in note and "CFA" in note for note in board.notes)
    assert "CFA" in {row[1] for row in board.rows}


def test_records_of_different_queries_are_refused(records: list[Record]) -> None:
    odd = [
        replace(one, per_query={"AP()": {way: [0.5] for way in DIRECTIONS}}) if one.method == "cfa" else one
        for one in records
    ]
    with pytest.raises(InvalidInputError, match="different numbers of queries"):
        _ = group_records(odd)[0].letters


def test_rank_one_comes_from_first_ranks_where_nothing_ties(records: list[Record]) -> None:
    first = {"image_query": [1.0, 3.0, 1.0, None], "text_query": [2.0, 1.0, 4.0, 1.0]}
    right = {"image_query": 2 / 3, "text_query": 0.5}
    untied = replace(records[0], per_query={"first_rank": first}, measures={"CMC@1": right})
    values = MethodResults((untied,)).per_query("CMC@1", 0, "image_query")
    np.testing.assert_array_equal(values, [1, 0, 1, np.nan])
    tied = replace(untied, measures={"CMC@1": {"image_query": 0.71, "text_query": 0.5}})
    assert MethodResults((tied,)).per_query("CMC@1", 0, "image_query") is None


def published(method: str, setting: str, dataset: str = "wikipedia", n_bits: int | None = None) -> dict[str, float]:
    record = replace(
        make_record("sm", "seen", 0), method=method, setting=setting, dataset=dataset, n_bits=n_bits, task="any"
    )
    task = group_records([record])[0]
    found = published_beside(task, task.methods[0])
    return {} if found is None else dict(found.values)


def test_printed_values_stand_beside_the_same_method_setting_and_length() -> None:
    assert published("sm", "seen") == {"image_query": pytest.approx(0.607)}
    assert published("sm", "unseen") == {"image_query": pytest.approx(0.294)}
    assert published("deep-ts", "seen") == {"image_query": pytest.approx(0.598)}
    assert published("cvh-16", "seen", n_bits=16) == {"text_query": pytest.approx(0.217)}
    assert published("cvh-8", "seen", n_bits=8) == {"text_query": pytest.approx(0.216)}
    assert published("cvh-16", "unseen", n_bits=16) == {}
    assert published("scm-orth-8", "seen", n_bits=8) == {"text_query": pytest.approx(0.417)}
    assert published("cca", "standard") == {"image_query": 0.2757, "text_query": 0.2002}
    assert published("marginal-sm", "standard", "pascal_sentence") == {"image_query": 0.2229, "text_query": 0.1738}
    assert published("kcca", "standard") == {"image_query": 0.282, "text_query": 0.225}
    assert published("pls", "standard") == {}


def test_every_value_that_liu_et_al_quote_finds_a_method() -> None:
    """The paper's text has fourteen values of MAP for single methods; each must be found under one of our names."""
    text = files("diptych.benchmark").joinpath("published.csv").read_text(encoding="utf-8")
    quoted = [
        row for row in csv.DictReader(text.splitlines()) if row["paper"] == "000" and row["metric"] == "MAP_percent"
    ]
    ours = [
        *((name, setting, None) for name in ("sm", "ts", "deep-ts", "cca") for setting in ("seen", "unseen")),
        *((f"{name}-{bits}", "seen", bits) for name in ("cvh", "scm-orth", "mm-nn") for bits in (8, 16, 32)),
    ]
    found = [value for name, setting, bits in ours for value in published(name, setting, n_bits=bits).values()]
    assert sorted(found) == pytest.approx(sorted(float(row["value"]) / 100 for row in quoted))


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="diptych bench run"):
        build_report(ResultFolder(tmp_path).records())


def test_the_command_writes_four_files(
    records: list[Record], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = ResultFolder(tmp_path / "results")
    for record in records:
        folder.write(record)
    bench_report(tmp_path / "results", tmp_path / "out", samples=False, quiet=True)
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"report.html", "report.md", "report.tex", "results.csv"}
    printed = capsys.readouterr().out
    assert "confirmed" in printed
    assert "Every method" in printed


def test_samples_show_the_first_answers_of_two_methods() -> None:
    declared = replace(
        Catalogue().task("extendable-scenes-unseen"),
        options={"n_train": 60, "n_test": 30, "size": 32, "captions": "join"},
    )
    made = [
        (make_record(method, "unseen", 0), chosen) for method, chosen in (("cfa", {}), ("cca", {"n_components": 4}))
    ]
    records = [replace(one, task=declared.name, dataset="scenes", parameters=chosen) for one, chosen in made]
    sheet = sample_sheets(group_records(records), [declared])[0]
    assert [sample.direction for sample in sheet.samples] == ["image_query"] * 2 + ["text_query"] * 2
    for sample in sheet.samples:
        assert "CCA" in sample.answers
        for answers in sample.answers.values():
            assert len(answers) == 5
            assert all(right == (shown.label == sample.query.label) for shown, right in answers)
        pictures = [shown.picture for answers in sample.answers.values() for shown, _ in answers]
        asks_with_picture = sample.direction == "image_query"
        assert (sample.query.picture is not None) == asks_with_picture
        assert all((picture is None) == asks_with_picture for picture in pictures)
        assert all(picture is None or picture.startswith(b"\xff\xd8") for picture in pictures)


def test_tasks_that_are_not_declared_have_no_samples(records: list[Record]) -> None:
    assert sample_sheets(group_records([replace(one, task="own-data") for one in records[:1]])) == ()


def test_without_matplotlib_the_page_has_its_tables(
    report: Report, read: PageReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("diptych.benchmark.reporting.benchmark_report.can_draw", lambda: False)
    page = report.as_html()
    bare = PageReader()
    bare.feed(page)
    assert "svg" not in bare.tags
    assert bare.tables == read.tables
    assert "pip install 'diptych[plots]'" in page
