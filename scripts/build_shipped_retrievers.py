"""Build the retrievers that come with the package, and the model card that says how good they are.

    python scripts/tune_networks.py --output build/tuned     # on a machine with a graphics card
    python scripts/distil_networks.py --tuned build/tuned --output build/distilled
    python scripts/build_shipped_retrievers.py --tuned build/distilled
    python scripts/build_shipped_retrievers.py  # keeps the networks and projections of the package; then match_line.py
    python scripts/build_shipped_retrievers.py --measure  # asks the retrievers as they are

needs Flickr8k, Pascal Sentence, the COCO pairs, Multi30k and Flickr8k's captions in other languages in DIPTYCH_DATA.
The first two commands train networks and projections on the training photos. Then the retrievers are asked on
Flickr8k's and COCO's test photos and on half of Pascal's classes, which nothing here has learned from.
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from safetensors.numpy import load_file

from diptych.arrays import AnyArray
from diptych.data import Pairs, load_dataset
from diptych.encoders import EfficientNetLite, Encoder, MultilingualSentences, SideBySide
from diptych.encoders.networks.weights import CHANGES_FOLDER
from diptych.estimators import clone
from diptych.models import ContrastiveProjection, CrossModalModel, Preprocessed, QueryBankNormalized
from diptych.retriever import Retriever
from diptych.retriever.ready_made import READY_MADE, SHIPPED_FOLDER
from model_card import Asked, CardRecord, Tuning, model_card, read_record
from shipped_measures import (
    calibration_error,
    class_names,
    languages_of,
    names_shown,
    recalls_of,
)

PRIOR = 0.01
# The networks of each retriever; pixels are the side of the square that they see, None for their own.
NETWORKS: dict[str, tuple[EfficientNetLite, ...]] = {
    "default": (EfficientNetLite(network="lite2-captions"),),
    "strong": (
        EfficientNetLite(network="lite2-captions", pixels=325),
        EfficientNetLite(network="lite1-captions", pixels=300),
    ),
}
# The strengths of the correction by a bank, for pictures and for texts: the best of five pairs on development photos.
STRENGTHS = (0.35, 0.7)
BANK_SIZE = 2000
N_NEAREST = 20
DOCS = Path(__file__).parents[1] / "docs" / "results" / "model-card.md"
CARD = SHIPPED_FOLDER / "MODEL_CARD.md"


class Data(NamedTuple):
    """All pairs as features of one retriever's encoders; ``unseen`` are the pictures of Pascal's held-out classes."""

    test: dict[str, Pairs]
    pascal: Pairs
    unseen: AnyArray


def without_model(name: str) -> Retriever:
    """Return a retriever of this package with its encoders, and no model yet."""
    networks = NETWORKS[name]
    images = networks[0] if len(networks) == 1 else SideBySide(encoders=networks)
    texts = MultilingualSentences(english="minilm-captions")
    retriever = Retriever(image_encoder=images, text_encoder=texts, name=name)
    retriever.image_encoder_, retriever.text_encoder_ = images, texts
    return retriever


def read_data(retriever: Retriever) -> Data:
    """Encode everything that is asked."""
    flickr, coco = load_dataset("flickr8k"), load_dataset("coco_pairs")
    pascal = retriever.featured(pascal_pairs())
    is_dev = np.isin(pascal.labels, sorted(set(pascal.labels.tolist()))[::2])
    test = {"Flickr8k": retriever.featured(flickr.test), "COCO": retriever.featured(coco.test)}
    return Data(test, pascal, np.flatnonzero(~is_dev))


def pascal_pairs() -> Pairs:
    """Return all photos of Pascal Sentence with their captions and classes."""
    pascal = load_dataset("pascal_sentence")
    return Pairs(
        [*pascal.train.images, *pascal.test.images],
        [*pascal.train.texts, *pascal.test.texts],
        labels=np.concatenate([pascal.train.image_classes(), pascal.test.image_classes()]),
        owners=np.concatenate([pascal.train.owners, pascal.test.owners + pascal.train.n_images]),
    )


def bank(retriever: Retriever) -> tuple[AnyArray, AnyArray]:
    """Return the features of photos and of captions drawn from the training pairs, as many of each set."""
    photos, captions = [], []
    training = [load_dataset(name).train for name in ("flickr8k", "coco_pairs")]
    for pairs in training:
        rng, count = np.random.default_rng(0), BANK_SIZE // len(training)
        photos += [pairs.images[place] for place in rng.permutation(pairs.n_images)[:count]]
        captions += [pairs.texts[place] for place in rng.permutation(pairs.n_texts)[:count]]
    return retriever.image_features(photos), retriever.text_features(captions)


def tuned_projections(name: str, heads: Mapping[str, AnyArray], tuning: Tuning) -> Preprocessed:
    """Return the projections that were trained together with the networks, in half precision: cosines need no more."""
    inner = ContrastiveProjection(
        temperature=tuning.temperature, dropout=tuning.dropout, epochs=tuning.epochs, batch_size=tuning.batch_size
    )
    networks = [encoder.network.partition("-")[0] for encoder in NETWORKS[name]]
    inner.image_mean_ = np.concatenate([heads[f"mean_{network}"] for network in networks])
    inner.image_projection_ = np.vstack([heads[f"projection_{network}"] for network in networks]).astype(np.float16)
    inner.text_mean_, inner.text_projection_ = heads["mean_texts"], heads["projection_texts"].astype(np.float16)
    inner.losses_ = np.asarray(tuning.losses)
    widths = tuple(len(heads[f"mean_{network}"]) for network in networks)
    model = Preprocessed(model=clone(inner), images="l2", image_parts=widths if len(widths) > 1 else None)
    model.model_, model.image_columns_, model.text_columns_ = inner, [], []
    for fitted in (inner, model):
        fitted._finish_fit(tuning.n_photos, sum(widths), len(inner.text_mean_))
    return model


def built(name: str, model: CrossModalModel) -> Retriever:
    """Correct a model by the bank, calibrate it on development photos and write the retriever into the package."""
    retriever = without_model(name)
    retriever.model_ = QueryBankNormalized.of(
        model, *bank(retriever), strength=STRENGTHS[0], text_strength=STRENGTHS[1], n_nearest=N_NEAREST
    )
    retriever.calibration_ = retriever.calibrated(load_dataset("flickr8k").dev, prior=PRIOR)
    retriever.save(SHIPPED_FOLDER / name)
    return retriever


def ask(retriever: Retriever, data: Data) -> Asked:
    """Ask a finished retriever everything that the card tells, once."""
    found = {f"{name} test, 1,000 photos": recalls_of(retriever, pairs) for name, pairs in data.test.items()}
    found["Pascal, unseen classes among all 1,000"] = recalls_of(retriever, data.pascal, data.unseen)
    pictures, classes, captioned = data.pascal.images, data.pascal.labels.tolist(), pascal_pairs()
    return Asked(
        found,
        {**class_names(retriever, pictures, classes), "shown": names_shown(retriever, pictures, captioned)},
        calibration_error(retriever, data.pascal, data.unseen, PRIOR),
        sum(file.stat().st_size for file in (SHIPPED_FOLDER / retriever.name).iterdir()) / 1e6,
        photos_per_second(retriever.image_encoder_),
    )


def photos_per_second(encoder: Encoder) -> float:
    """Return how many photos an encoder encodes in a second of processor time here, the best of three rounds."""
    photos = load_dataset("flickr8k").dev.images[:64]
    encoder.transform(photos[:8])
    times = []
    for _ in range(3):
        started = time.process_time()
        encoder.transform(photos)
        times.append(time.process_time() - started)
    return len(photos) / min(times)


def main() -> None:
    """Build, ask, and write the card."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--tuned", type=Path, help="what distil_networks.py wrote; otherwise the package's projections")
    chosen.add_argument("--measure", action="store_true", help="ask the retrievers of the package as they are")
    chosen.add_argument("--card", type=Path, help="write the card of the record into this file")
    arguments = parser.parse_args()
    if arguments.card:
        arguments.card.write_text(model_card(read_record(), NETWORKS), encoding="utf-8")
        return
    tuning = read_record().tuning
    if arguments.tuned:
        shutil.copytree(arguments.tuned / "changes", CHANGES_FOLDER, dirs_exist_ok=True)
        heads = load_file(arguments.tuned / "heads.safetensors")
        tuning = Tuning(**json.loads((arguments.tuned / "tuning.json").read_text()))
        models = {name: tuned_projections(name, heads, tuning) for name in READY_MADE}
    else:
        models = {name: Retriever.ready_made(name).model_.model_ for name in READY_MADE}
    asked = {}
    for name, model in models.items():
        retriever = Retriever.ready_made(name) if arguments.measure else built(name, model)
        data = read_data(retriever)
        asked[name] = ask(retriever, data)
        print(name, asked[name], flush=True)
        if name == "default":
            languages = languages_of(retriever, data.test["Flickr8k"])
    # Paces compare only where they were measured one after the other.
    paces = {name: photos_per_second(Retriever.ready_made(name).image_encoder_) for name in asked}
    asked = {name: replace(each, photos_per_second=paces[name]) for name, each in asked.items()}
    record = CardRecord(asked, languages, tuning, PRIOR)
    record.write()
    for path in (CARD, DOCS):
        path.write_text(model_card(record, NETWORKS), encoding="utf-8")


if __name__ == "__main__":
    main()
