"""Write the tiny SigLIP in OpenCLIP's layout that the tests compare with, and what OpenCLIP itself makes of it.

Needs the environment of `make test-joint`, and the pictures that `make_tiny_joint_models.py` wrote:

    build/joint/bin/python tests/encoders/joint/make_tiny_open_clip_model.py tests/encoders/joint/fixtures

The network has random float16 weights; its image tower is one of timm, made tiny under its own name.
"""

from __future__ import annotations

import json
import shutil
import sys
import types
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from safetensors.numpy import load_file, save_file
from safetensors.torch import save_model

TRUNK, SIDE, WIDTH = "vit_base_patch16_siglip_224", 32, 24
SHAPE = {"img_size": SIDE, "patch_size": 16, "embed_dim": WIDTH, "depth": 1, "num_heads": 12, "mlp_ratio": 2.0}
TEXT = {
    "context_length": 16,
    "hf_tokenizer_name": "here",
    "tokenizer_kwargs": {"clean": "canonicalize"},
    "width": WIDTH,
    "heads": 4,
    "layers": 1,
    "no_causal_mask": True,
    "proj_bias": True,
    "pool_type": "last",
    "norm_kwargs": {"eps": 1e-6},
}


def main(fixtures: Path) -> None:
    """Write the model and what must come out of it."""
    # A build of torchvision for another device lacks compiled operators, of which preparing pictures needs none.
    sys.modules["torchvision._meta_registrations"] = types.ModuleType("torchvision._meta_registrations")
    timm, open_clip = import_module("timm"), import_module("open_clip")
    timm.models._registry._model_entrypoints[TRUNK] = partial(tiny_trunk, timm.models.VisionTransformer)
    folder = fixtures / "open_clip_siglip"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(fixtures / "siglip" / name, folder)
    vocabulary = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    vision = {"image_size": SIDE, "timm_model_name": TRUNK, "timm_pool": "map", "timm_proj": "none"}
    text = {**TEXT, "vocab_size": len(vocabulary)}
    model = {"embed_dim": WIDTH, "init_logit_bias": -10, "custom_text": True, "vision_cfg": vision, "text_cfg": text}
    preparation = {"mean": [0.5] * 3, "std": [0.5] * 3, "interpolation": "bicubic", "resize_mode": "squash"}
    content = json.dumps({"model_cfg": model, "preprocess_cfg": preparation}, indent=1)
    (folder / "open_clip_config.json").write_text(content + "\n", encoding="utf-8")
    network = open_clip.CustomTextCLIP(**{name: value for name, value in model.items() if name != "custom_text"})
    save_model(randomised(network).half(), str(folder / "open_clip_model.safetensors"))
    save_file(expected(open_clip, folder, fixtures), fixtures / "expected_open_clip_siglip.safetensors")


def tiny_trunk(network: Any, pretrained: bool = False, **given: Any) -> torch.nn.Module:
    """Make the image tower, a network of timm."""
    options = {name: value for name, value in given.items() if not name.startswith(("pretrained", "cache"))}
    return network(**SHAPE, class_token=False, **{"global_pool": "map", **options})


def randomised(model: torch.nn.Module) -> torch.nn.Module:
    """Give a model weights large enough for every part of it to matter."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, values in model.named_parameters():
            if values.dim() > 0:
                centre = 1.0 if values.dim() == 1 and name.endswith("weight") else 0.0
                values.copy_(centre + 0.25 * torch.randn(values.shape, generator=generator))
    return model


def expected(open_clip: Any, folder: Path, fixtures: Path) -> dict[str, np.ndarray]:
    """Return the points of the pictures, by their names, and of the texts, and the logits between them."""
    model, prepare = open_clip.create_model_from_pretrained(f"local-dir:{folder}")
    tokenize = open_clip.get_tokenizer(f"local-dir:{folder}")
    pictures = load_file(fixtures / "pictures.safetensors")
    pixels = torch.stack([prepare(Image.fromarray(pictures[name])) for name in sorted(pictures)])
    with torch.no_grad():
        images = model.eval().encode_image(pixels, normalize=True)
        texts = model.encode_text(tokenize(json.loads((fixtures / "texts.json").read_text())), normalize=True)
        logits = images @ texts.T * model.logit_scale.exp() + model.logit_bias
    arrays = {"images": images, "texts": texts, "logits_per_image": logits}
    return {name: np.ascontiguousarray(values.numpy()) for name, values in arrays.items()}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
