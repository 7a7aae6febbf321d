from __future__ import annotations

import csv
import io
import json
import os
import re
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diptych.data import CaptionedPictures, read_captions
from diptych.data.caption_files import CAPTION_FORMATS
from diptych.data.datasets.scenes import write_folder
from diptych.errors import InvalidInputError, UnknownNameError

WORDS = {"1.jpg": ("a boat", "a small ship"), "sub/2.jpg": ("a cat", "a kitten")}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in (*WORDS, "3.jpg"):
        (tmp_path / "photos" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "photos" / name).touch()
    return tmp_path / "photos"


def written(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder.parent / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def words(pictures: CaptionedPictures) -> dict[str, tuple[str, ...]]:
    return {path.relative_to(pictures.folder).as_posix(): picture.captions for path, picture in pictures.items()}


def table(delimiter: str, quoting: Any = csv.QUOTE_MINIMAL) -> str:
    content = io.StringIO()
    writer = csv.writer(content, delimiter=delimiter, quoting=quoting)
    writer.writerow(["Filename", "Caption", "Year", "Tags"])
    for file, captions in WORDS.items():
        writer.writerows([file, caption, "2010", "sea; animals"] for caption in captions)
    return content.getvalue()


RECORDS = [{"file": file, "captions": list(captions), "year": 2010} for file, captions in WORDS.items()]
COCO: dict[str, Any] = {
    "images": [{"id": row, "file_name": file, "width": 640} for row, file in enumerate(WORDS)],
    "annotations": [
        {"id": 10 * row + place, "image_id": row, "caption": caption}
        for row, captions in enumerate(WORDS.values())
        for place, caption in enumerate(captions)
    ],
}
INSTANCES: dict[str, Any] = {
    "images": COCO["images"],
    "annotations": [{"id": 1, "image_id": 1, "category_id": 7}, {"id": 2, "image_id": 1, "category_id": 7}],
    "categories": [{"id": 7, "name": "cat", "supercategory": "animal"}],
}
KARPATHY = {
    "dataset": "coco",
    "images": [
        {
            "filepath": "elsewhere",
            "filename": Path(file).name,
            "split": "test",
            "cocoid": 9,
            "sentids": [1, 2],
            "sentences": [{"raw": caption, "tokens": caption.split()} for caption in captions],
        }
        for file, captions in WORDS.items()
    ],
}
TOKENS = "\n".join(
    f"{file}#{place}\t{caption}" for file, listed in WORDS.items() for place, caption in enumerate(listed)
)

LAYOUTS = {
    "comma.csv": table(","),
    "semicolon.csv": table(";"),
    "bar.txt": table("|"),
    "tab.tsv": table("\t"),
    "quoted.csv": table(",", csv.QUOTE_ALL),
    "by_file.json": json.dumps({file: list(captions) for file, captions in WORDS.items()}),
    "records_by_file.json": json.dumps({file: {"captions": captions} for file, captions in WORDS.items()}, indent=1),
    "list.json": json.dumps(RECORDS),
    "records.jsonl": "\n".join(json.dumps(record) for record in RECORDS),
    "records_without_suffix": "\n".join(json.dumps(record) for record in RECORDS) + "\n",
    "captions_val.json": json.dumps(COCO),
    "dataset_coco.json": json.dumps(KARPATHY),
    "Flickr8k.token.txt": TOKENS,
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_layout_says_the_same(folder: Path, name: str) -> None:
    pictures = read_captions(written(folder, name, LAYOUTS[name]), folder)
    assert words(pictures) == WORDS
    assert (pictures.missing, pictures.ambiguous, pictures.n_empty_captions, pictures.notes) == ((), (), 0, ())


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("name", ["comma.csv", "list.json", "Flickr8k.token.txt"])
def test_unicode_in_any_dress(folder: Path, name: str, encoding: str) -> None:
    content = LAYOUTS[name].replace("kitten", "k\u00f6tten")
    pictures = read_captions(written(folder, name, content.encode(encoding)), folder)
    assert words(pictures)["sub/2.jpg"] == ("a cat", "a k\u00f6tten") or "\\u" in content
    assert pictures.notes == ()


def test_western_bytes_are_read_with_a_note(folder: Path) -> None:
    path = written(folder, "old.csv", "file,caption\n1.jpg,a café “here”\n".encode("cp1252"))
    pictures = read_captions(path, folder)
    assert words(pictures) == {"1.jpg": ("a café “here”",)}
    assert pictures.notes[0].startswith("old.csv is not UTF-8 and was read as Windows-1252; save it as UTF-8")
    path = written(folder, "older.csv", "file,caption\n1.jpg,caf\xe9 \x81\n".encode("latin-1"))
    assert "Latin-1" in read_captions(path, folder).notes[0]


def test_broken_unicode_is_an_error(folder: Path) -> None:
    with pytest.raises(InvalidInputError, match="broken utf-16 text"):
        read_captions(written(folder, "cut.csv", "file,caption\n1.jpg,x\n".encode("utf-16")[:-1]), folder)


def test_metadata_and_labels_of_a_table(folder: Path) -> None:
    content = (
        "path;description;category;tags;year;score;code;day\n"
        "1.jpg;a boat;vehicle, sea;red, small;2010;0.5;007;2010-05-01\n"
        "1.jpg;a ship;vehicle, sea;small, old;2011;;008;\n"
        "sub/2.jpg;a cat;pet|animal;;2012;2;009;x\n"
    )
    pictures = read_captions(written(folder, "table.csv", content), folder)
    boat, cat = pictures.values()
    assert boat.labels == ("vehicle, sea", "red", "small", "old")
    assert cat.labels == ("pet", "animal")
    assert boat.metadata == {"year": 2010, "score": 0.5, "code": "007", "day": "2010-05-01"}
    assert cat.metadata == {"year": 2012, "score": 2.0, "code": "009", "day": "x"}
    assert isinstance(cat.metadata["year"], int)


def test_captions_in_several_columns_and_in_lists(folder: Path) -> None:
    content = 'image,caption_1,caption_2\n1.jpg,a boat,"[""a ship"", ""a sail""]"\n'
    assert words(read_captions(written(folder, "many.csv", content), folder)) == {
        "1.jpg": ("a boat", "a ship", "a sail")
    }


def test_a_table_without_names(folder: Path) -> None:
    plain = read_captions(written(folder, "plain.tsv", "1.jpg\ta boat, red\nsub/2.jpg\ta cat\n"), folder)
    assert words(plain) == {"1.jpg": ("a boat, red",), "sub/2.jpg": ("a cat",)}
    turned = read_captions(written(folder, "turned.csv", "a boat,1.jpg\na cat,sub/2.jpg\n"), folder)
    assert words(turned) == {"1.jpg": ("a boat",), "sub/2.jpg": ("a cat",)}


def test_quotes_in_tables(folder: Path) -> None:
    multiline = 'file,caption\n1.jpg,"a ""red""\nboat, new"\n'
    assert words(read_captions(written(folder, "q.csv", multiline), folder)) == {"1.jpg": ('a "red" boat, new',)}
    loose = 'file\tcaption\n1.jpg\t"Hi" says he\nsub/2.jpg\t"unclosed\n'
    assert words(read_captions(written(folder, "q.tsv", loose), folder)) == {
        "1.jpg": ('"Hi" says he',),
        "sub/2.jpg": ('"unclosed',),
    }


captions = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=30)


@given(st.lists(st.tuples(st.sampled_from(list(WORDS)), captions), min_size=1, max_size=8), st.sampled_from("\t,;|"))
@settings(max_examples=60)
def test_whatever_csv_writes_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]], delimiter: str
) -> None:
    root = tmp_path_factory.mktemp("table")
    (root / "sub").mkdir()
    for file in WORDS:
        (root / file).touch()
    content = io.StringIO()
    csv.writer(content, delimiter=delimiter).writerows([("file", "caption"), *rows])
    (root / "table.csv").write_text(content.getvalue(), encoding="utf-8", newline="")
    pictures = read_captions(root / "table.csv", root)
    tidied = [(file, " ".join(caption.split())) for file, caption in rows]
    expected: dict[str, list[str]] = {file: [] for file, _ in sorted(tidied)}
    for file, caption in tidied:
        expected[file] += [caption] if caption else []
    assert words(pictures) == {file: tuple(listed) for file, listed in expected.items()}
    assert pictures.n_empty_captions == sum(not caption for _, caption in tidied)


