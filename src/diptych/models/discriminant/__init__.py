"""Subspaces that keep classes apart: labels shape where pictures and texts meet."""

from diptych.models.discriminant.cca3v import CCA3V
from diptych.models.discriminant.cluster_cca import ClusterCCA
from diptych.models.discriminant.gmlda import GMLDA
from diptych.models.discriminant.gmmfa import GMMFA
from diptych.models.discriminant.lcfs import LCFS
from diptych.models.discriminant.lgcfl import LGCFL
from diptych.models.discriminant.ml_cca import MLCCA

__all__ = ["CCA3V", "GMLDA", "GMMFA", "LCFS", "LGCFL", "MLCCA", "ClusterCCA"]
