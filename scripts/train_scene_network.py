"""Train the small network that finds the things in generated scenes, and write its weights into the package.

    python scripts/train_scene_network.py --output src/diptych/encoders/scenes/scene_network.safetensors

It paints scenes of seeds that nothing else uses, at several sizes, and trains on PyTorch: about six minutes on a
graphics card and 16 cores, hours without one. Each of 16 × 16 cells says whether the middle of a thing lies in it, and
of which kind, colour, texture and size that thing is; the mean over the cells says where the scene is. What it prints
at the end is measured on scenes of yet another seed.
"""

from __future__ import annotations

import argparse
import time
from multiprocessing import Pool
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from safetensors.numpy import save_file
from torch import Tensor, nn
from torch.nn import functional

from diptych.data.datasets.scenes import BACKGROUNDS, CLASS_NAMES, COLOURS, TEXTURES, make_scene
from diptych.data.datasets.scenes.composition import SIZES

SIDE, CELLS = 128, 16
# Output channels and strides of the 3 × 3 convolutions; those after the last stride of 2 are added to what they get.
LAYERS = ((24, 2), (32, 1), (48, 2), (64, 1), (96, 2), (96, 1), (96, 1), (96, 1))
LOOKS = (CLASS_NAMES, tuple(COLOURS), TEXTURES, tuple(SIZES))
WIDTHS = (1, *(len(names) for names in LOOKS))
TRAIN_SEED, TEST_SEED = 1801, 1802
# How large the pictures are that people show it; each is brought to the network's side.
PAINTED = (128, 128, 256, 256, 96, 192)


