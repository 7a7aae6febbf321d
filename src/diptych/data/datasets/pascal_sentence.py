"""Pascal Sentence: 1,000 photographs of twenty classes with five captions each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from diptych.data.dataset import CAPTIONS_HELP, Dataset, DatasetSplits, check_photographs, choose_captions
from diptych.data.pairs import Pairs
from diptych.data.text_files import read_json_object
from diptych.errors import InvalidInputError, UnknownNameError

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
    images = folder / "images"
    check_photographs(images, names)
    return Pairs(
        [images / file for file in names],
        [caption for file in names for caption in captions[file]],
        labels=[photographs[file]["category"] for file in names],
        ids=names,
        owners=[row for row, file in enumerate(names) for _ in captions[file]],
    )


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
