"""Binary codes: packed, compared, searched and described."""

from diptych.codes.packing import pack_signs, unpack_signs

__all__ = ["pack_signs", "unpack_signs"]
