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

_FEATURES = "raw_features.mat"
_LISTS = ("trainset_txt_img_cat.list", "testset_txt_img_cat.list")
_CATEGORIES = "categories.list"
_FILES = (_FEATURES, *_LISTS, _CATEGORIES)
_FILE_OF_FEATURES = {"bow-lda": _FEATURES, "tfidf": "raw_features_tfidf.mat"}
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
    if (categories := _read_categories(folder)) != list(CATEGORY_COUNTS):
        raise InvalidInputError(f"{folder / _CATEGORIES} must list {', '.join(CATEGORY_COUNTS)}, in this order")
    text_key = "T_tfidf" if features == "tfidf" else "T"
    return _read_splits(path, categories, CATEGORY_COUNTS, ("I", text_key), _WIDTHS)


def _read_categories(folder: Path) -> list[str]:
    return [line.strip() for line in read_lines(folder / _CATEGORIES)]


def _read_splits(
    path: Path,
    categories: list[str],
    counts: Mapping[str, tuple[int, int]],
    keys: tuple[str, str],
    widths: Mapping[str, int],
) -> DatasetSplits:
    """Read the features of both sides from a MATLAB file, and the rest of each part from the list beside it."""
    arrays = _read_matlab(path)
    parts = []
    for part, name in enumerate(_LISTS):
        list_path, suffix = path.with_name(name), ("_tr", "_te")[part]
        rows = read_table(list_path, columns=3)
        published = {category: expected[part] for category, expected in counts.items()}
        labels = _numbered_labels(list_path, [row[2] for row in rows], categories, published)
        images, texts = (_checked_array(path, arrays, key, suffix, len(rows), widths) for key in keys)
        ids, text_ids = [row[1] for row in rows], [row[0] for row in rows]
        parts.append(Pairs(images, texts, labels=labels, ids=ids, text_ids=text_ids, class_names=categories))
    return DatasetSplits(train=parts[0], test=parts[1])


def _read_matlab(path: Path) -> dict[str, FloatArray]:
    """Return the arrays of a MATLAB 5 file by name."""
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    try:
        return {name: array for name, array in loadmat(path).items() if not name.startswith("__")}
    except (ValueError, TypeError, OSError, NotImplementedError, EOFError, MatReadError) as error:
        raise InvalidInputError(f"{path} cannot be read as a MATLAB 5 file; get a fresh copy ({error})") from error


def _numbered_labels(
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


def _checked_array(
    path: Path, arrays: dict[str, FloatArray], key: str, suffix: str, n_rows: int, widths: Mapping[str, int]
) -> FloatArray:
    """Return an array with a row for each line of its list; where its width is known, it and the norms must agree."""
    name = key + suffix
    if name not in arrays:
        raise InvalidInputError(f"{path} has no array {name}; it holds {', '.join(sorted(arrays))}")
    matrix = as_matrix(arrays[name], name=f"{path}: {name}")
    wanted = (n_rows, widths.get(key, matrix.shape[1]))
    if matrix.shape != wanted:
        raise InvalidInputError(
            f"{path}: {name} has shape {matrix.shape}, but the list file and the format ask for {wanted}; "
            "get a fresh copy"
        )
    if key not in widths:
        return matrix
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


def load_tvgraz() -> DatasetSplits:
    """Load the split of 1,558 training and 500 test pairs, in the layout of Wikipedia by the same laboratory.

    Rows of features and lists and the published counts of every category must agree.
    """
    folder = TVGRAZ.folder()
    names = [name.lower() for name in _read_categories(folder)]
    if sorted(names) != sorted(TVGRAZ_COUNTS):
        raise InvalidInputError(f"{folder / _CATEGORIES} must list {', '.join(TVGRAZ_COUNTS)}, one per line")
    return _read_splits(folder / _FEATURES, names, TVGRAZ_COUNTS, ("I", "T"), {})


TVGRAZ = Dataset(
    name="tvgraz",
    summary="Pictures of ten Caltech-256 categories with the text of their web pages; features only",
    homepage="http://www.svcl.ucsd.edu/projects/crossmodal/",
    citation='I. Khan, A. Saffari and H. Bischof, "TVGraz: multi-modal learning of object categories by combining '
    'textual and visual features", AAPR 2009; J. Costa Pereira et al., "On the role of correlation and abstraction in '
    'cross-modal multimedia retrieval", TPAMI 2014',
    licence="research use; pictures and pages belong to their authors, and Diptych does not redistribute them",
    splits="1,558 training and 500 test pairs, Table II of Costa Pereira et al., 2014",
    files=_FILES,
    loader=load_tvgraz,
    steps="Ask the authors for the features, and write them in the layout of Wikipedia's files.",
)
