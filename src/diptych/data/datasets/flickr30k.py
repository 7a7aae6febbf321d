"""Flickr30K: 31,783 photographs of people and animals with five captions each."""

from __future__ import annotations

from pathlib import Path

from diptych.data.caption_formats import CaptionRecord, read_karpathy, read_token_file
from diptych.data.dataset import CAPTIONS_HELP, Dataset, DatasetSplits, check_photographs, choose_captions
from diptych.data.pairs import Pairs
from diptych.data.text_files import read_json_object, read_lines
from diptych.errors import InvalidInputError, UnknownNameError

_PICTURES = "flickr30k-images"
_KARPATHY = "dataset_flickr30k.json"
_TOKENS = "results_20130124.token"
_LISTS = {"train": "train.txt", "dev": "val.txt", "test": "test.txt"}
_PART_OF = {"train": "train", "restval": "train", "val": "dev", "test": "test"}
_SPLITS = ("karpathy", "entities")
Captions = dict[str, tuple[str, ...]]


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
    parts = {part: _pairs(folder / _PICTURES, part, texts) for part, texts in listed.items()}
    chosen = {part: choose_captions(pairs, captions) for part, pairs in parts.items()}
    return DatasetSplits(train=chosen["train"], test=chosen["test"], dev=chosen["dev"])


def _karpathy_parts(path: Path) -> dict[str, Captions]:
    parts: dict[str, Captions] = {part: {} for part in _LISTS}
    for record in read_karpathy(path, read_json_object(path)):
        named = str(record.metadata.get("split"))
        if named not in _PART_OF:
            raise InvalidInputError(f"{record.place} is of the part {named!r}, expected {', '.join(_PART_OF)}")
        parts[_PART_OF[named]][record.file] = _captions(record)
    return parts


def _entities_parts(folder: Path) -> dict[str, Captions]:
    path = folder / _TOKENS
    texts = {record.file: _captions(record) for record in read_token_file(path, "\n".join(read_lines(path)))}
    parts: dict[str, Captions] = {}
    seen: dict[str, str] = {}
    for part, file in _LISTS.items():
        names = [f"{line.strip()}.jpg" for line in read_lines(folder / file)]
        for name in names:
            if name not in texts:
                raise InvalidInputError(
                    f"{folder / file} lists {name}, which has no caption in {path.name}; get both again"
                )
            if name in seen:
                raise InvalidInputError(f"{name} is in the {seen[name]} and the {part} list of {folder}")
            seen[name] = part
        parts[part] = {name: texts[name] for name in names}
    return parts


def _captions(record: CaptionRecord) -> tuple[str, ...]:
    kept = tuple(" ".join(caption.split()) for caption in record.captions if caption.strip())
    if not kept:
        raise InvalidInputError(f"{record.place} has no caption; get a fresh copy of the file")
    return kept


def _pairs(pictures: Path, part: str, texts: Captions) -> Pairs:
    if not texts:
        raise InvalidInputError(f"flickr30k has no photograph for the part {part!r}; get a fresh copy of the split")
    check_photographs(pictures, texts)
    return Pairs(
        [pictures / name for name in texts],
        [caption for captions in texts.values() for caption in captions],
        ids=list(texts),
        owners=[row for row, captions in enumerate(texts.values()) for _ in captions],
    )


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
