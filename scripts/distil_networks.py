"""Teach the tuned networks what they know together with the untouched ones.

    python scripts/tune_networks.py --output build/tuned
    python scripts/distil_networks.py --tuned build/tuned --output build/distilled
    python scripts/build_shipped_retrievers.py --tuned build/distilled

needs what `tune_networks.py` needs. Networks that were trained on captions answer captions better; those that only
know ImageNet know better what a photo is mainly of, which is what a single word asks for. Both together are better
than either, and cost twice as much for each photo. So they are the teacher: all three networks of both kinds, each
photo and its mirror image. The tuned networks learn its scores, of captions and of words, next to the loss of pairs
(Hinton et al., "Distilling the knowledge in a neural network", 2015), once with more weight on captions and once with
more on words; the weights of both are averaged (Wortsman et al., "Model soups", ICML 2022). The text tower stays as it
is.
"""

from __future__ import annotations

import argparse
import copy
import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from safetensors.numpy import save_file
from torch import Tensor
from torch.nn import functional

from tune_networks import (
    NETWORKS,
    SUBSETS,
    TEMPERATURE,
    Texts,
    Towers,
    features,
    joined,
    judge,
    judge_names,
    leave_out_test_photos,
    pair_loss,
    read_texts,
    shown_points,
    start_projections,
    text_points,
    text_rows,
    train,
    untouched_towers,
)
from tuning_data import TRAIN_PARTS, Batch, TuningData, read_tuning_data, squares
from tuning_networks import DEVICE

# More pixels than the networks were trained with.
TEACHER_SIDES = {"lite2": 325, "lite1": 300, "lite0": 258}
# The share of the untouched networks in the teacher's scores of captions.
OF_CAPTIONS = 0.25
EPOCHS = 12
RATES = {"networks": 2e-4, "projections": 2e-4}
WITHOUT_ENGLISH = 0.25


class Shares(NamedTuple):
    """Weights of two losses beside the teacher's scores of captions; the share of the untouched networks in words."""

    pairs: float
    words: float
    untouched: float


STUDENTS = (Shares(pairs=0.5, words=1.0, untouched=0.65), Shares(pairs=0.3, words=3.0, untouched=0.8))


class Teacher(NamedTuple):
    """Unit points of the training photos, in the order of batches, and of all texts, by both kinds of networks."""

    tuned: tuple[Tensor, Tensor]
    untouched: tuple[Tensor, Tensor]

    def scores(self, photos: Tensor, texts: Tensor, share: float) -> Tensor:
        """Return the scores of photos and texts, with a share of the untouched networks."""
        return (1 - share) * self.tuned[0][photos] @ self.tuned[1][texts].T + share * (
            self.untouched[0][photos] @ self.untouched[1][texts].T
        )


@torch.no_grad()
def mirrored_points(pixels: Tensor, towers: Towers, sides: dict[str, int] | None = None) -> Tensor:
    """Return the unit points of photos by all networks, each of the mean features of a photo and its mirror image."""
    points = {}
    for name, network in towers.images.items():
        shown = (pixels, pixels.flip(2))
        found = sum(features(network, each, None if sides is None else sides[name]) for each in shown)
        points[name] = towers.projections(name, functional.normalize(found, dim=1))
    return joined(points, NETWORKS)


@torch.no_grad()
def points_of_texts(data: TuningData, texts: Texts, towers: Towers) -> Tensor:
    """Return the unit points of all texts; the Chinese ones go without English features."""
    return text_points(texts, towers, np.arange(len(data.texts)), np.asarray(data.kinds) != "chinese_train")


def taught_losses(
    teacher: Teacher, shares: Shares, photos: Tensor, texts: Texts, towers: Towers, labels: Tensor, batch: Batch
) -> tuple[Tensor, Tensor]:
    """Return the loss of photos and captions, and how far the scores are from the teacher's."""
    places, classes = (torch.from_numpy(part).to(DEVICE) for part in (batch.texts, batch.classes))
    rows, n_photos, n_pairs = torch.from_numpy(batch.rows).to(DEVICE), len(batch.rows), len(batch.rows) + len(classes)
    english = torch.from_numpy(batch.is_english).to(DEVICE)
    with torch.no_grad():
        kept = english & (torch.rand(len(places), device=DEVICE) >= WITHOUT_ENGLISH)
        asked = functional.normalize(towers.projections("texts", text_rows(towers, texts, places, kept)), dim=1)
    is_word = torch.zeros(len(places), dtype=torch.bool, device=DEVICE)
    is_word[n_photos:-n_photos] = True
    words, captions = is_word.nonzero()[:, 0], (~is_word).nonzero()[:, 0]
    said = teacher.scores(rows, places[captions], OF_CAPTIONS), teacher.scores(rows, places[words], shares.untouched)
    points = shown_points(photos, towers, classes)
    of_pairs, of_teacher = torch.zeros((), device=DEVICE), torch.zeros((), device=DEVICE)
    for subset in SUBSETS:
        found = joined(points, subset)
        of_pairs = of_pairs + pair_loss(found, asked[:n_pairs], classes) / len(SUBSETS)
        of_captions, of_words = (found[:n_photos] @ asked[columns].T for columns in (captions, words))
        taught = (difference(of_captions, said[0]) + difference(of_captions.T, said[0].T)) / 2
        # Which photo shows a word best is what people ask; which word suits a photo best is not.
        of_teacher = of_teacher + (taught + shares.words * difference(of_words.T, said[1].T)) / len(SUBSETS)
    return shares.pairs * of_pairs, of_teacher


