"""COCO pairs: 18,000 everyday photographs of COCO with one caption each, squashed to small squares."""

from __future__ import annotations

from diptych.data.dataset import Dataset, DatasetSplits
from diptych.data.pairs import Pairs
from diptych.data.text_files import read_table
from diptych.errors import InvalidInputError

_CAPTIONS = "captions.tsv"
_PARTS = ("train", "dev", "test")


def load_coco_pairs() -> DatasetSplits:
    """Load the three parts; a caption is relevant to its own photograph."""
    folder = COCO_PAIRS.folder()
    rows = read_table(folder / _CAPTIONS, columns=3)[1:]
    present = {path.name for path in (folder / "images").iterdir()}
    parts: dict[str, list[tuple[str, str]]] = {part: [] for part in _PARTS}
    for number, (name, part, caption) in enumerate(rows, start=2):
        if part not in parts:
            raise InvalidInputError(f"{folder / _CAPTIONS}: row {number} says part {part!r}; use {', '.join(_PARTS)}")
        if name not in present:
            raise InvalidInputError(f"{folder / _CAPTIONS} lists {name}, which is not in {folder / 'images'}")
        parts[part].append((name, caption.strip()))
    pairs = {
        part: Pairs([folder / "images" / name for name, _ in listed], [text for _, text in listed], ids=[*dict(listed)])
        for part, listed in parts.items()
    }
    return DatasetSplits(train=pairs["train"], test=pairs["test"], dev=pairs["dev"])


COCO_PAIRS = Dataset(
    name="coco_pairs",
    summary="18,000 everyday photographs of COCO with one caption each, squashed to squares of 240 pixels",
    homepage="https://cocodataset.org",
    citation='T.-Y. Lin et al., "Microsoft COCO: common objects in context", ECCV 2014',
    licence="captions CC BY 4.0, photographs under the terms of Flickr; not redistributed by Diptych",
    splits="16,000 training, 1,000 development and 1,000 test photographs, drawn at random",
    files=(_CAPTIONS, "images"),
    loader=load_coco_pairs,
    steps="1. Take photographs of COCO's val2014 and one caption of each.\n"
    "2. Save them as images/<file name>, in any format that Pillow reads; squares of 240 pixels are enough.\n"
    "3. Write captions.tsv: a header, then file name, part (train, dev or test) and caption in three columns with tabs "
    "between.",
)
