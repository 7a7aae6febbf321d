from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from diptych import Retriever
from diptych.collection import Collection, Record
from diptych.encoders import ColourEdgeHistograms, SentenceEncoder
from diptych.models import CCA
from diptych.retriever import Calibration
from tests.cli.command_line import Run, World


@pytest.fixture
def here(indexed: World, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.chdir(indexed.pictures)
    return indexed


def found(run: Run, *words: str | Path) -> dict[str, Any]:
    result = run("search", *words, "--json")
    assert result.exit_code == 0, result.output
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def files(document: dict[str, Any]) -> list[str]:
    return [Path(answer["path"]).name for answer in document["answers"]]


def test_a_query_that_is_too_long_is_refused(run: Run, here: World) -> None:
    result = run("search", "a" * 2001)
    assert result.exit_code == 2
    assert "at most 2,000 characters, got 2,001" in result.stderr
    assert run("search", "a" * 300).exit_code == 0


def test_answers_are_those_of_the_collection(run: Run, here: World) -> None:
    with Collection.open(here.collection) as collection:
        expected = collection.search("a red car", 5)
        captions = [list(collection[answer.id].captions) for answer in expected]
    document = found(run, "a", "red", "car", "-k", "5", "--all")
    assert document["query"] == "a red car"
    assert [answer["id"] for answer in document["answers"]] == [answer.id for answer in expected]
    assert [answer["captions"] for answer in document["answers"]] == captions
    for shown, answer in zip(document["answers"], expected, strict=True):
        assert shown["probability"] == pytest.approx(answer.probability, abs=1e-6)
        assert shown["score"] == pytest.approx(answer.score, abs=1e-6)


def test_pages_continue_each_other(run: Run, here: World) -> None:
    whole = files(found(run, "a car", "-k", "6", "--all"))
    pages = files(found(run, "a car", "-k", "3", "--all")) + files(
        found(run, "a car", "-k", "3", "--offset", "3", "--all")
    )
    assert pages == whole


def test_a_picture_finds_itself_first_and_an_item_does_not(run: Run, here: World) -> None:
    picture = "scene-000007.png"
    document = found(run, picture, "--all")
    assert files(document)[0] == picture
    item = document["answers"][0]["id"]
    others = files(found(run, f"item:{item}", "--all"))
    assert picture not in others
    assert others[:5] == files(document)[1:6]


def test_pictures_of_the_collection_are_known_from_anywhere(
    run: Run, indexed: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    document = found(run, "scene-000007.png", "--all", "--collection", indexed.pictures)
    assert files(document)[0] == "scene-000007.png"


def test_terms_are_weighed_and_subtracted(run: Run, here: World) -> None:
    """Quoted arguments stay one term, as if the whole query had been quoted."""
    separate = found(run, "--all", "2:a red car", "+", "scene-000007.png", "-", "snow")
    whole = found(run, "--all", '"2:a red car" + scene-000007.png - snow')
    assert separate["query"] == whole["query"]
    assert files(separate) == files(whole)
    with Collection.open(here.collection) as collection:
        expected = collection.search('"2:a red car" + scene-000007.png - snow', 10)
    assert [answer["id"] for answer in separate["answers"]] == [answer.id for answer in expected]


def test_unwanted_and_misspelt_words_are_told_beside_the_answers(run: Run, here: World) -> None:
    result = run("search", "a car but no people", "--all", "--json")
    assert json.loads(result.stdout)["query"] == "a car - 0.5:people"
    assert result.stderr == "without: people\n"
    result = run("search", "swiming pool", "--all", "--json")
    document = json.loads(result.stdout)
    assert (document["did_you_mean"], document["is_corrected"]) == ("swimming pool", True)
    assert "searched for: swimming pool" in result.stderr
    assert "did you mean: beach?" in run("search", "bech", "--all").stderr


def test_a_picture_finds_captions(run: Run, here: World) -> None:
    document = found(run, "scene-000007.png", "--target", "texts", "--all", "-k", "3")
    assert all(answer["caption"] in answer["captions"] for answer in document["answers"])


def test_filters(run: Run, here: World) -> None:
    document = found(run, "something", "--filter", "label:car", "--all", "-k", "60")
    assert document["answers"]
    assert all(answer["labels"] == ["car"] for answer in document["answers"])
    assert document["considered"] == len(document["answers"])


def test_hybrid_search_finds_the_words_of_captions(run: Run, here: World) -> None:
    with Collection.open(here.collection) as collection:
        caption = collection["scene-000033.png"].captions[0]
    document = found(run, caption, "--mode", "both", "-k", "3")
    assert "scene-000033.png" in files(document)
    best = document["answers"][files(document).index("scene-000033.png")]
    assert "words" in best["matched_by"]


def test_the_cut_off_asks_the_best_answer_alone(run: Run, here: World) -> None:
    """A best answer that passes brings the others along, however improbable they are."""
    everything = found(run, "a red car", "--all", "-k", "60")
    with Collection.open(here.collection) as collection:
        cutoff = collection.retriever.cutoff_among(len(collection), is_short=True)
    probabilities = [answer["probability"] for answer in everything["answers"]]
    assert max(probabilities) > cutoff > min(probabilities)
    shown = found(run, "a red car", "-k", "60")
    assert shown["answers"] == everything["answers"]
    assert shown["no_good_match"] is False


def test_a_least_probability_is_asked_of_every_answer(run: Run, here: World) -> None:
    everything = found(run, "a red car", "--all", "-k", "60")
    limit = everything["answers"][4]["probability"]
    words = ("a red car", "-k", "60", "--min-probability")
    assert len(found(run, *words, str(limit - 1e-6))["answers"]) == 5
    nothing = found(run, *words, "0.9999")
    assert (nothing["answers"], nothing["no_good_match"]) == ([], True)
    # The next page of a search that had answers is merely the end of them.
    after = found(run, *words, str(limit - 1e-6), "--offset", "10")
    assert (after["answers"], after["no_good_match"]) == ([], False)


@pytest.mark.parametrize("form", ["--format=auto", "--format=table", "--json", "--format=paths", "--format=paths0"])
def test_no_good_match_is_said_plainly(run: Run, here: World, form: str) -> None:
    """Among pictures of something else there is none to show."""
    farthest = files(found(run, "a red car", "--all", "-k", "60"))[-1]
    result = run("search", "a red car", "--filter", f"name:{farthest}", form)
    assert result.exit_code == 0
    assert "no good match" in result.stderr
    assert "--all" in result.stderr
    if form == "--json":
        assert json.loads(result.stdout)["no_good_match"] is True
        assert json.loads(result.stdout)["answers"] == []
    else:
        assert result.stdout == ""


def test_paths_are_all_a_pipe_gets(run: Run, here: World) -> None:
    result = run("search", "a red car", "-k", "4", "--all")
    assert result.exit_code == 0
    assert result.stderr == ""
    lines = result.stdout.splitlines()
    assert len(lines) == 4
    assert all(Path(line).is_file() for line in lines)
    assert run("search", "a red car", "-k", "4", "--all", "--format", "paths0").stdout.split("\0") == [*lines, ""]


def test_captions_are_all_a_pipe_gets_where_captions_are_searched(
    run: Run, indexed: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = indexed.copied(tmp_path / "pictures")
    monkeypatch.chdir(world.pictures)
    # The same words twice, and one of them over two lines.
    for picture in ("scene-000001.png", "scene-000002.png"):
        run("add", picture, "--caption", "a very\nspecial sentence", "--replace")
    words = ("a very special sentence", "--target", "texts", "--mode", "both", "--all", "-k", "6")
    captions = [answer["caption"] for answer in found(run, *words)["answers"]]
    assert captions.count("a very\nspecial sentence") == 2
    lines = run("search", *words).stdout.splitlines()
    assert lines == [caption.replace("\n", " ") for caption in captions]


@pytest.mark.parametrize("width", [60, 80, 200])
def test_tables_fit_their_terminal(run: Run, here: World, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    lines = run("search", "a red car", "-k", "3", "--all", "--format", "table").stdout.splitlines()
    assert max(map(len, lines)) <= width
    assert sum("scene-0" in line for line in lines) == 3
    assert any("%" in line for line in lines)


def test_a_reader_may_leave_early(here: World) -> None:
    command = f"{sys.executable} -m diptych search car -k 60 --all --format table"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", f"{command} | head -n 1"], capture_output=True, text=True, cwd=here.pictures
    )
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
    assert done.stdout.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["nowhere.jpg"], "there is no picture"),
        (["cat", "--filter", "label"], "filter"),
        (["cat", "--all", "--min-probability", "0.5"], "give one of them"),
        (["cat", "--collection", "nowhere"], "nowhere does not exist"),
        (["item:nothing"], "there is no item 'nothing'"),
        ([""], "error: type some words"),
        (["- snow"], "put -- before"),
        ([__file__], "is a file and no picture; give a picture"),
    ],
)
def test_a_mistake_costs_one_line(run: Run, here: World, words: list[str], hint: str) -> None:
    result = run("search", *words)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert hint in result.stderr
    assert result.stderr.count("\n") == 1


