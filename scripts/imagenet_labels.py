"""Write the names of ImageNet that come with Diptych from the data files of the package timm.

``imagenet_labels.tsv`` has the 1,000 labels of ILSVRC 2012, ``imagenet_concepts.txt.gz`` the names of all 21,841
concepts. Usage: pip install --no-deps timm==1.0.30 && python scripts/imagenet_labels.py
"""

from __future__ import annotations

import gzip
from importlib.util import find_spec
from pathlib import Path

ENCODERS = Path(__file__).parents[1] / "src" / "diptych" / "encoders"
LABELS = ENCODERS / "image" / "imagenet_labels.tsv"
CONCEPTS = ENCODERS / "text" / "imagenet_concepts.txt.gz"
LICENCE = """\
# WordNet 3.0 Copyright 2006 by Princeton University. All rights reserved. Used under the WordNet licence, which permits
# use, copying, modification and distribution for any purpose and without fee (https://wordnet.princeton.edu/license-and-commercial-use).
"""
LABELS_HEADER = f"""\
# The 1,000 labels of ILSVRC 2012 in the order of the usual classifiers: WordNet 3.0 synset, lemmas.
{LICENCE}"""
CONCEPTS_HEADER = f"""\
# The names of the 21,841 concepts of ImageNet, lemmas of WordNet 3.0, each once.
{LICENCE}"""


def main() -> None:
    """Join the synsets, in order, with their lemmas; and write the lemmas of all concepts."""
    found = find_spec("timm")
    if found is None or found.origin is None:
        raise SystemExit("timm is not installed: pip install --no-deps timm==1.0.30")
    folder = Path(found.origin).parent / "data" / "_info"
    lemma_lines = (folder / "imagenet_synset_to_lemma.txt").read_text(encoding="utf-8").splitlines()
    lemmas = dict(line.split("\t", 1) for line in lemma_lines)
    synsets = (folder / "imagenet_synsets.txt").read_text(encoding="utf-8").split()
    LABELS.write_text(LABELS_HEADER + "".join(f"{synset}\t{lemmas[synset]}\n" for synset in synsets), encoding="utf-8")
    print(f"wrote {len(synsets)} labels to {LABELS}")
    wanted = set((folder / "imagenet22k_synsets.txt").read_text(encoding="utf-8").split())
    concepts = dict.fromkeys(name for synset in lemmas if synset in wanted for name in lemmas[synset].split(", "))
    # Without a time in it, the file of the same names is the same file.
    content = CONCEPTS_HEADER + "".join(f"{name}\n" for name in concepts)
    CONCEPTS.write_bytes(gzip.compress(content.encode(), mtime=0))
    print(f"wrote {len(concepts)} names to {CONCEPTS}")


if __name__ == "__main__":
    main()
