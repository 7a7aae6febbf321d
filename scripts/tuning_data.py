"""The photographs and texts that `tune_networks.py` learns from and is judged on, and the batches drawn from them."""

from __future__ import annotations

import tarfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from diptych.arrays import AnyArray
from diptych.data import Pairs, load_dataset
from diptych.data.folders import data_folder
from diptych.encoders import SentenceEncoder, imagenet_labels
from diptych.encoders.text.multilingual_sentences import query_forms
from shipped_measures import SPOKEN

# The 81 columns of COCO's labels come without names. These were found by the nouns of the captions that go with them;
# what no noun goes with clearly is left out.
_LABELS = """
toilet - bicycle - skateboard skis bus donut snowboard carrot motorcycle oven keyboard potted_plant scissors chair bench
- baseball_glove airplane apple sheep horse sandwich - tv backpack - bowl traffic_light microwave couch book teddy_bear
baseball_bat tennis_racket orange tie laptop knife pizza fork sink frisbee umbrella banana cell_phone cup zebra bear
vase toothbrush spoon train fire_hydrant handbag bird broccoli dining_table sports_ball parking_meter remote surfboard
cow car clock wine_glass dog bed cat person boat giraffe truck bottle suitcase cake stop_sign elephant refrigerator
hot_dog
"""
_OTHER_NAMES = {
    "airplane": ("aeroplane", "plane"),
    "motorcycle": ("motorbike",),
    "couch": ("sofa",),
    "tv": ("television", "tv monitor"),
    "bicycle": ("bike",),
    "dining table": ("table",),
    "potted plant": ("plant",),
    "person": ("people", "man or woman"),
}
_SAID = ("{}", "a {}", "a photo of a {}", "{}s", "there is a {}")
_STOP_WORDS = """
a an the in on at of with and or to from by for near next over under into onto while as is are was were be being been it
its his her their there this that these those who which what up down out off through around behind front across along
against between top side other another one two three some several many very each all both during
"""
TRAIN_PARTS = ("coco_train", "flickr_train")
IN_CHINESE, N_PHRASES, N_CLASSES = 0.35, 256, 32
MAX_CHINESE = 4
_FEWEST_PHOTOS = 6
_STORED_SIDE = 256


@dataclass
class TuningData:
    """Photos, and texts of several kinds; ``owners`` are rows of photos, or of whatever a kind names.

    ``labels`` has 1 where a photo shows a label, 0 where it does not and 255 where nothing is known; ``phrases`` are
    pairs of a photo and a phrase that stands in its captions; ``classes`` has the number of the class of a photo.
    """

    photos: list[Path] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    owners: list[int] = field(default_factory=list)
    labels: AnyArray = field(default_factory=lambda: np.empty((0, 0), dtype=np.uint8))
    phrases: AnyArray = field(default_factory=lambda: np.empty((0, 2), dtype=np.int64))
    classes: dict[int, int] = field(default_factory=dict)

    def rows(self, *parts: str) -> AnyArray:
        """Return the photos of some parts."""
        return np.flatnonzero(np.isin(self.parts, parts))

    def of_kind(self, *kinds: str) -> AnyArray:
        """Return the texts of some kinds."""
        return np.flatnonzero(np.isin(self.kinds, kinds))

    def add(self, texts: list[str], owners: list[int], kind: str) -> None:
        """Add texts of one kind."""
        self.texts += texts
        self.owners += owners
        self.kinds += [kind] * len(texts)

    def leave_out(self, photos: AnyArray) -> None:
        """Take photos and their texts out of every part."""
        gone = set(photos.tolist())
        of_photos = {*TRAIN_PARTS, "chinese_train"}
        self.parts = ["left_out" if row in gone else part for row, part in enumerate(self.parts)]
        self.kinds = [
            "left_out" if kind in of_photos and owner in gone else kind
            for kind, owner in zip(self.kinds, self.owners, strict=True)
        ]
        self.phrases = self.phrases[~np.isin(self.phrases[:, 0], photos)]


