"""The house: floors, no circles, modules of one idea, nothing executed that is only read, a light import."""

from __future__ import annotations

import ast
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from pathlib import Path

import pytest

from diptych.collection import Collection, Record
from tests.doubles import ToyRetriever

SOURCE = Path(__file__).parents[1] / "src" / "diptych"
MODULES = sorted(SOURCE.rglob("*.py"))

# From the ground up. A module may import rooms that come before its own; rooms of one floor do not know each other.
FLOORS: tuple[frozenset[str], ...] = (
    frozenset(
        {
            "_version",
            "addresses",
            "arrays",
            "arrow",
            "atomic_files",
            "cluster",
            "devices",
            "directions",
            "errors",
            "estimators",
            "lazy_exports",
            "lru_cache",
            "plugins",
            "space",
        }
    ),
    frozenset({"codes", "data"}),
    frozenset({"hub"}),
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

LONGEST_MODULE = 600
FULLEST_FOLDER = 25
SHORTEST_MEDIAN = 120
LARGEST_SHARE_OF_IMPORTS = 0.09
# What a search in a collection imports of the package.
MAX_SEARCH_MODULES = 59
MAX_SEARCH_LINES = 10_800

UNSAFE_MODULES = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "shelve", "marshal"}
SAFETY_WORDS = {"allow_pickle", "weights_only"}
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
    "pyarrow",
    "cv2",
    "rapidocr",
    "simplemma",
    "fastapi",
    "starlette",
    "uvicorn",
    "watchfiles",
    "pydantic",
    "httpx",
    "pillow_heif",
    "rawpy",
    "av",
    "resvg_py",
    "huggingface_hub",
    "httpx2",
}


def dotted(module: Path) -> str:
    return ".".join(["diptych", *module.relative_to(SOURCE).with_suffix("").parts]).removesuffix(".__init__")


PATH_OF = {dotted(module): module for module in MODULES}


@cache
def tree_of(module: Path) -> ast.Module:
    return ast.parse(module.read_text(encoding="utf-8"))


@cache
def nodes_of(tree: ast.AST) -> list[ast.AST]:
    return list(ast.walk(tree))


@pytest.fixture(scope="module", autouse=True)
def parsed() -> None:
    """Parse the package once, for all tests."""
    for module in MODULES:
        nodes_of(tree_of(module))


