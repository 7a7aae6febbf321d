"""Build the retrievers that come with the package, and the model card that says how good they are.

    python scripts/build_shipped_retrievers.py

needs Flickr8k, Pascal Sentence, the COCO pairs, Multi30k and Flickr8k's captions in other languages in DIPTYCH_DATA.
Candidates are compared on development photos: Flickr8k's, those of the COCO pairs, and half of the classes of Pascal.
The best recipe is learned from the training photos of Flickr8k and COCO, once for each number of image networks, and
only then asked on Flickr8k's and COCO's test photos and on Pascal's other classes, which nothing here has learned from.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from diptych.arrays import AnyArray, FloatArray, unit_rows
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
from diptych.encoders.image.image_encoder import ConvolutionalEncoder
from diptych.models import ConSE, ContrastiveProjection, CrossModalModel, Preprocessed, QueryBankNormalized
from diptych.retriever import Retriever
from diptych.retriever.ready_made import SHIPPED_FOLDER
from model_card import Asked, Candidate, model_card
from shipped_measures import (
    SPOKEN,
    absent_queries,
    answered,
    calibration_error,
    class_names,
    languages_of,
    recalls_of,
)

PRIOR = 0.01
NETWORKS = {"light": ("lite2",), "default": ("lite2", "lite0"), "strong": ("lite2", "lite1", "lite0")}
NEARLY_THE_SAME = 0.9
WITHOUT_ENGLISH = 0.3
BANK_SIZE = 3000
DOCS = Path(__file__).parents[1] / "docs" / "model-card.md"
CARD = SHIPPED_FOLDER / "MODEL_CARD.md"


class Data(NamedTuple):
    """All pairs as features of one retriever's encoders; ``unseen`` are the pictures of Pascal's held-out classes."""

    train: tuple[Pairs, ...]
    dev: dict[str, Pairs]
    test: dict[str, Pairs]
    pascal: Pairs
    unseen: AnyArray
    n_left_out: int


def candidates() -> Iterator[ContrastiveProjection]:
    """Yield what is compared on the development photos."""
    for temperature in (0.05, 0.06, 0.07):
        yield ContrastiveProjection(temperature=temperature, epochs=12, learning_rate=3e-4)


def image_networks(names: tuple[str, ...]) -> tuple[EfficientNetLite, ...]:
    """Return the networks of a retriever."""
    return tuple(EfficientNetLite(network=name) for name in names)


def two_towers(image_encoder: Encoder, text_encoder: Encoder, name: str) -> Retriever:
    """Return a retriever with its encoders in place and no model yet."""
    retriever = Retriever(image_encoder=image_encoder, text_encoder=text_encoder, name=name)
    retriever.image_encoder_, retriever.text_encoder_ = retriever.image_encoder, retriever.text_encoder
    return retriever


def read_data(retriever: Retriever, *, learns: bool = True) -> Data:
    """Encode everything, and leave out training photos that are nearly the same as one that is tested.

    A retriever that learns nothing has no training pairs.
    """
    flickr, coco, pascal = (load_dataset(name) for name in ("flickr8k", "coco_pairs", "pascal_sentence"))
    halves = Pairs(
        [*pascal.train.images, *pascal.test.images],
        [*pascal.train.texts, *pascal.test.texts],
        labels=np.concatenate([pascal.train.image_classes(), pascal.test.image_classes()]),
        owners=np.concatenate([pascal.train.owners, pascal.test.owners + pascal.train.n_images]),
    )
    everyone = retriever.featured(halves)
    names = sorted(set(everyone.labels.tolist()))
    is_dev = np.isin(everyone.labels, names[::2])
    dev = {"Flickr8k": flickr.dev, "COCO": coco.dev}
    test = {"Flickr8k": retriever.featured(flickr.test), "COCO": retriever.featured(coco.test)}
    shown = np.vstack([everyone.images, *(pairs.images for pairs in test.values())])
    train, n_left_out = [], 0
    for raw in (flickr.train, coco.train) if learns else ():
        pairs = retriever.featured(raw)
        nearest = np.concatenate(
            [
                (unit_rows(pairs.images[start : start + 1000]) @ unit_rows(shown).T).max(axis=1)
                for start in range(0, pairs.n_images, 1000)
            ]
        )
        n_left_out += int((nearest >= NEARLY_THE_SAME).sum())
        train.append(pairs.select(np.flatnonzero(nearest < NEARLY_THE_SAME)))
    development = {name: retriever.featured(pairs) for name, pairs in dev.items()}
    development["Pascal, half of the classes"] = everyone.select(np.flatnonzero(is_dev))
    return Data(tuple(train), development, test, everyone, np.flatnonzero(~is_dev), n_left_out)


def class_rows(networks: tuple[ConvolutionalEncoder, ...], train: FloatArray) -> FloatArray:
    """Return a picture of each ImageNet class: where its row of the classifier points, as far out as pictures are."""
    parts, start = [], 0
    for network in networks:
        weights, _ = network.read_classifier()
        own = train[:, start : start + weights.shape[1]]
        mean = own.mean(axis=0)
        distance = float(np.linalg.norm(own - mean, axis=1).mean())
        parts.append(mean + distance * unit_rows(weights - weights.mean(axis=0)))
        start += weights.shape[1]
    return np.hstack(parts).astype(np.float32)


def training_rows(
    retriever: Retriever, networks: tuple[ConvolutionalEncoder, ...], data: Data
) -> tuple[FloatArray, FloatArray]:
    """Return aligned rows: photos and captions, some without their English features, and ImageNet's classes."""
    rows = [pairs.aligned()[:2] for pairs in data.train]
    images, texts = (np.vstack([np.asarray(side[place]) for side in rows]) for place in (0, 1))
    chosen = np.random.default_rng(0).permutation(len(texts))[: round(WITHOUT_ENGLISH * len(texts))]
    foreign = texts[chosen].copy()
    foreign[:, : SentenceEncoder().n_features] = 0
    classes = class_rows(networks, np.vstack([pairs.images for pairs in data.train]))
    names = [label.lemmas[0] for label in imagenet_labels()]
    named = retriever.text_features([*(f"a photo of a {name}" for name in names), *names])
    return np.vstack([images, images[chosen], classes, classes]), np.vstack([texts, foreign, named])