def test_several_files_add_up(folder: Path) -> None:
    described = written(folder, "captions.json", json.dumps(COCO))
    annotated = written(folder, "instances.json", json.dumps(INSTANCES))
    pictures = read_captions([described, annotated], folder)
    assert words(pictures) == WORDS
    boat, cat = pictures.values()
    assert (boat.labels, cat.labels) == ((), ("cat",))
    assert boat.metadata == {"id": 0, "width": 640}


def test_karpathy_keeps_the_split(folder: Path) -> None:
    pictures = read_captions(written(folder, "dataset.json", json.dumps(KARPATHY)), folder)
    assert [picture.metadata for picture in pictures.values()] == [{"split": "test", "cocoid": 9}] * 2


def test_sidecars(folder: Path) -> None:
    (folder / "1.txt").write_text("a boat\n\na small ship\n")
    (folder / "sub" / "2.jpg.txt").write_text("a cat")
    (folder / "sub" / "2.json").write_text('{"captions": ["a kitten"], "labels": ["cat"], "gps": [1, 2]}')
    (folder / "3.json").write_text('"just words"')
    for source in (folder, str(folder)):
        pictures = read_captions(source, folder)
        assert words(pictures) == WORDS | {"3.jpg": ("just words",)}
    cat = pictures[folder / "sub" / "2.jpg"]
    assert cat.labels == ("cat",)
    assert cat.metadata == {"gps": "[1, 2]"}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"{", r"line 1 is not valid JSON"),
        (b"5", r"a caption must be text, got 5"),
        (b'{"labels": [{"box": 1}]}', r"a label must be a word or a number"),
        (b"\xff\xfea", r"is broken utf-16 text"),
        (b'{"caption": "' + b"[" * 100_000 + b'1]"}', r"passed over"),
    ],
)
def test_a_broken_sidecar_is_listed_and_the_others_are_read(folder: Path, content: bytes, reason: str) -> None:
    (folder / "1.txt").write_text("a boat\na small ship\n")
    (folder / "sub" / "2.txt").write_text("a cat\na kitten")
    (folder / "3.json").write_bytes(content)
    pictures = read_captions(folder, folder)
    assert words(pictures) == WORDS
    assert pictures.unreadable == (str(folder / "3.json"),)
    assert "1 sidecar passed over" in pictures.describe()
    (note,) = pictures.notes
    assert re.search(rf"3\.json.*{reason}", note)


