"""A network ready to run, by ONNX Runtime on the chosen device: the processor, or a graphics card."""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import shutil
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar
from weakref import WeakSet

import numpy as np

from diptych.arrays import AnyArray
from diptych.cluster import available_processors
from diptych.data.folders import cache_folder
from diptych.devices import PROCESSOR, execution_providers, uses_card
from diptych.encoders.networks.model_files import digest_of_files
from diptych.encoders.networks.onnx_graph import NETWORK_FILE, WEIGHT_ALIGNMENT, WEIGHTS_FILE, GraphBuilder
from diptych.errors import DiptychError, MissingPackageError, ModelFileError, NoMemoryError

Builder = TypeVar("Builder", bound=GraphBuilder)

# Part of every name in the cache: raised when the same weights are to be written down in another way.
_FORMAT = 4
_DIGEST_FILE = "digest"
_PREPARED_FILE, _PREPARED_WEIGHTS = "prepared.onnx", "prepared.bin"
# Prepared weights lie beside the others; of a large network that would be too much of a disk.
_MOST_PREPARED_BYTES = 1 << 28
# What the runtime chooses its ways of computing by, and with them the order in which weights lie.
_TELLS_PROCESSORS = ("vendor_id", "cpu family", "model", "flags", "CPU implementer", "CPU part", "Features")


