"""From what was typed after ``--retriever`` to a retriever."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from diptych.errors import InvalidInputError, UnknownNameError

if TYPE_CHECKING:
    from diptych.retriever import Retriever


def load_retriever(name: str) -> Retriever:
    """Return ``default``, ``conse``, a retriever saved in a folder, or one on the joint model in a folder."""
    from diptych.retriever import Retriever

    if name == "default":
        return Retriever.default()
    if name == "conse":
        return Retriever.conse()
    folder = Path(name).expanduser()
    if (folder / "model.json").is_file():
        return Retriever.load(folder)
    if folder.is_dir():
        return Retriever.joint(folder)
    if folder.exists():
        raise InvalidInputError(f"{folder} is a file; --retriever takes default, conse or a folder")
    raise UnknownNameError("retriever", name, ["default", "conse", "a folder"])
