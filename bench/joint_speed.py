"""CLIP and sentences beside the libraries that they come from: Transformers and sentence-transformers on PyTorch.

    python -m bench.joint_speed [--quick]

CLIP ViT-B/32 and a MiniLM of six layers with random weights are written by these libraries and read by both sides, so
that both give the same points, which is checked. The photographs are those that come with Diptych, from file to point;
the texts are phrases. Everything runs in one thread, by processor time, both sides in batches of 16. The bar is to be
no slower. Where a library is missing there is nothing to compare.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import diptych
from bench.painted_collection import phrases
from bench.speed_report import SpeedReport, installed, speed_parser
from diptych.encoders import JointImageEncoder, JointTextEncoder, SentenceEncoder

PHOTOGRAPHS = sorted((Path(diptych.__file__).parent / "data" / "photographs").rglob("*.jpg"))
MINILM = Path(diptych.__file__).parent / "encoders" / "text" / "minilm"
BATCH, REPEATS, LEAST_COSINE = 16, 3, 0.999
Encode = Callable[[list[Any]], np.ndarray]


def clip_folder(folder: Path, side: int = 224) -> tuple[Encode, Encode]:
    """Write CLIP ViT-B/32 at random, and return how Transformers encodes pictures and texts with it."""
    import torch
    from transformers import CLIPConfig, CLIPImageProcessor, CLIPModel, CLIPTokenizer

    torch.manual_seed(0)
    letters = sorted(set("abcdefghijklmnopqrstuvwxyz"))
    marks = ["<|startoftext|>", "<|endoftext|>"]
    vocabulary = {piece: number for number, piece in enumerate([*letters, *(f"{one}</w>" for one in letters), *marks])}
    tokenizer = CLIPTokenizer(vocab=vocabulary, merges=[])
    text = {"vocab_size": len(vocabulary), "bos_token_id": vocabulary[marks[0]], "eos_token_id": vocabulary[marks[1]]}
    model = CLIPModel(CLIPConfig(text_config=text, vision_config={"image_size": side})).eval()
    processor = CLIPImageProcessor(size={"shortest_edge": side}, crop_size={"height": side, "width": side})
    for part in (model, processor, tokenizer):
        part.save_pretrained(folder)

    def images(paths: list[Path]) -> np.ndarray:
        pixels = processor([Image.open(path).convert("RGB") for path in paths], return_tensors="pt")
        return _unit(model.get_image_features(**pixels))

    def texts(given: list[str]) -> np.ndarray:
        return _unit(model.get_text_features(**tokenizer(given, padding=True, truncation=True, return_tensors="pt")))

    return _in_batches(images), _in_batches(texts)


def _unit(found: Any) -> np.ndarray:
    rows = getattr(found, "pooler_output", found).detach().numpy()
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def _in_batches(encode: Encode) -> Encode:
    def encoded(items: list[Any]) -> np.ndarray:
        return np.concatenate([encode(items[start : start + BATCH]) for start in range(0, len(items), BATCH)])

    return encoded


def sentence_folder(folder: Path) -> Encode:
    """Write a MiniLM at random, and return how sentence-transformers encodes texts with it."""
    import torch
    from sentence_transformers import SentenceTransformer
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    torch.manual_seed(0)
    BertModel(BertConfig.from_json_file(MINILM / "config.json")).save_pretrained(folder)
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(MINILM / "tokenizer.json"), pad_token="[PAD]")
    tokenizer.save_pretrained(folder)
    # A folder without a recipe is pooled by the mean, there as here.
    model = SentenceTransformer(str(folder), device="cpu")
    return lambda texts: model.encode(texts, batch_size=BATCH, normalize_embeddings=True, show_progress_bar=False)


def compare(report: SpeedReport, work: str, peer: str, items: list[Any], ours: Encode, theirs: Encode) -> None:
    """Check that both give the same points, and measure them."""
    sides = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (ours(items), theirs(items))]
    least = float((sides[0] * sides[1]).sum(axis=1).min())
    report.hold(f"{work}: points as {peer}'s", least >= LEAST_COSINE, f"least cosine {least:.6f}")
    runs = {peer: lambda: theirs(items)}
    report.race(work, lambda: ours(items), runs, REPEATS, bars={peer: 1.0}, clock=time.process_time)


def main() -> int:
    """Measure and compare."""
    options = speed_parser(__doc__).parse_args()
    report = SpeedReport(__file__, options, threads=1)
    photographs, texts = PHOTOGRAPHS[: 16 if options.quick else None], phrases()[:: 6 if options.quick else 1]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if installed("torch"):
            import torch

            torch.set_num_threads(1)
        settings = {"batch_size": BATCH, "n_threads": 1}
        if installed("transformers"):
            images, captions = clip_folder(folder / "clip")
            clip = {"folder": str(folder / "clip"), **settings}
            work = f"CLIP ViT-B/32 of {len(photographs)} photographs"
            compare(report, work, "Transformers", photographs, JointImageEncoder(**clip).transform, images)
            work = f"CLIP's text side of {len(texts)} phrases"
            compare(report, work, "Transformers", texts, JointTextEncoder(**clip).transform, captions)
        if installed("sentence_transformers"):
            theirs = sentence_folder(folder / "sentences")
            ours = SentenceEncoder(source=str(folder / "sentences"), **settings)
            work = f"MiniLM of {len(texts)} phrases"
            compare(report, work, "sentence-transformers", texts, ours.transform, theirs)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
