"""Results on disk: whole or absent, packed or single, compared."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from diptych.benchmark.results import Record, ResultFolder, compare_results, pack_results
from diptych.cli import app
from diptych.errors import InvalidInputError


def record(method="cca", fold=0, shift=0.0, task="wiki"):
    rng = np.random.default_rng(fold)
    values = {way: (rng.random(40) * 0.5 + shift).round(6).tolist() for way in ("image_query", "text_query")}
    return Record(
        task=task,
        dataset="wikipedia",
        setting="seen",
        features="topics – Größe",
        method=method,
        method_title=method.upper(),
        fold=fold,
        measures={"AP()": {way: float(np.mean(per_query)) for way, per_query in values.items()}},
        per_query={"AP()": values},
    )


@given(
    st.dictionaries(st.text(min_size=1), st.floats(allow_nan=False, allow_infinity=False) | st.text()),
    st.integers(0, 1 << 60) | st.none(),
)
def test_a_record_comes_back_from_json_as_it_was(parameters, memory):
    one = replace(record(), parameters=parameters, peak_memory_bytes=memory)
    assert Record.from_json(one.as_json()) == one


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    folder = ResultFolder(tmp_path)
    folder.write(record())
    with pytest.raises(ValueError, match="JSON compliant"):
        folder.write(replace(record(), peak_memory_bytes=float("nan")))
    assert list(folder.records()) == [record()]
    assert [path.name for path in (tmp_path / "wiki" / "cca").iterdir()] == ["0.json"]


@pytest.mark.parametrize("name", ["../up", "", ".hidden", "a/b"])
def test_names_that_leave_the_folder_are_refused(tmp_path, name):
    with pytest.raises(InvalidInputError, match="cannot name a file"):
        ResultFolder(tmp_path).write(record(method=name))


def test_files_that_are_no_records_are_named(tmp_path):
    folder = ResultFolder(tmp_path)
    path = folder.write(record())
    for text, problem in (("{", "not JSON"), ("[]", "no result of format 1"), ('{"format": 2}', "found 2")):
        path.write_text(text)
        with pytest.raises(InvalidInputError, match=problem):
            folder.find("wiki", "cca", 0)
    path.write_text('{"format": 1, "task": "wiki"}')
    with pytest.raises(InvalidInputError, match="not complete"):
        folder.find("wiki", "cca", 0)
    with pytest.raises(InvalidInputError, match="not a folder of results"):
        list(ResultFolder(tmp_path / "nowhere").records())


def test_packed_results_are_read_and_a_file_of_its_own_counts(tmp_path):
    single = ResultFolder(tmp_path / "single")
    records = [
        record(method, fold, task=task) for task in ("pascal", "wiki") for method in ("cca", "sm") for fold in (0, 1)
    ]
    for one in reversed(records):
        single.write(one)
    files = pack_results(tmp_path / "single", tmp_path / "packed")
    assert [file.name for file in files] == ["pascal.jsonl.gz", "wiki.jsonl.gz"]
    content = [file.read_bytes() for file in files]
    assert content == [file.read_bytes() for file in pack_results(tmp_path / "single", tmp_path / "packed")]
    packed = ResultFolder(tmp_path / "packed")
    assert list(packed.records()) == list(single.records()) == records
    assert packed.has("wiki", "sm", 1)
    assert not packed.has("wiki", "sm", 2)
    newer = record("sm", 1, shift=0.1)
    packed.write(newer)
    assert ResultFolder(tmp_path / "packed").find("wiki", "sm", 1) == newer
    files[0].write_bytes(gzip.compress(b"{}\n")[:-4])
    with pytest.raises(InvalidInputError, match=r"cannot be read|no result"):
        list(ResultFolder(tmp_path / "packed").records())


def test_documents_of_studies_are_packed_and_read(tmp_path):
    folder = tmp_path / "single" / "studies"
    folder.mkdir(parents=True)
    (folder / "pairwise-wikipedia.json").write_text('{"rows": [1]}', encoding="utf-8")
    (packed,) = pack_results(tmp_path / "single", tmp_path / "packed")
    assert packed == tmp_path / "packed" / "studies" / "pairwise-wikipedia.json.gz"
    assert ResultFolder(tmp_path / "packed").studies() == {"pairwise-wikipedia": {"rows": [1]}}
    packed.with_suffix("").write_text('{"rows": [2]}', encoding="utf-8")
    assert ResultFolder(tmp_path / "packed").studies() == {"pairwise-wikipedia": {"rows": [2]}}
    packed.with_suffix("").unlink()
    packed.write_bytes(packed.read_bytes()[:-9])
    with pytest.raises(InvalidInputError, match="run the study again"):
        ResultFolder(tmp_path / "packed").studies()


def test_a_difference_is_found_measured_and_tested(tmp_path):
    first, second = ResultFolder(tmp_path / "a"), ResultFolder(tmp_path / "b")
    for fold in (0, 1):
        first.write(record(fold=fold))
        second.write(record(fold=fold))
        first.write(record("sm", fold))
        second.write(record("sm", fold, shift=0.05))
    first.write(record("ts"))
    found = compare_results(first, second)
    assert found.compared == 4
    assert {(unit.method, unit.fold) for unit in found.units} == {("sm", 0), ("sm", 1)}
    assert found.largest == pytest.approx(0.05, abs=1e-6)
    (method,) = found.methods
    assert method.difference == pytest.approx(0.05, abs=1e-6)
    assert method.p_value < 0.01
    assert found.only_first == (("wiki", "ts", 0),)
    assert compare_results(first, second, tolerance=0.06).units == ()
    missing = replace(record(), measures={"AP()": {"image_query": record().measures["AP()"]["image_query"]}})
    second.write(missing)
    assert compare_results(first, second).largest == float("inf")


def test_the_exit_status_of_diff_says_whether_numbers_differ(tmp_path):
    first, second = ResultFolder(tmp_path / "a"), ResultFolder(tmp_path / "b")
    first.write(record())
    second.write(record(shift=0.01))
    places = [str(first.path), str(second.path)]
    different = CliRunner().invoke(app, ["bench", "diff", *places])
    assert different.exit_code == 1
    assert "wiki, cca, fold 0: 1.00e-02 in AP()" in different.stdout
    assert CliRunner().invoke(app, ["bench", "diff", *places, "--tolerance", "0.1"]).exit_code == 0
    told = json.loads(CliRunner().invoke(app, ["bench", "diff", *places, "--json"]).stdout)
    assert [unit["method"] for unit in told["units"]] == ["cca"]
    packed = CliRunner().invoke(app, ["bench", "pack", places[0], str(tmp_path / "packed"), "--json"])
    assert packed.exit_code == 0, packed.output
    assert json.loads(packed.stdout)["files"] == [str(tmp_path / "packed" / "wiki.jsonl.gz")]
    assert CliRunner().invoke(app, ["bench", "diff", places[0], str(tmp_path / "packed")]).exit_code == 0
