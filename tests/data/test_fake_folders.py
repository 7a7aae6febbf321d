"""Loaders against small folders in the published layouts, right and wrong."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.io import loadmat, savemat

from diptych.data import CrowdJudgement, ExpertJudgement, load_dataset
from diptych.data.datasets.wikipedia import CATEGORY_COUNTS
from diptych.errors import InvalidInputError, MissingDataError


def change_line(path: Path, row: int, line: str) -> None:
    lines = path.read_text().splitlines()
    lines[row] = line
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture
def wikipedia(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with random features and the official category counts."""
    monkeypatch.setenv("DIPTYCH_DATA", str(tmp_path))
    folder = tmp_path / "wikipedia"
    folder.mkdir()
    (folder / "categories.list").write_text("\n".join(CATEGORY_COUNTS) + "\n")
    rng = np.random.default_rng(0)
    arrays = {}
    for column, part in enumerate(("train", "test")):
        counts = [pair[column] for pair in CATEGORY_COUNTS.values()]
        numbers = rng.permutation(np.repeat(np.arange(1, 11), counts))
        lines = [f"text-{part}-{row}\timage-{part}-{row}\t{number}" for row, number in enumerate(numbers)]
        (folder / f"{part}set_txt_img_cat.list").write_text("\n".join(lines) + "\n")
        arrays[f"I_{part[:2]}"] = rng.dirichlet(np.ones(128), len(numbers))
        arrays[f"T_{part[:2]}"] = rng.dirichlet(np.ones(10), len(numbers))
        words = rng.random((len(numbers), 1000))
        arrays[f"T_tfidf_{part[:2]}"] = words / np.linalg.norm(words, axis=1, keepdims=True)
    savemat(folder / "raw_features_tfidf.mat", arrays)
    savemat(folder / "raw_features.mat", {name: array for name, array in arrays.items() if "tfidf" not in name})
    return folder


def rewrite(folder: Path, **changes: np.ndarray | None) -> None:
    path = folder / "raw_features.mat"
    arrays = {name: array for name, array in loadmat(path).items() if not name.startswith("__")} | changes
    savemat(path, {name: array for name, array in arrays.items() if array is not None})


def test_wikipedia_in_its_layout_loads(wikipedia: Path) -> None:
    splits = load_dataset("wikipedia")
    assert splits.train.images.shape == (2173, 128)
    assert splits.test.texts.shape == (693, 10)
    assert splits.train.ids[3] == "image-train-3"
    assert splits.train.text_ids[3] == "text-train-3"
    number = int((wikipedia / "trainset_txt_img_cat.list").read_text().splitlines()[3].split("\t")[2])
    assert splits.train.labels[3] == list(CATEGORY_COUNTS)[number - 1]
    assert load_dataset("wikipedia", features="tfidf").test.texts.shape == (693, 1000)


def test_wikipedia_wrong_shape(wikipedia: Path) -> None:
    rewrite(wikipedia, I_te=np.full((692, 128), 1 / 128))
    with pytest.raises(InvalidInputError, match=r"I_te has shape \(692, 128\).*\(693, 128\)"):
        load_dataset("wikipedia")


def test_wikipedia_row_that_does_not_sum_to_one(wikipedia: Path) -> None:
    topics = np.full((693, 10), 0.1)
    topics[5] *= 2
    rewrite(wikipedia, T_te=topics)
    with pytest.raises(InvalidInputError, match="row 5 of T_te must be non-negative with sum 1, got sum 2"):
        load_dataset("wikipedia")


def test_wikipedia_negative_entry(wikipedia: Path) -> None:
    topics = np.full((693, 10), 0.1)
    topics[7, :2] = [-0.1, 0.3]
    rewrite(wikipedia, T_te=topics)
    with pytest.raises(InvalidInputError, match="row 7 of T_te must be non-negative"):
        load_dataset("wikipedia")


def test_wikipedia_nan(wikipedia: Path) -> None:
    topics = np.full((693, 10), 0.1)
    topics[2, 0] = np.nan
    rewrite(wikipedia, T_te=topics)
    with pytest.raises(InvalidInputError, match="NaN or infinity, first in row 2"):
        load_dataset("wikipedia")


def test_wikipedia_missing_array(wikipedia: Path) -> None:
    rewrite(wikipedia, T_tr=None)
    with pytest.raises(InvalidInputError, match=r"no array T_tr; it holds I_te, I_tr, T_te"):
        load_dataset("wikipedia")