def read_tuning_data() -> TuningData:
    """Read everything."""
    data = TuningData()
    places: dict[str, int] = {}
    for set_name, name in (("coco_pairs", "coco"), ("flickr8k", "flickr")):
        dataset = load_dataset(set_name)
        for part in ("train", "dev", "test"):
            _add_pairs(data, getattr(dataset, part), f"{name}_{part}", places)
    pascal = load_dataset("pascal_sentence")
    names = sorted(set(pascal.train.image_classes()) | set(pascal.test.image_classes()))
    for pairs in (pascal.train, pascal.test):
        first = len(data.photos)
        _add_pairs(data, pairs, "pascal", places, dev=frozenset(names[::2]))
        data.classes |= {first + row: names.index(name) for row, name in enumerate(pairs.image_classes())}
    for number, name in enumerate(names[::2]):
        data.add([*query_forms(SPOKEN.get(name, name))], [2 * number] * 2, "class_name")
    _add_chinese(data, places)
    for row, label in enumerate(imagenet_labels()):
        data.add([f"a photo of a {label.lemmas[0]}", label.lemmas[0]], [row, row], "imagenet")
    _add_labels(data, places)
    _add_phrases(data)
    return data


def _add_pairs(
    data: TuningData, pairs: Pairs, part: str, places: dict[str, int], dev: frozenset[str] | None = None
) -> None:
    """Add photos and captions; where some classes are for development, the others are for the test."""
    first = len(data.photos)
    data.photos += [Path(path) for path in pairs.images]
    places.update({path.name: first + row for row, path in enumerate(data.photos[first:])})
    kinds = [part] * pairs.n_images
    if dev is not None:
        kinds = [f"{part}_dev" if name in dev else f"{part}_test" for name in pairs.image_classes()]
    data.parts += kinds
    for text, owner in zip(pairs.texts, pairs.owners, strict=True):
        data.add([text], [first + int(owner)], kinds[int(owner)])


def _add_chinese(data: TuningData, places: dict[str, int]) -> None:
    """Add captions written in Chinese, of the training photos alone."""
    path = data_folder() / "flickr8k_languages" / "flickr8kzhc.caption.txt"
    seen = Counter[int]()
    for line in path.read_text(encoding="utf-8").splitlines():
        name, text = line.split(" ", 1)
        row = places.get(name.split("#")[0])
        if row is not None and data.parts[row] == "flickr_train" and seen[row] < MAX_CHINESE:
            seen[row] += 1
            data.add([text.strip()], [row], "chinese_train")


def _add_labels(data: TuningData, places: dict[str, int]) -> None:
    names = _LABELS.split()
    chosen = [column for column, name in enumerate(names) if name != "-"]
    data.labels = np.full((len(data.photos), len(chosen)), 255, dtype=np.uint8)
    with tarfile.open(data_folder() / "coco_val2014_labels" / "coco_val_file.tar.gz") as archive:
        stream = archive.extractfile("coco_val_file/val_label_mat.txt")
        assert stream is not None
        for line in stream:
            file, *values = line.split()
            row = places.get(f"{file[-16:-4].decode()}.avif")
            if row is not None and data.parts[row] == "coco_train":
                data.labels[row] = np.array(values, dtype=np.uint8)[chosen]
    for number, column in enumerate(chosen):
        name = names[column].replace("_", " ")
        said = [form.format(word) for word in (name, *_OTHER_NAMES.get(name, ())) for form in _SAID]
        data.add(said, [number] * len(said), "label")


def _add_phrases(data: TuningData) -> None:
    """Add one to three words that stand between stop words in the captions of several training photos."""
    found: dict[str, set[int]] = {}
    for place in data.of_kind(*TRAIN_PARTS):
        for phrase in _phrases(data.texts[place]):
            found.setdefault(phrase, set()).add(data.owners[place])
    kept = sorted(phrase for phrase, photos in found.items() if len(photos) >= _FEWEST_PHOTOS)
    pairs = [(photo, number) for number, phrase in enumerate(kept) for photo in sorted(found[phrase])]
    data.phrases = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    data.add(kept, list(range(len(kept))), "phrase")


