"""Methods and encoders that other installed packages bring, by entry points."""

from __future__ import annotations

import warnings
from typing import TypeVar

METHODS = "diptych.methods"
ENCODERS = "diptych.encoders"

ClassT = TypeVar("ClassT")


def installed_classes(group: str, base: type[ClassT]) -> list[type[ClassT]]:
    """Return the classes under ``base`` that installed packages declare in a group of entry points.

    A package declares them in its pyproject.toml: ``[project.entry-points."diptych.methods"]`` with lines such as
    ``cross-covariance = "my_package:CrossCovariance"``. One that cannot be used is left out with a warning.
    """
    # Imported lazily: a search needs no plugins.
    from importlib.metadata import entry_points

    found: list[type[ClassT]] = []
    for entry in entry_points(group=group):
        package = "a package" if entry.dist is None else entry.dist.name
        try:
            loaded = entry.load()
        except Exception as problem:
            warnings.warn(f"{entry.name} of {package} cannot be imported ({problem!r}); update it", stacklevel=2)
            continue
        if isinstance(loaded, type) and issubclass(loaded, base):
            found.append(loaded)
        else:
            warnings.warn(f"{entry.name} of {package} is no {base.__name__}; mend its entry point", stacklevel=2)
    return found
