"""TVGraz: 2,058 pairs of web pictures and page texts in ten categories, when a user supplies the features."""

from __future__ import annotations

from pathlib import Path

from diptych.arrays import FloatArray, as_matrix
from diptych.data.dataset import Dataset, DatasetSplits
from diptych.data.datasets.wikipedia import numbered_labels, read_matlab
from diptych.data.pairs import Pairs
from diptych.data.text_files import read_lines, read_table
from diptych.errors import InvalidInputError

CATEGORY_COUNTS: dict[str, tuple[int, int]] = {
    "brain": (109, 47),
    "butterfly": (195, 51),
    "cactus": (137, 37),
    "deer": (223, 51),
    "dice": (169, 50),
    "dolphin": (163, 59),
    "elephant": (120, 54),
    "frog": (215, 67),
    "harp": (131, 42),
    "pram": (96, 42),
}
"""(training, test) pairs of each category, Table II of Costa Pereira et al., 2014."""

_FEATURES = "raw_features.mat"
_LISTS = ("trainset_txt_img_cat.list", "testset_txt_img_cat.list")
_CATEGORIES = "categories.list"


def load_tvgraz() -> DatasetSplits:
    """Load the split of 1,558 training and 500 test pairs, in the layout of Wikipedia by the same laboratory.

    Rows of features and lists and the published counts of every category must agree.
    """
    folder = TVGRAZ.folder()
    arrays = _read_arrays(folder / _FEATURES)
    names = [line.strip().lower() for line in read_lines(folder / _CATEGORIES)]
    if sorted(names) != sorted(CATEGORY_COUNTS):
        raise InvalidInputError(f"{folder / _CATEGORIES} must list {', '.join(CATEGORY_COUNTS)}, one per line")
    train, test = (_read_part(folder, part, arrays, names) for part in range(2))
    return DatasetSplits(train=train, test=test)


def _read_arrays(path: Path) -> dict[str, FloatArray]:
    arrays = read_matlab(path)
    for name in ("I_tr", "I_te", "T_tr", "T_te"):
        if name not in arrays:
            raise InvalidInputError(f"{path} has no array {name}; name the features I_tr, I_te, T_tr and T_te")
    return arrays


def _read_part(folder: Path, part: int, arrays: dict[str, FloatArray], names: list[str]) -> Pairs:
    path = folder / _LISTS[part]
    rows = read_table(path, columns=3)
    published = {name: counts[part] for name, counts in CATEGORY_COUNTS.items()}
    labels = numbered_labels(path, [row[2] for row in rows], names, published)
    suffix = ("_tr", "_te")[part]
    images, texts = (
        as_matrix(arrays[side + suffix], name=f"{folder / _FEATURES}: {side + suffix}") for side in ("I", "T")
    )
    if {len(images), len(texts)} != {len(rows)}:
        raise InvalidInputError(
            f"{folder / _FEATURES}: I{suffix} and T{suffix} must have the {len(rows)} rows of {path.name}"
        )
    ids, text_ids = [row[1] for row in rows], [row[0] for row in rows]
    return Pairs(images, texts, labels=labels, ids=ids, text_ids=text_ids, class_names=names)


TVGRAZ = Dataset(
    name="tvgraz",
    summary="Pictures of ten Caltech-256 categories with the text of their web pages; features only",
    homepage="http://www.svcl.ucsd.edu/projects/crossmodal/",
    citation='I. Khan, A. Saffari and H. Bischof, "TVGraz: multi-modal learning of object categories by combining '
    'textual and visual features", AAPR 2009; J. Costa Pereira et al., "On the role of correlation and abstraction in '
    'cross-modal multimedia retrieval", TPAMI 2014',
    licence="research use; pictures and pages belong to their authors, and Diptych does not redistribute them",
    splits="1,558 training and 500 test pairs, Table II of Costa Pereira et al., 2014",
    files=(_FEATURES, *_LISTS, _CATEGORIES),
    loader=load_tvgraz,
    steps="Ask the authors for the features, and write them in the layout of Wikipedia's files.",
)
