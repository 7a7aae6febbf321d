"""Packages whose public names are imported when first asked for, so that importing such a package stays light."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any

_DECLARED = re.compile(r"^    from (\S+) import (\*|\w+)(?: as \2)?$", re.MULTILINE)


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


def declared_exports(package: str) -> tuple[Callable[[str], Any], list[str]]:
    """Return ``__getattr__`` and ``__all__`` of a package from the lines that its ``__init__`` has for type checkers.

    That is ``from module import name as name``, and ``from package import *`` for all that a package below declares, so
    that a name is declared once. Every program waits for these lists, which a search for such lines finds at once.

    >>> from diptych.lazy_exports import declared_exports
    >>> find, names = declared_exports("diptych.models.correlation")
    >>> find("CCA").__name__, names[:3]
    ('CCA', ['BLM', 'CCA', 'CFA'])
    """
    modules = _declared_modules(package)
    return lazy_exports(package, modules), sorted(name for names in modules.values() for name in names.split())


@cache
def _declared_modules(package: str) -> dict[str, str]:
    """Return the names, between spaces, that each module gives; no module is imported for it."""
    # Most programs that import Diptych alone need none of these.
    from importlib.util import find_spec

    spec = find_spec(package)
    loader: Any = None if spec is None else spec.loader
    modules: dict[str, str] = {}
    for module, name in _DECLARED.findall(loader.get_source(package) or ""):
        modules |= _declared_modules(module) if name == "*" else {module: f"{modules.get(module, '')} {name}"}
    return modules


def import_exports(package: str) -> dict[str, Any]:
    """Import and return everything ``package`` exports, for whoever looks for classes."""
    module = import_module(package)
    return {name: getattr(module, name) for name in module.__all__}