class Network:
    """A session of ONNX Runtime, on the processor ``n_threads`` of it for a run; several threads may run it.

    As many runs as there are processors go on at once, and others wait: more would take no less time together, and the
    runtime keeps the memory of as many as ever ran at once. On an accelerator, which ``device`` names, one does.

    ``kept`` are the arrays that were kept with the network, read from the disk as they are needed.
    """

    kept: Mapping[str, AnyArray] = MappingProxyType({})

    def __init__(
        self, file: Path, n_threads: int | None = None, *, is_prepared: bool = False, device: str | None = None
    ) -> None:
        onnxruntime = _runtime()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = n_threads if n_threads is not None else available_processors()
        # Threads that wait by spinning take the cores away from those that decode the next pictures.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        if is_prepared:
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        # Errors are raised, and need not be printed as well.
        options.log_severity_level = 4
        if device is not None:
            # DirectML asks for both.
            options.enable_mem_pattern = False
        self._turns = threading.BoundedSemaphore(available_processors() if device is None else 1)
        weights = file.with_name(_PREPARED_WEIGHTS if is_prepared else WEIGHTS_FILE)
        try:
            self._mapped = MappedSession(
                weights,
                lambda: onnxruntime.InferenceSession(str(file), options, providers=execution_providers(device)),
            )
        except DiptychError:
            raise
        except Exception as error:
            # The runtime raises types of its own, without a common base, for a file that it cannot use.
            raise _clear_error(error, f"{file} cannot be run by ONNX Runtime", "copy the file again") from error
        self._session = self._mapped.session

    @classmethod
    def written_once(
        cls,
        name: str,
        builder: type[Builder],
        describe: Callable[[Builder], None],
        n_threads: int | None = None,
        *,
        device: str | None = None,
    ) -> Network:
        """Return the network that ``describe`` writes, written the first time and taken from the cache from then on.

        ``name`` must change whenever the network does. Networks lie under ``networks`` in the cache folder; they
        appear there whole or not at all, one that was altered is written again, and deleting them is always safe.
        For the processor they are written as the runtime has them in its memory, so that it starts sooner, and
        processes share what they have mapped.
        """

        def write(folder: Path) -> None:
            with builder(folder) as graph:
                describe(graph)

        processor = "" if uses_card() or device is not None else processor_kind()
        target = cache_folder() / "networks" / _key(name, processor)
        if _is_whole(target):
            return cls._opened(target, n_threads, device)
        try:
            shutil.rmtree(target, ignore_errors=True)
            _write_network(target, write, prepares=bool(processor))
        except OSError as error:
            warnings.warn(f"the network was not cached in {target.parent}: {error}", stacklevel=2)
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                write(Path(folder))
                return cls._opened(Path(folder), n_threads, device)
        return cls._opened(target, n_threads, device)

    @classmethod
    def _opened(cls, folder: Path, n_threads: int | None, device: str | None) -> Network:
        prepared = folder / _PREPARED_FILE
        is_prepared = prepared.is_file()
        file = prepared if is_prepared else folder / NETWORK_FILE
        network = cls(file, n_threads, is_prepared=is_prepared, device=device)
        network.kept = {file.stem: np.load(file, mmap_mode="r") for file in _kept_files(folder)}
        return network

    @property
    def inputs(self) -> dict[str, tuple[str, list[Any]]]:
        """The type and shape of each input by its name; sizes that vary are strings or None."""
        return {value.name: (value.type, list(value.shape)) for value in self._session.get_inputs()}

    @property
    def outputs(self) -> dict[str, list[Any]]:
        """The shape of each output by its name; sizes that vary are strings or None."""
        return {value.name: list(value.shape) for value in self._session.get_outputs()}

    def run(self, output: str, inputs: Mapping[str, AnyArray]) -> AnyArray:
        """Return one output of a run."""
        return np.asarray(self._tried(self._session.run, [output], inputs)[0])

    def run_all(self, inputs: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
        """Return every output of a run by its name."""
        names = list(self.outputs)
        return dict(zip(names, self._tried(self._session.run, names, inputs), strict=True))

    def _tried(
        self, run: Callable[[list[str], dict[str, Any]], list[Any]], outputs: list[str], inputs: Any
    ) -> list[Any]:
        try:
            with self._turns:
                return run(outputs, dict(inputs))
        except Exception as error:
            raise _clear_error(error, "a network cannot be run by ONNX Runtime", "copy its file again") from error


def _clear_error(error: Exception, what: str, fix: str) -> DiptychError:
    said = " ".join(str(error).split())[:300]
    if re.search(r"allocat|bad_alloc|out of memory", said, re.IGNORECASE):
        return NoMemoryError(f"{what}: there is not enough memory ({said}); use smaller batches or a smaller network")
    return ModelFileError(f"{what} ({said}); {fix}")


def _runtime() -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise MissingPackageError("running a pretrained network", "onnxruntime") from error
    return onnxruntime


def runtime_version() -> str:
    """Return the version of ONNX Runtime."""
    return str(_runtime().__version__)


@lru_cache(maxsize=1)
def processor_kind() -> str:
    """Return what tells this kind of processor from others, nothing where the system does not say."""
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(sorted({line for line in lines if line.partition(":")[0].strip() in _TELLS_PROCESSORS}))
    return ""


def _key(name: str, processor: str) -> str:
    return hashlib.sha256("\0".join([str(_FORMAT), name, *filter(None, [processor])]).encode()).hexdigest()[:32]


def _is_whole(folder: Path) -> bool:
    try:
        return (folder / _DIGEST_FILE).read_text(encoding="ascii") == _digest(folder)
    except (OSError, ValueError):
        return False


def _digest(folder: Path) -> str:
    if (folder / _PREPARED_FILE).is_file():
        # Another version may lay out the weights in another way.
        names, made_by = (_PREPARED_FILE, _PREPARED_WEIGHTS), f"{_runtime().__version__} "
    else:
        names, made_by = (NETWORK_FILE, WEIGHTS_FILE), ""
    return made_by + digest_of_files((*(folder / name for name in names), *_kept_files(folder)))


def _kept_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.npy"))


def _write_network(target: Path, write: Callable[[Path], None], *, prepares: bool) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(dir=target.parent, suffix=".part"))
    try:
        write(draft)
        if prepares and (draft / WEIGHTS_FILE).stat().st_size <= _MOST_PREPARED_BYTES:
            _prepare(draft)
        (draft / _DIGEST_FILE).write_text(_digest(draft), encoding="ascii")
        draft.rename(target)
    except OSError:
        # Another process may have been quicker; what it wrote is the same.
        if not _is_whole(target):
            raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _prepare(folder: Path) -> None:
    """Write a network as the runtime has it in its memory in the place of what it was made from."""
    onnxruntime = _runtime()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.optimized_model_filepath = str(folder / _PREPARED_FILE)
    options.add_session_config_entry("session.optimized_model_external_initializers_file_name", _PREPARED_WEIGHTS)
    options.add_session_config_entry("session.save_external_prepacked_constant_initializers", "1")
    try:
        onnxruntime.InferenceSession(str(folder / NETWORK_FILE), options, providers=[PROCESSOR])
    except Exception:
        # As above, of no common type; the network as it was written does the same.
        (folder / _PREPARED_FILE).unlink(missing_ok=True)
        (folder / _PREPARED_WEIGHTS).unlink(missing_ok=True)
        return
    (folder / _PREPARED_WEIGHTS).touch()
    for name in (NETWORK_FILE, WEIGHTS_FILE):
        (folder / name).unlink()
    _align(folder / _PREPARED_FILE, folder / _PREPARED_WEIGHTS)