def difference(scores: Tensor, right: Tensor) -> Tensor:
    """Return the cross-entropy of the rows of scores to those of the teacher."""
    wanted = torch.softmax(right / TEMPERATURE, 1)
    return -(wanted * torch.log_softmax(scores / TEMPERATURE, 1)).sum(1).mean()


def judged(label: str, data: TuningData, pixels: Tensor, texts: Texts, towers: Towers) -> dict[str, float]:
    """Return recall, and MAP and P@10 of class names, of the development photos by each set of networks."""
    found = {}
    for subset in SUBSETS:
        of_names = judge_names(data, pixels, texts, towers, subset)
        name = f"{label}{' + '.join(subset)}"
        found |= {name: judge(data, pixels, texts, towers, subset)}
        found |= {f"{name}, class names, {kind}": one for kind, one in zip(("MAP", "P@10"), of_names, strict=True)}
    print(json.dumps(found), flush=True)
    return found


def main() -> None:
    """Make the teacher, teach, and write what was learned as ``tune_networks.py`` does."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--tuned", type=Path, required=True, help="what tune_networks.py wrote")
    parser.add_argument("--output", type=Path, required=True, help="folder of changes, projections and record")
    chosen = parser.parse_args()
    torch.manual_seed(0)
    data = read_tuning_data()
    pixels, texts = torch.from_numpy(squares(data.photos)).to(DEVICE), read_texts(data)
    untouched = untouched_towers()
    leave_out_test_photos(data, pixels, untouched)
    start_projections(data, pixels, texts, untouched, EPOCHS)
    rows = torch.from_numpy(data.rows(*TRAIN_PARTS)).to(DEVICE)
    tuned = untouched_towers()
    tuned.load(chosen.tuned / "towers.pt")
    before = judged("before, ", data, pixels, texts, tuned)
    teacher = Teacher(
        (mirrored_points(pixels[rows], tuned, TEACHER_SIDES), points_of_texts(data, texts, tuned)),
        (mirrored_points(pixels[rows], untouched), points_of_texts(data, texts, untouched)),
    )
    tuned.sentences.requires_grad_(False)
    students, losses = [], []
    for shares in STUDENTS:
        torch.manual_seed(0)
        student = tuned._replace(images=copy.deepcopy(tuned.images), projections=copy.deepcopy(tuned.projections))
        student.projections.get_parameter("matrix_texts").requires_grad_(False)
        losses_of = partial(taught_losses, teacher, shares)
        losses.append(train(data, pixels, texts, student, EPOCHS, losses_of, RATES, pull=0))
        students.append(student)
    student = averaged(students)
    record = json.loads((chosen.tuned / "tuning.json").read_text(encoding="utf-8"))
    record |= {"taught_losses": losses, "judged": before | judged("", data, pixels, texts, student)}
    write(chosen.output, untouched, student, record)


@torch.no_grad()
def averaged(students: Sequence[Towers]) -> Towers:
    """Return the first of them with the mean of the weights of all."""
    modules = ([*student.images.values(), student.projections] for student in students)
    for same in zip(*modules, strict=True):
        for parameters in zip(*(module.parameters() for module in same), strict=True):
            parameters[0].copy_(torch.stack(parameters).mean(0))
    return students[0]


@torch.no_grad()
def write(output: Path, untouched: Towers, student: Towers, record: dict[str, object]) -> None:
    """Write the changes of the networks since ImageNet, those of images in eight bits, projections and the record."""
    changes = output / "changes"
    changes.mkdir(parents=True, exist_ok=True)
    for name, network in student.images.items():
        arrays, before = {}, untouched.images[name]
        for number, (layer, *_) in enumerate(network.layers):
            change = network.kernels[number] - before.kernels[number]
            size = change.abs().amax((1, 2, 3)).clamp(min=1e-12) / 127
            steps = torch.round(change / size[:, None, None, None])
            arrays[f"{layer}.steps"] = steps.to(torch.int8).contiguous().cpu().numpy()
            arrays[f"{layer}.size"] = size.cpu().numpy()
            arrays[f"{layer}.bias"] = (network.biases[number] - before.biases[number]).cpu().numpy()
        save_file(arrays, changes / f"{name}.safetensors")
    save_file(student.sentences.changes(), changes / "minilm.safetensors")
    save_file(student.projections.arrays(), output / "heads.safetensors")
    (output / "tuning.json").write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
