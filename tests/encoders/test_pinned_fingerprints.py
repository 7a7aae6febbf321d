"""Caches, saved retrievers and stored collections are named by fingerprints: a change makes them all stale."""

from __future__ import annotations

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
    assert Retriever.default().fingerprint == "0fc5b03d2926bf95af8eab8f20899cbd"
    assert Retriever.ready_made("light").fingerprint == "c0fb5553a9fc1ca957f5b56601228e3f"
    assert Retriever.ready_made("strong").fingerprint == "05cdef68f98532478b71fd72bf729aff"
    assert Retriever.conse().fingerprint == "b4c84b71f997bc332c73e4addfe57d67"
