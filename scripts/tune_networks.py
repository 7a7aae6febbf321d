"""Train the image networks and MiniLM further on photographs and their captions, together with projections.

    python scripts/tune_networks.py --output build/tuned

needs PyTorch, a graphics card of 90 GB, and in DIPTYCH_DATA Flickr8k with its Chinese captions, the COCO pairs with
their labels, and Pascal Sentence, of which nothing is learned. It takes five minutes on an H200. The networks,
projections and a record go into the output folder, from which `distil_networks.py` goes on. Photos nearly the same as
one that is tested are left out.

The loss is that of `ContrastiveProjection`, of the point of one, two and three networks together, so that one text
tower serves default and strong. ImageNet's labels are further pairs; labels of COCO's photos and phrases of the
captions are further queries with several right answers. Some captions go without their English features, and some are
Chinese; a second, English caption of each photo counts as much for the three networks together. Weights are pulled
towards where they started and averaged over the last steps; of what was changed in the image networks, a part is kept
(Wortsman et al., "Robust fine-tuning of zero-shot models", CVPR 2022).
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.utils import clip_grad_norm_

from diptych.arrays import AnyArray, unit_rows
from diptych.encoders import UniversalSentenceEncoder
from tuning_data import TRAIN_PARTS, Batch, Batches, TuningData, read_tuning_data, squares, tokens
from tuning_networks import DEVICE, ImageNetwork, Projections, SentenceNetwork

SUBSETS = (("lite2",), ("lite2", "lite0"), ("lite2", "lite1", "lite0"))
NETWORKS = SUBSETS[-1]
TEST_PARTS = ("coco_test", "flickr_test", "pascal_dev", "pascal_test")
NEARLY_THE_SAME = 0.9
TEMPERATURE, DROPOUT, RANK, N_COMPONENTS = 0.06, 0.2, 16, 256
EPOCHS, PROJECTION_EPOCHS, BATCH_SIZE, ENCODED_AT_ONCE = 16, 10, 640, 2048
RATES = {"networks": 3e-4, "sentences": 5e-4, "projections": 3e-4}
PULL, AVERAGE, KEPT, WITHOUT_ENGLISH = 0.006, 0.99, 0.85, 0.25
LABEL_SHARE, PHRASE_SHARE = 0.1, 0.3
LONGEST = 64
# The losses of a batch: of its pairs, and of whatever else is learned from it.
Losses = Callable[[Tensor, "Texts", "Towers", Tensor, Batch], tuple[Tensor, Tensor]]


class Texts(NamedTuple):
    """Tokens for MiniLM with their number, and rows of the network that stays as it is, of all texts."""

    tokens: Tensor
    lengths: Tensor
    multilingual: Tensor


class Towers(NamedTuple):
    """All that is learned, and the classes of ImageNet as pictures of each network."""

    images: dict[str, ImageNetwork]
    sentences: SentenceNetwork
    projections: Projections
    class_rows: dict[str, Tensor]

    def train(self, mode: bool) -> None:
        """Turn dropout on or off."""
        for module in self._modules().values():
            module.train(mode)

    def save(self, file: Path) -> None:
        """Write all arrays, and nothing that a reader would execute."""
        torch.save({name: module.state_dict() for name, module in self._modules().items()} | self.class_rows, file)

    def load(self, file: Path) -> None:
        """Take the arrays of a file that `save` wrote."""
        stored = torch.load(file, DEVICE, weights_only=True)
        for name, module in self._modules().items():
            module.load_state_dict(stored.pop(name))
        self.class_rows.update(stored)

    def _modules(self) -> dict[str, torch.nn.Module]:
        images = {f"image {name}": network for name, network in self.images.items()}
        return {**images, "sentences": self.sentences, "projections": self.projections}


def untouched_towers() -> Towers:
    """Return the networks as they are packaged, with projections that have learned nothing."""
    return Towers(
        {name: ImageNetwork(name).to(DEVICE) for name in NETWORKS},
        SentenceNetwork(RANK).to(DEVICE),
        Projections(list(NETWORKS), N_COMPONENTS).to(DEVICE),
        {},
    )


def read_texts(data: TuningData) -> Texts:
    """Encode all texts as far as nothing is learned of it."""
    rows = [row[:LONGEST] for row in tokens(data.texts)]
    filled = np.zeros((len(rows), LONGEST), dtype=np.int64)
    for place, row in enumerate(rows):
        filled[place, : len(row)] = row
    lengths = np.array([len(row) for row in rows])
    multilingual = unit_rows(UniversalSentenceEncoder().transform(data.texts))
    return Texts(*(torch.from_numpy(part).to(DEVICE) for part in (filled, lengths, multilingual)))


def text_rows(towers: Towers, texts: Texts, places: Tensor, english: Tensor) -> Tensor:
    """Return the features of texts: MiniLM's, zero where ``english`` is false, beside the multilingual ones."""
    width = int(texts.lengths[places].max())
    kept = english.nonzero()[:, 0]
    own = torch.zeros(len(places), 384, device=DEVICE)
    if len(kept):
        mask = torch.arange(width, device=DEVICE) < texts.lengths[places[kept], None]
        with torch.autocast(DEVICE, torch.bfloat16, enabled=DEVICE == "cuda"):
            found = towers.sentences(texts.tokens[places[kept], :width], mask)
        own = own.index_copy(0, kept, found.float())
    return torch.cat([own, texts.multilingual[places]], 1)


