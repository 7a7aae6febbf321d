"""Folders of tiny models with random weights, written by the libraries themselves, and what these make of inputs."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import open_clip
import sentencepiece
import timm
import torch
from numpy.typing import NDArray
from onnxruntime import InferenceSession
from onnxruntime.quantization import quantize_dynamic
from open_clip.tokenizer import SimpleTokenizer
from PIL import Image, ImageOps
from safetensors.torch import save_model
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    AutoImageProcessor,
    CLIPConfig,
    CLIPImageProcessor,
    CLIPModel,
    CLIPTokenizer,
    Siglip2Tokenizer,
    SiglipConfig,
    SiglipImageProcessor,
    SiglipModel,
    SiglipTokenizer,
)
from transformers.convert_slow_tokenizer import import_protobuf
from transformers.image_utils import load_image

from .samples import TEXTS, photo

Rows = NDArray[np.float32]
LAYERS = {"hidden_size": 48, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
PIECES = 90
CORPUS = [text.lower() for text in TEXTS if text] + ["photo of a dog on a boat in the sea with snow"] * 5


@dataclass(frozen=True)
class Original:
    """A folder, and what the library that wrote it makes of pictures and texts; one row of unit length each."""

    folder: Path
    images: Callable[[Sequence[Path]], Rows]
    texts: Callable[[Sequence[str]], Rows]


def randomised(model: Any) -> Any:
    """Give a model weights large enough for every part of it to matter."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, values in model.named_parameters():
            if values.dim() > 0 and not name.startswith("logit"):
                centre = 1.0 if values.dim() == 1 and name.endswith("weight") else 0.0
                spread = 0.25 if values.dim() < 3 else values[0].numel() ** -0.5
                values.copy_(centre + spread * torch.randn(values.shape, generator=generator))
        settle(model)
    return model.eval()


def settle(model: Any) -> None:
    """Let batch normalisations see some pictures, without which a deep network of random weights is chaotic."""
    norms = [part for part in model.modules() if isinstance(part, torch.nn.BatchNorm2d)]
    for norm in norms:
        norm.momentum = None
    if norms:
        pictures = np.stack([photo(256, 256, seed) for seed in range(12)])
        model.train().encode_image(torch.from_numpy(pictures).permute(0, 3, 1, 2) / 255)


def unit(rows: torch.Tensor) -> Rows:
    return torch.nn.functional.normalize(rows.float(), dim=-1).numpy()


def pooled(output: Any) -> torch.Tensor:
    return output if isinstance(output, torch.Tensor) else output.pooler_output


def clip_tokenizer() -> CLIPTokenizer:
    """Return CLIP's own tokenizer, which OpenCLIP carries."""
    simple = SimpleTokenizer()
    names = {"<start_of_text>": "<|startoftext|>", "<end_of_text>": "<|endoftext|>"}
    vocabulary = {names.get(token, token): number for token, number in simple.encoder.items()}
    return CLIPTokenizer(vocab=vocabulary, merges=[*simple.bpe_ranks])


def hugging_face(folder: Path, model_class: Any, tokenizer: Any, **options: Any) -> Original:
    """Return what transformers makes of a folder."""
    model = model_class.from_pretrained(folder, dtype=torch.float32).eval()
    processor = AutoImageProcessor.from_pretrained(folder)

    def images(paths: Sequence[Path]) -> Rows:
        with torch.no_grad():
            pixels = [processor(load_image(str(path)), return_tensors="pt")["pixel_values"] for path in paths]
            return unit(pooled(model.get_image_features(pixel_values=torch.cat(pixels))))

    def texts(given: Sequence[str]) -> Rows:
        with torch.no_grad():
            batch = tokenizer(list(given), truncation=True, return_tensors="pt", **options)
            mask = {"attention_mask": batch["attention_mask"]} if options["padding"] is True else {}
            return unit(pooled(model.get_text_features(input_ids=batch["input_ids"], **mask)))

    return Original(folder, images, texts)