def test_two_dashes_let_words_begin_with_a_minus_sign(run: Run, here: World) -> None:
    result = run("search", "--all", "--json", "--", "- snow")
    assert json.loads(result.stdout)["query"] == "- snow"


def test_quotation_marks_search_for_the_name_of_a_file_as_words(run: Run, here: World) -> None:
    Path("notes.txt").write_text("x")
    assert found(run, "--all", '"notes.txt"')["query"] == '"notes.txt"'


def test_a_picture_whose_name_holds_operators_is_a_picture(
    run: Run, here: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copyfile("scene-000007.png", tmp_path / "salt - pepper.png")
    monkeypatch.chdir(tmp_path)
    document = found(run, "salt - pepper.png", "--all", "--collection", here.pictures)
    assert files(document)[0] == "scene-000007.png"


def test_without_a_collection_it_says_what_to_run(run: Run, nothing_indexed: Path) -> None:
    result = run("search", "a cat")
    assert result.exit_code == 2
    assert "diptych index FOLDER" in result.stderr


def test_an_empty_collection_says_what_to_run(run: Run, indexed: World, nothing_indexed: Path) -> None:
    copy = indexed.copied(nothing_indexed / "pictures")
    assert run("remove", "--filter", "kind:picture", "--yes", "--collection", copy.pictures).exit_code == 0
    result = run("search", "a cat", "--collection", copy.pictures)
    assert result.exit_code == 0
    assert "the collection is empty" in result.stderr
    assert "diptych index FOLDER" in result.stderr


def test_a_filter_that_nothing_meets_is_named(run: Run, here: World) -> None:
    result = run("search", "a cat", "--filter", "label:nothing")
    assert result.exit_code == 0
    assert "nothing meets the filter label:nothing" in result.stderr


def test_names_of_files_cannot_speak_to_the_terminal(run: Run, indexed: World, nothing_indexed: Path) -> None:
    copy = indexed.copied(nothing_indexed / "pictures")
    shutil.copyfile(copy.pictures / "scene-000001.png", copy.pictures / "odd\x1b[31m\nname.png")
    assert run("index", copy.pictures).exit_code == 0
    shown = run("search", "odd", "--all", "-k", "61", "--format", "table").stdout
    assert "\x1b" not in shown
    assert "odd�[31m�name.png" in shown


def test_a_language_that_is_not_understood_is_noted(run: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    retriever = Retriever(cache=False)
    retriever.image_encoder_, retriever.text_encoder_ = ColourEdgeHistograms(size=32), SentenceEncoder()
    retriever.model_ = CCA(n_components=4).fit(rng.normal(size=(20, 5)), rng.normal(size=(20, 384)))
    retriever.calibration_ = Calibration.assumed(10.0, -5.0)
    with Collection.create(tmp_path / "texts", retriever) as made:
        made.add([Record(captions=["two dogs on a beach"]), Record(captions=["a red car"])])
    asked = "--collection", tmp_path / "texts", "--target", "texts", "--all", "--json"
    note = "This looks like a language that the search model does not understand well; try English."
    foreign, english = run("search", "dva psi na pláži", *asked), run("search", "two dogs on a beach", *asked)
    assert note in foreign.stderr
    assert json.loads(foreign.stdout)["notes"] == [note]
    assert "understand" not in english.stderr
    assert json.loads(english.stdout)["notes"] == []


def test_good_answers_come_in_the_order_asked_for(run: Run, indexed: World) -> None:
    asked = ("search", "a red car", "--all", "-k", "5", "--collection", indexed.collection)
    by_name = run(*asked, "--sort", "name").stdout.splitlines()
    assert len(by_name) == 5
    assert by_name == sorted(by_name) != run(*asked).stdout.splitlines()