@torch.no_grad()
def features(network: ImageNetwork, pixels: Tensor, side: int | None = None) -> Tensor:
    """Return the features of whole photos, shown in the network's own size or another one."""
    network.eval()
    found = []
    for part in pixels.split(256):
        batch = part.permute(0, 3, 1, 2).float()
        batch = functional.interpolate(batch, (side or network.side,) * 2, mode="bicubic", antialias=True).clamp(0, 255)
        with torch.autocast(DEVICE, torch.bfloat16, enabled=DEVICE == "cuda"):
            found.append(network(batch).float())
    return torch.cat(found)


def augmented(pixels: Tensor, side: int) -> Tensor:
    """Return random parts of photos, stretched, mirrored, and with other brightness, contrast and saturation."""
    count, values = len(pixels), pixels.permute(0, 3, 1, 2).float()

    def drawn(low: float, high: float) -> Tensor:
        return torch.empty(count, device=DEVICE).uniform_(low, high)

    area, aspect = drawn(0.6, 1), drawn(-0.25, 0.25).exp()
    width, height = ((area * ratio).sqrt().clamp(max=1) for ratio in (aspect, 1 / aspect))
    place = torch.zeros(count, 2, 3, device=DEVICE)
    place[:, 0, 0] = width * torch.where(drawn(0, 1) < 0.5, -1.0, 1.0)
    place[:, 0, 2], place[:, 1, 2] = drawn(-1, 1) * (1 - width), drawn(-1, 1) * (1 - height)
    place[:, 1, 1] = height
    grid = functional.affine_grid(place, [count, 3, side, side], align_corners=False)
    values = functional.grid_sample(values, grid, padding_mode="reflection", align_corners=False)
    brightness, contrast, saturation = (drawn(0.8, 1.2)[:, None, None, None] for _ in range(3))
    grey = values.mean(1, keepdim=True)
    values = grey + (values - grey) * saturation
    mean = values.mean((1, 2, 3), keepdim=True)
    return ((values - mean) * contrast + mean * brightness).clamp(0, 255)


def pair_loss(images: Tensor, texts: Tensor, classes: Tensor) -> Tensor:
    """Return the symmetric loss; the last rows are ImageNet's classes, which may come twice."""
    scores = images @ texts.T / TEMPERATURE
    first = len(scores) - len(classes)
    same = (classes[:, None] == classes) & ~torch.eye(len(classes), dtype=torch.bool, device=DEVICE)
    twice = torch.zeros_like(scores, dtype=torch.bool)
    twice[first:, first:] = same
    scores, right = scores.masked_fill(twice, -1e4), torch.arange(len(scores), device=DEVICE)
    return (functional.cross_entropy(scores, right) + functional.cross_entropy(scores.T, right)) / 2


def query_loss(queries: Tensor, images: Tensor, relevant: Tensor, *, every: bool) -> Tensor:
    """Return the loss of queries with several right answers: of every one of them, or of any."""
    logs = torch.log_softmax(queries @ images.T / TEMPERATURE, 1)
    asked = relevant.any(1)
    if not asked.any():
        return logs.sum() * 0
    if every:
        return -((logs * relevant).sum(1)[asked] / relevant.sum(1)[asked]).mean()
    return -torch.logsumexp(logs.masked_fill(~relevant, -1e4), 1)[asked].mean()