def clip(folder: Path, dtype: torch.dtype = torch.float32, shard: str = "5GB") -> Original:
    tokenizer = clip_tokenizer()
    text = {**LAYERS, "vocab_size": len(tokenizer), "bos_token_id": 49406, "eos_token_id": 49407}
    vision = {**LAYERS, "image_size": 64, "patch_size": 16}
    model = randomised(CLIPModel(CLIPConfig(text_config=text, vision_config=vision, projection_dim=40)))
    model.to(dtype).save_pretrained(folder, max_shard_size=shard)
    tokenizer.save_pretrained(folder)
    CLIPImageProcessor(size={"shortest_edge": 64}, crop_size={"height": 64, "width": 64}).save_pretrained(folder)
    return hugging_face(folder, CLIPModel, tokenizer, padding=True, max_length=77)


def clip_fp16_sharded(folder: Path) -> Original:
    return clip(folder, torch.float16, "1MB")


def clip_bf16(folder: Path) -> Original:
    return clip(folder, torch.bfloat16)


def save_siglip(folder: Path, vocabulary: int, **text: Any) -> None:
    text_config = {**LAYERS, "vocab_size": vocabulary, "max_position_embeddings": 64, "projection_size": 48, **text}
    config = SiglipConfig(text_config=text_config, vision_config={**LAYERS, "image_size": 72, "patch_size": 16})
    randomised(SiglipModel(config)).save_pretrained(folder)


def sentence_pieces(folder: Path) -> Path:
    """Train the kind of tokenizer that SigLIP has, and write it in both of its forms."""
    (folder / "corpus.txt").write_text("\n".join(CORPUS), encoding="utf-8")
    sentencepiece.SentencePieceTrainer.train(
        input=str(folder / "corpus.txt"),
        model_prefix=str(folder / "spiece"),
        vocab_size=PIECES,
        pad_id=-1,
        bos_id=-1,
        eos_id=1,
        unk_id=2,
        control_symbols=["<pad>"],
        minloglevel=2,
    )
    proto = import_protobuf().ModelProto()
    proto.ParseFromString((folder / "spiece.model").read_bytes())
    fast = Tokenizer(models.Unigram([(piece.piece, piece.score) for piece in proto.pieces], unk_id=2))
    fast.normalizer = normalizers.Precompiled(proto.normalizer_spec.precompiled_charsmap)
    fast.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always")]
    )
    fast.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    fast.save(str(folder / "fast.json"))
    return folder / "spiece.model"


def siglip(folder: Path) -> Original:
    folder.mkdir()
    tokenizer = SiglipTokenizer(str(sentence_pieces(folder)), model_max_length=64)
    tokenizer.save_pretrained(folder)
    (folder / "fast.json").rename(folder / "tokenizer.json")
    save_siglip(folder, PIECES)
    SiglipImageProcessor(size={"height": 72, "width": 72}).save_pretrained(folder)
    return hugging_face(folder, SiglipModel, tokenizer, padding="max_length", max_length=64)


def gemma_tokenizer() -> Siglip2Tokenizer:
    """Train the kind of tokenizer that SigLIP 2 has."""
    special = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>", *(f"<0x{byte:02X}>" for byte in range(256))]
    raw = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    raw.normalizer = normalizers.Replace(" ", "▁")
    raw.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=420, special_tokens=special))
    content = json.loads(raw.to_str())["model"]
    tokenizer = Siglip2Tokenizer(
        vocab=content["vocab"],
        merges=[tuple(pair) for pair in content["merges"]],
        padding_side="right",
        model_max_length=64,
    )
    end = processors.TemplateProcessing(single="$A <eos>", special_tokens=[("<eos>", 1)])
    tokenizer.backend_tokenizer.post_processor = end
    tokenizer.backend_tokenizer.decoder = decoders.ByteFallback()
    return tokenizer


def siglip2(folder: Path) -> Original:
    tokenizer = gemma_tokenizer()
    tokenizer.save_pretrained(folder)
    save_siglip(folder, len(tokenizer), pad_token_id=0)
    SiglipImageProcessor(size={"height": 72, "width": 72}, resample=2).save_pretrained(folder)
    return hugging_face(folder, SiglipModel, tokenizer, padding="max_length", max_length=64)