def test_wikipedia_list_with_another_category_count(wikipedia: Path) -> None:
    path = wikipedia / "testset_txt_img_cat.list"
    number = path.read_text().splitlines()[0].split("\t")[2]
    change_line(path, 0, f"text\timage\t{'1' if number != '1' else '2'}")
    with pytest.raises(InvalidInputError, match="the official split has"):
        load_dataset("wikipedia")


@pytest.mark.parametrize(
    ("line", "message"),
    [("text\timage", "row 1 has 2 tab-separated fields, expected 3"), ("t\ti\t11", "category '11'")],
)
def test_wikipedia_broken_list(wikipedia: Path, line: str, message: str) -> None:
    change_line(wikipedia / "trainset_txt_img_cat.list", 0, line)
    with pytest.raises(InvalidInputError, match=message):
        load_dataset("wikipedia")


def test_wikipedia_list_cut_short(wikipedia: Path) -> None:
    path = wikipedia / "trainset_txt_img_cat.list"
    path.write_text("\n".join(path.read_text().splitlines()[:-1]))
    with pytest.raises(InvalidInputError, match="the official split has"):
        load_dataset("wikipedia")


def test_wikipedia_repeated_row(wikipedia: Path) -> None:
    path = wikipedia / "testset_txt_img_cat.list"
    lines = path.read_text().splitlines()
    number = lines[1].split("\t")[2]
    change_line(path, 1, f"text-other\timage-test-0\t{number}")
    with pytest.raises(InvalidInputError, match="'image-test-0' occurs more than once"):
        load_dataset("wikipedia")