def train(
    data: TuningData,
    pixels: Tensor,
    texts: Texts,
    towers: Towers,
    epochs: int,
    losses_of: Losses,
    rates: Mapping[str, float],
    pull: float,
) -> list[float]:
    """Train together whatever has a rate, and return the mean loss of pairs in each epoch."""
    batches = Batches(data, BATCH_SIZE)
    modules = {
        "networks": list(towers.images.values()),
        "sentences": [towers.sentences],
        "projections": [towers.projections],
    }
    groups = {name: [p for module in modules[name] for p in module.parameters() if p.requires_grad] for name in rates}
    optimiser = torch.optim.AdamW(
        [{"params": groups[name], "lr": rate} for name, rate in rates.items()], betas=(0.9, 0.98), weight_decay=0
    )
    everything = [parameter for group in groups.values() for parameter in group]
    start = [parameter.detach().clone() for parameter in groups["networks"]]
    average = [parameter.detach().clone() for parameter in everything]
    labels = torch.from_numpy(data.labels).to(DEVICE)
    steps, step, losses = epochs * len(batches), 0, []
    for epoch in range(epochs):
        towers.train(True)
        of_epoch = []
        for batch in batches.epoch():
            step += 1
            share = min(1, step / (0.05 * steps)) * (0.02 + 0.49 * (1 + math.cos(math.pi * step / steps)))
            for group, rate in zip(optimiser.param_groups, rates.values(), strict=True):
                group["lr"] = rate * share
            photos = torch.from_numpy(batches.photos[batch.rows]).to(DEVICE)
            of_pairs, of_others = losses_of(pixels[photos], texts, towers, labels[photos], batch)
            optimiser.zero_grad(set_to_none=True)
            (of_pairs + of_others).backward()
            clip_grad_norm_(everything, 5.0)
            optimiser.step()
            with torch.no_grad():
                torch._foreach_lerp_(groups["networks"], start, pull * share)
                kept = min(AVERAGE, step / (step + 10))
                torch._foreach_lerp_(average, [parameter.detach() for parameter in everything], 1 - kept)
            of_epoch.append(of_pairs.item())
        losses.append(float(np.mean(of_epoch)))
        print(f"epoch {epoch + 1} of {epochs}: loss {losses[-1]:.3f}", flush=True)
    with torch.no_grad():
        for parameter, mean in zip(everything, average, strict=True):
            parameter.copy_(mean)
    return losses


