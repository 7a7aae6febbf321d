"""LDSP and MNiL on Flickr8k with packaged features: how far small networks on frozen encoders go.

    python -m bench.flickr8k_features --pack FOLDER [--views lite2 lite0]
    python -m bench.flickr8k_features --features FOLDER --method ldsp|mnil [--settings 1 2] [--seeds 3]

``--pack`` encodes all photos and captions; ``--features`` does not need the data set, and is meant for a machine with a
graphics card. Each setting learns from the 6,000 training photos (LDSP holds a tenth of them out to stop). The one with
the best mean of R@1, R@5 and R@10 over both directions on the 1,000 development photos is then learned from all
training photos with each seed, LDSP for as many epochs as it took, and asked on the 1,000 test photos with all their
captions. A setting leaves out views that were not packed. The last line compares the networks of all seeds side by
side, which is the mean of their cosines. Nothing is chosen on the test photos.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from diptych.arrays import unit_rows
from diptych.data import load_dataset
from diptych.encoders import (
    EfficientNetLite,
    Encoder,
    FeatureCache,
    MeanWordVectors,
    ResNet50,
    SentenceEncoder,
    TfidfTopics,
)
from diptych.metrics import RecallAtK, SameLabel, evaluate
from diptych.models import LDSP, CrossModalModel, MNiL, Preprocessed
from diptych.space import Space

MEASURES = (RecallAtK(1), RecallAtK(5), RecallAtK(10))
PARTS = ("train", "dev", "test")
FILE = "features.npz"
# R@1 of picture and of text queries.
GOALS = {"ldsp": (0.35, 0.27), "mnil": (0.30, 0.25)}
N_TOPICS = 300
PHOTOS: dict[str, Encoder] = {
    "lite2": EfficientNetLite(),
    "lite2_centre": EfficientNetLite(crop="centre"),
    "lite0": EfficientNetLite(network="lite0"),
    "resnet50": ResNet50(),
}
TEXTS: dict[str, Encoder] = {"sentence": SentenceEncoder(), "words": MeanWordVectors()}


class Setting(NamedTuple):
    """The parameters of a method, and the features of LDSP; a view that was not packed is left out."""

    name: str
    parameters: Mapping[str, Any] = MappingProxyType({})
    photos: Sequence[str] = tuple(PHOTOS)
    texts: Sequence[str] = (*TEXTS, "topics")
    components: tuple[int, int] | None = None


_LDSP: dict[str, Any] = {"n_components": 512, "image_hidden": (2048,), "text_hidden": (2048,)}
_LDSP |= {"epochs": 60, "patience": 8}
_VIOLATORS = {"margin": 0.2, "n_violators": 50}
_MNIL: dict[str, Any] = {"image_tower": "features", "hidden_size": 1024, "margin": 0.1, "learning_rate": 3e-4}
_MNIL |= {"map_factor": 1.0, "batch_size": 512, "max_words": 24, "min_texts": 2, "train_words": False}
_MNIL |= {"word_vectors": "minilm"}
_SMALL: dict[str, Any] = {"n_components": 512, "image_hidden": 1024, "dropout": 0.5, "epochs": 20}
_WIDE: dict[str, Any] = {"n_components": 1024, "image_hidden": 2048, "dropout": 0.7, "epochs": 30}
_TOKENS: dict[str, Any] = {**_WIDE, "text_tower": "minilm", "word_vectors": None, "max_words": 32, "epochs": 20}
SETTINGS = {
    "ldsp": (
        Setting("one view each, authors' margin", {}, ("lite2",), ("sentence",)),
        Setting("two networks", {}, ("lite2", "lite0"), ("sentence",)),
        Setting("all views", {}, tuple(PHOTOS), ("sentence",)),
        Setting("all views, all texts"),
        Setting("margin 0.1, 50 violators", {"margin": 0.1, "n_violators": 50}),
        Setting("margin 0.2, 50 violators", _VIOLATORS),
        Setting("margin 0.2, components", _VIOLATORS, components=(1024, 512)),
        Setting(
            "margin 0.2, slow, decay",
            {"margin": 0.2, "n_violators": 20, "learning_rate": 3e-4, "weight_decay": 0.1},
        ),
    ),
    "mnil": (
        Setting("no layer, dropout 0.5", {"n_components": 1024, "dropout": 0.5, "epochs": 20}),
        Setting("1,024 units, dropout 0.5", _SMALL),
        Setting("2,048 units, dropout 0.6", {**_WIDE, "dropout": 0.6, "epochs": 25}),
        Setting("2,048 units, dropout 0.7", _WIDE),
        Setting("2,048 units, other captions", {**_WIDE, "texts_per_picture": 2}),
        Setting("words drawn, 1,024 units", {**_SMALL, "train_words": True, "word_vectors": None}),
        Setting("tokens, 2,048 units, dropout 0.6", {**_TOKENS, "dropout": 0.6}),
        Setting("tokens, 2,048 units, dropout 0.7", _TOKENS),
        Setting("tokens, dropout 0.6, margin 0.2", {**_TOKENS, "dropout": 0.6, "margin": 0.2}),
        Setting("tokens, dropout 0.6, other captions", {**_TOKENS, "dropout": 0.6, "texts_per_picture": 2}),
    ),
}


class Part(NamedTuple):
    """Unit rows of each view of the photos and captions of one part, the captions, and the photo of each."""

    rows: dict[str, np.ndarray]
    captions: list[str]
    owners: np.ndarray

    def joined(self, views: Sequence[str]) -> np.ndarray:
        """Return the rows of those views that were packed side by side."""
        return np.hstack([self.rows[view] for view in views if view in self.rows]).astype(np.float32)


def pack(folder: Path, views: Sequence[str], most: int | None) -> None:
    """Encode photos and captions, and write their features for another machine in half precision."""
    flickr, cache, content = load_dataset("flickr8k"), FeatureCache(), dict[str, np.ndarray]()
    for part in PARTS:
        pairs = getattr(flickr, part)
        pairs = pairs if most is None else pairs.select(np.arange(min(most, pairs.n_images)))
        content |= {f"{view}.{part}": cache.encode(PHOTOS[view], pairs.images).astype(np.float16) for view in views}
        content |= {f"{view}.{part}": cache.encode(TEXTS[view], pairs.texts).astype(np.float16) for view in TEXTS}
        content[f"captions.{part}"] = np.array(list(pairs.texts))
        content[f"owners.{part}"] = np.asarray(pairs.owners, dtype=np.int32)
    folder.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(folder / FILE, **content)
    print(f"{FILE}: {(folder / FILE).stat().st_size / 2**20:.1f} MiB")


def unpacked(folder: Path) -> dict[str, Part]:
    """Return what was packed of each part, and latent semantics of the captions."""
    with np.load(folder / FILE, allow_pickle=False) as archive:
        captions = {part: archive[f"captions.{part}"].tolist() for part in PARTS}
        topics = TfidfTopics(n_components=N_TOPICS).fit(captions["train"])
        parts = {}
        for part in PARTS:
            views = [view for view in (*PHOTOS, *TEXTS) if f"{view}.{part}" in archive.files]
            rows = {view: unit_rows(archive[f"{view}.{part}"].astype(np.float32)) for view in views}
            rows["topics"] = topics.transform(captions[part])
            parts[part] = Part(rows, captions[part], archive[f"owners.{part}"])
    return parts


def model_of(method: str, setting: Setting, train: Part, **changes: Any) -> CrossModalModel:
    """Return a method with the parameters of a setting, not yet fitted."""
    if method == "mnil":
        return MNiL(**{**_MNIL, **setting.parameters, **changes})
    model = LDSP(**{**_LDSP, **setting.parameters, **changes})
    if setting.components is None:
        return model
    images, texts = (
        min(wanted, *train.joined(views).shape)
        for wanted, views in zip(setting.components, (setting.photos, setting.texts), strict=True)
    )
    return Preprocessed(model=model, image_components=images, text_components=texts)


def points(model: CrossModalModel, setting: Setting, part: Part) -> tuple[np.ndarray, np.ndarray]:
    """Return the unit points of the photos and captions of a part."""
    texts = part.captions if isinstance(model, MNiL) else part.joined(setting.texts)
    return unit_rows(model.encode_images(part.joined(setting.photos))), unit_rows(model.encode_texts(texts))


def fitted(method: str, setting: Setting, train: Part, **changes: Any) -> CrossModalModel:
    """Return a method with the parameters of a setting, fitted."""
    texts = train.captions if method == "mnil" else train.joined(setting.texts)
    return model_of(method, setting, train, **changes).fit(train.joined(setting.photos)[train.owners], texts)


def best_epoch(model: CrossModalModel) -> int:
    """Return after how many epochs LDSP found the held-out photos best."""
    network = model.model_ if isinstance(model, Preprocessed) else model
    assert isinstance(network, LDSP)
    judged = network.history_[:, network.history_columns_.index("average_precision")]
    return len(judged) if np.isnan(judged).all() else int(np.nanargmax(judged)) + 1


def recalls(images: np.ndarray, texts: np.ndarray, owners: np.ndarray) -> np.ndarray:
    """Return R@1/5/10 of image queries, then of text queries."""
    numbers, space = np.arange(len(images)), Space("cosine")
    by_image = evaluate(images, texts, space, SameLabel(numbers, owners), MEASURES, direction="image_query")
    by_text = evaluate(texts, images, space, SameLabel(owners, numbers), MEASURES, direction="text_query")
    return np.array([way.mean[measure] for way in (by_image, by_text) for measure in MEASURES])


def line(name: str, values: Sequence[float] | np.ndarray) -> str:
    """Return one line of the table."""
    return f"{name:<40}" + "".join(f"{value:>8.3f}" for value in values)


def run(parts: dict[str, Part], method: str, settings: Sequence[int], seeds: int) -> int:
    """Choose a setting on the development photos, then ask the test photos once with each seed."""
    print(f"{'':<40}" + "".join(f"{way} {m.label}"[:8].rjust(8) for way in ("i", "t") for m in MEASURES), flush=True)
    judged: dict[int, tuple[float, dict[str, Any]]] = {}
    for number in settings:
        setting, started = SETTINGS[method][number - 1], time.perf_counter()
        model = fitted(method, setting, parts["train"], random_state=0)
        found = recalls(*points(model, setting, parts["dev"]), parts["dev"].owners)
        # Nothing is left to choose then, so that LDSP learns from its held-out tenth as well.
        changes = {"validation": 0.0, "epochs": best_epoch(model)} if method == "ldsp" else {}
        judged[number] = float(found.mean()), changes
        print(
            line(f"dev  {number} {setting.name}", found), changes, f"{time.perf_counter() - started:.0f} s", flush=True
        )
    if not seeds:
        return 0
    chosen = max(judged, key=lambda number: judged[number][0])
    setting, test = SETTINGS[method][chosen - 1], parts["test"]
    print(f"\nchosen on the development photos: {setting.name}")
    asked, values = [], []
    for seed in range(seeds):
        model = fitted(method, setting, parts["train"], random_state=seed, **judged[chosen][1])
        asked.append(points(model, setting, test))
        values.append(recalls(*asked[-1], test.owners))
        print(line(f"test seed {seed}", values[-1]), flush=True)
    mean, fused = np.mean(values, axis=0), [np.hstack(side) for side in zip(*asked, strict=True)]
    print(line("test mean", mean))
    print(line("test deviation", np.std(values, axis=0)))
    print(line(f"test {seeds} networks fused", recalls(fused[0], fused[1], test.owners)))
    reached = (mean[0], mean[len(MEASURES)])
    is_met = all(value >= goal for value, goal in zip(reached, GOALS[method], strict=True))
    print(f"R@1 {reached[0]:.3f} and {reached[1]:.3f}, goals {GOALS[method]}: {'met' if is_met else 'missed'}")
    return 0 if is_met else 1


def main() -> int:
    """Pack, or run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    task = parser.add_mutually_exclusive_group(required=True)
    task.add_argument("--pack", type=Path, help="write features into this folder")
    task.add_argument("--features", type=Path, help="learn from what was packed into this folder")
    parser.add_argument("--views", nargs="+", choices=PHOTOS, default=["lite2", "lite0"], help="of photos, to pack")
    parser.add_argument("--most", type=int, help="photos of each part to pack; all by default")
    parser.add_argument("--method", choices=SETTINGS, default="ldsp")
    parser.add_argument("--settings", type=int, nargs="+", metavar="N", help="all by default")
    parser.add_argument("--seeds", type=int, default=3, help="with 0 the test photos are not asked")
    options = parser.parse_args()
    if options.pack is not None:
        pack(options.pack, options.views, options.most)
        return 0
    settings = options.settings or range(1, len(SETTINGS[options.method]) + 1)
    return run(unpacked(options.features), options.method, settings, options.seeds)


if __name__ == "__main__":
    sys.exit(main())