def save_open_clip(folder: Path, model: dict[str, Any], preparation: dict[str, Any]) -> Original:
    """Write a folder in OpenCLIP's layout and return what OpenCLIP makes of it."""
    folder.mkdir(exist_ok=True)
    (folder / "open_clip_config.json").write_text(json.dumps({"model_cfg": model, "preprocess_cfg": preparation}))
    options = {name: value for name, value in model.items() if name != "custom_text"}
    kind = open_clip.CustomTextCLIP if model.get("custom_text") else open_clip.CLIP
    save_model(randomised(kind(**options)), str(folder / "open_clip_model.safetensors"))
    return open_clip_original(folder)


def open_clip_original(folder: Path) -> Original:
    model, prepare = open_clip.create_model_from_pretrained(f"local-dir:{folder}")
    model.eval()
    tokenize = open_clip.get_tokenizer(f"local-dir:{folder}")

    def images(paths: Sequence[Path]) -> Rows:
        with torch.no_grad():
            # OpenCLIP leaves it to the caller to turn pictures upright.
            pixels = [prepare(ImageOps.exif_transpose(Image.open(path))) for path in paths]
            return unit(model.encode_image(torch.stack(pixels)))

    def texts(given: Sequence[str]) -> Rows:
        with torch.no_grad():
            return unit(model.encode_text(tokenize(list(given))))

    return Original(folder, images, texts)


def plain_text(**options: Any) -> dict[str, Any]:
    return {"context_length": 77, "vocab_size": 49408, "width": 48, "heads": 4, "layers": 2, **options}


def open_clip_vit(folder: Path, **options: Any) -> Original:
    clip_tokenizer().save_pretrained(folder)
    vision = {"image_size": 64, "layers": 2, "width": 48, "head_width": 12, "patch_size": 16}
    model = {"embed_dim": 40, "vision_cfg": vision, "text_cfg": plain_text(), **options}
    return save_open_clip(folder, model, {})


def open_clip_quick(folder: Path) -> Original:
    return open_clip_vit(folder, quick_gelu=True, custom_text=True)


def tiny_trunk(name: str, **options: Any) -> None:
    """Let timm make something tiny under the name of one of SigLIP's image towers."""

    def make(pretrained: bool = False, **given: Any) -> Any:
        given = {key: value for key, value in given.items() if not key.startswith(("pretrained", "cache"))}
        shape = {"img_size": 64, "embed_dim": 48, "depth": 2, "num_heads": 12, "mlp_ratio": 2.0, "class_token": False}
        return timm.models.VisionTransformer(**{**shape, "global_pool": "map", **options, **given})

    timm.models._registry._model_entrypoints[name] = make


def open_clip_siglip_model(trunk: str, vocabulary: int, **text: Any) -> dict[str, Any]:
    words = plain_text(vocab_size=vocabulary, context_length=64, hf_tokenizer_name="here", no_causal_mask=True)
    words |= {"tokenizer_kwargs": {"clean": "canonicalize"}, "proj_bias": True, "pool_type": "last"}
    vision = {"image_size": 64, "timm_model_name": trunk, "timm_pool": "map", "timm_proj": "none"}
    return {
        "embed_dim": 48,
        "init_logit_bias": -10,
        "custom_text": True,
        "vision_cfg": vision,
        "text_cfg": words | {"norm_kwargs": {"eps": 1e-6}} | text,
    }


SQUASHED = {"mean": [0.5] * 3, "std": [0.5] * 3, "interpolation": "bicubic", "resize_mode": "squash"}


def open_clip_siglip(folder: Path) -> Original:
    tiny_trunk("vit_base_patch16_siglip_224", patch_size=16)
    folder.mkdir()
    sentence_pieces(folder)
    (folder / "fast.json").rename(folder / "tokenizer.json")
    (folder / "spiece.model").unlink()
    words = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "pad_token": "</s>",
        "eos_token": "</s>",
        "unk_token": "<unk>",
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(words))
    return save_open_clip(folder, open_clip_siglip_model("vit_base_patch16_siglip_224", PIECES), SQUASHED)


def open_clip_siglip2(folder: Path) -> Original:
    tiny_trunk("vit_base_patch32_siglip_256", patch_size=32, act_layer="gelu_tanh")
    tokenizer = gemma_tokenizer()
    tokenizer.save_pretrained(folder)
    tanh = {"act_kwargs": {"approximate": "tanh"}}
    model = open_clip_siglip_model("vit_base_patch32_siglip_256", len(tokenizer), **tanh)
    return save_open_clip(folder, model, SQUASHED)


