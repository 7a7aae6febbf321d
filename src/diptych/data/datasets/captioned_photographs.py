"""Photographs with five captions each: Flickr8k with human judgements, Flickr30K, and Pascal Sentence with classes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diptych.data.caption_formats import CaptionRecord, read_karpathy, read_token_file
from diptych.data.dataset import CAPTIONS_HELP, Dataset, DatasetSplits, choose_captions, photograph_pairs
from diptych.data.pairs import Pairs
from diptych.data.text_files import read_json_object, read_lines, read_table
from diptych.errors import InvalidInputError, UnknownNameError

_CAPTION_FILES = {"token": "Flickr8k.token.txt", "lemma": "Flickr8k.lemma.token.txt"}
_LISTS = {"train": "train.txt", "dev": "val.txt", "test": "test.txt"}
Captions = dict[str, tuple[str, ...]]
_EXPERTS = "ExpertAnnotations.txt"
_CROWD = "CrowdFlowerAnnotations.txt"


@dataclass(frozen=True)
class ExpertJudgement:
    """How well a caption describes an image, as three experts see it.

    Scores run from 1, the caption does not describe the image at all, to 4, it describes it without errors.

    >>> from diptych.data import ExpertJudgement
    >>> ExpertJudgement("1.jpg", "2.jpg#0", (1, 2, 3)).mean_score
    2.0
    """

    image_id: str
    caption_id: str
    scores: tuple[int, int, int]

    @property
    def mean_score(self) -> float:
        """The mean of the three scores."""
        return sum(self.scores) / len(self.scores)


@dataclass(frozen=True)
class CrowdJudgement:
    """How many crowd workers said that a caption describes an image, and how many that it does not.

    >>> from diptych.data import CrowdJudgement
    >>> CrowdJudgement("1.jpg", "2.jpg#0", yes=1, no=3).share
    0.25
    """

    image_id: str
    caption_id: str
    yes: int
    no: int

    @property
    def share(self) -> float:
        """The share of workers who said yes."""
        return self.yes / (self.yes + self.no)


def load_flickr8k(*, text: str = "token", captions: str | int = "all") -> DatasetSplits:
    """Load the official split; there are no classes, a caption is relevant to its own photograph.

    The 91 photographs outside the three lists are left out, and so are the captions of the one id that ends in
    ``.jpg.1``, which has no photograph. The ids of ``extra("expert_judgements")`` and ``extra("crowd_judgements")``
    are those of the test part.
    """
    if text not in _CAPTION_FILES:
        raise UnknownNameError("text of flickr8k", text, _CAPTION_FILES)
    folder = FLICKR8K.folder()
    texts = {
        record.file: tuple(map(str.strip, record.captions)) for record in _token_records(folder / _CAPTION_FILES[text])
    }
    lists = {part: f"Flickr_8k.{part}Images.txt" for part in _LISTS}
    parts = _chosen_pairs(folder / "images", _listed_parts(folder, lists, texts), captions)
    extras = {"expert_judgements": _read_expert_judgements, "crowd_judgements": _read_crowd_judgements}
    return DatasetSplits(train=parts["train"], test=parts["test"], dev=parts["dev"], extras=extras)


def _token_records(path: Path) -> Iterator[CaptionRecord]:
    return read_token_file(path, "\n".join(read_lines(path)))


def _listed_parts(folder: Path, lists: Mapping[str, str], texts: Captions, suffix: str = "") -> dict[str, Captions]:
    """Return the captions of each part, whose photographs a file lists, without the ``suffix`` of their names."""
    parts: dict[str, Captions] = {}
    seen: dict[str, str] = {}
    for part, file in lists.items():
        names = [line.strip() + suffix for line in read_lines(folder / file)]
        for name in names:
            if name not in texts:
                raise InvalidInputError(f"{folder / file} lists {name}, which has no caption; get fresh copies of both")
            if name in seen:
                raise InvalidInputError(f"{name} is in the {seen[name]} and the {part} list of {folder}")
            seen[name] = part
        parts[part] = {name: texts[name] for name in names}
    return parts


def _chosen_pairs(pictures: Path, parts: Mapping[str, Captions], captions: str | int) -> dict[str, Pairs]:
    for part, texts in parts.items():
        if not texts:
            raise InvalidInputError(f"there is no photograph for the part {part!r}; get a fresh copy of the split")
    return {part: choose_captions(photograph_pairs(pictures, texts), captions) for part, texts in parts.items()}


def _read_expert_judgements() -> tuple[ExpertJudgement, ...]:
    rows = read_table(FLICKR8K.folder(_EXPERTS) / _EXPERTS, columns=5)
    for image, caption, *scores in rows:
        if not set(scores) <= {"1", "2", "3", "4"}:
            raise InvalidInputError(f"{_EXPERTS}: scores must be 1..4, got {' '.join(scores)} for {image} {caption}")
    return tuple(ExpertJudgement(row[0], row[1], (int(row[2]), int(row[3]), int(row[4]))) for row in rows)


def _read_crowd_judgements() -> tuple[CrowdJudgement, ...]:
    rows = read_table(FLICKR8K.folder(_CROWD) / _CROWD, columns=5)
    for image, caption, _, yes, no in rows:
        if not (yes.isdigit() and no.isdigit() and int(yes) + int(no) > 0):
            raise InvalidInputError(f"{_CROWD}: yes and no must be counts, got {yes} and {no} for {image} {caption}")
    return tuple(CrowdJudgement(row[0], row[1], yes=int(row[3]), no=int(row[4])) for row in rows)


FLICKR8K = Dataset(
    name="flickr8k",
    summary="8,091 photographs of people and animals with five captions each; graded judgements of captions by experts "
    "and by crowd workers",
    homepage="https://hockenmaier.cs.illinois.edu/8k-pictures.html",
    citation='M. Hodosh, P. Young and J. Hockenmaier, "Framing image description as a ranking task: data, models and '
    'evaluation metrics", JAIR 2013',
    licence="research and education only; photographs under the terms of Flickr, not redistributed by Diptych",
    splits="official: 6,000 training, 1,000 development and 1,000 test photographs",
    files=(*_CAPTION_FILES.values(), *(f"Flickr_8k.{part}Images.txt" for part in ("train", "dev", "test")), "images"),
    options={"text": "'token' (as written) or 'lemma' (base forms of the words)", "captions": CAPTIONS_HELP},
    loader=load_flickr8k,
    steps="1. Ask for the data with the form at https://hockenmaier.cs.illinois.edu/8k-pictures.html; the authors send "
    "the addresses of two archives.\n"
    "2. Unpack the archive of texts into the folder of the data set.\n"
    "3. Unpack the archive of photographs and rename its folder to 'images'.\n"
    "Copies that others keep, such as Flickr8k_Dataset.zip and Flickr8k_text.zip of "
    "https://github.com/jbrownlee/Datasets/releases/tag/Flickr8k, have the same layout; they are not the authors', and "
    "have not been checked.",
)

_PICTURES = "flickr30k-images"
_KARPATHY = "dataset_flickr30k.json"
_TOKENS = "results_20130124.token"
_PART_OF = {"train": "train", "restval": "train", "val": "dev", "test": "test"}
_SPLITS = ("karpathy", "entities")


def load_flickr30k(*, split: str = "karpathy", captions: str | int = "all") -> DatasetSplits:
    """Load one of the two splits in use; there are no classes, a caption is relevant to its own photograph.

    ``karpathy`` has 29,000 training, 1,014 development and 1,000 test photographs. ``entities`` has 29,783, 1,000 and
    1,000, the numbers of Zhang et al. (2017); it takes all captions from ``results_20130124.token`` and the parts from
    the lists ``train.txt``, ``val.txt`` and ``test.txt`` of Flickr30k Entities.
    """
    if split not in _SPLITS:
        raise UnknownNameError("split of flickr30k", split, _SPLITS)
    folder = FLICKR30K.folder(*(() if split == "karpathy" else (_TOKENS, *_LISTS.values())))
    listed = _karpathy_parts(folder / _KARPATHY) if split == "karpathy" else _entities_parts(folder)
    parts = _chosen_pairs(folder / _PICTURES, listed, captions)
    return DatasetSplits(train=parts["train"], test=parts["test"], dev=parts["dev"])


def _karpathy_parts(path: Path) -> dict[str, Captions]:
    parts: dict[str, Captions] = {part: {} for part in _LISTS}
    for record in read_karpathy(path, read_json_object(path)):
        named = str(record.metadata.get("split"))
        if named not in _PART_OF:
            raise InvalidInputError(f"{record.place} is of the part {named!r}, expected {', '.join(_PART_OF)}")
        parts[_PART_OF[named]][record.file] = _captions(record)
    return parts


def _entities_parts(folder: Path) -> dict[str, Captions]:
    texts = {record.file: _captions(record) for record in _token_records(folder / _TOKENS)}
    return _listed_parts(folder, _LISTS, texts, suffix=".jpg")


def _captions(record: CaptionRecord) -> tuple[str, ...]:
    kept = tuple(" ".join(caption.split()) for caption in record.captions if caption.strip())
    if not kept:
        raise InvalidInputError(f"{record.place} has no caption; get a fresh copy of the file")
    return kept


FLICKR30K = Dataset(
    name="flickr30k",
    summary="31,783 photographs of people and animals with five captions each",
    homepage="https://shannon.cs.illinois.edu/DenotationGraph/",
    citation='P. Young, A. Lai, M. Hodosh and J. Hockenmaier, "From image descriptions to visual denotations: new '
    'similarity metrics for semantic inference over event descriptions", TACL 2014',
    licence="research and education only; photographs under the terms of Flickr, not redistributed by Diptych",
    splits="Karpathy and Fei-Fei: 29,000 training, 1,014 development and 1,000 test photographs; Flickr30k Entities: "
    "29,783, 1,000 and 1,000",
    files=(_KARPATHY, _PICTURES),
    options={
        "split": "'karpathy' (dataset_flickr30k.json) or 'entities' (train.txt, val.txt, test.txt and the token file)",
        "captions": CAPTIONS_HELP,
    },
    loader=load_flickr30k,
    steps="1. Ask for the photographs with the form at https://shannon.cs.illinois.edu/DenotationGraph/ and unpack "
    "them as 'flickr30k-images' into the folder of the data set.\n"
    "2. Put dataset_flickr30k.json of https://cs.stanford.edu/people/karpathy/deepimagesent/caption_datasets.zip "
    "beside it.\n"
    "3. For split='entities' also results_20130124.token, which comes with the photographs, and train.txt, val.txt and "
    "test.txt of https://github.com/BryanPlummer/flickr30k_entities.",
)

_SENTENCE_FILES = {"original": "pascal_sentences.json", "pascal50s": "pascal50s.json"}


def load_pascal_sentence(
    *, sentences: str = "original", captions: str | int = "all", test_size: float | int = 300, seed: int = 0
) -> DatasetSplits:
    """Load the photographs, captions and classes, and split them by a seeded, stratified draw.

    The published 700/300 split is not available, so the default has its sizes (35 training and 15 test photographs of
    every class) but not its members. ``sentences="pascal50s"`` takes the fifty sentences per photograph of PASCAL-50S
    instead of the original five; a few photographs have four or six.
    """
    if sentences not in _SENTENCE_FILES:
        raise UnknownNameError("sentences of pascal_sentence", sentences, _SENTENCE_FILES)
    pairs = choose_captions(_read_pairs(PASCAL_SENTENCE.folder(_SENTENCE_FILES[sentences]), sentences), captions)
    train, test = pairs.split(test_size, seed=seed, stratify=True)
    return DatasetSplits(train=train, test=test)


def _read_pairs(folder: Path, sentences: str) -> Pairs:
    photographs = read_json_object(folder / _SENTENCE_FILES["original"])
    for file, entry in photographs.items():
        if not isinstance(entry, dict) or not {"category", "captions"} <= entry.keys():
            raise InvalidInputError(f"{_SENTENCE_FILES['original']}: {file} needs 'category' and 'captions'")
    captions = {file: entry["captions"] for file, entry in photographs.items()}
    if sentences == "pascal50s":
        captions = _other_captions(folder, captions)
    names = sorted(photographs)
    for file in names:
        listed = captions[file]
        is_text = isinstance(listed, list) and all(isinstance(text, str) and text.strip() for text in listed)
        if not is_text or not listed:
            raise InvalidInputError(f"{folder / _SENTENCE_FILES[sentences]}: {file} needs a list of non-empty captions")
    labels = [photographs[file]["category"] for file in names]
    return photograph_pairs(folder / "images", {file: captions[file] for file in names}, labels=labels)


def _other_captions(folder: Path, originals: dict[str, Any]) -> dict[str, Any]:
    path = folder / _SENTENCE_FILES["pascal50s"]
    captions = read_json_object(path)
    without = sorted(originals.keys() - captions.keys())
    if without:
        raise InvalidInputError(f"{path} has no sentences for {len(without)} photographs, first {without[0]}")
    return captions


PASCAL_SENTENCE = Dataset(
    name="pascal_sentence",
    summary="1,000 photographs, 50 of each of the 20 PASCAL VOC classes, with five captions each",
    homepage="http://vision.cs.uiuc.edu/pascal-sentences/ (PASCAL-50S: https://vrama91.github.io/cider/), and "
    "write its captions as pascal_sentences.json: {file name: {'category': class, 'captions': [five sentences]}}",
    citation='C. Rashtchian et al., "Collecting image annotations using Amazon\'s Mechanical Turk", NAACL-HLT 2010 '
    'workshop; R. Vedantam et al., "CIDEr: consensus-based image description evaluation", CVPR 2015 (PASCAL-50S)',
    licence="research use; photographs under the terms of Flickr, not redistributed by Diptych",
    splits="seeded and stratified, 700 training and 300 test photographs; the authors' own 700/300 is not available",
    files=("pascal_sentences.json", "images"),
    options={
        "sentences": "'original' (about five per photograph) or 'pascal50s' (fifty)",
        "captions": CAPTIONS_HELP,
        "test_size": "number or share of test photographs",
        "seed": "of the split",
    },
    loader=load_pascal_sentence,
    steps="1. Save the photographs from the pages at http://vision.cs.uiuc.edu/pascal-sentences/ into a folder "
    "'images'.\n"
    "2. Write the captions from the same pages as pascal_sentences.json: {file name: {'category': class, 'captions': "
    "[five sentences]}}.\n"
    "3. For sentences='pascal50s', get PASCAL-50S from https://vrama91.github.io/cider/ and write pascal50s.json: "
    "{file name: [fifty sentences]}.",
)
