"""Wikipedia and TVGraz: picture and text features in ten categories each, as one laboratory lays them out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from diptych.arrays import FloatArray, as_matrix
from diptych.data.dataset import Dataset, DatasetSplits
from diptych.data.downloads import Download
from diptych.data.pairs import Pairs
from diptych.data.text_files import read_lines, read_table
from diptych.errors import InvalidInputError, UnknownNameError

CATEGORY_COUNTS: dict[str, tuple[int, int]] = {
    "art": (138, 34),
    "biology": (272, 88),
    "geography": (244, 96),
    "history": (248, 85),
    "literature": (202, 65),
    "media": (178, 58),
    "music": (186, 51),
    "royalty": (144, 41),
    "sport": (214, 71),
    "warfare": (347, 104),
}
"""(training, test) pairs of each category, Table III of Costa Pereira et al., 2014."""

_FILES = ("raw_features.mat", "trainset_txt_img_cat.list", "testset_txt_img_cat.list", "categories.list")
_FILE_OF_FEATURES = {"bow-lda": "raw_features.mat", "tfidf": "raw_features_tfidf.mat"}
_WIDTHS = {"I": 128, "T": 10, "T_tfidf": 1000}
# The histograms were stored as float32, the word weights with six decimals.
_NORM_TOLERANCE = 1e-5


def load_wikipedia(*, features: str = "bow-lda") -> DatasetSplits:
    """Load the official split with SIFT histograms and either LDA topics or TF-IDF words.

    Rows and published counts must agree, so a truncated or reordered copy is noticed.
    """
    if features not in _FILE_OF_FEATURES:
        raise UnknownNameError("features of wikipedia", features, _FILE_OF_FEATURES)
    file = _FILE_OF_FEATURES[features]
    folder = WIKIPEDIA.folder(file)
    path = folder / file
    arrays = read_matlab(path)
    text_key = "T_tfidf" if features == "tfidf" else "T"
    categories = _read_categories(folder)
    train, test = (_read_part(folder, part, path, arrays, text_key, categories) for part in ("train", "test"))
    return DatasetSplits(train=train, test=test)


def read_matlab(path: Path) -> dict[str, FloatArray]:
    """Return the arrays of a MATLAB 5 file by name."""
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    try:
        return {name: array for name, array in loadmat(path).items() if not name.startswith("__")}
    except (ValueError, TypeError, OSError, NotImplementedError, EOFError, MatReadError) as error:
        raise InvalidInputError(f"{path} cannot be read as a MATLAB 5 file; get a fresh copy ({error})") from error


def _read_categories(folder: Path) -> tuple[str, ...]:
    categories = tuple(line.strip() for line in read_lines(folder / "categories.list"))
    if categories != tuple(CATEGORY_COUNTS):
        raise InvalidInputError(
            f"{folder / 'categories.list'} must list {', '.join(CATEGORY_COUNTS)}, one per line in this order"
        )
    return categories


def _read_part(
    folder: Path, part: str, path: Path, arrays: dict[str, FloatArray], text_key: str, categories: tuple[str, ...]
) -> Pairs:
    list_path, suffix = folder / f"{part}set_txt_img_cat.list", f"_{part[:2]}"
    rows = read_table(list_path, columns=3)
    published = {name: counts[part == "test"] for name, counts in CATEGORY_COUNTS.items()}
    labels = numbered_labels(list_path, [row[2] for row in rows], categories, published)
    images = _checked_array(path, arrays, "I", suffix, len(rows))
    texts = _checked_array(path, arrays, text_key, suffix, len(rows))
    ids, text_ids = [row[1] for row in rows], [row[0] for row in rows]
    return Pairs(images, texts, labels=labels, ids=ids, text_ids=text_ids, class_names=categories)


def numbered_labels(
    path: Path, numbers: list[str], categories: Sequence[str], published: Mapping[str, int]
) -> list[str]:
    """Return the categories that numbers from 1 on stand for; each must occur as often as it was published."""
    known = {str(position): category for position, category in enumerate(categories, start=1)}
    for row, number in enumerate(numbers, start=1):
        if number not in known:
            raise InvalidInputError(f"{path}: row {row} has category {number!r}, expected 1..{len(categories)}")
    labels = [known[number] for number in numbers]
    for category, expected in published.items():
        if (found := labels.count(category)) != expected:
            raise InvalidInputError(
                f"{path}: {found} pairs of category {category}, the official split has {expected}; get a fresh copy"
            )
    return labels


def _checked_array(path: Path, arrays: dict[str, FloatArray], key: str, suffix: str, n_rows: int) -> FloatArray:
    name = key + suffix
    if name not in arrays:
        raise InvalidInputError(f"{path} has no array {name}; it holds {', '.join(sorted(arrays))}")
    matrix = as_matrix(arrays[name], name=f"{path}: {name}")
    if matrix.shape != (n_rows, _WIDTHS[key]):
        raise InvalidInputError(
            f"{path}: {name} has shape {matrix.shape}, but the list file and the format ask for "
            f"{(n_rows, _WIDTHS[key])}; get a fresh copy"
        )
    norm, norms = ("l2 norm", np.linalg.norm(matrix, axis=1)) if key == "T_tfidf" else ("sum", matrix.sum(axis=1))
    wrong = np.flatnonzero(np.abs(norms - 1) > _NORM_TOLERANCE)
    if len(wrong) or (matrix < 0).any():
        row = int(wrong[0]) if len(wrong) else int(np.flatnonzero((matrix < 0).any(axis=1))[0])
        raise InvalidInputError(
            f"{path}: row {row} of {name} must be non-negative with {norm} 1, got {norm} {norms[row]:.6g}; "
            "get the unscaled features"
        )
    return matrix


WIKIPEDIA = Dataset(
    name="wikipedia",
    summary="Sections of Wikipedia featured articles with one picture each, in ten categories; features only "
    "(128-d SIFT histograms; 10-d LDA topics or 1,000 TF-IDF words)",
    homepage="http://www.svcl.ucsd.edu/projects/crossmodal/",
    citation='N. Rasiwasia et al., "A new approach to cross-modal multimedia retrieval", ACM Multimedia 2010; '
    'J. Costa Pereira et al., "On the role of correlation and abstraction in cross-modal multimedia retrieval", '
    "TPAMI 2014",
    licence="research use; the articles and pictures belong to their authors, and Diptych does not redistribute them",
    splits="official: 2,173 training and 693 test pairs",
    files=_FILES,
    options={"features": "'bow-lda' (LDA topics) or 'tfidf' (words, from raw_features_tfidf.mat)"},
    loader=load_wikipedia,
    downloads=(
        Download(
            "http://www.svcl.ucsd.edu/projects/crossmodal/wikipedia_dataset.zip",
            members=tuple(f"*{file}" for file in _FILES),
            flat=True,
            note="the address is not confirmed, and neither its size nor its digest is known",
        ),
    ),
)

TVGRAZ_COUNTS: dict[str, tuple[int, int]] = {
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
    if sorted(names) != sorted(TVGRAZ_COUNTS):
        raise InvalidInputError(f"{folder / _CATEGORIES} must list {', '.join(TVGRAZ_COUNTS)}, one per line")
    train, test = (_read_listed_part(folder, part, arrays, names) for part in range(2))
    return DatasetSplits(train=train, test=test)


def _read_arrays(path: Path) -> dict[str, FloatArray]:
    arrays = read_matlab(path)
    for name in ("I_tr", "I_te", "T_tr", "T_te"):
        if name not in arrays:
            raise InvalidInputError(f"{path} has no array {name}; name the features I_tr, I_te, T_tr and T_te")
    return arrays


def _read_listed_part(folder: Path, part: int, arrays: dict[str, FloatArray], names: list[str]) -> Pairs:
    path = folder / _LISTS[part]
    rows = read_table(path, columns=3)
    published = {name: counts[part] for name, counts in TVGRAZ_COUNTS.items()}
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
