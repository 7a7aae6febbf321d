"""Embeddings equal those of the libraries that the models come from, preparation and tokens included."""

from __future__ import annotations

import html
from pathlib import Path

import numpy as np
import pytest

from diptych.encoders import JointModel
from diptych.encoders.joint.preparation import plain_text

from .samples import TEXTS, write_pictures

LEAST = 0.9999
ARCHITECTURES = {
    "CLIP": "clip",
    "CLIP fp16 sharded": "clip_fp16_sharded",
    "CLIP bf16": "clip_bf16",
    "SigLIP": "siglip",
    "SigLIP 2": "siglip2",
    "OpenCLIP ViT": "open_clip_vit",
    "OpenCLIP ViT quickgelu": "open_clip_quick",
    "OpenCLIP SigLIP": "open_clip_siglip",
    "OpenCLIP SigLIP 2": "open_clip_siglip2",
    "CLIP ONNX": "exported_clip",
    "CLIP ONNX quantised": "quantised_clip",
    "MobileCLIP ONNX": "mobile_clip",
}


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return write_pictures(tmp_path_factory.mktemp("samples") / "pictures")


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_embeddings_equal_those_of_the_original(
    name: str, tmp_path: Path, pictures: dict[str, Path], cosines: dict[str, dict[str, float]]
) -> None:
    from . import tiny_models

    original = getattr(tiny_models, ARCHITECTURES[name])(tmp_path / "model")
    model = JointModel.from_folder(original.folder)
    paths = list(pictures.values())
    expected = {"pictures": original.images(paths), "texts": original.texts(TEXTS)}
    found = {"pictures": model.image_encoder.transform(paths), "texts": model.text_encoder.transform(TEXTS)}
    labels = {"pictures": list(pictures), "texts": TEXTS}
    for side, rows in expected.items():
        agreement = np.sum(rows * found[side], axis=1)
        cosines.setdefault(name, {})[side] = float(agreement.min())
        # Otherwise agreement would say nothing.
        assert np.quantile((rows @ rows.T)[np.triu_indices(len(rows), 1)], 0.5) < 0.99
        assert agreement.min() >= LEAST, dict(zip(labels[side], agreement.tolist(), strict=True))


HOSTILE = ["a\r\nb\x07c\x1b[31mred\x1b[0m", "x &copy; y &#39;z&#39;", "<b>a &amp; b</b>", "&amp;amp;lt;", "ŉ ǆ ﬅ ﾀ"]


@pytest.mark.parametrize("text", [*TEXTS, *HOSTILE])
def test_texts_are_cleaned_as_by_ftfy(text: str) -> None:
    import ftfy

    assert plain_text(text) == html.unescape(html.unescape(ftfy.fix_text(text))).strip()
