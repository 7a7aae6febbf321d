"""How much of the device MNiL's training uses, and what it takes of its memory.

    python -m bench.mnil_throughput [--side 224] [--batch 128] [--pairs 1000 10000 100000] [--compile]

Two networks, ResNet-50 and the memory for words, are run forwards and back on tensors that already lie on the device;
then they are trained, with decoded pictures in main memory, sampler, loss and optimiser. The bar is 85 % of the plain
speed at 128 pairs a batch or more. Peak memory of the device is measured at each number of training pairs, and must
not grow with it. Pictures and words are random: speed does not depend on them.
"""

from __future__ import annotations

import argparse
import math
import sys
import time

import numpy as np
import torch

from diptych.models import MNiL
from diptych.models.neural.mnil._data import TrainingPairs
from diptych.models.neural.mnil._joint_training import JointTraining, Workers
from diptych.models.neural.mnil._objective import RankingObjective
from diptych.models.neural.mnil._picture_tower import ConvolutionPlan, PictureTower
from diptych.models.neural.mnil._towers import Towers, WordTower
from diptych.space import Space

BAR = 0.85
GROWTH = 1.02
N_WORDS, WORD_SIZE, HIDDEN_SIZE, N_COMPONENTS, LENGTH = 8000, 512, 512, 128, 20


def make_towers(options: argparse.Namespace) -> Towers:
    """Return both networks at random; the picture network without batch normalisation, as it is fine-tuned."""
    rng = np.random.default_rng(0)
    plan = ConvolutionPlan.resnet50(options.width)
    weights = {}
    for convolution in plan.convolutions():
        shape = convolution.width_out, convolution.width_in, convolution.size, convolution.size
        deviation = 0.5 / math.sqrt(convolution.width_in * convolution.size**2)
        weights[f"{convolution.name}.kernel"] = deviation * rng.standard_normal(shape, dtype=np.float32)
        weights[f"{convolution.name}.bias"] = np.zeros(convolution.width_out, dtype=np.float32)
    image = PictureTower(plan, weights, rng=rng, device=options.device)
    words = rng.standard_normal((N_WORDS, WORD_SIZE), dtype=np.float32)
    text = WordTower(words, HIDDEN_SIZE, dropout=0.1, unit_steps=False, rng=rng, device=options.device)
    return Towers(
        image,
        text,
        N_COMPONENTS,
        "cosine",
        rng=rng,
        device=options.device,
        mixed=options.device == "cuda",
        compiled=options.compile,
    )


def make_pairs(n_pairs: int, side: int) -> TrainingPairs:
    """Return random pairs; a few hundred different pictures over and over, each with a place of its own in memory."""
    rng = np.random.default_rng(1)
    some = rng.integers(0, 256, size=(min(n_pairs, 250), side, side, 3), dtype=np.uint8)
    pictures = np.empty((n_pairs, side, side, 3), dtype=np.uint8)
    for start in range(0, n_pairs, len(some)):
        pictures[start : start + len(some)] = some[: n_pairs - start]
    codes = rng.integers(2, N_WORDS, size=(n_pairs, LENGTH))
    return TrainingPairs(pictures, np.arange(n_pairs), codes, np.full(n_pairs, LENGTH), None)


def synchronise(device: str) -> None:
    """Wait until the device has done all it was given."""
    if device == "cuda":
        torch.cuda.synchronize()


def plain_speed(towers: Towers, options: argparse.Namespace) -> float:
    """Return pairs a second of forward and backward passes alone."""
    pairs = make_pairs(options.batch, options.side)
    pictures = torch.from_numpy(pairs.pictures).to(options.device)
    codes, lengths = (torch.from_numpy(values).to(options.device) for values in (pairs.word_ids, pairs.lengths))
    parameters = list(towers.parameters().values())

    def once() -> None:
        points = towers.image_points(pictures, training=True), towers.text_points(codes, lengths, training=True)
        (points[0] * points[1]).sum().backward()
        for parameter in parameters:
            parameter.grad = None

    for _ in range(options.warm_up):
        once()
    synchronise(options.device)
    started = time.perf_counter()
    for _ in range(options.steps):
        once()
    synchronise(options.device)
    return options.batch * options.steps / (time.perf_counter() - started)


def trained_speed(towers: Towers, pairs: TrainingPairs, options: argparse.Namespace, epochs: int) -> float:
    """Return pairs a second of the whole training, in its last epoch."""
    settings = MNiL(
        optimizer=options.optimizer, learning_rate=1e-5, schedule="constant", epochs=epochs, batch_size=options.batch
    )
    objective = RankingObjective(
        n_pairs=len(pairs), margin=0.3, within_margin=0.5, image_term=0.1, text_term=0.2, direction="both"
    )
    training = JointTraining(settings, objective, towers, pairs, None, Space("cosine"), Workers(0, 1))
    return training.run(None, "", None)[-1].pictures_per_second


def main() -> int:
    """Measure both speeds and the memory, and compare with the bars."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--side", type=int, default=224, help="side of the pictures in pixels")
    parser.add_argument("--batch", type=int, default=128, help="pairs in a batch")
    parser.add_argument("--pairs", type=int, nargs="+", default=[1000, 10_000, 100_000], help="training pairs")
    parser.add_argument("--steps", type=int, default=50, help="plain passes that are timed")
    parser.add_argument("--warm-up", type=int, default=10, help="plain passes before them")
    parser.add_argument("--optimizer", choices=("adam", "sgd"), default="sgd")
    parser.add_argument("--compile", action="store_true", help="use PyTorch's compiler for the picture network")
    parser.add_argument("--width", type=int, default=64, help="channels of ResNet-50's stem; less for a quick try")
    options = parser.parse_args()
    options.device = "cuda" if torch.cuda.is_available() else "cpu"
    name = torch.cuda.get_device_name() if options.device == "cuda" else "the processor"
    print(f"PyTorch {torch.__version__} on {name}; {options.batch} pairs of {options.side} pixels a batch", flush=True)
    towers = make_towers(options)
    plain = plain_speed(towers, options)
    print(f"plain forward and backward: {plain:,.0f} pairs/s", flush=True)
    speeds, peaks = {}, {}
    for n_pairs in options.pairs:
        pairs = make_pairs(n_pairs, options.side)
        if options.device == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        # A small set is over before the device is warm, a large one takes long enough in one pass.
        epochs = 3 if n_pairs < 5000 else 2 if n_pairs < 50_000 else 1
        speeds[n_pairs] = trained_speed(towers, pairs, options, epochs)
        peaks[n_pairs] = torch.cuda.max_memory_allocated() if options.device == "cuda" else 0
        print(
            f"training on {n_pairs:>7,} pairs: {speeds[n_pairs]:,.0f} pairs/s, {speeds[n_pairs] / plain:.1%} of plain; "
            f"peak memory {peaks[n_pairs] / 2**20:,.0f} MiB",
            flush=True,
        )
    missed = []
    if max(speeds.values()) < BAR * plain:
        missed.append(f"training reaches less than {BAR:.0%} of the plain speed")
    if max(peaks.values()) > GROWTH * min(peaks.values()):
        missed.append("peak memory grows with the number of pairs")
    print("every bar is met" if not missed else f"missed: {'; '.join(missed)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
