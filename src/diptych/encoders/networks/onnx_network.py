"""Networks that ONNX Runtime runs on the chosen device, the processor or a graphics card, and encoders by one."""

from __future__ import annotations

import hashlib
import re
import tempfile
import threading
import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from diptych.arrays import AnyArray, FloatArray
from diptych.atomic_files import atomic_write, sync_to_disk
from diptych.cluster import available_processors
from diptych.data.folders import cache_folder
from diptych.devices import PROVIDERS, chosen_device, missing_provider, network_device
from diptych.encoders.encoder import BatchEncoder
from diptych.encoders.networks.model_files import digest_of_files, onnx_package
from diptych.errors import DiptychError, ModelFileError, NoMemoryError, import_package

FORMAT = 6
"""Part of every name in the cache: raised when the same weights are written in another way."""

_TYPES: dict[str, type[np.generic]] = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(uint8)": np.uint8,
}


class Network:
    """A session of ONNX Runtime, on the processor ``n_threads`` of it for a run; several threads may run it.

    As many runs as there are processors go on at once, and others wait: more would take no less time together, and the
    runtime keeps the memory of as many as ever ran at once. On an accelerator one does. ``one_by_one`` is for networks
    that round by the range of all that they are given, so that items change each other's results.
    """

    def __init__(self, file: Path | bytes, n_threads: int | None = None, *, one_by_one: bool = False) -> None:
        onnxruntime = import_package("onnxruntime", "running a pretrained network", "onnxruntime")
        device = network_device()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = n_threads if n_threads is not None else available_processors()
        # Threads that wait by spinning take the cores away from those that decode the next pictures.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        # Errors are raised, and need not be printed as well.
        options.log_severity_level = 4
        if device == "cuda":
            # The libraries that pip installs, or PyTorch brings, are not on the system's search path.
            onnxruntime.preload_dlls()
        wanted = [PROVIDERS[name] for name in dict.fromkeys((device, "cpu"))]
        providers = [(provider.name, dict(provider.options)) for provider in wanted]
        self._turns = threading.BoundedSemaphore(available_processors() if device == "cpu" else 1)
        try:
            given = file if isinstance(file, bytes) else str(file)
            self._session = onnxruntime.InferenceSession(given, options, providers=providers)
        except Exception as error:
            # The runtime raises types of its own, without a common base, for a file that it cannot use.
            name = "a network" if isinstance(file, bytes) else str(file)
            raise _clear_error(error, f"{name} cannot be run by ONNX Runtime", "copy the file again") from error
        if PROVIDERS[device].name not in self._session.get_providers():
            # It is installed, but libraries that it needs are missing; the session has fallen back to the processor.
            if chosen_device() != "auto":
                raise missing_provider(device)
            warnings.warn(str(missing_provider(device)), stacklevel=2)
        first_sizes = [shape[0] for _, shape in self.inputs.values() if shape]
        # Of one that was exported for a fixed number of items.
        fixed = next((size for size in first_sizes if isinstance(size, int)), None)
        self._items_at_once = 1 if one_by_one else fixed

    @classmethod
    def made_once(cls, name: str, make: Callable[[], Any], n_threads: int | None = None) -> Network:
        """Return the network that ``make`` gives as ``onnx.ModelProto`` the first time, from then on from the cache.

        ``name`` must change whenever the network does. Networks lie under ``networks`` in the cache folder, each with
        its digest; one that was altered is made again, and deleting them is always safe.
        """
        key = hashlib.sha256(f"{FORMAT}\0{name}".encode()).hexdigest()[:32]
        file = cache_folder() / "networks" / f"{key}.onnx"
        try:
            is_whole = file.with_suffix(".sha256").read_text(encoding="ascii") == _digest(file)
        except (OSError, ValueError):
            is_whole = False
        if not is_whole:
            model = make()
            try:
                _keep(model, file)
            except OSError as error:
                warnings.warn(f"the network was not cached in {file.parent}: {error}", stacklevel=2)
                return cls(model.SerializeToString(), n_threads)
        return cls(file, n_threads)

    @property
    def inputs(self) -> dict[str, tuple[str, list[Any]]]:
        """The type and shape of each input by its name; sizes that vary are strings or None."""
        return {value.name: (value.type, list(value.shape)) for value in self._session.get_inputs()}

    @property
    def outputs(self) -> dict[str, list[Any]]:
        """The shape of each output by its name; sizes that vary are strings or None."""
        return {value.name: list(value.shape) for value in self._session.get_outputs()}

    def run(self, output: str, inputs: Mapping[str, AnyArray]) -> FloatArray:
        """Return one output as float32, given inputs in the network's own types or in others."""
        types = {name: _TYPES[kind] for name, (kind, _) in self.inputs.items()}
        arrays = {name: values.astype(types[name], copy=False) for name, values in inputs.items()}
        step, n_items = self._items_at_once, len(next(iter(arrays.values())))
        if step is None or step == n_items:
            return self._run(output, arrays)
        # The last item is repeated to fill up the last step.
        rows = [np.minimum(np.arange(start, start + step), n_items - 1) for start in range(0, n_items, step)]
        parts = [self._run(output, {name: values[part] for name, values in arrays.items()}) for part in rows]
        return np.concatenate(parts)[:n_items]

    def _run(self, output: str, inputs: dict[str, AnyArray]) -> FloatArray:
        try:
            with self._turns:
                return np.asarray(self._session.run([output], inputs)[0]).astype(np.float32, copy=False)
        except Exception as error:
            raise _clear_error(error, "a network cannot be run by ONNX Runtime", "copy its file again") from error


class OnnxEncoder(BatchEncoder):
    """An encoder of pictures or texts by one network, which is written at first use and kept in the cache folder."""

    learns: ClassVar[bool] = False

    @abstractmethod
    def make_network(self) -> Any:
        """Return the network as an ``onnx.ModelProto``."""

    @property
    def network_name(self) -> str:
        """The name under which the network is kept; the revision stands for the code that writes it."""
        return f"{self.identity} {self.weights_digest} {self.revision}"

    def open_network(self) -> Network:
        """Return the network, ready to run."""
        name, threads = self.network_name, self.threads
        return self._made_once((name, threads), lambda: Network.made_once(name, self.make_network, threads))


def _clear_error(error: Exception, what: str, fix: str) -> DiptychError:
    said = " ".join(str(error).split())[:300]
    if re.search(r"allocat|bad_alloc|out of memory", said, re.IGNORECASE):
        return NoMemoryError(f"{what}: there is not enough memory ({said}); use smaller batches or a smaller network")
    return ModelFileError(f"{what} ({said}); {fix}")


def _digest(file: Path) -> str:
    return digest_of_files((file, file.with_suffix(".onnx_data")))


def _keep(model: Any, file: Path) -> None:
    """Write a network, its weights and their digest; a file that another process has open stays as it is."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=file.parent, prefix=".draft-", ignore_cleanup_errors=True) as room:
        draft = Path(room) / file.name
        # The runtime maps weights in a file of their own, and does not copy them.
        onnx_package().save_model(model, draft, save_as_external_data=True, location=f"{draft.name}_data")
        for part in (draft.with_suffix(".onnx_data"), draft):
            sync_to_disk(part)
            part.replace(file.with_name(part.name))
    with atomic_write(file.with_suffix(".sha256"), private=True) as note:
        note.write_text(_digest(file), encoding="ascii")
