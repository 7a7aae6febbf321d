"""Write imagenet_labels.tsv, the names of the 1,000 ImageNet labels, from the data files of the package timm.

Usage: pip install --no-deps timm==1.0.30 && python scripts/imagenet_labels.py
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

TARGET = Path(__file__).parents[1] / "src" / "diptych" / "encoders" / "image" / "imagenet_labels.tsv"
HEADER = """\
# The 1,000 labels of ILSVRC 2012 in the order of the usual classifiers: WordNet 3.0 synset, lemmas.
# WordNet 3.0 Copyright 2006 by Princeton University. All rights reserved. Used under the WordNet licence, which permits
# use, copying, modification and distribution for any purpose and without fee (https://wordnet.princeton.edu/license-and-commercial-use).
"""


def main() -> None:
    """Join the synsets, in order, with their lemmas."""
    found = find_spec("timm")
    if found is None or found.origin is None:
        raise SystemExit("timm is not installed: pip install --no-deps timm==1.0.30")
    folder = Path(found.origin).parent / "data" / "_info"
    lemma_lines = (folder / "imagenet_synset_to_lemma.txt").read_text(encoding="utf-8").splitlines()
    lemmas = dict(line.split("\t", 1) for line in lemma_lines)
    synsets = (folder / "imagenet_synsets.txt").read_text(encoding="utf-8").split()
    TARGET.write_text(HEADER + "".join(f"{synset}\t{lemmas[synset]}\n" for synset in synsets), encoding="utf-8")
    print(f"wrote {len(synsets)} labels to {TARGET}")


if __name__ == "__main__":
    main()
