"""Flickr30K in its published layout, on a few files that the tests make."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from diptych.data import find_dataset, load_dataset
from diptych.errors import InvalidInputError, MissingDataError, UnknownNameError

NAMES = [f"{number}.jpg" for number in range(7)]
SPLITS = ("train", "train", "restval", "val", "test", "test")


def image(name: str, split: str) -> dict[str, object]:
    return {"filename": name, "split": split, "sentences": [{"raw": f"{name} is {k} ."} for k in range(2)]}


@pytest.fixture
def flickr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Seven photographs; Karpathy's split leaves the last one out, Flickr30k Entities has it for training."""
    monkeypatch.setenv("DIPTYCH_DATA", str(tmp_path))
    folder = tmp_path / "flickr30k"
    (folder / "flickr30k-images").mkdir(parents=True)
    for name in NAMES:
        (folder / "flickr30k-images" / name).touch()
    images = [image(name, split) for name, split in zip(NAMES, SPLITS, strict=False)]
    (folder / "dataset_flickr30k.json").write_text(json.dumps({"dataset": "flickr30k", "images": images}))
    lines = [f"{name}#{k}\t{name} was {k} ." for name in NAMES for k in (1, 0)]
    (folder / "results_20130124.token").write_text("\n".join(lines) + "\n")
    for file, listed in {"train.txt": "0 1 2 6", "val.txt": "3", "test.txt": "5 4"}.items():
        (folder / file).write_text("\n".join(listed.split()) + "\n")
    return folder


def test_the_split_of_karpathy_and_fei_fei(flickr: Path) -> None:
    splits = load_dataset("flickr30k")
    assert splits.train.ids.tolist() == ["0.jpg", "1.jpg", "2.jpg"]
    assert splits.dev is not None
    assert splits.dev.texts == ("3.jpg is 0 .", "3.jpg is 1 .")
    assert splits.test.images == (flickr / "flickr30k-images" / "4.jpg", flickr / "flickr30k-images" / "5.jpg")
    assert splits.test.owners.tolist() == [0, 0, 1, 1]
    assert splits.train.labels is None


def test_the_split_of_flickr30k_entities(flickr: Path) -> None:
    splits = load_dataset("flickr30k", split="entities", captions=1)
    assert splits.train.ids.tolist() == ["0.jpg", "1.jpg", "2.jpg", "6.jpg"]
    assert splits.test.texts == ("5.jpg was 1 .", "4.jpg was 1 .")


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("dataset_flickr30k.json", {"images": [image("0.jpg", "tset")]}, "of the part 'tset'"),
        ("dataset_flickr30k.json", {"images": [image("0.jpg", "train")]}, "no photograph for the part 'dev'"),
        ("dataset_flickr30k.json", {"images": [image("9.jpg", part) for part in SPLITS]}, "first 9.jpg"),
        ("dataset_flickr30k.json", {"images": [image("0.jpg", "val") | {"sentences": []}]}, "has no caption"),
    ],
)
def test_a_broken_split_is_named(flickr: Path, file: str, content: object, message: str) -> None:
    (flickr / file).write_text(json.dumps(content))
    with pytest.raises(InvalidInputError, match=message):
        load_dataset("flickr30k")


@pytest.mark.parametrize(("listed", "message"), [("8", "8.jpg, which has no caption"), ("0", "the train and the test")])
def test_a_broken_list_is_named(flickr: Path, listed: str, message: str) -> None:
    (flickr / "test.txt").write_text(f"{listed}\n")
    with pytest.raises(InvalidInputError, match=message):
        load_dataset("flickr30k", split="entities")


def test_what_is_missing_is_said(flickr: Path) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'karpathy'"):
        load_dataset("flickr30k", split="karpaty")
    (flickr / "val.txt").unlink()
    with pytest.raises(MissingDataError, match=r"lacks val\.txt"):
        load_dataset("flickr30k", split="entities")
    assert find_dataset("flickr30k").is_available
    (flickr / "dataset_flickr30k.json").unlink()
    assert not find_dataset("flickr30k").is_available
