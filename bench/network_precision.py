"""Recall of a ready-made retriever with image networks in float32 and in eight bits, on Flickr8k's development photos.

    python -m bench.network_precision [--retriever default] [--photos N]

Every caption is a query among all photos, and every photo among all captions. Networks in int8 are chosen
by themselves only because neither R@10 loses more than 1 % here; the test photos have no part in it. The command exits
with 1 when more is lost. It prints the mean and the least cosine of points of the two precisions, too.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

from diptych.arrays import unit_rows
from diptych.data import load_dataset
from diptych.metrics import RecallAtK
from diptych.retriever import Retriever
from diptych.retriever.precision import in_eight_bits

MOST_LOST = 0.01
MEASURES = RecallAtK(1), RecallAtK(10)


def main() -> int:
    """Evaluate both and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--retriever", default="default", choices=("default", "strong"))
    parser.add_argument("--photos", type=int, default=1000)
    asked = parser.parse_args()
    plain = Retriever.ready_made(asked.retriever)
    pairs = load_dataset("flickr8k").dev.select(range(asked.photos))
    recalls, points = [], []
    for name, retriever in (("float32", plain), ("int8", in_eight_bits(plain))):
        found = retriever.evaluate(pairs, MEASURES)
        recalls.append([side.mean[measure] for side in (found.image_query, found.text_query) for measure in MEASURES])
        points.append(unit_rows(np.asarray(retriever.encode_images(pairs.images))))
        picture, text = recalls[-1][:2], recalls[-1][2:]
        print(
            f"{name:<8} picture queries R@1 {picture[0]:.3f} R@10 {picture[1]:.3f}, "
            f"text queries R@1 {text[0]:.3f} R@10 {text[1]:.3f}",
            flush=True,
        )
    cosines = (points[0] * points[1]).sum(axis=1)
    lost = [1 - after / before for before, after in zip(*recalls, strict=True)][1::2]
    print(f"points: mean cosine {cosines.mean():.4f}, least {cosines.min():.4f}")
    print(f"lost of R@10: {lost[0]:.1%} of picture queries, {lost[1]:.1%} of text queries (bar {MOST_LOST:.0%})")
    return 0 if max(lost) <= MOST_LOST else 1


if __name__ == "__main__":
    sys.exit(main())