def test_wikipedia_other_categories_and_truncated_file(wikipedia: Path) -> None:
    content = (wikipedia / "raw_features.mat").read_bytes()
    (wikipedia / "raw_features.mat").write_bytes(content[: len(content) // 3])
    with pytest.raises(InvalidInputError, match="get a fresh copy"):
        load_dataset("wikipedia")
    (wikipedia / "categories.list").write_text("art\n")
    (wikipedia / "raw_features.mat").write_bytes(content)
    with pytest.raises(InvalidInputError, match="must list art, biology"):
        load_dataset("wikipedia")


def test_wikipedia_optional_file_is_asked_for_only_when_needed(wikipedia: Path) -> None:
    (wikipedia / "raw_features_tfidf.mat").unlink()
    load_dataset("wikipedia")
    with pytest.raises(MissingDataError, match=r"lacks raw_features_tfidf\.mat\. Get it from"):
        load_dataset("wikipedia", features="tfidf")


@pytest.fixture
def pascal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DIPTYCH_DATA", str(tmp_path))
    folder = tmp_path / "pascal_sentence"
    (folder / "images").mkdir(parents=True)
    photographs = {
        f"{number}.jpg": {
            "category": "cat" if number % 2 else "dog",
            "captions": [f"caption {position} of {number}" for position in range(4 + number % 3)],
        }
        for number in range(20)
    }
    for file in photographs:
        (folder / "images" / file).touch()
    (folder / "pascal_sentences.json").write_text(json.dumps(photographs))
    more = {file: [f"sentence {position} of {file}" for position in range(50)] for file in photographs}
    (folder / "pascal50s.json").write_text(json.dumps(more))
    return folder


def test_pascal_in_its_layout_loads(pascal: Path) -> None:
    splits = load_dataset("pascal_sentence", test_size=6)
    for pairs in (splits.train, splits.test):
        for text, owner in zip(pairs.texts, pairs.owners, strict=True):
            number = int(text.split()[-1])
            assert pairs.images[owner] == pascal / "images" / f"{number}.jpg"
            assert pairs.labels[owner] == ("cat" if number % 2 else "dog")
    assert np.unique(splits.test.labels, return_counts=True)[1].tolist() == [3, 3]
    assert splits.train.n_texts + splits.test.n_texts == sum(4 + number % 3 for number in range(20))


def test_pascal_options(pascal: Path) -> None:
    fifty = load_dataset("pascal_sentence", test_size=0.5, sentences="pascal50s")
    assert fifty.train.n_texts == 500
    assert load_dataset("pascal_sentence", test_size=6, captions="join").train.is_one_to_one
    original = load_dataset("pascal_sentence", test_size=0.5)
    assert fifty.train.ids.tolist() == original.train.ids.tolist()
    (pascal / "pascal50s.json").unlink()
    with pytest.raises(MissingDataError, match="lacks pascal50s"):
        load_dataset("pascal_sentence", test_size=0.5, sentences="pascal50s")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not valid JSON"),
        ("[]", "one JSON object"),
        ('{"0.jpg": {"category": "cat"}}', "0.jpg needs 'category' and 'captions'"),
        ('{"0.jpg": {"category": "cat", "captions": []}}', "0.jpg needs a list of non-empty captions"),
        ('{"0.jpg": {"category": "cat", "captions": ["  "]}}', "0.jpg needs a list of non-empty captions"),
        ('{"no.jpg": {"category": "cat", "captions": ["x"]}}', "lacks 1 of 1 photographs, first no.jpg"),
    ],
)
def test_pascal_with_errors(pascal: Path, content: str, message: str) -> None:
    (pascal / "pascal_sentences.json").write_text(content)
    with pytest.raises(InvalidInputError, match=message):
        load_dataset("pascal_sentence")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("", None),
        ("3.avif\tvalidation\ta cat\n", "row 5 says part 'validation'"),
        ("9.avif\ttest\ta cat\n", "lacks 1 of 2 photographs, first 9.avif"),
    ],
)
def test_coco_pairs_in_their_layout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: str, message: str | None
) -> None:
    monkeypatch.setenv("DIPTYCH_DATA", str(tmp_path))
    folder = tmp_path / "coco_pairs"
    (folder / "images").mkdir(parents=True)
    for number in range(4):
        (folder / "images" / f"{number}.avif").touch()
    listed = "".join(f"{number}.avif\t{part}\ta {part}\n" for number, part in enumerate(("train", "dev", "test")))
    (folder / "captions.tsv").write_text(f"file\tsplit\tcaption\n{listed}{rows}")
    if message is not None:
        with pytest.raises(InvalidInputError, match=message):
            load_dataset("coco_pairs")
        return
    splits = load_dataset("coco_pairs")
    assert {part: pairs.texts for part, pairs in splits.parts.items()} == {
        "train": ("a train",),
        "test": ("a test",),
        "dev": ("a dev",),
    }
    assert splits.train.images == (folder / "images" / "0.avif",)
    assert splits.train.labels is None
    with pytest.raises(LookupError, match="did you mean 'category'"):
        load_dataset("coco_pairs", label="categry")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text, None),
        (lambda text: text.replace(" 1", " 2", 1), "line 1 of .* needs a name and 81 times 0 or 1"),
        (lambda text: text.replace(" 0", "", 1), "line 1 of .* needs a name and 81 times 0 or 1"),
        (lambda text: None, "holds no readable coco_val_file/val_label_mat.txt"),
    ],
)
def test_labels_of_coco_pairs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[str], str | None], message: str | None
) -> None:
    monkeypatch.setenv("DIPTYCH_DATA", str(tmp_path))
    folder = tmp_path / "coco_pairs"
    (folder / "images").mkdir(parents=True)
    names = [f"{number:012}" for number in range(4)]
    for name in names:
        (folder / "images" / f"{name}.avif").touch()
    parts = zip(names, ("train", "train", "dev", "test"), strict=True)
    listed = "".join(f"{name}.avif\t{part}\tx\n" for name, part in parts)
    (folder / "captions.tsv").write_text(f"file\tsplit\tcaption\n{listed}")
    with pytest.raises(MissingDataError, match=r"lacks \.\./coco_val2014_labels/coco_val_file\.tar\.gz"):
        load_dataset("coco_pairs", label="category")
    # In another order than the captions, and one photograph is not listed.
    rows = {name: " ".join(str(int(k in (number, 80))) for k in range(81)) for number, name in enumerate(names)}
    del rows[names[1]]
    text = change("".join(f"COCO_val2014_{name}.jpg {rows[name]} \n" for name in reversed(rows)))
    (tmp_path / "coco_val2014_labels").mkdir()
    with tarfile.open(tmp_path / "coco_val2014_labels" / "coco_val_file.tar.gz", "w:gz") as archive:
        if text is not None:
            member = tarfile.TarInfo("coco_val_file/val_label_mat.txt")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    if message is not None:
        with pytest.raises(InvalidInputError, match=message):
            load_dataset("coco_pairs", label="category")
        return
    splits = load_dataset("coco_pairs", label="category")
    assert np.flatnonzero(splits.train.labels[0]).tolist() == [0, 80]
    assert not splits.train.labels[1].any()
    assert np.flatnonzero(splits.test.labels[0]).tolist() == [3, 80]
    assert splits.dev.labels.shape == (1, 81)
    assert splits.extra("all_labels").sum(axis=1).tolist() == [2, 2, 2]


