"""Packages whose public names are imported when first asked for, so that importing such a package stays light."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_exports(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of ``package``; ``modules`` has the names, between spaces, that each module gives.

    No public name may also be that of a module in the package: once imported, the module would be found in its place.

    >>> from diptych.lazy_exports import lazy_exports
    >>> lazy_exports("diptych.encoders", {"diptych.encoders.encoder": "Encoder EncodedBatch"})("Encoder").__name__
    'Encoder'
    """
    module_of = {name: module for module, names in modules.items() for name in names.split()}

    def __getattr__(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(module_of[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return __getattr__


def import_exports(package: str) -> None:
    """Import everything ``package`` exports, for whoever looks for classes among those that are imported."""
    module = import_module(package)
    for name in module.__all__:
        getattr(module, name)
