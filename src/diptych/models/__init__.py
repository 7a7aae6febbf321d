"""Feature vectors to one space: every method, one class each.

A method is exported by one line in the ``__init__`` of its group; the lists of public names come from the registry.
"""

from typing import TYPE_CHECKING

from diptych.lazy_exports import declared_exports

if TYPE_CHECKING:
    from diptych.models.alignment import *
    from diptych.models.base import CrossModalModel as CrossModalModel
    from diptych.models.base import load_model as load_model
    from diptych.models.clicks import *
    from diptych.models.correlation import *
    from diptych.models.discriminant import *
    from diptych.models.from_files import fit_from_files as fit_from_files
    from diptych.models.fusion import CoordinateAscent as CoordinateAscent
    from diptych.models.fusion import FusedModel as FusedModel
    from diptych.models.fusion import fuse_scores as fuse_scores
    from diptych.models.hashing import *
    from diptych.models.moments import MomentModel as MomentModel
    from diptych.models.moments import Moments as Moments
    from diptych.models.neural import *
    from diptych.models.pairwise import *
    from diptych.models.preprocessed import Preprocessed as Preprocessed
    from diptych.models.query_bank import QueryBankNormalized as QueryBankNormalized
    from diptych.models.ranking import *
    from diptych.models.registry import find_model as find_model
    from diptych.models.registry import installed_methods as installed_methods
    from diptych.models.registry import method_name as method_name
    from diptych.models.registry import model_classes as model_classes
    from diptych.models.semantic import *
    from diptych.models.unlearned import Random as Random
    from diptych.models.unlearned import SharedSpace as SharedSpace
else:
    # Each is imported when it is asked for: a search needs few of them.
    __getattr__, __all__ = declared_exports(__name__)
