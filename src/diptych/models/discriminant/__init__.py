"""Subspaces that keep classes apart: labels shape where pictures and texts meet."""

from typing import TYPE_CHECKING

from diptych.lazy_exports import declared_exports

if TYPE_CHECKING:
    from diptych.models.discriminant.coupled_features import LCFS as LCFS
    from diptych.models.discriminant.coupled_features import LGCFL as LGCFL
    from diptych.models.discriminant.generalized_multiview import GMLDA as GMLDA
    from diptych.models.discriminant.generalized_multiview import GMMFA as GMMFA
    from diptych.models.discriminant.labelled_cca import CCA3V as CCA3V
    from diptych.models.discriminant.labelled_cca import MLCCA as MLCCA
    from diptych.models.discriminant.labelled_cca import ClusterCCA as ClusterCCA
else:
    # Each is imported when it is asked for: a search needs few of them.
    __getattr__, __all__ = declared_exports(__name__)
