"""Caches, saved retrievers and stored collections are named by fingerprints: a change makes them all stale."""

from __future__ import annotations

from pathlib import Path

import pytest

from diptych import Retriever
from diptych.encoders import EfficientNetLite, Encoder, ImageNetLabels, ResNet50


@pytest.mark.parametrize(
    ("encoder", "fingerprint"),
    [
        (EfficientNetLite(), "e2cd2d824971e31a65a146ac3e80ae59"),
        (EfficientNetLite(network="lite0", crop="centre", mirror=True), "80cd41422566d4a3fe7be2381f8997a4"),
        (ImageNetLabels(), "b074866959ed11061d53a49adaefdb42"),
        (ResNet50(), "6d2c9d21bc5e417245a1254b4fd114d6"),
    ],
    ids=lambda value: value.identity if isinstance(value, Encoder) else "",
)
def test_encoders_keep_their_fingerprints(encoder: Encoder, fingerprint: str) -> None:
    assert encoder.fingerprint == fingerprint


def test_shipped_retrievers_keep_their_fingerprints(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("DIPTYCH_JOINT_MODEL", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert Retriever.default().fingerprint == "ef8e6f91110d2c61b27cffe993797177"
    assert Retriever.ready_made("strong").fingerprint == "4750c16ffc73a64ca9f77d80d24ebfa2"