def _phrases(caption: str) -> list[str]:
    letters = "".join(letter if letter.isalpha() else " " for letter in caption.lower())
    found, words, stop_words = [], [], set(_STOP_WORDS.split())
    for word in [*letters.split(), "the"]:
        if word not in stop_words:
            words.append(word)
            continue
        if 1 <= len(words) <= 3:
            found.append(" ".join(words))
        words = []
    return found


class Batch(NamedTuple):
    """Rows of photos, the texts of everything asked and whether each is English, classes, and which photo has a phrase.

    Texts come in this order: one of each photo, ImageNet's classes, COCO's labels, phrases, and an English one of each
    photo.
    """

    rows: AnyArray
    texts: AnyArray
    is_english: AnyArray
    classes: AnyArray
    has_phrase: AnyArray


class Batches:
    """Draws photos and for each one of its texts, with ImageNet's labels, COCO's and phrases beside them."""

    def __init__(self, data: TuningData, batch_size: int) -> None:
        self._rng, self._size = np.random.default_rng(0), batch_size
        self.photos = data.rows(*TRAIN_PARTS)
        rows = {photo: row for row, photo in enumerate(self.photos.tolist())}
        self._english: list[list[int]] = [[] for _ in rows]
        self._chinese: list[list[int]] = [[] for _ in rows]
        for kinds, lists in ((TRAIN_PARTS, self._english), (("chinese_train",), self._chinese)):
            for place in data.of_kind(*kinds):
                lists[rows[data.owners[place]]].append(int(place))
        self._classes, self._owners = data.of_kind("imagenet"), np.asarray(data.owners)
        labels = data.of_kind("label")
        self._labels = [labels[self._owners[labels] == number] for number in range(data.labels.shape[1])]
        self._phrase_texts = data.of_kind("phrase")
        self._has_phrase = np.zeros((len(rows), len(self._phrase_texts)), dtype=bool)
        for photo, phrase in data.phrases:
            self._has_phrase[rows[int(photo)], phrase] = True

    def __len__(self) -> int:
        return len(self.photos) // self._size

    def epoch(self) -> Iterator[Batch]:
        """Yield every photo once, with one of its texts."""
        order = self._rng.permutation(len(self.photos))
        for start in range(0, len(self) * self._size, self._size):
            rows = order[start : start + self._size]
            drawn = [self._text(row) for row in rows]
            second = [self._rng.choice(self._english[row]) for row in rows]
            classes = self._rng.choice(self._classes, N_CLASSES)
            labels = np.array([self._rng.choice(texts) for texts in self._labels])
            has = self._has_phrase[rows]
            present = self._rng.permutation(np.flatnonzero(has.any(axis=0)))[:N_PHRASES]
            first = [place for place, _ in drawn]
            texts = np.concatenate([first, classes, labels, self._phrase_texts[present], second])
            english = np.ones(len(texts), dtype=bool)
            english[: len(rows)] = [is_english for _, is_english in drawn]
            yield Batch(rows, texts, english, self._owners[classes], has[:, present].T.copy())

    def _text(self, row: int) -> tuple[int, bool]:
        chinese = bool(self._chinese[row]) and self._rng.random() < IN_CHINESE
        return int(self._rng.choice((self._chinese if chinese else self._english)[row])), not chinese


def squares(photos: list[Path]) -> AnyArray:
    """Return all photos squeezed into squares of RGB bytes."""

    def square(path: Path) -> AnyArray:
        with Image.open(path) as picture:
            return np.asarray(picture.convert("RGB").resize((_STORED_SIDE, _STORED_SIDE), Image.Resampling.BICUBIC))

    with ThreadPoolExecutor() as pool:
        return np.stack(list(pool.map(square, photos)))


def tokens(texts: list[str]) -> list[list[int]]:
    """Return the tokens that MiniLM reads of each text."""
    _, tokenizer, _ = SentenceEncoder()._loaded()
    return [list(row) for row in tokenizer.encode(texts)]
