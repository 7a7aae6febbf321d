"""NUS-WIDE in its published layout, with small files made here."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

from diptych.data import load_dataset
from diptych.data.datasets import nus_wide
from diptych.errors import InvalidInputError, MissingDataError, UnknownNameError

N_IMAGES, N_TAGS = 60, 8
CONCEPTS = [f"concept{number:02d}" for number in range(12)]


def write_rows(path: Path, rows: np.ndarray, separator: str = " ") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # The published files end each line with the separator.
    path.write_text("".join(separator.join(map(str, row)) + f"{separator}\n" for row in rows.tolist()))


class Folder:
    """The files, and what was written into them."""

    def __init__(self, root: Path, n_images: int = N_IMAGES) -> None:
        rng = np.random.default_rng(0)
        self.root = root / "nus_wide"
        self.n_images = n_images
        self.names = [f"{CONCEPTS[row % 3]}/{row:04d}_{row}.jpg" for row in rng.permutation(n_images)]
        # The first concepts are the most frequent; the last two are too rare to be kept.
        rates = np.array([0.2, *np.linspace(0.15, 0.1, 9), 0.02, 0.02])
        self.labels = (rng.random((n_images, 12)) < rates).astype(int)
        self.labels[:3] = np.eye(12, dtype=int)[[0, 10, 11]]
        self.labels[3, :2] = 1
        self.tags = (rng.random((n_images, N_TAGS)) < 0.3).astype(int)
        self.tags[0, 0] = 1
        self.words = rng.integers(0, 9, (n_images, 5))
        self.colours = rng.random((n_images, 4)).round(4)
        self.in_train = rng.random(n_images) < 0.6
        self.write()

    def write(self) -> None:
        lists = {"": np.ones(self.n_images, dtype=bool), "Train": self.in_train, "Test": ~self.in_train}
        for part, chosen in lists.items():
            path = self.root / "ImageList" / f"{part}Imagelist.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            names = [name.replace("/", "\\") for name, wanted in zip(self.names, chosen, strict=True) if wanted]
            path.write_text("\r\n".join(names) + "\r\n")
        for column, concept in enumerate(CONCEPTS):
            write_rows(self.root / f"Groundtruth/AllLabels/Labels_{concept}.txt", self.labels[:, [column]], "")
        write_rows(self.root / "NUS_WID_Tags/AllTags1k.txt", self.tags, "\t")
        for part, chosen in (("Train", self.in_train), ("Test", ~self.in_train)):
            write_rows(self.root / f"Low_Level_Features/BoW_{part}_int.dat", self.words[chosen])
            write_rows(self.root / f"Low_Level_Features/{part}_Normalized_EDH.dat", self.colours[chosen])
        write_rows(self.root / "Low_Level_Features/Normalized_CH.dat", self.colours)

    @property
    def kept_concepts(self) -> list[int]:
        return sorted(range(12), key=lambda column: (-self.labels[:, column].sum(), CONCEPTS[column]))[:10]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.setenv("DIPTYCH_DATA", str(tmp_path))
    made = Folder(tmp_path)
    kept = made.labels[:, made.kept_concepts].sum(axis=1) == 1
    # The size of this small subset, so that only the test of the warning sees one.
    monkeypatch.setattr(nus_wide, "PUBLISHED_IMAGES", int((kept & made.tags.any(axis=1)).sum()))
    return made


@pytest.mark.parametrize(("features", "side"), [("bow", "words"), ("ch", "colours"), ("edh", "colours")])
def test_pictures_of_exactly_one_frequent_concept(folder: Folder, features: str, side: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        splits = load_dataset("nus_wide", features=features)
    own = folder.labels[:, folder.kept_concepts]
    expected = {name: row for row, name in enumerate(folder.names) if own[row].sum() == 1 and folder.tags[row].any()}
    found = 0
    for pairs in splits.parts.values():
        for row, name in enumerate(pairs.ids.tolist()):
            place = expected[name]
            np.testing.assert_allclose(pairs.images[row], getattr(folder, side)[place], rtol=1e-6)
            np.testing.assert_array_equal(pairs.texts[row], folder.tags[place])
            assert pairs.labels[row] == CONCEPTS[folder.kept_concepts[int(own[place].argmax())]]
        found += pairs.n_images
    assert found == len(expected) > 10
    assert splits.test.n_images == round(0.4 * len(expected))
    assert splits.train.class_names == tuple(CONCEPTS[column] for column in folder.kept_concepts)
    assert not set(splits.train.ids) & set(splits.test.ids)


def test_several_labels_keep_every_picture_with_one(folder: Folder) -> None:
    splits = load_dataset("nus_wide", labels="multi", test_size=5)
    own = folder.labels[:, folder.kept_concepts]
    assert splits.train.n_images + 5 == int((own.any(axis=1) & folder.tags.any(axis=1)).sum())
    places = {name: row for row, name in enumerate(folder.names)}
    for row, name in enumerate(splits.test.ids.tolist()):
        np.testing.assert_array_equal(splits.test.labels[row], own[places[name]])


def test_the_split_depends_on_the_seed_alone(folder: Folder) -> None:
    first, again, other = (load_dataset("nus_wide", seed=seed).test.ids.tolist() for seed in (1, 1, 2))
    assert first == again != other


def test_another_size_than_the_published_one_is_said(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nus_wide, "PUBLISHED_IMAGES", 67_994)
    with pytest.warns(UserWarning, match=r"\d+ pictures of NUS-WIDE .* Liu et al\. count 67,994"):
        load_dataset("nus_wide")


def test_broken_files_are_named(folder: Folder) -> None:
    labels = folder.root / "Groundtruth/AllLabels/Labels_concept00.txt"
    whole = labels.read_text()
    labels.write_text(whole.replace("1", "-1130179", 1))
    with pytest.raises(InvalidInputError, match=r"Labels_concept00\.txt must hold 0 or 1 for each of the 60"):
        load_dataset("nus_wide")
    labels.write_text(whole)
    tags = folder.root / "NUS_WID_Tags/AllTags1k.txt"
    written = tags.read_text()
    tags.write_text("".join(written.splitlines(keepends=True)[:-1]))
    with pytest.raises(InvalidInputError, match="has 59 lines, expected 60"):
        load_dataset("nus_wide")
    tags.write_text(written)
    words = folder.root / "Low_Level_Features/BoW_Train_int.dat"
    content = words.read_text()
    words.write_text(content + "1 2 3 4 5\n")
    with pytest.raises(InvalidInputError, match=r"BoW_Train_int\.dat must have \d+ lines"):
        load_dataset("nus_wide")
    words.write_text(content.replace(" ", " x ", 400))
    with pytest.raises(InvalidInputError, match="no number"):
        load_dataset("nus_wide")
    words.write_text(content)
    (folder.root / "ImageList/TestImagelist.txt").write_text("other.jpg\n")
    with pytest.raises(InvalidInputError, match=r"lists 'other.jpg', which ImageList/Imagelist.txt does not"):
        load_dataset("nus_wide")


def test_lists_that_leave_pictures_out(folder: Folder) -> None:
    folder.in_train[:] = True
    folder.write()
    train = folder.root / "ImageList/TrainImagelist.txt"
    train.write_text("\n".join(train.read_text().splitlines()[:30]) + "\n")
    write_rows(folder.root / "Low_Level_Features/BoW_Train_int.dat", folder.words[:30])
    (folder.root / "ImageList/TestImagelist.txt").write_text("")
    with pytest.raises(InvalidInputError, match="do not share out"):
        load_dataset("nus_wide")


def test_what_is_missing_is_named(folder: Folder) -> None:
    with pytest.raises(MissingDataError, match=r"Low_Level_Features/Train_Normalized_WT\.dat"):
        load_dataset("nus_wide", features="wt")
    with pytest.raises(UnknownNameError, match="did you mean 'bow'"):
        load_dataset("nus_wide", features="boww")
    with pytest.raises(UnknownNameError, match="did you mean 'single'"):
        load_dataset("nus_wide", labels="singel")
    for path in (folder.root / "Groundtruth/AllLabels").glob("Labels_concept0[0-4].txt"):
        path.unlink()
    with pytest.raises(InvalidInputError, match=r"has 7 files Labels_<concept>\.txt, at least 10"):
        load_dataset("nus_wide")