def test_tokens_come_in_the_order_of_their_numbers(folder: Path) -> None:
    path = written(folder, "tokens", "1.jpg#10\tlast\n1.jpg#0\tfirst # of all\r\n1.jpg#2\tsecond\n")
    assert words(read_captions(path, folder)) == {"1.jpg": ("first # of all", "second", "last")}


def test_empty_captions_are_dropped_and_counted(folder: Path) -> None:
    path = written(folder, "c.json", json.dumps({"1.jpg": ["", " ", "a boat"], "3.jpg": None, "sub/2.jpg": []}))
    pictures = read_captions(path, folder)
    assert words(pictures) == {"1.jpg": ("a boat",), "3.jpg": (), "sub/2.jpg": ()}
    assert pictures.n_empty_captions == 3
    assert "3 empty captions dropped" in pictures.describe()


def test_files_that_are_not_there_are_listed_once(folder: Path) -> None:
    path = written(folder, "c.csv", "file,caption\n9.jpg,a\n9.jpg,b\n1.jpg,c\n../outside.jpg,d\n")
    (folder.parent / "outside.jpg").touch()
    pictures = read_captions(path, folder)
    assert pictures.missing == ("9.jpg", "../outside.jpg")
    assert list(words(pictures)) == ["1.jpg"]


@pytest.mark.parametrize(
    "named",
    ["sub/2.jpg", "./sub/2.jpg", "sub\\2.jpg", "photos/sub/2.jpg", "2.jpg", "val2014/2.jpg", "2.JPG", "x/../sub/2.jpg"],
)
def test_names_that_mean_one_picture(folder: Path, named: str) -> None:
    pictures = read_captions(written(folder, "c.json", json.dumps({named: "a cat"})), folder)
    assert list(words(pictures)) == ["sub/2.jpg"]


