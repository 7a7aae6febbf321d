"""Subspaces that keep classes apart: labels shape where pictures and texts meet."""

from typing import TYPE_CHECKING

from diptych.lazy_exports import declared_exports

if TYPE_CHECKING:
    from diptych.models.discriminant.cca3v import CCA3V as CCA3V
    from diptych.models.discriminant.cluster_cca import ClusterCCA as ClusterCCA
    from diptych.models.discriminant.gmlda import GMLDA as GMLDA
    from diptych.models.discriminant.gmmfa import GMMFA as GMMFA
    from diptych.models.discriminant.lcfs import LCFS as LCFS
    from diptych.models.discriminant.lgcfl import LGCFL as LGCFL
    from diptych.models.discriminant.ml_cca import MLCCA as MLCCA
else:
    # Each is imported when it is asked for: a search needs few of them.
    __getattr__, __all__ = declared_exports(__name__)
