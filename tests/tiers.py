"""Say which tests are quick, and which shard of the full run has the others.

``make test`` runs the quick tier: unit tests without PyTorch, servers, browsers and long fits, and one run of each
large part from end to end. ``make test-all`` runs what is not quick, a shard after the other or side by side.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

import pytest

TIERS = ("quick", "full", "all")

# A quick test takes about a second at most. One that takes so much processor time belongs to the full tier anywhere:
# the limit is far off, as busy machines take several times as long and the first test pays for imports.
QUICK_LIMIT_S = 15.0

# The first folder under tests/ decides; modules directly under tests/ belong to the first shard.
SHARD_FOLDERS = {
    "methods": frozenset(
        {"", "benchmark", "codes", "data", "encoders", "figures", "hub", "metrics", "models", "protocols", "retriever"}
    ),
    "collection": frozenset({"campaigns", "collection"}),
    "service": frozenset({"cli", "service"}),
    "page": frozenset({"browser"}),
    "documents": frozenset({"docs", "golden", "packaging"}),
}

# One real run of each large part belongs to the quick tier, however long it takes.
END_TO_END = frozenset(
    {
        "browser/test_search.py::test_typing_brings_pictures_with_probabilities",
        "cli/test_index_command.py::test_a_folder_becomes_searchable_with_one_command",
        "campaigns/test_campaigns.py::test_nothing_acknowledged_is_lost_to_kills",
        "service/test_serve_command.py::test_a_service_prints_its_address_and_ends_cleanly",
    }
)

# Everything below these folders is left to the full tier.
FULL_FOLDERS = frozenset(
    {
        "benchmark",
        "browser",
        "campaigns",
        "collection/learning",
        "docs",
        "encoders/joint/originals",
        "golden",
        "models/neural",
        "packaging",
        "service",
    }
)

# Modules with long fits, PyTorch, many processes or many cases.
FULL_FILES = frozenset(
    {
        "cli/test_codes_commands.py",
        "cli/test_collection_commands.py",
        "cli/test_default_retriever_command.py",
        "cli/test_demo_command.py",
        "cli/test_evaluate_command.py",
        "cli/test_formats.py",
        "cli/test_index_command.py",
        "cli/test_interruption.py",
        "cli/test_learn.py",
        "cli/test_models_command.py",
        "cli/test_named_root.py",
        "cli/test_rehearse_command.py",
        "cli/test_train_command.py",
        "cli/test_watch.py",
        "collection/store/test_kills.py",
        "collection/test_any_history.py",
        "collection/test_backup.py",
        "collection/test_codes.py",
        "collection/test_damage.py",
        "collection/test_facets.py",
        "collection/test_loading.py",
        "collection/test_maintenance.py",
        "collection/test_picture_text.py",
        "collection/test_processes.py",
        "collection/test_regions.py",
        "collection/test_retriever_changes.py",
        "collection/test_several_retrievers.py",
        "collection/test_videos.py",
        "collection/test_with_retriever.py",
        "data/test_real_data.py",
        "encoders/image/test_efficientnet_lite.py",
        "encoders/image/test_hostile_files.py",
        "encoders/image/test_picture_kinds.py",
        "encoders/image/test_picture_parts.py",
        "encoders/image/test_sift_words.py",
        "encoders/image/test_reading_once.py",
        "encoders/networks/test_device.py",
        "encoders/test_concatenated.py",
        "encoders/test_encoded_splits.py",
        "encoders/text/test_english_words.py",
        "encoders/text/test_languages.py",
        "encoders/text/test_multilingual_sentences.py",
        "encoders/text/test_sentence_encoder.py",
        "encoders/text/test_text_encoders.py",
        "encoders/text/test_universal_sentence_encoder.py",
        "encoders/text/test_visualness.py",
        "encoders/text/test_word_vector_encoders.py",
        "hub/test_kills.py",
        "metrics/test_card_ranking.py",
        "models/correlation/test_kcca.py",
        "models/hashing/test_dcmh.py",
        "models/hashing/test_mmnn.py",
        "models/pairwise/test_wikipedia.py",
        "models/ranking/test_contrastive_projection.py",
        "models/test_contract.py",
        "models/test_moments.py",
        "retriever/test_calibration.py",
        "retriever/test_explaining.py",
        "retriever/test_gate.py",
        "retriever/test_mteb_models.py",
        "retriever/test_ready_made.py",
        "retriever/test_retriever.py",
        "retriever/test_tower_encoders.py",
        "test_arrays.py",
        "test_cluster.py",
        "test_devices.py",
        "test_estimators.py",
    }
)

# Cases of methods that PyTorch trains, by their names in brackets.
TRAINED_BY_TORCH = re.compile(r"\[(DCMH|DeepSM|DeepTS|LDSP|MMNN|MNiL|dcmh|mm-nn)\b")

# Tests with these fixtures start servers or programs.
FULL_FIXTURES = frozenset({"serve", "started_service"})


def place_of(path: Path) -> PurePosixPath:
    """Return the path of a test module below ``tests/``."""
    return PurePosixPath(path.relative_to(Path(__file__).parent).as_posix())


def is_full(path: Path) -> bool:
    """Return True if all tests of a module belong to the full tier, but for those of ``END_TO_END``."""
    place = place_of(path)
    return str(place) in FULL_FILES or any(str(folder) in FULL_FOLDERS for folder in place.parents)


def has_end_to_end(path: Path) -> bool:
    """Return True if a module has a test of ``END_TO_END``."""
    return any(name.partition("::")[0] == str(place_of(path)) for name in END_TO_END)


def is_end_to_end(item: pytest.Item) -> bool:
    """Return True if a test is the end-to-end run of a large part."""
    return f"{place_of(item.path)}::{item.nodeid.rpartition('::')[2].partition('[')[0]}" in END_TO_END


def is_quick(item: pytest.Item) -> bool:
    """Return True if a test belongs to the quick tier."""
    if is_end_to_end(item):
        return True
    if item.get_closest_marker("server"):
        return False
    if is_full(item.path) or TRAINED_BY_TORCH.search(item.nodeid):
        return False
    return FULL_FIXTURES.isdisjoint(getattr(item, "fixturenames", ()))


def shard_of(path: Path) -> str:
    """Return the shard of the full run that has a test module."""
    place = place_of(path)
    folder = place.parts[0] if len(place.parts) > 1 else ""
    for shard, folders in SHARD_FOLDERS.items():
        if folder in folders:
            return shard
    raise ValueError(f"tests/{folder} is in no shard: add it to SHARD_FOLDERS in tests/tiers.py")