def test_absolute_names(folder: Path) -> None:
    source = written(folder, "c.json", json.dumps({str(folder / "1.jpg"): "a boat", "/elsewhere/2.jpg": "a cat"}))
    assert list(words(read_captions(source, folder))) == ["1.jpg", "sub/2.jpg"]


def test_the_longest_common_end_decides_and_doubt_is_reported(tmp_path: Path) -> None:
    for name in ("a/x/1.jpg", "a/y/1.jpg", "b/y/1.jpg"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "c.json").write_text(json.dumps({"other/x/1.jpg": "one", "y/1.jpg": "two", "1.jpg": "three"}))
    pictures = read_captions(tmp_path / "c.json", tmp_path)
    assert words(pictures) == {"a/x/1.jpg": ("one",)}
    assert pictures.ambiguous == ("y/1.jpg", "1.jpg")
    assert "2 files with several candidates" in pictures.describe()


def test_paths_beside_the_caption_file_come_before_mere_names(tmp_path: Path) -> None:
    for name in ("a/1.jpg", "b/1.jpg"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "b" / "c.json").write_text(json.dumps({"1.jpg": "one"}))
    assert words(read_captions(tmp_path / "b" / "c.json", tmp_path)) == {"b/1.jpg": ("one",)}


@pytest.mark.parametrize(("on_disk", "named"), [("NFC", "NFD"), ("NFD", "NFC"), ("NFD", "NFD")])
def test_accents_in_either_form(tmp_path: Path, on_disk: str, named: str) -> None:
    (tmp_path / unicodedata.normalize(on_disk, "Crème brûlée.jpg")).touch()
    (tmp_path / "c.json").write_text(json.dumps({unicodedata.normalize(named, "Crème brûlée.jpg"): "sweet"}))
    assert list(words(read_captions(tmp_path / "c.json", tmp_path)).values()) == [("sweet",)]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("c.csv", "file,caption\n1.jpg,a,b\n", r"c\.csv: line 2 has 3 fields, but there are 2 columns; put quotes"),
        ("c.csv", "file,caption\n1.jpg,a\n1.jpg\n", r"line 3 has 1 fields"),
        ("c.csv", "name,words\n1,a\n", "line 1 names no columns; start the table with a row such as file,caption"),
        ("c.csv", 'file,caption\n1.jpg,"a" b\n', r"line 2 is no valid row"),
        ("c.csv", 'file,caption\n1.jpg,"a\n', r"is no valid row .* close every quote"),
        ("c.csv", "file,caption\n,a\n", r"line 2 has no file name"),
        (
            "c.csv",
            "file\rcaption,x\n",
            r"c\.csv: line 1 is no valid row \(new-line character .*\); save the table as text",
        ),
        ("c.csv", f"{'x' * 200_000}\n", r"c\.csv: line 1 is no valid row \(field larger than field limit"),
        ("c.csv", f"file,caption\n1.jpg,{'x' * 200_000}\n", r"c\.csv: line 2 is no valid row \(field larger"),
        ("c.tsv", f"file\tcaption\n1.jpg\t{'x' * 200_000}\n", r"c\.tsv: line 2 is no valid row \(field larger"),
        ("c.csv", "file\0,caption\n", r"c\.csv: line 1 "),
        ("c.csv", "", "is empty"),
        ("c.json", '{"1.jpg": "a",\n}', r"c\.json: line 2 is not valid JSON"),
        ("c.json", '{"1.jpg": 5}', r"'1\.jpg': a caption must be text, got 5"),
        ("c.json", '[{"caption": "a"}]', "entry 1 names no picture; give it a 'file'"),
        ("c.json", '["a"]', "entry 1 must be an object"),
        ("c.json", '[{"file": 3, "caption": "a"}]', "entry 1 has no file name"),
        ("c.json", "5", None),
        ("c.jsonl", '{"file": "1.jpg"}\n{"file"\n', r"c\.jsonl: line 2 is not valid JSON"),
        ("c.json", json.dumps(COCO | {"annotations": [{"image_id": 5}]}), "annotation 1 is of image 5, which 'images'"),
        ("c.json", json.dumps(COCO | {"annotations": [{"caption": "x"}]}), "annotation 1 has no 'image_id'"),
        ("c.json", json.dumps(INSTANCES | {"categories": []}), "annotation 1 has category 7, which 'categories' lacks"),
        ("c.json", json.dumps({"images": [{"sentences": []}]}), "image 1 needs 'filename' and 'sentences'"),
        ("t", "1.jpg#0\ta\nno number\tb\n", r"t: line 2 must be file#number, a tab and the caption"),
    ],
)
def test_errors_name_the_file_and_the_row(folder: Path, name: str, content: str, message: str | None) -> None:
    with pytest.raises(InvalidInputError, match=message):
        read_captions(written(folder, name, content), folder)


