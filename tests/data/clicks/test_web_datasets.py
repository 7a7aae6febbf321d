"""MIRFlickr and Clickture against small folders in their published layouts."""

from __future__ import annotations

import base64
import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from diptych.data import load_dataset
from diptych.errors import InvalidInputError, UnknownNameError


@pytest.fixture
def mirflickr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DIPTYCH_DATA", str(tmp_path))
    folder = tmp_path / "mirflickr"
    tags, annotations = folder / "mirflickr" / "meta" / "tags", folder / "mirflickr25k_annotations_v080"
    tags.mkdir(parents=True)
    annotations.mkdir()
    for number in range(1, 11):
        (folder / "mirflickr" / f"im{number}.jpg").touch()
        (tags / f"tags{number}.txt").write_text(f"sky\r\nday{number}\r\nsky\r\n" if number != 2 else "")
    (annotations / "dog.txt").write_text("1\n2\n10\n")
    (annotations / "dog_r1.txt").write_text("2\r\n10\r\n")
    (annotations / "plant_life.txt").write_text("3\n")
    (annotations / "sea_r1.txt").write_text("10\n")
    (annotations / "README.txt").write_text("About these files.\n")
    return folder


def test_mirflickr_in_its_layout_loads(mirflickr: Path) -> None:
    splits = load_dataset("mirflickr")
    # Numbers are sorted as numbers: im2 before im10.
    assert splits.train.ids.tolist() == [f"im{number}.jpg" for number in (1, 2, 3, 6, 7, 8)]
    assert splits.test.ids.tolist() == [f"im{number}.jpg" for number in (4, 5, 9, 10)]
    assert splits.train.images[1] == mirflickr / "mirflickr" / "im2.jpg"
    assert splits.train.texts[:3] == ("sky day1 sky", "", "sky day3 sky")
    assert splits.train.class_names == ("dog", "sea")
    assert splits.train.labels.tolist() == [[0, 0], [1, 0], [0, 0], [0, 0], [0, 0], [0, 0]]
    assert splits.test.labels[3].tolist() == [1, 1]
    assert splits.extra("queries") == ("dog", "sea")


def test_mirflickr_potential_annotations_and_other_split(mirflickr: Path) -> None:
    splits = load_dataset("mirflickr", annotations="potential", split="first")
    assert splits.train.ids.tolist() == [f"im{number}.jpg" for number in range(1, 7)]
    assert splits.train.class_names == ("dog", "plant_life")
    assert splits.train.labels.tolist()[:3] == [[1, 0], [1, 0], [0, 1]]
    assert splits.extra("queries") == ("dog", "plant life")


def test_tags_of_the_training_part_are_clicks(mirflickr: Path) -> None:
    log = load_dataset("mirflickr").extra("tags_as_clicks")
    assert list(log.images) == [f"im{number}.jpg" for number in (1, 3, 6, 7, 8)]
    assert log.by_query()[0].tolist() == [0, 2, 4, 6, 8]
    assert log.queries[0] == "sky"
    assert set(log.clicks.tolist()) == {1}


def test_mirflickr_says_what_is_wrong(mirflickr: Path) -> None:
    with pytest.raises(UnknownNameError, match="'relevant'"):
        load_dataset("mirflickr", annotations="relevan")
    with pytest.raises(UnknownNameError, match="fifths, first"):
        load_dataset("mirflickr", split="last")
    (mirflickr / "mirflickr25k_annotations_v080" / "sea_r1.txt").write_text("3\n11\n")
    with pytest.raises(InvalidInputError, match=r"sea_r1\.txt: line 2 holds '11'"):
        load_dataset("mirflickr")


def packed(colour: tuple[int, int, int]) -> str:
    stream = io.BytesIO()
    Image.new("RGB", (3, 2), colour).save(stream, format="png")
    return base64.b64encode(stream.getvalue()).decode()


@pytest.fixture
def clickture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DIPTYCH_DATA", str(tmp_path))
    folder = tmp_path / "clickture"
    folder.mkdir()
    (folder / "TrainClickLog.tsv").write_text("red car\tk1\t2\nfast car\tk1\t5\ncar\tk1\t5\ndog\tk2\t1\ncat\tk9\t1\n")
    (folder / "TrainImageSet.tsv").write_text(f"k2\t{packed((0, 255, 0))}\nk1\t{packed((255, 0, 0))}\n")
    (folder / "DevSetLabel.tsv").write_text("a dog\td1\tExcellent\na cat\td1\tbad\na cat\td2\tGood\n")
    (folder / "DevSetImage.tsv").write_text(f"d1\t{packed((0, 0, 255))}\nd2\t{packed((9, 9, 9))}\n")
    return folder


def test_clickture_in_its_layout_loads(clickture: Path) -> None:
    splits = load_dataset("clickture")
    assert splits.train.ids.tolist() == ["k1", "k2"]
    assert list(splits.train.texts) == ["car", "dog"]
    assert splits.train.images[0].tolist() == np.full((2, 3, 3), (255, 0, 0)).tolist()
    assert splits.train.select([1]).images[0][0, 0].tolist() == [0, 255, 0]
    assert splits.test.ids.tolist() == ["d1", "d2"]
    assert list(splits.test.texts) == ["a dog", "a cat"]
    assert splits.extra("clicks").n_triads == 5
    judged = splits.extra("judgements")
    assert [(one.query, one.image_id, one.label, one.grade) for one in judged] == [
        ("a dog", "d1", "Excellent", 3),
        ("a cat", "d1", "Bad", 0),
        ("a cat", "d2", "Good", 2),
    ]


def test_clickture_says_what_is_wrong(clickture: Path) -> None:
    labels, images = clickture / "DevSetLabel.tsv", clickture / "DevSetImage.tsv"
    kept = labels.read_text()
    labels.write_text(f"{kept}a cow\td3\tGood\n")
    with pytest.raises(InvalidInputError, match="lacks 1 judged images, the first is d3"):
        load_dataset("clickture")
    labels.write_text(f"{kept}a cow\td2\tfine\n")
    with pytest.raises(InvalidInputError, match="row 4 is judged 'fine', expected Excellent, Good, Bad"):
        load_dataset("clickture")
    labels.write_text(kept)
    images.write_text(images.read_text() + "d1\tagain\n")
    with pytest.raises(InvalidInputError, match=r"line 3 \(d1\) is there twice"):
        load_dataset("clickture")
    images.write_text("d1\tbm9uZQ==\nd2\t!\n")
    broken = load_dataset("clickture").test.images
    for row in range(2):
        with pytest.raises(InvalidInputError, match=f"the picture of d{row + 1} cannot be unpacked"):
            broken[row]
