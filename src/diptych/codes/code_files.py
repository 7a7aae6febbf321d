"""Codes in a file: safetensors, written whole, checked when read, never executed."""

from __future__ import annotations

import os
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from diptych.arrays import AnyArray, BoolArray
from diptych.errors import MissingDataError, ModelFileError

_FORMAT, _VERSION = "diptych-codes", "1"


def write_codes(
    path: str | PathLike[str], codes: NDArray[np.uint8], n_bits: int, removed: BoolArray | None = None
) -> None:
    """Write packed codes through a sibling file and a rename, so that a crash leaves no half file."""
    from safetensors.numpy import save_file

    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, AnyArray] = {"codes": np.ascontiguousarray(codes)}
    if removed is not None:
        arrays["removed"] = removed
    draft = target.with_name(f".{target.name}.{os.getpid()}.draft")
    try:
        save_file(arrays, draft, metadata={"format": _FORMAT, "version": _VERSION, "n_bits": str(n_bits)})
        os.replace(draft, target)
    finally:
        draft.unlink(missing_ok=True)


def read_codes(path: str | PathLike[str]) -> tuple[NDArray[np.uint8], int, BoolArray | None]:
    """Return codes, their number of bits and the marks of removed ones."""
    from safetensors import SafetensorError, safe_open

    source = Path(path)
    if not source.is_file():
        raise MissingDataError(f"there is no file of codes at {source}; CodeIndex.save writes one")
    try:
        with safe_open(source, framework="numpy") as file:
            header = file.metadata() or {}
            names = file.keys()
            arrays = {name: file.get_tensor(name) for name in names}
    except SafetensorError as problem:
        raise ModelFileError(f"{source} is not a whole safetensors file ({problem}); save the codes again") from None
    if header.get("format") != _FORMAT:
        raise ModelFileError(f"{source} holds no codes of Diptych; CodeIndex.save writes such files")
    if header.get("version") != _VERSION:
        raise ModelFileError(
            f"{source} is of version {header.get('version')}, this Diptych reads version {_VERSION}; upgrade Diptych"
        )
    return _checked(source, header.get("n_bits", ""), arrays)


def _checked(source: Path, bits: str, arrays: dict[str, AnyArray]) -> tuple[NDArray[np.uint8], int, BoolArray | None]:
    codes, removed = arrays.get("codes"), arrays.get("removed")
    n_bits = int(bits) if bits.isdecimal() else 0
    whole = codes is not None and codes.dtype == np.uint8 and codes.ndim == 2
    if codes is None or not whole or not n_bits or codes.shape[1] != -(-n_bits // 8):
        raise ModelFileError(f"{source} does not hold packed codes of {bits or 'unknown'} bits; save them again")
    if removed is not None and (removed.dtype != bool or removed.shape != (len(codes),)):
        raise ModelFileError(f"{source} marks removed codes for another number of codes; save them again")
    return codes, n_bits, None if removed is None else removed.astype(bool, copy=False)
