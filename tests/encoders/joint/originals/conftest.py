"""The libraries that joint models come from."""

from __future__ import annotations

import sys
import types

# Examples in docstrings are looked for in every module, and this one imports all libraries.
collect_ignore = ["tiny_models.py"]

try:
    import torchvision  # noqa: F401
except RuntimeError:
    # The build of another device than PyTorch's lacks its compiled operators; preparing pictures needs none.
    for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
        del sys.modules[name]
    sys.modules["torchvision._meta_registrations"] = types.ModuleType("torchvision._meta_registrations")
except ImportError:
    pass
