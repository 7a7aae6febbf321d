"""Build the retrievers that come with the package, and the model card that says how good they are.

    python scripts/tune_networks.py --output build/tuned     # on a machine with a graphics card
    python scripts/distil_networks.py --tuned build/tuned --output build/distilled
    python scripts/build_shipped_retrievers.py --tuned build/distilled
    python scripts/build_shipped_retrievers.py --again strong  # keeps the packaged projections

needs Flickr8k, Pascal Sentence, the COCO pairs, Multi30k and Flickr8k's captions in other languages in DIPTYCH_DATA.
The first two commands train networks and projections on the training photos; here the correction by a bank is chosen on
development photos: Flickr8k's and half of the classes of Pascal. Only then the retrievers are
asked on Flickr8k's and COCO's test photos and on Pascal's other classes, which nothing here has learned from.
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from safetensors.numpy import load_file

from diptych.arrays import AnyArray
from diptych.data import Pairs, load_dataset
from diptych.encoders import (
    EfficientNetLite,
    Encoder,
    ImageNetLabels,
    MultilingualSentences,
    SentenceEncoder,
    SideBySide,
    imagenet_labels,
)
from diptych.encoders.networks.safetensors_weights import CHANGES_FOLDER
from diptych.estimators import clone
from diptych.models import ConSE, ContrastiveProjection, CrossModalModel, Preprocessed, QueryBankNormalized
from diptych.retriever import Retriever
from diptych.retriever.ready_made import SHIPPED_FOLDER
from model_card import Asked, Candidate, CardRecord, Tuning, model_card, read_record
from shipped_measures import (
    SPOKEN,
    absent_queries,
    answered,
    answered_together,
    calibration_error,
    class_names,
    languages_of,
    names_shown,
    query_points,
    recalls_of,
)

PRIOR = 0.01
# The networks of each retriever, and the side of the square they see in pixels; None for their own. More pixels than
# they were trained with were better on the development photos, and cost time.
NETWORKS: dict[str, dict[str, int | None]] = {
    "light": {"lite2": None},
    "default": {"lite2": None, "lite0": 258},
    "strong": {"lite2": 325, "lite1": 300, "lite0": 258},
}
# Who averages the features of a photo and of its mirror image: twice the time, and a little better.
MIRRORED = ("strong",)
BANK_SIZE = 2000
PASCAL_DEV = "Pascal, half of the classes"
STRENGTHS = ((0.0, 0.0), (0.35, 0.7), (0.5, 0.7), (0.7, 0.7), (0.7, 0.9))
N_NEAREST = 20
DOCS = Path(__file__).parents[1] / "docs" / "model-card.md"
CARD = SHIPPED_FOLDER / "MODEL_CARD.md"


class Data(NamedTuple):
    """All pairs as features of one retriever's encoders; ``unseen`` are the pictures of Pascal's held-out classes."""

    bank: tuple[AnyArray, AnyArray]
    dev: dict[str, Pairs]
    test: dict[str, Pairs]
    pascal: Pairs
    unseen: AnyArray


def two_towers(image_encoder: Encoder, text_encoder: Encoder, name: str) -> Retriever:
    """Return a retriever with its encoders in place and no model yet."""
    retriever = Retriever(image_encoder=image_encoder, text_encoder=text_encoder, name=name)
    retriever.image_encoder_, retriever.text_encoder_ = retriever.image_encoder, retriever.text_encoder
    return retriever


def without_model(name: str) -> Retriever:
    """Return a retriever of this package with its encoders, and no model yet."""
    networks = tuple(
        EfficientNetLite(network=f"{network}-captions", pixels=pixels, mirror=name in MIRRORED)
        for network, pixels in NETWORKS[name].items()
    )
    encoder = networks[0] if len(networks) == 1 else SideBySide(encoders=networks)
    return two_towers(encoder, MultilingualSentences(english="minilm-captions"), name)


def read_data(retriever: Retriever, *, with_bank: bool = True) -> Data:
    """Encode everything that is asked, and a bank of training photos and captions, as many of each set."""
    flickr, coco = load_dataset("flickr8k"), load_dataset("coco_pairs")
    everyone = retriever.featured(pascal_pairs())
    is_dev = np.isin(everyone.labels, sorted(set(everyone.labels.tolist()))[::2])
    development = {"Flickr8k": retriever.featured(flickr.dev), PASCAL_DEV: everyone.select(np.flatnonzero(is_dev))}
    test = {"Flickr8k": retriever.featured(flickr.test), "COCO": retriever.featured(coco.test)}
    drawn = bank(retriever, flickr.train, coco.train) if with_bank else (np.empty((0, 0)), np.empty((0, 0)))
    return Data(drawn, development, test, everyone, np.flatnonzero(~is_dev))


def pascal_pairs() -> Pairs:
    """Return all photos of Pascal Sentence with their captions and classes."""
    pascal = load_dataset("pascal_sentence")
    return Pairs(
        [*pascal.train.images, *pascal.test.images],
        [*pascal.train.texts, *pascal.test.texts],
        labels=np.concatenate([pascal.train.image_classes(), pascal.test.image_classes()]),
        owners=np.concatenate([pascal.train.owners, pascal.test.owners + pascal.train.n_images]),
    )


def bank(retriever: Retriever, *training: Pairs) -> tuple[AnyArray, AnyArray]:
    """Return the features of photos and of captions drawn from the training pairs."""
    photos, captions = [], []
    for pairs in training:
        rng, count = np.random.default_rng(0), BANK_SIZE // len(training)
        photos += [pairs.images[place] for place in rng.permutation(pairs.n_images)[:count]]
        captions += [pairs.texts[place] for place in rng.permutation(pairs.n_texts)[:count]]
    return retriever.image_features(photos), retriever.text_features(captions)


def tuned_projections(networks: Iterable[str], heads: Mapping[str, AnyArray], tuning: Tuning) -> Preprocessed:
    """Return the projections that were trained together with the networks, in half precision: cosines need no more."""
    inner = ContrastiveProjection(
        temperature=tuning.temperature, dropout=tuning.dropout, epochs=tuning.epochs, batch_size=tuning.batch_size
    )
    inner.image_mean_ = np.concatenate([heads[f"mean_{name}"] for name in networks])
    inner.image_projection_ = np.vstack([heads[f"projection_{name}"] for name in networks]).astype(np.float16)
    inner.text_mean_, inner.text_projection_ = heads["mean_texts"], heads["projection_texts"].astype(np.float16)
    inner.losses_ = np.asarray(tuning.losses)
    widths = tuple(len(heads[f"mean_{name}"]) for name in networks)
    model = Preprocessed(model=clone(inner), images="l2", image_parts=widths if len(widths) > 1 else None)
    model.model_, model.image_columns_, model.text_columns_ = inner, [], []
    for fitted in (inner, model):
        fitted._finish_fit(tuning.n_photos, sum(widths), len(inner.text_mean_))
    return model


def corrected(model: CrossModalModel, data: Data, strengths: tuple[float, float]) -> QueryBankNormalized:
    """Return a model corrected by the bank: pictures by the first strength, texts by the second."""
    return QueryBankNormalized.of(
        model, *data.bank, strength=strengths[0], text_strength=strengths[1], n_nearest=N_NEAREST
    )


def choose(retriever: Retriever, model: CrossModalModel, data: Data) -> tuple[list[Candidate], tuple[float, float]]:
    """Return what every strength of the correction reached on the development sets, and the best.

    Captions and class names count: people type words, and hubs are rarely what a single word means.
    """
    judged = {}
    pascal = data.dev[PASCAL_DEV]
    for strengths in STRENGTHS:
        retriever.model_ = corrected(model, data, strengths)
        judged[strengths] = Candidate(
            f"bank {strengths[0]:g} for pictures, {strengths[1]:g} for texts",
            {part: recalls_of(retriever, pairs) for part, pairs in data.dev.items()},
            class_names(retriever, pascal.images, pascal.labels.tolist())["in words"][0],
        )
        print(f"{judged[strengths].mean:.4f}  {judged[strengths]}", flush=True)
    return list(judged.values()), max(judged, key=lambda strengths: judged[strengths].mean)


def finish(retriever: Retriever, dev: Pairs) -> Retriever:
    """Calibrate on development pairs and write the retriever into the package."""
    retriever.calibration_ = retriever.calibrated(dev, prior=PRIOR)
    retriever.save(SHIPPED_FOLDER / retriever.name)
    return retriever


def ask(retriever: Retriever, data: Data) -> Asked:
    """Ask a finished retriever everything that the card tells, once."""
    found = {f"{name} test, 1,000 photos": recalls_of(retriever, pairs) for name, pairs in data.test.items()}
    found["Pascal, unseen classes among all 1,000"] = recalls_of(retriever, data.pascal, data.unseen)
    pictures, classes, captioned = data.pascal.images, data.pascal.labels.tolist(), pascal_pairs()
    queries = {
        "class names": query_points(retriever, [SPOKEN.get(name, name) for name in sorted(set(classes))]),
        "captions": retriever.encode_texts(load_dataset("pascal_sentence").test.texts),
        "absent": query_points(retriever, absent_queries()),
    }
    return Asked(
        found,
        {**class_names(retriever, pictures, classes), "shown": names_shown(retriever, pictures, captioned)},
        {**answered(retriever, pictures, queries), **answered_together(retriever, pictures, captioned)},
        calibration_error(retriever, data.pascal, data.unseen, PRIOR),
        retriever.cutoff,
        sum(file.stat().st_size for file in (SHIPPED_FOLDER / retriever.name).iterdir()) / 1e6,
        photos_per_second(retriever.image_encoder_),
    )


def built_again(name: str, record: CardRecord) -> CardRecord:
    """Make a retriever anew with the projections and strengths it has, and return the record with what it reaches."""
    packaged = Retriever.ready_made(name).model_
    strengths = packaged.strength, packaged.text_strength
    asked = {**record.asked, name: built(name, packaged.model_, read_data(without_model(name)), strengths)}
    # Paces compare only where they were measured on one machine.
    paces = {known: photos_per_second(Retriever.ready_made(known).image_encoder_) for known in asked}
    return replace(record, asked={known: replace(of, photos_per_second=paces[known]) for known, of in asked.items()})


def built(name: str, model: CrossModalModel, data: Data, strengths: tuple[float, float]) -> Asked:
    """Correct a model, calibrate it and write the retriever into the package; return what it answers."""
    retriever = without_model(name)
    retriever.model_ = corrected(model, data, strengths)
    asked = ask(finish(retriever, load_dataset("flickr8k").dev), data)
    print(name, asked, flush=True)
    return asked


def write_card(record: CardRecord) -> None:
    """Write the record and the card."""
    record.write()
    for path in (CARD, DOCS):
        path.write_text(model_card(record, NETWORKS, MIRRORED), encoding="utf-8")


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


def conse() -> Retriever:
    """Return ConSE: the vector of a label is that of its names in one line."""
    retriever = two_towers(ImageNetLabels(), SentenceEncoder(), "conse")
    labels = retriever.text_features([", ".join(label.lemmas) for label in imagenet_labels()])
    # A picture that shows nothing but label k stands where the words of label k stand.
    retriever.model_ = ConSE(n_labels=10).fit(np.eye(len(labels), dtype=np.float32), labels)
    return retriever


def main() -> None:
    """Choose, calibrate, ask, and write the card."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    chosen = parser.add_mutually_exclusive_group(required=True)
    chosen.add_argument("--tuned", type=Path, help="what distil_networks.py wrote")
    chosen.add_argument("--again", choices=NETWORKS, help="a packaged retriever that is made anew, but its projections")
    chosen.add_argument("--card", type=Path, help="write the card of the record into this file")
    arguments = parser.parse_args()
    if arguments.card:
        arguments.card.write_text(model_card(read_record(), NETWORKS, MIRRORED), encoding="utf-8")
        return
    if arguments.again:
        write_card(built_again(arguments.again, read_record()))
    else:
        build_all(arguments.tuned)