def test_a_format_can_be_named(folder: Path) -> None:
    for format, name in {
        "csv": "comma.csv",
        "tsv": "tab.tsv",
        "json": "list.json",
        "jsonl": "records.jsonl",
        "coco": "captions_val.json",
        "karpathy": "dataset_coco.json",
        "token": "Flickr8k.token.txt",
    }.items():
        assert words(read_captions(written(folder, "any", LAYOUTS[name]), folder, format=format)) == WORDS
    named = {"auto", "csv", "tsv", "json", "jsonl", "coco", "karpathy", "token", "sidecar", "parquet"}
    assert set(CAPTION_FORMATS) == named
    with pytest.raises(UnknownNameError, match="did you mean 'karpathy'"):
        read_captions(folder, folder, format="karpaty")
    with pytest.raises(InvalidInputError, match="not in COCO's layout"):
        read_captions(written(folder, "x.json", LAYOUTS["list.json"]), folder, format="coco")
    with pytest.raises(InvalidInputError, match="not a Karpathy split"):
        read_captions(written(folder, "x.json", LAYOUTS["list.json"]), folder, format="karpathy")
    with pytest.raises(InvalidInputError, match="is a folder, but format 'csv' is one file"):
        read_captions(folder, folder, format="csv")
    with pytest.raises(InvalidInputError, match="not a folder; sidecars"):
        read_captions(folder / "1.jpg", folder, format="sidecar")
    with pytest.raises(InvalidInputError, match="does not exist; name the caption file"):
        read_captions(folder / "no.csv", folder)


def test_pairs(folder: Path) -> None:
    records = {
        "1.jpg": {"caption": "a boat", "label": "b"},
        "sub/2.jpg": {"captions": ["a cat", "a pet"], "label": "a"},
    }
    pairs = read_captions(written(folder, "c.json", json.dumps(records)), folder).pairs()
    assert pairs.ids.tolist() == ["1.jpg", "sub/2.jpg"]
    assert pairs.owners.tolist() == [0, 1, 1]
    assert pairs.labels.tolist() == ["b", "a"]
    several = records | {"3.jpg": {"caption": "both", "labels": ["a", "b"]}}
    pairs = read_captions(written(folder, "c.json", json.dumps(several)), folder).pairs()
    assert pairs.class_names == ("a", "b")
    assert np.array_equal(pairs.labels, [[0, 1], [1, 1], [1, 0]])
    some = several | {"3.jpg": {"caption": "both"}}
    assert read_captions(written(folder, "c.json", json.dumps(some)), folder).pairs().labels is None
    with pytest.raises(InvalidInputError, match=r"no picture in .* has a caption"):
        read_captions(written(folder, "c.json", '{"1.jpg": []}'), folder).pairs()


@pytest.mark.data("flickr8k")
def test_flickr8k_as_a_folder_of_ones_own() -> None:
    root = Path(os.environ["DIPTYCH_DATA"]) / "flickr8k"
    pictures = read_captions(root / "Flickr8k.token.txt", root)
    assert (len(pictures), pictures.n_captions) == (8091, 40_455)
    assert len(pictures.missing) == 1


def test_the_captions_of_generated_scenes_are_read(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "scenes", 3, size=32)
    found = read_captions(folder / "captions.json", folder)
    assert len(found) == 3
    assert all(len(picture.captions) == 5 and picture.labels for picture in found.values())