def type_only(tree: ast.AST) -> set[ast.AST]:
    """Return what stands under ``if TYPE_CHECKING``, which no program runs."""
    blocks = [node for node in nodes_of(tree) if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    return {inner for block in blocks for statement in block.body for inner in ast.walk(statement)}


def imported_names(tree: ast.AST, package: str) -> Iterator[str]:
    """Yield the dotted name of everything a module imports, wherever in the file; ``package`` anchors relative ones."""
    for node in nodes_of(tree):
        yield from names_of_import(node, package)


def names_of_import(node: ast.AST, package: str) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        anchor = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
        base = ".".join([*anchor, *([node.module] if node.module else [])])
        yield from (f"{base}.{alias.name}" for alias in node.names)


def upward_imports(tree: ast.AST, room: str, package: str) -> list[str]:
    """Return the imports that a module of ``room`` may not have."""
    wrong = []
    for name in imported_names(tree, package):
        top, _, rest = name.partition(".")
        if top != "diptych":
            continue
        target = rest.partition(".")[0]
        below = target in FLOOR_OF and FLOOR_OF[target] < FLOOR_OF[room]
        if not (below or target == room or {target, room} <= GROUND):
            wrong.append(name)
    return wrong


@cache
def imported_modules(module: Path) -> set[str]:
    """Return the modules of the package that ``module`` knows: imports inside functions and for types included.

    A package's exports, which it imports when they are asked for, are declared under ``TYPE_CHECKING``, too: they say
    nothing of what the package itself needs.
    """
    tree = tree_of(module)
    ignored = type_only(tree) if "declared_exports(__name__)" in module.read_text(encoding="utf-8") else set()
    names = (name for node in nodes_of(tree) if node not in ignored for name in names_of_import(node, "diptych"))
    found = {name if name in PATH_OF else name.rpartition(".")[0] for name in names}
    return (found & set(PATH_OF)) - {dotted(module)}


def circle_in(graph: Mapping[str, set[str]]) -> list[str]:
    """Return one circle of the graph, or nothing."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as circle:
        return list(circle.args[1])
    return []


def unsafe_reads(tree: ast.AST) -> list[str]:
    """Return what code uses that would execute a file it only means to read."""
    found = [name for name in imported_names(tree, "diptych") if name.partition(".")[0] in UNSAFE_MODULES]
    found += [name for name in imported_names(tree, "diptych") if name in ("joblib.load", "torch.load")]
    for call in (node for node in nodes_of(tree) if isinstance(node, ast.Call)):
        keywords = {word.arg: ast.unparse(word.value) for word in call.keywords if word.arg in SAFETY_WORDS}
        function = ast.unparse(call.func) if isinstance(call.func, ast.Attribute) and call.func.attr == "load" else ""
        if (
            keywords.get("allow_pickle", "False") != "False"
            or function == "joblib.load"
            or (function == "torch.load" and keywords.get("weights_only") != "True")
        ):
            found.append(ast.unparse(call))
    return found


def test_imports_run_downwards_only() -> None:
    wrong = {}
    for module in MODULES:
        room = module.relative_to(SOURCE).parts[0].removesuffix(".py")
        if room != "__init__":
            assert room in FLOOR_OF, f"give the new room {room!r} its floor in {Path(__file__).name}"
            package = ".".join(["diptych", *module.relative_to(SOURCE).parts[:-1]])
            wrong[dotted(module)] = upward_imports(tree_of(module), room, package)
    assert {name: names for name, names in wrong.items() if names} == {}


def test_no_modules_import_one_another_in_a_circle() -> None:
    assert circle_in({name: imported_modules(path) for name, path in PATH_OF.items()}) == []


def test_no_folders_side_by_side_import_one_another_in_a_circle() -> None:
    graph: dict[str, set[str]] = {}
    for name, path in PATH_OF.items():
        for target in imported_modules(path):
            # Modules of a package itself stand above some of its folders and below others.
            ours, theirs = (PATH_OF[each].relative_to(SOURCE).parts[:-1] for each in (name, target))
            if len(ours) > 1 and len(theirs) > 1 and ours[0] == theirs[0] and ours[1] != theirs[1]:
                graph.setdefault(f"{ours[0]}.{ours[1]}", set()).add(f"{theirs[0]}.{theirs[1]}")
    assert circle_in(graph) == []


@pytest.mark.parametrize(
    ("graph", "has_circle"),
    [
        ({"a": {"b"}, "b": {"c"}, "c": {"a"}}, True),
        ({"a": {"b", "c"}, "b": {"c"}}, False),
    ],
)
def test_a_circle_is_seen(graph: dict[str, set[str]], has_circle: bool) -> None:
    assert bool(circle_in(graph)) is has_circle


def test_a_module_is_one_idea_and_a_folder_can_be_overlooked() -> None:
    lines = {dotted(module): len(module.read_text(encoding="utf-8").splitlines()) for module in MODULES}
    assert {name: n for name, n in lines.items() if n > LONGEST_MODULE} == {}, "divide them by idea"
    folders = [module.parent for module in MODULES]
    assert {str(folder) for folder in folders if folders.count(folder) > FULLEST_FOLDER} == set(), "group by idea"
    assert statistics.median(lines.values()) >= SHORTEST_MEDIAN, "merge what belongs together"
    imports = [
        node.end_lineno - node.lineno + 1
        for module in MODULES
        for node in nodes_of(tree_of(module))
        if isinstance(node, ast.Import | ast.ImportFrom) and node.end_lineno is not None
    ]
    assert sum(imports) <= LARGEST_SHARE_OF_IMPORTS * sum(lines.values())


def test_packages_export_what_they_declare() -> None:
    """Declarations are found by their form, so one of another form would be no export."""
    lazy = {name: path for name, path in PATH_OF.items() if "declared_exports(__name__)" in path.read_text("utf-8")}
    assert "diptych.models" in lazy
    for name, path in lazy.items():
        lines = [node for node in type_only(tree_of(path)) if isinstance(node, ast.ImportFrom)]
        below = {
            found for line in lines if line.names[0].name == "*" for found in import_module(str(line.module)).__all__
        }
        declared = {alias.name for line in lines for alias in line.names} - {"*"}
        assert set(import_module(name).__all__) == declared | below


def test_no_module_executes_what_it_reads() -> None:
    found = {dotted(module): unsafe_reads(tree_of(module)) for module in MODULES}
    assert {name: reads for name, reads in found.items() if reads} == {}


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
    assert upward_imports(ast.parse(code), room, f"diptych.{room}") != []


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
    assert upward_imports(ast.parse(code), room, f"diptych.{room}") == []


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
    assert unsafe_reads(ast.parse(code)) != []


@pytest.mark.parametrize(
    "code",
    ["np.load('arrays.npz')", "np.load('arrays.npz', allow_pickle=False)", "torch.load('net.pth', weights_only=True)"],
)
def test_a_safe_read_is_allowed(code: str) -> None:
    assert unsafe_reads(ast.parse(code)) == []


@pytest.mark.parametrize("package", ["diptych", "diptych.encoders", "diptych.encoders.text.word_pipeline"])
def test_importing_the_package_stays_light(package: str) -> None:
    """The command line and every worker pay for these imports, so they may bring in arrays and nothing heavier."""
    listing = f"import sys, {package}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    loaded = subprocess.run([sys.executable, "-c", listing], capture_output=True, text=True, check=True).stdout.split()
    assert "diptych" in loaded
    assert HEAVY_MODULES.isdisjoint(loaded), f"import {package} also imports {HEAVY_MODULES.intersection(loaded)}"


def test_a_search_imports_little_of_the_package(tmp_path: Path) -> None:
    """A reader follows a search through these modules, and a fresh process waits for them."""
    with Collection.create(tmp_path, ToyRetriever(), load_retriever=ToyRetriever.load) as collection:
        collection.add([Record(captions=["a dog"])])
    listing = (
        "import sys\n"
        "from diptych.collection import Collection\n"
        "from tests.doubles import ToyRetriever\n"
        f"collection = Collection.open({str(tmp_path)!r}, load_retriever=ToyRetriever.load)\n"
        "assert len(collection.search('a dog', target='texts')) == 1\n"
        "print(*sys.modules)\n"
    )
    loaded = subprocess.run([sys.executable, "-c", listing], capture_output=True, text=True, check=True).stdout.split()
    ours = [PATH_OF[name] for name in loaded if name in PATH_OF]
    assert len(ours) <= MAX_SEARCH_MODULES
    assert sum(len(module.read_text(encoding="utf-8").splitlines()) for module in ours) <= MAX_SEARCH_LINES


@pytest.mark.parametrize("words", [["--help"], ["nonsense"], ["search", "--nonsense"], ["bench", "--help"]])
def test_help_and_mistakes_import_nothing_heavy(words: list[str]) -> None:
    """The command line needs typer, rich and pydantic, which typer checks arguments with; not even arrays."""
    listing = (
        "import sys\n"
        "from diptych.cli import main\n"
        "try:\n    main()\n"
        "finally:\n    print(*{name.partition('.')[0] for name in sys.modules}, file=sys.stderr)\n"
    )
    run = subprocess.run([sys.executable, "-c", listing, *words], capture_output=True, text=True, check=False)
    loaded = run.stderr.splitlines()[-1].split()
    assert "typer" in loaded
    assert {*HEAVY_MODULES - {"typer", "rich", "pydantic"}, "numpy", "scipy"}.isdisjoint(loaded)


def test_whoever_searches_does_not_wait_for_what_learning_needs() -> None:
    """Methods learn by scikit-learn and SciPy; who uses what they learned imports neither, nor does pandas come in."""
    listing = (
        "import sys, diptych.encoders.text.tfidf\n"
        "from diptych.collection import Collection\n"
        "from diptych.retriever import Retriever\n"
        "print(*sys.modules)\n"
        "from diptych.estimators import clone\n"
        "from diptych.models import CCA\n"
        "clone(CCA())\n"
        "print(*sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", listing], capture_output=True, text=True, check=True)
    searching, learning = (set(line.split()) for line in done.stdout.splitlines())
    assert {"sklearn", "scipy.linalg", "scipy.sparse", "scipy.special", "pandas"}.isdisjoint(searching)
    assert "sklearn.base" in learning
    unused = {"scipy.stats", "pandas", "sklearn.cluster", "sklearn.metrics", "sklearn.model_selection"}
    assert unused.isdisjoint(learning)
