"""Binary codes that pictures and texts share."""

from diptych.models.hashing.cmfh import CMFH
from diptych.models.hashing.cvh import CVH
from diptych.models.hashing.dch import DCH
from diptych.models.hashing.dcmh import DCMH
from diptych.models.hashing.dlfh import DLFH
from diptych.models.hashing.imh import IMH
from diptych.models.hashing.lcmfh import LCMFH
from diptych.models.hashing.lssh import LSSH
from diptych.models.hashing.mmnn import MMNN
from diptych.models.hashing.scm_orth import SCMOrth
from diptych.models.hashing.scm_seq import SCMSeq
from diptych.models.hashing.scratch import SCRATCH
from diptych.models.hashing.seph_km import SePHkm

__all__ = [
    "CMFH",
    "CVH",
    "DCH",
    "DCMH",
    "DLFH",
    "IMH",
    "LCMFH",
    "LSSH",
    "MMNN",
    "SCRATCH",
    "SCMOrth",
    "SCMSeq",
    "SePHkm",
]
