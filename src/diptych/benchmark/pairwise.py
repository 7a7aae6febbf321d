"""Tables 1 to 3 of Menon et al. (2015), and the subspace methods of Liu et al. on the same data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from diptych.benchmark.entries import Scalings, menon_references, method_entries, subspace_entries
from diptych.benchmark.entry import Entry, Reference
from diptych.benchmark.sensitivity import Sensitivity
from diptych.benchmark.task import Task
from diptych.encoders import EfficientNetLite, SentenceEncoder
from diptych.models import KCCA

# Headings and order of the rows are the paper's.
_TABLE = {
    "No ground truth": (
        "random",
        "linear regression",
        "CCA",
        "CMML",
        "OC-SVM concatenation",
        "OC-SVM cross-product",
        "logistic concatenation",
        "logistic cross-product",
        "bipartite cross-product",
    ),
    "Ground truth": ("SM", "SCM", "pairwise SM", "marginal SM", "marginal SCM"),
}
# Those that Liu et al. compare, and their kin; on these features no paper prints them.
_SUBSPACE = "Subspace methods"
# The choice of the paper, section 7.4.
_SCALINGS: Scalings = (("none", "none"), ("l2", "l2"))
_RATIOS = (1, 5, 10)
# Section 7.1; texts of ten features leave room for nine components.
_WIDTHS = (128, 10)
_COMPONENTS = range(1, 10)
_FEW_COMPONENTS = (3, 5, 7, 9)
_SHARES = (0.01, 0.02, 0.05, *(percent / 100 for percent in range(10, 101, 10)))

SENSITIVITIES = (
    Sensitivity(
        "logistic cross-product",
        "model__ratio",
        "unlabelled pairs for each given one, S",
        (1, 2, 3, 5, 10, 20, 50),
    ),
    Sensitivity("logistic cross-product", "model__feature_share", "share of cross-product features", _SHARES),
)
"""What figures 5 and 6 of the paper vary."""


def _entries(references: Mapping[str, Reference]) -> tuple[Entry, ...]:
    # The tables have no kernel method, so that its settings do not matter.
    methods = method_entries(_SCALINGS, _COMPONENTS, _FEW_COMPONENTS, references, KCCA(), _RATIOS)
    by_name = {entry.name: entry for entry in methods}
    rows = [replace(by_name[name], group=group, distances=False) for group, names in _TABLE.items() for name in names]
    rows += [replace(entry, group=_SUBSPACE) for entry in subspace_entries(_SCALINGS, _FEW_COMPONENTS)]
    return tuple(rows)


WIKIPEDIA = Task(
    name="pairwise-wikipedia",
    title="Wikipedia (Menon et al. 2015, Table 1), 2,173 training and 693 test pairs",
    dataset="wikipedia",
    entries=_entries(menon_references("Table 1", "Wikipedia", same_features=True)),
    sensitivities=SENSITIVITIES,
    notes=("Features: those of the paper, 128 SIFT words and 10 LDA topics, raw or ℓ2-normalised.",),
)

PASCAL = Task(
    name="pairwise-pascal",
    title="Pascal Sentence (Menon et al. 2015, Table 2), 700 training and 300 test pairs",
    dataset="pascal_sentence",
    options={"captions": "join"},
    entries=_entries(menon_references("Table 2", "Pascal", same_features=False)),
    image_encoder=EfficientNetLite(),
    text_encoder=SentenceEncoder(),
    components=_WIDTHS,
    notes=(
        "Features: EfficientNet-Lite2 and MiniLM, reduced to 128 and 10 principal components like those of the paper.",
        "The paper's own features and split are not to be had, so its numbers stand there for orientation.",
    ),
)

TVGRAZ = Task(
    name="pairwise-tvgraz",
    title="TVGraz (Menon et al. 2015, Table 3), 1,558 training and 500 test pairs",
    dataset="tvgraz",
    entries=_entries(menon_references("Table 3", "TVGraz", same_features=True)),
    components=_WIDTHS,
    notes=("Features: as supplied, reduced to 128 and 10 principal components where they are wider.",),
)

PAIRWISE = (WIKIPEDIA, PASCAL, TVGRAZ)
"""One task for each table."""
