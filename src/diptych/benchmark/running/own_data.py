"""Features of one's own as a data set."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from diptych.arrays import AnyArray, FloatArray
from diptych.data import Dataset, DatasetSplits, Pairs
from diptych.errors import InvalidInputError
from diptych.protocols.tuning_journal import pairs_digest

_TEST_SHARE = 0.25
_PARTS = ("train", "test")
_HELP = "see `diptych bench run --help`, option --data"


@dataclass(frozen=True)
class OwnData:
    """A folder, a CSV or an npz file of features: row i of the images and of the texts belong together.

    - npz: arrays ``images``, ``texts`` and perhaps ``labels``, ``split`` and ``ids``;
    - folder: the same as ``images.npy``, ``texts.npy``, ``labels.npy`` and so on, where labels, split and ids may be
      text files of one line each (``labels.txt``);
    - CSV: one row per pair; columns that begin with ``image`` and with ``text`` are features, ``label``, ``split`` and
      ``id`` are what they say.

    ``split`` says train or test for each pair; without it a quarter of the pairs, drawn with ``seed``, is the test
    part. Nothing in the files is executed.

    >>> import tempfile
    >>> import numpy as np
    >>> from diptych.benchmark.running import OwnData
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/mine.npz", images=np.eye(8), texts=np.eye(8), labels=list("aabbccdd"))
    ...     splits = OwnData(f"{folder}/mine.npz").load()
    >>> splits.name, splits.train.n_images, splits.test.n_images
    ('mine', 6, 2)
    """

    path: str
    seed: int = 0

    @property
    def name(self) -> str:
        """The name of the file or folder, which names the tasks."""
        stem = Path(self.path).resolve().stem.lower()
        return "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in stem).strip("-") or "own"

    def load(self) -> DatasetSplits:
        """Read the pairs and divide them."""
        columns = _read(Path(self.path))
        for needed in ("images", "texts"):
            if needed not in columns:
                raise InvalidInputError(f"{self.path} has no {needed}; {_HELP}")
        labels = columns.get("labels")
        pairs = Pairs(_matrix(columns, "images"), _matrix(columns, "texts"), labels=labels, ids=columns.get("ids"))
        options = {"digest": pairs_digest(pairs), "seed": self.seed}
        if "split" not in columns:
            stratify = (
                labels is not None and labels.ndim == 1 and bool((np.unique(labels, return_counts=True)[1] > 3).all())
            )
            train, test = pairs.split(_TEST_SHARE, seed=self.seed, stratify=stratify)
            return DatasetSplits(train=train, test=test, name=self.name, options=options)
        parts = np.char.lower(np.asarray(columns["split"], dtype=str))
        if len(parts) != pairs.n_images or not set(np.unique(parts)) == set(_PARTS):
            raise InvalidInputError(f"split of {self.path} must say train or test for each pair, both at least once")
        train, test = (pairs.select(parts == part) for part in _PARTS)
        return DatasetSplits(train=train, test=test, name=self.name, options=options)

    def dataset(self) -> Dataset:
        """Return the declaration of the data set."""
        return Dataset(
            name=self.name,
            summary=f"features of {self.path}",
            homepage="",
            citation="",
            licence="",
            splits="its own, or a quarter drawn at random",
            loader=lambda: self.load(),
        )


def _read(path: Path) -> dict[str, AnyArray]:
    if not path.exists():
        raise InvalidInputError(f"{path} does not exist; --data takes a folder, a CSV or an npz file of features")
    try:
        if path.is_dir():
            return _read_folder(path)
        if path.suffix.lower() == ".npz":
            with np.load(path) as arrays:
                return {name: arrays[name] for name in arrays.files}
        if path.suffix.lower() == ".csv":
            return _read_csv(path)
    except (OSError, ValueError) as problem:
        raise InvalidInputError(f"{path} cannot be read ({problem}); {_HELP}") from None
    raise InvalidInputError(f"{path} is no folder, CSV or npz file; {_HELP}")


def _read_folder(folder: Path) -> dict[str, AnyArray]:
    found: dict[str, AnyArray] = {}
    for name in ("images", "texts", "labels", "split", "ids"):
        if (folder / f"{name}.npy").exists():
            found[name] = np.load(folder / f"{name}.npy")
        elif (folder / f"{name}.txt").exists():
            found[name] = np.array((folder / f"{name}.txt").read_text(encoding="utf-8").splitlines())
    return found


def _read_csv(path: Path) -> dict[str, AnyArray]:
    with path.open(newline="", encoding="utf-8-sig") as stream:
        reader = csv.DictReader(stream)
        rows = list(reader)
        columns = reader.fieldnames or []
    found: dict[str, AnyArray] = {}
    for side in ("image", "text"):
        wanted = [column for column in columns if column.startswith(side)]
        if wanted:
            found[f"{side}s"] = np.array([[float(row[column]) for column in wanted] for row in rows])
    for column, name in (("label", "labels"), ("split", "split"), ("id", "ids")):
        if column in columns:
            found[name] = np.array([row[column] for row in rows])
    return found


def _matrix(columns: Mapping[str, Any], name: str) -> FloatArray:
    matrix = np.asarray(columns[name])
    if matrix.ndim != 2 or matrix.dtype.kind not in "fiub":
        raise InvalidInputError(
            f"{name} must be a matrix of numbers, one row per item, got {matrix.dtype} {matrix.shape}"
        )
    return matrix.astype(np.float32)
