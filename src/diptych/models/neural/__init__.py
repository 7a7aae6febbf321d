"""Methods whose towers are networks."""

from typing import TYPE_CHECKING

from diptych.lazy_exports import declared_exports

if TYPE_CHECKING:
    from diptych.models.neural.deep_sm import DeepSM as DeepSM
    from diptych.models.neural.deep_sm import DeepTS as DeepTS
    from diptych.models.neural.ldsp import LDSP as LDSP
    from diptych.models.neural.mnil import MNiL as MNiL
else:
    # Each is imported when it is asked for: a search needs few of them.
    __getattr__, __all__ = declared_exports(__name__)
