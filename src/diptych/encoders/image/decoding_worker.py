"""The other end of :mod:`decoding_process`: takes files, decodes them within bounds, and sends what they show."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, BinaryIO

from diptych.encoders.image.decoding_process import MEMORY_BYTES, Answer, become_worker
from diptych.encoders.image.picture_decoding import packed_image, read_image, read_picture
from diptych.encoders.image.picture_facts import picture_facts, video_moments
from diptych.errors import InvalidInputError

# What the libraries of a decoder take before it opens a file.
OWN_BYTES = 256 * 2**20
# Whoever waits for an answer comes first, by nine to one.
_NICENESS = 10


def serve(handle: int) -> None:
    """Do what is asked for over a line until nobody is there any more."""
    become_worker()
    _set_bounds()
    with Connection(handle) as line, suppress(EOFError):
        while True:
            request = json.loads(line.recv_bytes())
            with socket.fromfd(handle, socket.AF_UNIX, socket.SOCK_STREAM) as receiver:
                _, numbers, _, _ = socket.recv_fds(receiver, 1, 1)
            with os.fdopen(numbers[0], "rb") as file:
                # Some formats are told by the name, and words name the file.
                file.raw.name = request.pop("name")  # type: ignore[attr-defined]
                signal.setitimer(signal.ITIMER_PROF, request.pop("most_seconds"))
                answer, content = _answer(request, file)
                signal.setitimer(signal.ITIMER_PROF, 0)
            line.send_bytes(json.dumps(answer).encode())
            line.send_bytes(content)


def _set_bounds() -> None:
    import resource

    # The default is to end the process, which no decoder can keep it from.
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(_NICENESS)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_DATA, (OWN_BYTES + MEMORY_BYTES, OWN_BYTES + MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _answer(request: dict[str, Any], file: BinaryIO) -> Answer:
    try:
        return _TASKS[request.pop("task")](file, **request)
    except MemoryError:
        return {"problem": f"it takes more than {MEMORY_BYTES // 2**20} MiB of memory", "lacks_memory": True}, b""
    except InvalidInputError as reason:
        return {"refusal": str(reason), "lacks_memory": isinstance(reason.__cause__, MemoryError)}, b""
    except Exception as reason:
        return {"problem": " ".join(str(reason).split()) or type(reason).__name__}, b""


def _pixels(file: BinaryIO, **options: Any) -> Answer:
    pixels = read_picture(file, **options)
    return {"shape": pixels.shape}, pixels.tobytes()


def _image(file: BinaryIO, **options: Any) -> Answer:
    return packed_image(read_image(file, **options))


def _facts(file: BinaryIO, path: str, sidecars: list[str]) -> Answer:
    return vars(picture_facts(file, Path(path), [Path(sidecar) for sidecar in sidecars])), b""


def _moments(file: BinaryIO) -> Answer:
    return {"moments": video_moments(file, Path())}, b""


_TASKS: dict[str, Callable[..., Answer]] = {"pixels": _pixels, "image": _image, "facts": _facts, "moments": _moments}
