"""Binary codes: packed, compared, searched and described."""

from typing import TYPE_CHECKING

from diptych.lazy_exports import declared_exports

if TYPE_CHECKING:
    from diptych.codes.distances import asymmetric_scores as asymmetric_scores
    from diptych.codes.distances import hamming_distances as hamming_distances
    from diptych.codes.distances import pack_signs as pack_signs
    from diptych.codes.distances import unpack_signs as unpack_signs
    from diptych.codes.nearest import codes_within as codes_within
    from diptych.codes.nearest import nearest_codes as nearest_codes
    from diptych.codes.statistics import CodeStatistics as CodeStatistics
    from diptych.codes.statistics import code_statistics as code_statistics
else:
    # Imported lazily: a search needs distances alone.
    __getattr__, __all__ = declared_exports(__name__)
