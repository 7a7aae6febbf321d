"""Another search model without encoding every photograph again: points translated from those of the present one.

    python -m bench.translated_points [--old default] [--new strong | --new FOLDER]
        [--data flickr8k | --data pascal_sentence] [--sample 160] [--draws 3]

A sample of 160 photographs, 2 % of the 8,000 of Flickr8k, is encoded by both models. A map from the features of the old
model to the points of the new one is learned from it: ridge regression and CCA choose their ridges by generalised
cross-validation, Procrustes turns the old features. The captions of the test photographs, as points of the new model,
then look among the photographs' translated points. Told is how much of the gain in R@10, new over old, the translation
keeps. Encoding everything is 100 %.

Bar: 90 % of the gain.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

import numpy as np

from diptych import Retriever
from diptych.arrays import FloatArray
from diptych.data import load_dataset
from diptych.metrics import RecallAtK, SameLabel, evaluate
from diptych.models import CCA, LinearRegression, Procrustes
from diptych.retriever.ready_made import READY_MADE

BAR = 0.9
Translation = Callable[[FloatArray], FloatArray]


def by_regression(old: FloatArray, new: FloatArray) -> Translation:
    """Predict new points from old features."""
    model = LinearRegression(target="texts", regularization="auto").fit(old, new)
    return lambda rows: model.encode_images(rows) + model.text_mean_


def by_directions(model: CCA | Procrustes) -> Callable[[FloatArray, FloatArray], Translation]:
    """Return how to go from old rows to the common space of a fitted model, and back from it to new points."""

    def fitted(old: FloatArray, new: FloatArray) -> Translation:
        model.fit(old, new)
        back = np.linalg.pinv(model.text_projection_)
        return lambda rows: model.encode_images(rows) @ back + model.text_mean_

    return fitted


WAYS = {
    "ridge regression of features": by_regression,
    "CCA of features": by_directions(CCA()),
    "Procrustes of features": by_directions(Procrustes(metric="dot")),
}


def main() -> int:
    """Print what each way keeps, and return 1 where none keeps enough."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old", default="default", choices=READY_MADE)
    parser.add_argument("--new", default="strong", help="a search model of the package, or the folder of a joint model")
    parser.add_argument("--data", default="flickr8k", choices=["flickr8k", "pascal_sentence"])
    parser.add_argument("--sample", type=int, default=160, help="photographs that both models encode")
    parser.add_argument("--draws", type=int, default=3)
    options = parser.parse_args()
    old = Retriever.ready_made(options.old)
    new = Retriever.ready_made(options.new) if options.new in READY_MADE else Retriever.joint(options.new)
    splits = load_dataset(options.data)
    test = splits.test
    relevance = SameLabel(test.owners, np.arange(test.n_images))

    def recall(retriever: Retriever, texts: FloatArray, images: FloatArray) -> float:
        found = evaluate(texts, images, retriever.space, relevance, [RecallAtK(10)], direction="text_query")
        return float(found.mean[RecallAtK(10)])

    old_features, new_points = old.image_features(test.images), new.encode_images(test.images)
    texts = new.encode_texts(test.texts)
    before = recall(old, old.encode_texts(test.texts), old.images_to_points(old_features))
    whole = recall(new, texts, new_points)
    print(f"R@10 of text queries: {old.name} {before:.4f}, {new.name} {whole:.4f}, gain {whole - before:+.4f}")
    kept: dict[str, list[float]] = {name: [] for name in WAYS}
    for draw in range(options.draws):
        chosen = np.random.default_rng(draw).permutation(splits.train.n_images)[: options.sample]
        sample = [splits.train.images[row] for row in chosen]
        features, points = old.image_features(sample), new.encode_images(sample)
        for name, way in WAYS.items():
            found = recall(new, texts, way(features, points)(old_features).astype(np.float32))
            kept[name].append((found - before) / (whole - before))
            print(f"draw {draw}, {options.sample} by both, {name}: {found:.4f}, {kept[name][-1]:.0%} of the gain")
    means = {name: float(np.mean(shares)) for name, shares in kept.items()}
    for name, share in means.items():
        print(f"{name}: {share:.0%} of the gain, from {min(kept[name]):.0%} to {max(kept[name]):.0%}")
    return int(max(means.values()) < BAR)


if __name__ == "__main__":
    sys.exit(main())