class SceneNetwork(nn.Module):
    """Convolutions, then what each cell says of things and what all cells together say of the place."""

    def __init__(self) -> None:
        super().__init__()
        self.layers, self.norms = nn.ModuleList(), nn.ModuleList()
        channels = 3
        for width, stride in LAYERS:
            self.layers.append(nn.Conv2d(channels, width, 3, stride=stride, padding=1, bias=False))
            self.norms.append(nn.BatchNorm2d(width))
            channels = width
        self.cells = nn.Conv2d(channels, sum(WIDTHS), 1)
        self.place = nn.Linear(channels, len(BACKGROUNDS))

    def forward(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        """Return the logits of the cells (n, channels, 16, 16) and of the places (n, 10)."""
        values = (pixels.float() - 127.5) / 64
        for layer, norm, (_, stride) in zip(self.layers, self.norms, LAYERS, strict=True):
            new = norm(layer(values))
            values = functional.relu(new + values if stride == 1 and new.shape == values.shape else new)
        return self.cells(values), self.place(values.mean(dim=(2, 3)))

    def weights(self) -> dict[str, np.ndarray]:
        """Return kernels and biases with the normalisations folded into them, in half precision."""
        found: dict[str, Tensor] = {}
        for number, (layer, norm) in enumerate(zip(self.layers, self.norms, strict=True)):
            factor = norm.weight / torch.sqrt(norm.running_var + norm.eps)
            found[f"layers.{number}.kernel"] = layer.weight * factor[:, None, None, None]
            found[f"layers.{number}.bias"] = norm.bias - norm.running_mean * factor
        found |= {"cells.kernel": self.cells.weight, "cells.bias": self.cells.bias}
        found |= {"place.kernel": self.place.weight, "place.bias": self.place.bias}
        return {name: value.detach().cpu().numpy().astype(np.float16) for name, value in found.items()}


def painted(task: tuple[int, int]) -> tuple[np.ndarray, np.ndarray, int]:
    """Return a picture, its cells (objectness and the number of each look, −1 for none) and the number of its place."""
    number, seed = task
    scene = make_scene(number, seed)
    picture = Image.fromarray(scene.render(PAINTED[number % len(PAINTED)]))
    pixels = np.asarray(picture.resize((SIDE, SIDE), Image.Resampling.BICUBIC))
    cells = np.full((len(WIDTHS), CELLS, CELLS), -1, dtype=np.int8)
    cells[0] = 0
    for thing in scene.objects:
        looks = (thing.kind, thing.colour, thing.texture, thing.size)
        row, column = (min(int(place * CELLS), CELLS - 1) for place in (thing.y, thing.x))
        cells[:, row, column] = [1, *(names.index(look) for names, look in zip(LOOKS, looks, strict=True))]
    return pixels, cells, BACKGROUNDS.index(scene.background)


def paint(count: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Paint scenes on all processors: pictures (n, 3, side, side), cells and places."""
    with Pool() as pool:
        made = pool.map(painted, [(number, seed) for number in range(count)], chunksize=64)
    pictures = torch.from_numpy(np.stack([pixels.transpose(2, 0, 1) for pixels, _, _ in made]))
    return pictures, torch.from_numpy(np.stack([cells for _, cells, _ in made])), torch.tensor([row[2] for row in made])


def loss_of(cells: Tensor, places: Tensor, truth: Tensor, place: Tensor) -> Tensor:
    """Return the cross-entropy of objectness over all cells, of looks where things are, and of the place."""
    parts = cells.float().split(WIDTHS, dim=1)
    total = functional.binary_cross_entropy_with_logits(parts[0][:, 0], truth[:, 0].float(), reduction="none").sum(
        dim=(1, 2)
    ).mean() + functional.cross_entropy(places.float(), place)
    for logits, target in zip(parts[1:], truth[:, 1:].unbind(dim=1), strict=True):
        per_cell = functional.cross_entropy(logits, target.long(), ignore_index=-1, reduction="sum")
        total = total + per_cell / len(cells)
    return total


@torch.no_grad()
def report(network: SceneNetwork, pictures: Tensor, truth: Tensor, place: Tensor) -> str:
    """Return how often places, numbers of things and things of a kind and colour are seen right."""
    network.eval()
    right_places = right_counts = right_things = 0
    for rows in torch.arange(len(pictures), device=pictures.device).split(512):
        cells, places = network(pictures[rows])
        objectness, kinds, colours, *_ = cells.split(WIDTHS, dim=1)
        seen = torch.einsum(
            "nhw,nkhw,nchw->nkc", objectness[:, 0].sigmoid(), kinds.softmax(dim=1), colours.softmax(dim=1)
        )
        is_thing = truth[rows, 0].float()
        hot = [
            functional.one_hot(truth[rows, part].long().clamp(min=0), width).permute(0, 3, 1, 2).float()
            for part, width in ((1, WIDTHS[1]), (2, WIDTHS[2]))
        ]
        there = torch.einsum("nhw,nkhw,nchw->nkc", is_thing, *hot)
        right_places += int((places.argmax(dim=1) == place[rows]).sum())
        right_counts += int((seen.sum(dim=(1, 2)).round() == there.sum(dim=(1, 2))).sum())
        right_things += int((seen.round() == there).all(dim=(1, 2)).sum())
    network.train()
    count = len(pictures)
    return (
        f"place {right_places / count:.4f}, number of things {right_counts / count:.4f}, "
        f"all kinds with their colours and numbers {right_things / count:.4f}"
    )


def main() -> None:
    """Paint, train, measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=int, default=240_000, help="scenes to train on")
    parser.add_argument("--test", type=int, default=4_000, help="scenes to measure on")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    started = time.perf_counter()
    pictures, truth, place = (part.to(device) for part in paint(options.train, TRAIN_SEED))
    unseen = tuple(part.to(device) for part in paint(options.test, TEST_SEED))
    print(f"painted in {time.perf_counter() - started:.0f} s", flush=True)
    network = SceneNetwork().to(device)
    steps = options.epochs * (options.train // options.batch)
    optimiser = torch.optim.AdamW(network.parameters(), weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=4e-3, total_steps=steps, pct_start=0.1)
    for epoch in range(options.epochs):
        order = torch.randperm(options.train, device=device)
        for rows in order[: options.train // options.batch * options.batch].split(options.batch):
            seen, there = pictures[rows], truth[rows]
            if torch.rand(()) < 0.5:
                seen, there = seen.flip(3), there.flip(3)
            with torch.autocast(device, dtype=torch.bfloat16, enabled=device == "cuda"):
                cells, places = network(seen)
            loss = loss_of(cells, places, there, place[rows])
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
            schedule.step()
        if epoch % 5 == 4 or epoch == options.epochs - 1:
            spent = time.perf_counter() - started
            print(f"epoch {epoch + 1}, {spent:.0f} s, loss {loss.item():.4f}: {report(network, *unseen)}", flush=True)
    save_file(network.weights(), options.output)


if __name__ == "__main__":
    main()