def batch_losses(photos: Tensor, texts: Texts, towers: Towers, labels: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
    """Return the loss of photos and captions and that of labels and phrases as queries."""
    places, classes = (torch.from_numpy(part).to(DEVICE) for part in (batch.texts, batch.classes))
    n_photos, kept = len(batch.rows), torch.rand(len(places), device=DEVICE) >= WITHOUT_ENGLISH
    read = text_rows(towers, texts, places, torch.from_numpy(batch.is_english).to(DEVICE) & kept)
    asked = functional.normalize(towers.projections("texts", read, DROPOUT), dim=1)
    points = shown_points(photos, towers, classes)
    n_pairs, n_labels = n_photos + len(classes), labels.shape[1]
    of_pairs = torch.zeros((), device=DEVICE)
    for subset in SUBSETS:
        image_points = joined(points, subset)
        of_pairs = of_pairs + pair_loss(image_points, asked[:n_pairs], classes) / len(SUBSETS)
    second = torch.cat([asked[-n_photos:], asked[n_photos:n_pairs]])
    of_pairs = (of_pairs + pair_loss(image_points, second, classes)) / 2
    known = labels[:, 0] != 255
    of_labels = query_loss(
        asked[n_pairs : n_pairs + n_labels], image_points[:n_photos][known], labels[known].T == 1, every=True
    )
    phrases = torch.from_numpy(batch.has_phrase).to(DEVICE)
    of_phrases = query_loss(asked[n_pairs + n_labels : -n_photos], image_points[:n_photos], phrases, every=False)
    return of_pairs, LABEL_SHARE * of_labels + PHRASE_SHARE * of_phrases


def shown_points(photos: Tensor, towers: Towers, classes: Tensor) -> dict[str, Tensor]:
    """Return the points of random views of photos, and of ImageNet's classes behind them, by each network."""
    largest = augmented(photos, max(network.side for network in towers.images.values()))
    points = {}
    for name, network in towers.images.items():
        size = (network.side,) * 2
        shown = (
            largest
            if largest.shape[-1] == network.side
            else functional.interpolate(largest, size, mode="bilinear", antialias=True)
        )
        with torch.autocast(DEVICE, torch.bfloat16, enabled=DEVICE == "cuda"):
            found = network(shown)
        both = functional.normalize(torch.cat([found.float(), towers.class_rows[name][classes]]), dim=1)
        points[name] = towers.projections(name, both, DROPOUT)
    return points


def start_projections(data: TuningData, pixels: Tensor, texts: Texts, towers: Towers, epochs: int) -> None:
    """Learn the projections alone, on the features as they are."""
    batches = Batches(data, 2 * BATCH_SIZE)
    shown = {name: features(network, pixels[batches.photos]) for name, network in towers.images.items()}
    for name, rows in shown.items():
        towers.projections.centre(name, functional.normalize(rows, dim=1))
        towers.class_rows[name] = towers.images[name].class_rows(rows)
    towers.projections.centre("texts", encoded_texts(towers, texts, data.of_kind(*TRAIN_PARTS)))
    optimiser = torch.optim.Adam(towers.projections.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, max(1, epochs * len(batches)))
    towers.train(True)
    for _ in range(epochs):
        for batch in batches.epoch():
            classes, count = torch.from_numpy(batch.classes).to(DEVICE), len(batch.rows) + len(batch.classes)
            english = torch.from_numpy(batch.is_english[:count]).to(DEVICE) & (torch.rand(count, device=DEVICE) >= 0.2)
            with torch.no_grad():
                read = text_rows(towers, texts, torch.from_numpy(batch.texts[:count]).to(DEVICE), english)
            asked = functional.normalize(towers.projections("texts", read, 0.3), dim=1)
            points = {}
            for name, found in shown.items():
                both = torch.cat([found[batch.rows], towers.class_rows[name][classes]])
                points[name] = towers.projections(name, functional.normalize(both, dim=1), 0.3)
            losses = [pair_loss(joined(points, subset), asked, classes) for subset in SUBSETS]
            optimiser.zero_grad()
            torch.stack(losses).sum().backward()
            optimiser.step()
            schedule.step()


@torch.no_grad()
def encoded_texts(towers: Towers, texts: Texts, places: AnyArray, english: AnyArray | None = None) -> Tensor:
    """Return the features of texts; those that are not English go without English features."""
    towers.train(False)
    is_english = torch.ones(len(places), dtype=torch.bool) if english is None else torch.from_numpy(english)
    parts = (part.to(DEVICE).split(ENCODED_AT_ONCE) for part in (torch.from_numpy(places), is_english))
    return torch.cat([text_rows(towers, texts, *part) for part in zip(*parts, strict=True)])


@torch.no_grad()
def judge(data: TuningData, pixels: Tensor, texts: Texts, towers: Towers, subset: Sequence[str]) -> float:
    """Return the mean of R@1 and R@10, both directions, over the development sets.

    Scores are corrected by a bank of training photos and captions, as in `QueryBankNormalized`.
    """
    towers.train(False)
    rng, owners, found = np.random.default_rng(0), np.asarray(data.owners), []
    photos, captions = (
        np.concatenate([rng.permutation(rows)[:1500] for rows in map(sides, TRAIN_PARTS)])
        for sides in (data.rows, data.of_kind)
    )
    bank = image_points(pixels[photos], towers, subset), text_points(texts, towers, captions)
    for part in ("flickr_dev", "coco_dev", "pascal_dev"):
        rows, places = data.rows(part), data.of_kind(part)
        images, asked = image_points(pixels[rows], towers, subset), text_points(texts, towers, places)
        own = torch.from_numpy(np.searchsorted(rows, owners[places])).to(DEVICE)
        of_texts = images @ asked.T - hubness(images, bank[1])[:, None]
        right = of_texts[own, torch.arange(len(own), device=DEVICE)]
        of_pictures = images @ asked.T - hubness(asked, bank[0])
        best = torch.full((len(rows),), -9.0, device=DEVICE).scatter_reduce(
            0, own, of_pictures[own, torch.arange(len(own), device=DEVICE)], "amax"
        )
        ranks = (of_texts > right).sum(0), (of_pictures > best[:, None]).sum(1)
        found += [(rank < first).float().mean().item() for rank in ranks for first in (1, 10)]
    return float(np.mean(found))


@torch.no_grad()
def judge_names(data: TuningData, pixels: Tensor, texts: Texts, towers: Towers, subset: Sequence[str]) -> list[float]:
    """Return MAP and the precision of the first ten of the names of Pascal's development classes as queries."""
    towers.train(False)
    rows, names = data.rows("pascal_dev"), data.of_kind("class_name")
    points, read, found = image_points(pixels[rows], towers, subset), encoded_texts(towers, texts, names), []
    classes = np.array([data.classes[row] for row in rows])
    # Two forms of each name, as queries are read.
    asked = functional.normalize(towers.projections("texts", read.view(-1, 2, read.shape[1]).mean(1)), dim=1)
    for number, scores in zip(np.asarray(data.owners)[names[::2]], (asked @ points.T).cpu().numpy(), strict=True):
        right = (classes == number)[np.argsort(-scores, kind="stable")]
        found.append(((np.cumsum(right) / np.arange(1, len(right) + 1))[right].mean(), right[:10].mean()))
    return np.mean(found, axis=0).tolist()


def image_points(pixels: Tensor, towers: Towers, subset: Sequence[str]) -> Tensor:
    """Return the unit points of photos, by some of the networks."""
    rows = {name: functional.normalize(features(towers.images[name], pixels), dim=1) for name in subset}
    return joined({name: towers.projections(name, row) for name, row in rows.items()}, subset)


def joined(points: Mapping[str, Tensor], subset: Sequence[str]) -> Tensor:
    """Return the unit points of several networks together."""
    return functional.normalize(torch.stack([points[name] for name in subset]).sum(0), dim=1)


def text_points(texts: Texts, towers: Towers, places: AnyArray, english: AnyArray | None = None) -> Tensor:
    """Return the unit points of texts."""
    return functional.normalize(towers.projections("texts", encoded_texts(towers, texts, places, english)), dim=1)


def hubness(points: Tensor, bank: Tensor) -> Tensor:
    """Return what the correction takes off the scores of points."""
    return 0.7 * (points @ bank.T).topk(min(20, len(bank)), 1).values.mean(1)


def leave_out_test_photos(data: TuningData, pixels: Tensor, towers: Towers) -> int:
    """Leave out training photos that are nearly the same as a photo that is tested, and return how many."""
    train_rows, test_rows = data.rows(*TRAIN_PARTS), data.rows(*TEST_PARTS)
    sides = [
        functional.normalize(torch.cat([features(towers.images[name], pixels[rows]) for name in SUBSETS[1]], 1), dim=1)
        for rows in (train_rows, test_rows)
    ]
    near = ((sides[0] @ sides[1].T).amax(1) >= NEARLY_THE_SAME).cpu().numpy()
    data.leave_out(train_rows[near])
    return int(near.sum())


def main() -> None:
    """Train, and write what was learned."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--output", type=Path, required=True, help="folder of networks, projections and record")
    output = parser.parse_args().output
    output.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    data = read_tuning_data()
    pixels, texts = torch.from_numpy(squares(data.photos)).to(DEVICE), read_texts(data)
    towers = untouched_towers()
    n_left_out = leave_out_test_photos(data, pixels, towers)
    start = {name: [p.detach().clone() for p in network.parameters()] for name, network in towers.images.items()}
    start_projections(data, pixels, texts, towers, PROJECTION_EPOCHS)
    judged = {"projections alone, three networks": judge(data, pixels, texts, towers, NETWORKS)}
    losses = train(data, pixels, texts, towers, EPOCHS, batch_losses, RATES, PULL)
    judged |= {" + ".join(subset): judge(data, pixels, texts, towers, subset) for subset in SUBSETS}
    with torch.no_grad():
        for name, network in towers.images.items():
            torch._foreach_lerp_(list(network.parameters()), start[name], 1 - KEPT)
    towers.save(output / "towers.pt")
    record = {
        "n_photos": len(data.rows(*TRAIN_PARTS)),
        "n_left_out": n_left_out,
        "epochs": EPOCHS,
        "batch_size": BATCH_SIZE,
        "temperature": TEMPERATURE,
        "dropout": DROPOUT,
        "losses": losses,
        "judged": judged,
    }
    (output / "tuning.json").write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(record, indent=2))


if __name__ == "__main__":
    main()