class Part(torch.nn.Module):
    """One side of a model, as a network of its own."""

    def __init__(self, model: Any, run: Callable[[Any, torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.model, self.run = model, run

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        return self.run(self.model, given)


def export(file: Path, part: Part, example: torch.Tensor, names: tuple[str, str], **axes: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    varying = {names[0]: {0: "batch", **{int(key[1:]): name for key, name in axes.items()}}, names[1]: {0: "batch"}}
    torch.onnx.export(
        part.eval(),
        (example,),
        str(file),
        input_names=[names[0]],
        output_names=[names[1]],
        dynamic_axes=varying,
        opset_version=17,
        dynamo=False,
    )


def exported_clip(folder: Path) -> Original:
    original = clip(folder)
    model = CLIPModel.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    (folder / "model.safetensors").unlink()
    picture, words = torch.zeros(2, 3, 64, 64), torch.tensor([[49406, 5, 49407], [49406, 6, 49407]])
    image = Part(model, lambda whole, pixels: pooled(whole.get_image_features(pixel_values=pixels)))
    text = Part(model, lambda whole, tokens: pooled(whole.get_text_features(input_ids=tokens)))
    export(folder / "onnx" / "vision_model.onnx", image, picture, ("pixel_values", "image_embeds"))
    export(folder / "onnx" / "text_model.onnx", text, words, ("input_ids", "text_embeds"), _1="length")
    return original


def quantised_clip(folder: Path) -> Original:
    """Return what ONNX Runtime makes of each item alone."""
    exported_clip(folder)
    sessions = {}
    for name in ("vision_model", "text_model"):
        whole = folder / "onnx" / f"{name}.onnx"
        quantize_dynamic(whole, folder / "onnx" / f"{name}_quantized.onnx")
        whole.unlink()
        sessions[name] = InferenceSession(folder / "onnx" / f"{name}_quantized.onnx")
    # Rounding magnifies what the two ways of resizing in transformers differ by; this one is ours, too.
    processor, tokenizer = AutoImageProcessor.from_pretrained(folder, backend="pil"), clip_tokenizer()

    def images(paths: Sequence[Path]) -> Rows:
        pixels = [processor(load_image(str(path)), return_tensors="np")["pixel_values"] for path in paths]
        rows = [sessions["vision_model"].run(None, {"pixel_values": one})[0] for one in pixels]
        return unit(torch.from_numpy(np.concatenate(rows)))

    def texts(given: Sequence[str]) -> Rows:
        tokens = [tokenizer([text], truncation=True, max_length=77, return_tensors="np")["input_ids"] for text in given]
        rows = [sessions["text_model"].run(None, {"input_ids": one.astype(np.int64)})[0] for one in tokens]
        return unit(torch.from_numpy(np.concatenate(rows)))

    return Original(folder, images, texts)


def mobile_clip(folder: Path) -> Original:
    """Return OpenCLIP's MobileCLIP with a smaller text tower, exported to ONNX; its text tower sees the filling."""
    clip_tokenizer().save_pretrained(folder)
    vision = {"timm_model_name": "fastvit_mci0", "timm_pool": "avg", "timm_proj": None, "image_size": 256}
    text = plain_text(no_causal_mask=True)
    model = {"embed_dim": 64, "custom_text": True, "vision_cfg": vision, "text_cfg": text}
    preparation = {"mean": [0.0] * 3, "std": [1.0] * 3, "interpolation": "bilinear"}
    original = save_open_clip(folder, model, preparation)
    network = open_clip.create_model_from_pretrained(f"local-dir:{folder}", return_transform=False).eval()
    image, words = Part(network, lambda whole, pixels: whole.encode_image(pixels)), torch.zeros(2, 77, dtype=torch.long)
    export(folder / "onnx" / "vision_model.onnx", image, torch.zeros(2, 3, 256, 256), ("pixel_values", "image_embeds"))
    text_part = Part(network, lambda whole, tokens: whole.encode_text(tokens))
    export(folder / "onnx" / "text_model.onnx", text_part, words, ("input_ids", "text_embeds"), _1="length")
    return original