def build_all(folder: Path) -> None:
    """Build every retriever from what ``distil_networks.py`` wrote."""
    shutil.copytree(folder / "changes", CHANGES_FOLDER, dirs_exist_ok=True)
    heads, tuning = load_file(folder / "heads.safetensors"), Tuning(**json.loads((folder / "tuning.json").read_text()))
    retriever = without_model("default")
    model, data = tuned_projections(NETWORKS["default"], heads, tuning), read_data(retriever)
    judged, strengths = choose(retriever, model, data)
    asked = {"default": built("default", model, data, strengths)}
    languages = languages_of(Retriever.ready_made("default"), data.test["Flickr8k"])
    for name in ("light", "strong"):
        model = tuned_projections(NETWORKS[name], heads, tuning)
        asked[name] = built(name, model, read_data(without_model(name)), strengths)
    # Another machine rounds the vectors of its labels otherwise; existing collections know these.
    shipped = (SHIPPED_FOLDER / "conse").exists()
    without_pairs = Retriever.ready_made("conse") if shipped else finish(conse(), load_dataset("flickr8k").dev)
    asked["conse"] = ask(without_pairs, read_data(without_pairs, with_bank=False))
    write_card(CardRecord(judged, asked, languages, tuning, PRIOR))


if __name__ == "__main__":
    main()
