"""Fits from files: the same model as from rows in memory, whoever reads them and whatever becomes of the readers."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from diptych.errors import InvalidInputError
from diptych.models import CCA, GMLDA, KCCA, SCM, LinearRegression, MarginalSCM, fit_from_files


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Some thousand rows with classes, in parts of which the first has one class only."""
    monkeypatch.setattr("diptych.data.feature_files._PART_ROWS", 700)
    monkeypatch.setattr("diptych.data.feature_files._BLOCK_ROWS", 128)
    rng = np.random.default_rng(0)
    labels = np.sort(rng.integers(4, size=3000))
    meaning = np.eye(4)[labels] + 0.3 * rng.normal(size=(3000, 4))
    np.save(tmp_path / "images.npy", meaning @ rng.normal(size=(4, 9)) + rng.normal(size=(3000, 9)) + 5)
    np.save(tmp_path / "texts.npy", meaning @ rng.normal(size=(4, 6)) + rng.normal(size=(3000, 6)) - 2)
    np.save(tmp_path / "labels.npy", np.array(["a", "b", "c", "d"])[labels])
    return tmp_path


def rows_of(folder):
    return tuple(np.load(folder / f"{side}.npy") for side in ("images", "texts", "labels"))


def learned(model):
    """Return every array that a model has learned, those of a model within it included."""
    found = {}
    for name, value in vars(model).items():
        if name.endswith("_"):
            found |= {f"{name}{key}": inner for key, inner in learned(value).items()} if hasattr(value, "fit") else {}
            found |= {name: np.asarray(value)} if not hasattr(value, "fit") else {}
    return found


@pytest.mark.parametrize(
    "model",
    [CCA(n_components=3), LinearRegression(), GMLDA(), SCM(correlation=CCA(n_components=3)), MarginalSCM()],
    ids=lambda model: type(model).__name__,
)
def test_files_teach_what_their_rows_teach(model, folder):
    calls = []
    fitted = fit_from_files(clone(model), folder, n_jobs=2, progress=lambda *call: calls.append(call))
    assert fitted.score(*(side[::10] for side in rows_of(folder))) > 0.25
    whole = learned(clone(model).fit(*rows_of(folder)))
    assert learned(fitted).keys() == whole.keys()
    for name, value in learned(fitted).items():
        if value.dtype.kind == "f":
            np.testing.assert_allclose(value, whole[name], rtol=1e-9, atol=1e-9 * np.abs(whole[name]).max())
        else:
            np.testing.assert_array_equal(value, whole[name])
    n_readings = 2 if hasattr(model, "correlation") else 1
    assert calls == [(700, 3000), (1400, 3000), (2100, 3000), (2800, 3000), (3000, 3000)] * n_readings


def test_one_part_is_fitted_to_the_last_bit_as_in_memory(folder, monkeypatch):
    monkeypatch.setattr("diptych.data.feature_files._PART_ROWS", 10_000)
    monkeypatch.setattr("diptych.data.feature_files._BLOCK_ROWS", 10_000)
    whole = learned(CCA().fit(*rows_of(folder)))
    for name, value in learned(fit_from_files(CCA(), folder)).items():
        np.testing.assert_array_equal(value, whole[name])


def test_the_number_of_threads_changes_no_bit(folder):
    first, second = (learned(fit_from_files(GMLDA(), folder, n_jobs=jobs)) for jobs in (1, 3))
    for name, value in first.items():
        np.testing.assert_array_equal(value, second[name])


def test_what_cannot_be_fitted_from_files_is_said_before_they_are_read(folder):
    with pytest.raises(InvalidInputError, match=r"KCCA needs all its rows at once.*blm, cca, .*scm"):
        fit_from_files(SCM(correlation=KCCA()), folder)
    with pytest.raises(InvalidInputError, match="regularization"):
        fit_from_files(CCA(regularization=-1), folder)
    with pytest.raises(InvalidInputError, match="n_jobs"):
        fit_from_files(CCA(), folder, n_jobs=0)
