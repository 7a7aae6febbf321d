"""Write the tiny exported model that the quick tests run, and what transformers itself makes of it.

Needs torch, transformers and Pillow, which those tests then do not:

    python tests/encoders/joint/make_tiny_joint_models.py tests/encoders/joint/fixtures

The network has random weights. The folder ``exported`` is a model as users have it; ``pictures``, ``texts``,
``expected_clip`` and ``preparations`` are what to put in and what must come out.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import save_file
from transformers import (
    CLIPConfig,
    CLIPImageProcessorPil,
    CLIPModel,
    CLIPTokenizer,
    SiglipImageProcessorPil,
)

TEXTS = [
    "a red boat at sea",
    "Two dogs play in the snow!",
    "",
    "it's 2 o'clock   in  BERLIN",
    "a very long caption " * 20,
    "snowman ☃ naïve",
]
SHAPES = {"wide": (50, 71), "tall": (64, 33), "square": (32, 32), "small": (9, 12)}
LAYERS = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
PREPARATIONS: dict[str, dict[str, Any]] = {
    "clip": {"size": {"shortest_edge": 32}, "crop_size": {"height": 32, "width": 32}},
    "clip_uneven": {"size": {"shortest_edge": 29}, "crop_size": {"height": 24, "width": 20}, "resample": 2},
    "clip_beyond": {"size": {"shortest_edge": 16}, "crop_size": {"height": 21, "width": 32}},
    "clip_exact": {"size": {"height": 20, "width": 30}, "do_center_crop": False, "resample": 1},
    "clip_bytes": {"size": {"shortest_edge": 32}, "crop_size": 32, "do_rescale": False, "do_normalize": False},
    "siglip": {"size": {"height": 30, "width": 30}, "image_mean": [0.5] * 3, "image_std": [0.5] * 3},
    "siglip_unscaled": {"do_resize": False, "image_mean": [0.4, 0.5, 0.6], "image_std": [0.1, 0.2, 0.3]},
}


def main(folder: Path) -> None:
    """Write everything under ``folder``, replacing what is there."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    pictures = make_pictures()
    save_file(pictures, folder / "pictures.safetensors")
    (folder / "texts.json").write_text(json.dumps(TEXTS, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    write_preparations(folder, pictures)
    with torch.no_grad():
        write_clip(folder, pictures)
        write_exported(folder)
    shutil.rmtree(folder / "clip")


def make_pictures() -> dict[str, np.ndarray]:
    """Return smooth colours with some noise, so that every filter has something to do."""
    rng = np.random.default_rng(0)
    pictures = {}
    for name, (height, width) in SHAPES.items():
        y, x = np.mgrid[0:height, 0:width]
        waves = [np.sin(y / rng.uniform(2, 9) + x / rng.uniform(2, 9) + rng.uniform(0, 6)) for _ in range(3)]
        values = 128 + 90 * np.stack(waves, axis=2) + rng.normal(0, 15, (height, width, 3))
        pictures[name] = np.clip(values, 0, 255).astype(np.uint8)
    return pictures


def write_preparations(folder: Path, pictures: dict[str, np.ndarray]) -> None:
    """Write configurations of image processors and what they make of each picture."""
    results, configs = {}, {}
    for name, options in PREPARATIONS.items():
        kind = CLIPImageProcessorPil if name.startswith("clip") else SiglipImageProcessorPil
        processor = kind(**options)
        configs[name] = json.loads(processor.to_json_string())
        for picture, pixels in pictures.items():
            values = processor(pixels, return_tensors="np", input_data_format="channels_last")["pixel_values"][0]
            results[f"{name}.{picture}"] = np.ascontiguousarray(values, dtype=np.float32)
    save_file(results, folder / "preparations.safetensors")
    (folder / "preparations.json").write_text(json.dumps(configs, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def write_clip(folder: Path, pictures: dict[str, np.ndarray]) -> None:
    """Write a CLIP model, and what it makes of the inputs."""
    tokenizer = clip_tokenizer()
    text = {**LAYERS, "vocab_size": len(tokenizer), "max_position_embeddings": 20, "hidden_act": "quick_gelu"}
    ends = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
    vision = {**LAYERS, "image_size": 32, "patch_size": 8, "hidden_act": "quick_gelu"}
    config = CLIPConfig(text_config={**text, **ends}, vision_config=vision, projection_dim=24)
    place = folder / "clip"
    save_model(randomised(CLIPModel(config)), place, torch.float16)
    tokenizer.save_pretrained(place)
    tokenizer.backend_tokenizer.model.save(str(place))
    CLIPImageProcessorPil(**PREPARATIONS["clip"]).save_pretrained(place)
    model = CLIPModel.from_pretrained(place, dtype=torch.float32, attn_implementation="eager").eval()
    batch = tokenizer(TEXTS, padding=True, truncation=True, max_length=20, return_tensors="pt")
    pixels = prepared(CLIPImageProcessorPil.from_pretrained(place), pictures)
    save_expected(model(**batch, pixel_values=pixels), batch, folder / "expected_clip.safetensors")


def clip_tokenizer() -> CLIPTokenizer:
    """Return a tokenizer of letters, digits and a few pairs, in the manner of CLIP's."""
    signs = [*"abcdefghijklmnopqrstuvwxyz0123456789'!.,"]
    pairs = [("a", "t</w>"), ("t", "h"), ("th", "e</w>"), ("s", "n"), ("o", "w</w>"), ("sn", "ow</w>"), ("d", "o")]
    # The end is not the highest number here, so that the two rules of where a text ends give different features.
    tokens = [*signs, *(f"{sign}</w>" for sign in signs), "<|startoftext|>", "<|endoftext|>"]
    tokens += ["".join(pair) for pair in pairs]
    return CLIPTokenizer(vocab={token: number for number, token in enumerate(tokens)}, merges=pairs)


def write_exported(folder: Path) -> None:
    """Write the CLIP model as two ONNX files."""
    place = folder / "exported"
    (place / "onnx").mkdir(parents=True)
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json", "preprocessor_config.json"):
        shutil.copy(folder / "clip" / name, place / name)
    model = CLIPModel.from_pretrained(folder / "clip", dtype=torch.float32, attn_implementation="eager").eval()
    export(
        ImageTower(model),
        torch.zeros(2, 3, 32, 32),
        ("pixel_values", "image_embeds"),
        place,
        "vision_model",
        {0: "batch"},
    )
    end = model.text_model.eos_token_id
    tokens = torch.tensor([[end - 1, 3, end, end], [end - 1, 4, 5, end]])
    export(TextTower(model), tokens, ("input_ids", "text_embeds"), place, "text_model", {0: "batch", 1: "length"})


class ImageTower(torch.nn.Module):
    """The image side of a model, before it is scaled to unit length."""

    def __init__(self, model: CLIPModel) -> None:
        super().__init__()
        self.tower, self.projection = model.vision_model, model.visual_projection

    def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
        """Return the features of pictures."""
        return self.projection(self.tower(pixel_values=pixel_values).pooler_output)


class TextTower(torch.nn.Module):
    """The text side of a model, before it is scaled to unit length."""

    def __init__(self, model: CLIPModel) -> None:
        super().__init__()
        self.tower, self.projection = model.text_model, model.text_projection

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        """Return the features of texts."""
        return self.projection(self.tower(input_ids=input_ids).pooler_output)


def export(
    tower: torch.nn.Module,
    example: torch.Tensor,
    names: tuple[str, str],
    place: Path,
    file: str,
    axes: dict[int, str],
) -> None:
    """Trace a tower into an ONNX file."""
    torch.onnx.export(
        tower,
        (example,),
        str(place / "onnx" / f"{file}.onnx"),
        input_names=[names[0]],
        output_names=[names[1]],
        dynamic_axes={names[0]: axes, names[1]: {0: "batch"}},
        opset_version=17,
        dynamo=False,
    )


def randomised(model: torch.nn.Module) -> torch.nn.Module:
    """Give a model weights large enough for every part of it to matter."""
    generator = torch.Generator().manual_seed(0)
    for name, values in model.named_parameters():
        if values.dim() > 0 and not name.startswith("logit"):
            centre = 1.0 if "norm" in name and name.endswith("weight") else 0.0
            values.copy_(centre + 0.25 * torch.randn(values.shape, generator=generator))
    if hasattr(model, "logit_bias"):
        model.logit_scale.fill_(1.5)
        model.logit_bias.fill_(-2.25)
    return model


def save_model(model: Any, place: Path, dtype: torch.dtype) -> None:
    """Write configuration and weights."""
    model.to(dtype).save_pretrained(place)


def prepared(processor: Any, pictures: dict[str, np.ndarray]) -> torch.Tensor:
    """Return the pictures, by their names, as the model takes them."""
    rows = [
        processor(pictures[name], return_tensors="pt", input_data_format="channels_last") for name in sorted(pictures)
    ]
    return torch.cat([row["pixel_values"] for row in rows])


def save_expected(output: Any, batch: Any, file: Path) -> None:
    """Write the features and what the model makes of their similarities."""
    arrays = {
        "images": output.image_embeds,
        "texts": output.text_embeds,
        "logits_per_image": output.logits_per_image,
        "tokens": batch["input_ids"],
    }
    save_file({name: np.ascontiguousarray(values.numpy()) for name, values in arrays.items()}, file)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
