"""Binary codes that pictures and texts share."""

from typing import TYPE_CHECKING

from diptych.lazy_exports import declared_exports

if TYPE_CHECKING:
    from diptych.models.hashing.cmfh import CMFH as CMFH
    from diptych.models.hashing.cmfh import LCMFH as LCMFH
    from diptych.models.hashing.dch import DCH as DCH
    from diptych.models.hashing.dcmh import DCMH as DCMH
    from diptych.models.hashing.dlfh import DLFH as DLFH
    from diptych.models.hashing.lssh import LSSH as LSSH
    from diptych.models.hashing.mmnn import MMNN as MMNN
    from diptych.models.hashing.scm import SCMOrth as SCMOrth
    from diptych.models.hashing.scm import SCMSeq as SCMSeq
    from diptych.models.hashing.scratch import SCRATCH as SCRATCH
    from diptych.models.hashing.seph_km import SePHkm as SePHkm
    from diptych.models.hashing.spectral import CVH as CVH
    from diptych.models.hashing.spectral import IMH as IMH
else:
    # Each is imported when it is asked for: a search needs few of them.
    __getattr__, __all__ = declared_exports(__name__)
