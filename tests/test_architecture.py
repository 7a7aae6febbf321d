from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "diptych"
MODULES = sorted(SOURCE.rglob("*.py"))

# From the ground up. A module may import rooms that come before its own; rooms of one floor do not know each other.
FLOORS: tuple[frozenset[str], ...] = (
    frozenset({"_version", "arrays", "atomic_files", "errors", "former_names", "lazy_exports", "space"}),
    frozenset({"codes", "data"}),
    frozenset({"encoders", "metrics"}),
    frozenset({"models"}),
    frozenset({"protocols"}),
    frozenset({"retriever"}),
    frozenset({"benchmark", "collection", "figures"}),
    frozenset({"service"}),
    frozenset({"cli"}),
    frozenset({"__main__"}),
)
GROUND = FLOORS[0]
FLOOR_OF = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}

UNSAFE_MODULES = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "shelve", "marshal"}
HEAVY_MODULES = {
    "matplotlib",
    "torch",
    "sklearn",
    "pandas",
    "numba",
    "onnxruntime",
    "onnx",
    "tokenizers",
    "PIL",
    "typer",
    "rich",
    "ranx",
    "gensim",
    "faiss",
    "lancedb",
    "pyarrow",
    "cv2",
    "simplemma",
    "fastapi",
    "starlette",
    "uvicorn",
    "pydantic",
    "httpx",
}


def room_of(module: Path) -> str:
    first = module.relative_to(SOURCE).parts[0]
    return first.removesuffix(".py")


def imported_names(tree: ast.AST, package: str) -> Iterator[str]:
    """Yield the dotted name of everything a module imports, wherever in the file; ``package`` anchors relative ones."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            anchor = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*anchor, *([node.module] if node.module else [])])
            yield from (f"{base}.{alias.name}" for alias in node.names)


def upward_imports(code: str, room: str, package: str) -> list[str]:
    """Return the imports of ``code`` that a module of ``room`` may not have."""
    wrong = []
    for name in imported_names(ast.parse(code), package):
        top, _, rest = name.partition(".")
        if top != "diptych":
            continue
        target = rest.partition(".")[0]
        below = target in FLOOR_OF and FLOOR_OF[target] < FLOOR_OF[room]
        if not (below or target == room or {target, room} <= GROUND):
            wrong.append(name)
    return wrong


def unsafe_reads(code: str) -> list[str]:
    """Return what ``code`` uses that would execute a file it only means to read."""
    tree = ast.parse(code)
    found = [name for name in imported_names(tree, "diptych") if name.partition(".")[0] in UNSAFE_MODULES]
    found += [name for name in imported_names(tree, "diptych") if name in ("joblib.load", "torch.load")]
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        keywords = {word.arg: ast.unparse(word.value) for word in call.keywords}
        function = ast.unparse(call.func)
        if (
            keywords.get("allow_pickle", "False") != "False"
            or function == "joblib.load"
            or (function == "torch.load" and keywords.get("weights_only") != "True")
        ):
            found.append(ast.unparse(call))
    return found


@pytest.mark.parametrize("module", MODULES, ids=lambda module: str(module.relative_to(SOURCE)))
def test_a_room_imports_downwards_only(module: Path) -> None:
    room = room_of(module)
    if room == "__init__":
        return
    assert room in FLOOR_OF, f"give the new room {room!r} its floor in {Path(__file__).name}"
    package = ".".join(["diptych", *module.relative_to(SOURCE).parts[:-1]])
    wrong = upward_imports(module.read_text(encoding="utf-8"), room, package)
    assert wrong == [], f"import from rooms below {room!r} only, and from their modules"


@pytest.mark.parametrize("module", MODULES, ids=lambda module: str(module.relative_to(SOURCE)))
def test_no_module_executes_what_it_reads(module: Path) -> None:
    assert unsafe_reads(module.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("room", "code"),
    [
        ("metrics", "from diptych.models import CCA"),
        ("encoders", "import diptych.metrics.precision_recall"),
        ("models", "def late():\n    from diptych.cli.main import app"),
        ("data", "from ..models import CCA"),
        ("data", "from diptych import benchmark"),
        ("errors", "from diptych.data import Pairs"),
        ("models", "from diptych import Space"),
        ("models", "from diptych import __version__"),
    ],
)
def test_an_upward_import_is_seen(room: str, code: str) -> None:
    assert upward_imports(code, room, f"diptych.{room}") != []


@pytest.mark.parametrize(
    ("room", "code"),
    [
        ("cli", "from diptych.service import serve"),
        ("models", "from diptych.space import Space"),
        ("models", "from diptych.metrics import AP"),
        ("models", "from .correlation.cca import CCA"),
        ("models", "from diptych._version import __version__"),
        ("space", "from diptych.arrays import row_blocks"),
        ("metrics", "import numpy as np"),
    ],
)
def test_a_downward_import_is_allowed(room: str, code: str) -> None:
    assert upward_imports(code, room, f"diptych.{room}") == []


@pytest.mark.parametrize(
    "code",
    [
        "import pickle",
        "from pickle import loads",
        "from joblib import load",
        "import joblib\njoblib.load('model')",
        "import torch\ntorch.load('model.pth')",
        "import numpy as np\nnp.load('arrays.npz', allow_pickle=True)",
    ],
)
def test_an_unsafe_read_is_seen(code: str) -> None:
    assert unsafe_reads(code) != []


@pytest.mark.parametrize(
    "code",
    ["np.load('arrays.npz')", "np.load('arrays.npz', allow_pickle=False)", "torch.load('net.pth', weights_only=True)"],
)
def test_a_safe_read_is_allowed(code: str) -> None:
    assert unsafe_reads(code) == []


@pytest.mark.parametrize("package", ["diptych", "diptych.encoders", "diptych.encoders.text.word_pipeline"])
def test_importing_the_package_stays_light(package: str) -> None:
    """The command line and every worker pay for these imports, so they may bring in arrays and nothing heavier."""
    listing = f"import sys, {package}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    loaded = subprocess.run([sys.executable, "-c", listing], capture_output=True, text=True, check=True).stdout.split()
    assert "diptych" in loaded
    assert HEAVY_MODULES.isdisjoint(loaded), f"import {package} also imports {HEAVY_MODULES.intersection(loaded)}"