@pytest.fixture
def flickr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Six photographs, two per part except one that is in no list, and the stray caption id."""
    monkeypatch.setenv("DIPTYCH_DATA", str(tmp_path))
    folder = tmp_path / "flickr8k"
    (folder / "images").mkdir(parents=True)
    names = [f"{number}.jpg" for number in range(7)]
    for name in names:
        (folder / "images" / name).touch()
    for part, listed in {"train": names[:2], "dev": names[2:4], "test": names[4:6]}.items():
        (folder / f"Flickr_8k.{part}Images.txt").write_text("\n".join(listed) + "\n")
    for file, form in {"Flickr8k.token.txt": "was", "Flickr8k.lemma.token.txt": "be"}.items():
        lines = [f"{name}#{k}\t{name} {form} {k}" for name in [*names, "3.jpg.1"] for k in (1, 0)]
        (folder / file).write_text("\n".join(lines) + "\n")
    (folder / "ExpertAnnotations.txt").write_text("4.jpg\t5.jpg#1\t1\t2\t4\n")
    (folder / "CrowdFlowerAnnotations.txt").write_text("4.jpg\t5.jpg#1\t0.75\t3\t1\n")
    return folder


def test_flickr_in_its_layout_loads(flickr: Path) -> None:
    splits = load_dataset("flickr8k")
    assert splits.dev.ids.tolist() == ["2.jpg", "3.jpg"]
    assert splits.dev.texts == ("2.jpg was 0", "2.jpg was 1", "3.jpg was 0", "3.jpg was 1")
    assert splits.test.text_ids.tolist() == ["4.jpg#0", "4.jpg#1", "5.jpg#0", "5.jpg#1"]
    assert splits.train.images == (flickr / "images" / "0.jpg", flickr / "images" / "1.jpg")
    assert splits.train.labels is None
    assert load_dataset("flickr8k", text="lemma", captions=1).train.texts == ("0.jpg be 1", "1.jpg be 1")


def test_flickr_judgements_are_read_when_asked_for(flickr: Path) -> None:
    splits = load_dataset("flickr8k")
    assert splits.extra("expert_judgements") == (ExpertJudgement("4.jpg", "5.jpg#1", (1, 2, 4)),)
    assert splits.extra("crowd_judgements") == (CrowdJudgement("4.jpg", "5.jpg#1", yes=3, no=1),)
    with pytest.raises(LookupError, match="did you mean 'crowd_judgements'"):
        splits.extra("crowd_judgement")
    (flickr / "ExpertAnnotations.txt").unlink()
    with pytest.raises(MissingDataError, match=r"lacks ExpertAnnotations\.txt"):
        load_dataset("flickr8k").extra("expert_judgements")
    (flickr / "ExpertAnnotations.txt").write_text("4.jpg\t5.jpg#1\t1\t2\t5\n")
    with pytest.raises(InvalidInputError, match=r"scores must be 1\.\.4"):
        load_dataset("flickr8k").extra("expert_judgements")
    (flickr / "CrowdFlowerAnnotations.txt").write_text("4.jpg\t5.jpg#1\t0\t0\t0\n")
    with pytest.raises(InvalidInputError, match="yes and no must be counts"):
        load_dataset("flickr8k").extra("crowd_judgements")


@pytest.mark.parametrize(
    ("file", "line", "message"),
    [
        ("Flickr_8k.testImages.txt", "9.jpg", "9.jpg, which has no caption"),
        ("Flickr_8k.testImages.txt", "3.jpg.1", r"lacks 1 of 2 photographs, first 3\.jpg\.1"),
        ("Flickr_8k.testImages.txt", "1.jpg", "1.jpg is in the train and the test list"),
        ("Flickr8k.token.txt", "no number\ttext", "line 1 must be file#number, a tab and the caption"),
        ("Flickr8k.token.txt", "0.jpg#0 text", "line 1 must be file#number, a tab and the caption"),
    ],
)
def test_flickr_with_errors(flickr: Path, file: str, line: str, message: str) -> None:
    change_line(flickr / file, 0, line)
    with pytest.raises(InvalidInputError, match=message):
        load_dataset("flickr8k")


@pytest.fixture
def coco(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Ten photographs in COCO's layout; the last has nothing annotated, and captions are in no order."""
    monkeypatch.setenv("DIPTYCH_DATA", str(tmp_path))
    folder = tmp_path / "coco"
    (folder / "val2017").mkdir(parents=True)
    (folder / "annotations").mkdir()
    images = [{"id": 100 - number, "file_name": f"{number:012d}.jpg", "width": 640} for number in range(10)]
    for image in images:
        (folder / "val2017" / image["file_name"]).touch()
    captions = [
        {"id": 10 * number + place, "image_id": 100 - number, "caption": f"caption {place} of {number} .\n"}
        for place in (4, 3, 2, 1, 0)
        for number in range(10)
    ]
    categories = [
        {"id": 1, "name": "person", "supercategory": "person"},
        {"id": 17, "name": "cat", "supercategory": "animal"},
        {"id": 18, "name": "dog", "supercategory": "animal"},
    ]
    things = [(number, category) for number in range(9) for category in ((1, 17) if number % 2 else (18, 18))]
    instances = [{"id": row, "image_id": 100 - thing[0], "category_id": thing[1]} for row, thing in enumerate(things)]
    write(folder / "annotations" / "captions_val2017.json", {"images": images, "annotations": captions})
    content = {"images": images, "annotations": instances, "categories": categories}
    write(folder / "annotations" / "instances_val2017.json", content)
    return folder