def _align(graph: Path, weights: Path) -> None:
    """Move prepared weights to where products of x86 processors may read them, or a process would end at the first one.

    They read what was laid out for them in whole registers, and the runtime puts it right behind whatever came before.
    """
    import onnx

    model = onnx.load(graph, load_external_data=False)
    aligned = weights.with_suffix(".aligned")
    with weights.open("rb") as before, aligned.open("wb") as after:

        def moved(offset: str, length: str) -> str:
            before.seek(int(offset))
            after.write(b"\0" * (-after.tell() % WEIGHT_ALIGNMENT))
            place = after.tell()
            after.write(before.read(int(length)))
            return str(place)

        for tensor in model.graph.initializer:
            entries = {entry.key: entry for entry in tensor.external_data}
            if entries:
                entries["offset"].value = moved(entries["offset"].value, entries["length"].value)
            for entry in (entry for key, entry in entries.items() if key.startswith("prepacked")):
                # The name of what was laid out, and offset, length and checksum of each part.
                kind, parts = entry.value.split("|")
                numbers = parts.split(";")
                numbers[::3] = map(moved, numbers[::3], numbers[1::3])
                entry.value = f"{kind}|{';'.join(numbers)}"
        after.flush()
        os.fsync(after.fileno())
    aligned.replace(weights)
    graph.write_bytes(model.SerializeToString())


_MAPS, _DETAILED_MAPS = Path("/proc/self/maps"), Path("/proc/self/smaps")
# What madvise of Linux calls it.
_DONT_NEED = 4
_TABLE_BYTES = 16 << 20

# Addresses from a first one on, up to one that is none of them any more.
Places = list[tuple[int, int]]


class MappedSession:
    """A session that ``open`` makes, with the places at which it has mapped tables of words from ``file``.

    A table with a row for every word is mapped page by page as words are met, with fifteen pages around each one, and
    would stay in the memory of a process until it ends. What is let go of stays in the system's cache of files: it is
    mapped again when it is needed, without being read again, and the system may take it for something else before.
    Matrices, which are smaller, are read whole in every run and stay.
    """

    def __init__(self, file: Path, open: Callable[[], Any]) -> None:
        self.file = file.resolve()
        # Two sessions of one file must not take what the other one maps for their own.
        with _opening.setdefault(self.file, threading.Lock()):
            before = _mapped(self.file)
            self.session = open()
            new = _without(_mapped(self.file), before)
        self._places = [(start, end) for start, end in new if end - start >= _TABLE_BYTES]
        self._is_checked = False
        _sessions.add(self)

    def let_go(self) -> None:
        """Let go of its tables, but for those that it wrote to when it was opened: these are in no file."""
        if self._places and not self._is_checked:
            # Only once: the system takes long to tell. A session that runs reads its weights, perhaps in many threads.
            self._places = _common(self._places, unwritten(_lines(_DETAILED_MAPS), str(self.file)))
            self._is_checked = True
        advise = ctypes.CDLL(None).madvise
        advise.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
        for start, end in self._places:
            advise(start, end - start, _DONT_NEED)


_opening: dict[Path, threading.Lock] = {}
_sessions: WeakSet[MappedSession] = WeakSet()


def let_go_of_tables() -> None:
    """Let go of the tables of words of all sessions, which may run; nothing happens where the system cannot."""
    # Each is held meanwhile: the places of one that is gone may be anybody's.
    for session in list(_sessions):
        with suppress(AttributeError, TypeError):
            session.let_go()


def _without(places: Places, others: Places) -> Places:
    """Return the parts of places that lie in no other ones.

    >>> _without([(0, 10), (20, 30)], [(2, 4), (8, 25)])
    [(0, 2), (4, 8), (25, 30)]
    """
    for start, end in others:
        cut = (part for first, last in places for part in ((first, min(last, start)), (max(first, end), last)))
        places = [(first, last) for first, last in cut if first < last]
    return places


def _common(places: Places, others: Places) -> Places:
    """Return the parts of places that lie in other ones as well.

    >>> _common([(0, 10), (20, 30)], [(2, 4), (8, 25)])
    [(2, 4), (8, 10), (20, 25)]
    """
    pairs = ((max(first, start), min(last, end)) for first, last in places for start, end in others)
    return [(first, last) for first, last in pairs if first < last]


def unwritten(lines: Iterable[str], file: str) -> Places:
    """Return where a file is mapped and no page differs from it, from the lines of ``smaps``."""
    found: dict[tuple[int, int], None] = {}
    place = None
    for line in lines:
        first, *values = line.split(None, 5)
        if not first.endswith(":"):
            place = _place(first) if values[4:] == [file] else None
            if place is not None:
                found[place] = None
        elif place is not None and first in ("Anonymous:", "Swap:") and values[0] != "0":
            found.pop(place, None)
    return list(found)


def _mapped(file: Path) -> Places:
    name = str(file)
    fields = (line.split(None, 5) for line in _lines(_MAPS) if line.endswith(name))
    return [_place(first) for first, *values in fields if values[4:] == [name]]


def _lines(maps: Path) -> list[str]:
    try:
        return maps.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return []


def _place(addresses: str) -> tuple[int, int]:
    start, end = addresses.split("-")
    return int(start, 16), int(end, 16)
