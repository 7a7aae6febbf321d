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
from open_clip.tokenizer import SimpleTokenizer
from PIL import Image, ImageOps
from safetensors.torch import save_model
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    AltCLIPConfig,
    AltCLIPModel,
    AutoImageProcessor,
    ChineseCLIPConfig,
    ChineseCLIPImageProcessor,
    ChineseCLIPModel,
    CLIPConfig,
    CLIPImageProcessor,
    CLIPModel,
    CLIPTokenizer,
    MetaClip2Config,
    MetaClip2Model,
    PreTrainedTokenizerFast,
    Siglip2Config,
    Siglip2ImageProcessor,
    Siglip2Model,
    Siglip2Tokenizer,
    SiglipConfig,
    SiglipImageProcessor,
    SiglipModel,
    SiglipTokenizer,
    XLMRobertaConfig,
)
from transformers.convert_slow_tokenizer import import_protobuf
from transformers.image_utils import load_image

from .samples import TEXTS

Rows = NDArray[np.float32]
LAYERS = {"hidden_size": 48, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
PIECES = 70
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
    return model.eval()


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
            prepared = processor([load_image(str(path)) for path in paths], return_tensors="pt")
            return unit(pooled(model.get_image_features(**prepared)))

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
    own_text = open_clip.CoCa if "multimodal_cfg" in model else open_clip.CustomTextCLIP
    kind = own_text if model.get("custom_text") or "hf_model_name" in model["text_cfg"] else open_clip.CLIP
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


WORDS = sorted({word for text in CORPUS for word in text.split()})


def word_tokenizer(marks: list[str], *, start: str, end: str, pad: str, unknown: str) -> PreTrainedTokenizerFast:
    """Return a tokenizer of whole small words between marks; ``marks`` have the first numbers."""
    vocabulary = {token: number for number, token in enumerate([*marks, *WORDS[::2]])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=unknown))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    ends = [(start, vocabulary[start]), (end, vocabulary[end])]
    tokenizer.post_processor = processors.TemplateProcessing(single=f"{start} $A {end}", special_tokens=ends)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=start,
        eos_token=end,
        pad_token=pad,
        unk_token=unknown,
        model_max_length=40,
    )


def bert_words() -> PreTrainedTokenizerFast:
    return word_tokenizer(
        ["[PAD]", "[UNK]", "[CLS]", "[SEP]"], start="[CLS]", end="[SEP]", pad="[PAD]", unknown="[UNK]"
    )


def roberta_words() -> PreTrainedTokenizerFast:
    return word_tokenizer(["<s>", "<pad>", "</s>", "<unk>"], start="<s>", end="</s>", pad="<pad>", unknown="<unk>")


VISION = {**LAYERS, "image_size": 64, "patch_size": 16}


def save_transformers(folder: Path, model: Any, tokenizer: Any, processor: Any) -> None:
    for part in (randomised(model), tokenizer, processor):
        part.save_pretrained(folder)


def clip_processor(kind: Any = CLIPImageProcessor) -> Any:
    return kind(size={"shortest_edge": 64}, crop_size={"height": 64, "width": 64})


def chinese_clip(folder: Path) -> Original:
    tokenizer = bert_words()
    text = {**LAYERS, "vocab_size": len(tokenizer), "max_position_embeddings": 52, "pad_token_id": 0}
    model = ChineseCLIPModel(ChineseCLIPConfig(text_config=text, vision_config=VISION, projection_dim=40))
    save_transformers(folder, model, tokenizer, clip_processor(ChineseCLIPImageProcessor))
    return hugging_face(folder, ChineseCLIPModel, tokenizer, padding=True, max_length=40)


def alt_clip(folder: Path) -> Original:
    tokenizer = roberta_words()
    text = {**LAYERS, "vocab_size": len(tokenizer), "max_position_embeddings": 60, "pad_token_id": 1, "project_dim": 48}
    model = AltCLIPModel(AltCLIPConfig(text_config=text, vision_config=VISION, projection_dim=40))
    save_transformers(folder, model, tokenizer, clip_processor())
    return hugging_face(folder, AltCLIPModel, tokenizer, padding=True, max_length=40)


def meta_clip_2(folder: Path) -> Original:
    tokenizer = roberta_words()
    text = {**LAYERS, "vocab_size": len(tokenizer), "max_position_embeddings": 40, "eos_token_id": 2, "pad_token_id": 1}
    model = MetaClip2Model(MetaClip2Config(text_config=text, vision_config=VISION, projection_dim=40))
    save_transformers(folder, model, tokenizer, clip_processor())
    return hugging_face(folder, MetaClip2Model, tokenizer, padding=True, max_length=40)


def naflex(folder: Path) -> Original:
    tokenizer = gemma_tokenizer()
    text = {**LAYERS, "vocab_size": len(tokenizer), "max_position_embeddings": 64, "projection_size": 48}
    vision = {**LAYERS, "num_patches": 16, "patch_size": 16}
    model = Siglip2Model(Siglip2Config(text_config=text, vision_config=vision))
    save_transformers(folder, model, tokenizer, Siglip2ImageProcessor(patch_size=16, max_num_patches=24))
    return hugging_face(folder, Siglip2Model, tokenizer, padding="max_length", max_length=64)


def open_clip_hf_text(folder: Path) -> Original:
    """Return a model whose text tower is XLM-RoBERTa of Transformers, with its configuration in the folder."""
    tokenizer = roberta_words()
    tokenizer.save_pretrained(folder)
    text = XLMRobertaConfig(**LAYERS, vocab_size=len(tokenizer), max_position_embeddings=50, pad_token_id=1)
    text.save_pretrained(folder)
    vision = {"image_size": 64, "layers": 2, "width": 48, "head_width": 12, "patch_size": 16}
    words = {"hf_model_name": str(folder), "hf_tokenizer_name": "xlm-roberta", "hf_pooler_type": "mean_pooler"}
    words |= {"hf_proj_type": "mlp", "context_length": 40, "hf_model_pretrained": False}
    original = save_open_clip(folder, {"embed_dim": 40, "vision_cfg": vision, "text_cfg": words}, {})
    # As on the hub, where the name is that of a repository.
    config = json.loads((folder / "open_clip_config.json").read_text())
    config["model_cfg"]["text_cfg"]["hf_model_name"] = "somebody/xlm-roberta"
    (folder / "open_clip_config.json").write_text(json.dumps(config))
    return original


def open_clip_timm(folder: Path) -> Original:
    """Return a ConvNeXt beside a small text tower that sees the filling, as that of the small MobileCLIPs does."""
    clip_tokenizer().save_pretrained(folder)
    vision = {"timm_model_name": "test_convnext2", "timm_pool": "", "timm_proj": "linear", "image_size": 160}
    text = plain_text(no_causal_mask=True)
    model = {"embed_dim": 64, "custom_text": True, "vision_cfg": vision, "text_cfg": text}
    return save_open_clip(folder, model, {"interpolation": "bilinear"})


def coca(folder: Path) -> Original:
    clip_tokenizer().save_pretrained(folder)
    vision = {"image_size": 64, "layers": 2, "width": 48, "head_width": 12, "patch_size": 16}
    vision |= {"attentional_pool": True, "attn_pooler_heads": 4, "output_tokens": True}
    text = plain_text(context_length=76, embed_cls=True, output_tokens=True)
    writer = {"context_length": 76, "vocab_size": 49408, "width": 48, "heads": 4, "layers": 2}
    model = {"embed_dim": 48, "vision_cfg": vision, "text_cfg": text, "multimodal_cfg": writer, "custom_text": True}
    return save_open_clip(folder, model, {})
