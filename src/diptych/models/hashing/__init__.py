"""Binary codes that pictures and texts share."""

from diptych.models.hashing.cvh import CVH

__all__ = ["CVH"]