def with_bank(model: CrossModalModel, data: Data, strength: float = 0.7, n_nearest: int = 20) -> QueryBankNormalized:
    """Return a model corrected by a bank of training photos and captions, as many of each set."""
    rng = np.random.default_rng(0)
    pictures, texts = (
        np.vstack([side[rng.permutation(len(side))[: BANK_SIZE // 2]] for side in sides])
        for sides in ([pairs.images for pairs in data.train], [pairs.texts for pairs in data.train])
    )
    return QueryBankNormalized.of(model, pictures, texts, strength=strength, n_nearest=n_nearest)


def learn(candidate: CrossModalModel, rows: tuple[FloatArray, FloatArray]) -> CrossModalModel:
    """Fit a recipe behind the scaling of picture features."""
    return Preprocessed(model=candidate, images="l2").fit(*rows)


def judge(retriever: Retriever, model: CrossModalModel, data: Data, name: str, seconds: float) -> Candidate:
    """Ask a model on the development sets."""
    retriever.model_ = model
    found = Candidate(name, {part: recalls_of(retriever, pairs) for part, pairs in data.dev.items()})
    print(f"{found.mean:.4f}  {seconds:5.0f} s  {name}", flush=True)
    return found


def choose(
    retriever: Retriever, rows: tuple[FloatArray, FloatArray], data: Data
) -> tuple[list[Candidate], int, tuple[float, int]]:
    """Return what all candidates reached, the best projection's place, and the best correction of it."""
    judged, fitted = [], []
    for candidate in candidates():
        started = time.perf_counter()
        fitted.append(learn(candidate, rows))
        seconds = time.perf_counter() - started
        name = " ".join(repr(candidate).split())
        judged.append(judge(retriever, with_bank(fitted[-1], data), data, f"{name}, bank 0.7 of 20", seconds))
    best = max(range(len(judged)), key=lambda place: judged[place].mean)
    name = judged[best].name.removesuffix(", bank 0.7 of 20")
    banks = {(0.7, 20): judged[best]}
    for setting in ((0.0, 20), (0.5, 10), (0.7, 10), (0.9, 10)):
        model, told = with_bank(fitted[best], data, *setting), f"{name}, bank {setting[0]} of {setting[1]}"
        banks[setting] = judge(retriever, model, data, told, 0)
        judged.append(banks[setting])
    return judged, best, max(banks, key=lambda setting: banks[setting].mean)


def finish(retriever: Retriever, dev: Pairs) -> Retriever:
    """Calibrate on development pairs and write the retriever into the package."""
    retriever.calibration_ = retriever.calibrated(dev, prior=PRIOR)
    retriever.save(SHIPPED_FOLDER / retriever.name)
    return retriever


def ask(retriever: Retriever, data: Data) -> Asked:
    """Ask a finished retriever everything that the card tells, once."""
    pictures, classes = data.pascal.images, data.pascal.labels.tolist()
    names = sorted(set(classes))
    found = {f"{name} test, 1,000 photos": recalls_of(retriever, pairs) for name, pairs in data.test.items()}
    found["Pascal, unseen classes among all 1,000"] = recalls_of(retriever, data.pascal, data.unseen)
    return Asked(
        found,
        class_names(retriever, pictures, classes),
        answered(
            retriever,
            pictures,
            {
                "class names": [SPOKEN.get(name, name) for name in names],
                "captions": load_dataset("pascal_sentence").test.texts,
                "absent": absent_queries(),
            },
        ),
        calibration_error(retriever, data.pascal, data.unseen, PRIOR),
        retriever.cutoff,
        sum(file.stat().st_size for file in (SHIPPED_FOLDER / retriever.name).iterdir()) / 1e6,
        photos_per_second(retriever.image_encoder_),
    )


def photos_per_second(encoder: Encoder) -> float:
    """Return how many photos an encoder encodes in a second here, the best of three rounds."""
    photos = load_dataset("flickr8k").dev.images[:64]
    encoder.transform(photos[:8])
    times = []
    for _ in range(3):
        started = time.perf_counter()
        encoder.transform(photos)
        times.append(time.perf_counter() - started)
    return len(photos) / min(times)


def conse() -> Retriever:
    """Return ConSE: the vector of a label is that of its names in one line."""
    retriever = two_towers(ImageNetLabels(), SentenceEncoder(), "conse")
    labels = retriever.text_features([", ".join(label.lemmas) for label in imagenet_labels()])
    # A picture that shows nothing but label k stands where the words of label k stand.
    retriever.model_ = ConSE(n_labels=10).fit(np.eye(len(labels), dtype=np.float32), labels)
    return retriever


def main() -> None:
    """Choose, learn, calibrate, ask, and write the card."""
    judged: list[Candidate] = []
    asked = {}
    recipe, bank = ContrastiveProjection(), (0.7, 20)
    for name in ("default", "light", "strong"):
        networks = image_networks(NETWORKS[name])
        encoder = networks[0] if len(networks) == 1 else SideBySide(encoders=networks)
        retriever = two_towers(encoder, MultilingualSentences(), name)
        data = read_data(retriever)
        rows = training_rows(retriever, networks, data)
        if name == "default":
            judged, best, bank = choose(retriever, rows, data)
            recipe, left_out = list(candidates())[best], data.n_left_out
        retriever.model_ = with_bank(learn(recipe, rows), data, *bank)
        finish(retriever, load_dataset("flickr8k").dev)
        asked[name] = ask(retriever, data)
        print(name, asked[name], flush=True)
        if name == "default":
            languages = languages_of(retriever, data.test["Flickr8k"])
            print(languages, flush=True)
    without_pairs = conse()
    finish(without_pairs, load_dataset("flickr8k").dev)
    asked["conse"] = ask(without_pairs, read_data(without_pairs, learns=False))
    text = model_card(judged, asked, languages, NETWORKS, left_out, PRIOR)
    for path in (CARD, DOCS):
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
