"""Binary codes: packed, compared, searched and described."""

from diptych.codes.distances import (
    asymmetric_scores,
    hamming_distances,
    pack_signs,
    unpack_signs,
)
from diptych.codes.hash_code_index import CodeIndex
from diptych.codes.nearest import codes_within, nearest_codes
from diptych.codes.statistics import CodeStatistics, code_statistics

__all__ = [
    "CodeIndex",
    "CodeStatistics",
    "asymmetric_scores",
    "code_statistics",
    "codes_within",
    "hamming_distances",
    "nearest_codes",
    "pack_signs",
    "unpack_signs",
]