def write(path: Path, content: object) -> None:
    path.write_text(json.dumps(content))


def test_coco_in_its_layout_loads(coco: Path) -> None:
    splits = load_dataset("coco", test_size=3, dev_size=2)
    assert {part: pairs.n_images for part, pairs in splits.parts.items()} == {"train": 5, "test": 3, "dev": 2}
    seen = set()
    for pairs in splits.parts.values():
        assert pairs.class_names == ("person", "cat", "dog")
        for row, name in enumerate(pairs.ids.tolist()):
            number = int(name.removesuffix(".jpg"))
            seen.add(number)
            assert pairs.images[row] == coco / "val2017" / name
            expected = [0, 0, 0] if number == 9 else [1, 1, 0] if number % 2 else [0, 0, 1]
            assert pairs.labels[row].tolist() == expected
            texts = [text for text, owner in zip(pairs.texts, pairs.owners, strict=True) if owner == row]
            assert texts == [f"caption {place} of {number} ." for place in range(5)]
    assert seen == set(range(10))
    again = load_dataset("coco", test_size=3, dev_size=2)
    assert again.test.ids.tolist() == splits.test.ids.tolist()


def test_coco_options(coco: Path) -> None:
    kinds = load_dataset("coco", test_size=0.5, label="supercategory", captions="join")
    assert kinds.train.class_names == ("person", "animal")
    assert kinds.train.is_one_to_one
    assert kinds.dev is None
    with pytest.raises(LookupError, match="did you mean 'category'"):
        load_dataset("coco", label="categry")


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        ("captions", {"annotations": []}, "has no list 'annotations'"),
        (
            "captions",
            {"annotations": [{"id": 1, "image_id": 100}]},
            "of annotations needs id, image_id, caption",
        ),
        ("captions", {"annotations": [{"id": 1, "image_id": 5, "caption": "x"}]}, "refers to 5"),
        ("instances", {"categories": []}, "refers to 18"),
        (
            "captions",
            {
                "images": [{"id": 1, "file_name": "no.jpg"}],
                "annotations": [{"id": 1, "image_id": 1, "caption": "a boat"}],
            },
            "lacks 1 of 1 photographs, first no.jpg",
        ),
    ],
)
def test_coco_with_errors(coco: Path, file: str, change: dict[str, object], message: str) -> None:
    path = coco / "annotations" / f"{file}_val2017.json"
    write(path, json.loads(path.read_text()) | change)
    with pytest.raises(InvalidInputError, match=message):
        load_dataset("coco", test_size=3)


def test_missing_coco_names_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIPTYCH_DATA", str(tmp_path))
    with pytest.raises(MissingDataError, match="`diptych datasets get coco` does all this"):
        load_dataset("coco")
