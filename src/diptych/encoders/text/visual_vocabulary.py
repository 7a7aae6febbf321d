"""Names of visible things in a file of one's own."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from diptych.errors import InvalidInputError


def read_vocabulary(path: str | PathLike[str]) -> tuple[str, ...]:
    """Return the names in a text file, one to a line; empty lines and what follows a ``#`` are left out.

    Dong et al. (2018) extend ImageNet's concepts by a list of celebrities; do so with the products, persons and places
    that the pictures of a collection show, and give them to :class:`Visualness`.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from diptych.encoders import Visualness, read_vocabulary
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "celebrities.txt"
    ...     _ = file.write_text("# presidents\\nBarack Obama\\n")
    ...     names = read_vocabulary(file)
    >>> names, Visualness(extra=names).of("barack obama").visualness
    (('Barack Obama',), 1.0)
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"cannot read the vocabulary {path}: {error}; give a text file in UTF-8") from error
    names = tuple(name for line in text.splitlines() if (name := line.partition("#")[0].strip()))
    if not names:
        raise InvalidInputError(f"the vocabulary {path} has no names; write one word or phrase to a line")
    return names
