"""Which pictures are left out: the patterns of ``.diptychignore`` files, in the syntax of ``.gitignore``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from diptych.errors import InvalidInputError, MissingPackageError

IGNORE_FILE = ".diptychignore"


class IgnoreFiles:
    """The ignore files of folders and of all that are above them, each read once.

    The patterns of a file hold in its folder and below. Those of the nearest folder win, and a picture in a folder that
    is left out is left out.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / ".diptychignore").write_text("*.png")
    ...     IgnoreFiles().is_ignored(Path(folder) / "a.png"), IgnoreFiles().is_ignored(Path(folder) / "a.jpg")
    (True, False)
    """

    def __init__(self) -> None:
        self._patterns: dict[Path, Any] = {}

    def is_ignored(self, path: Path, *, is_folder: bool = False) -> bool:
        """Return True if a pattern names a file or folder; the folders that it lies in are not looked at."""
        for folder in path.parents:
            patterns = self._of(folder)
            if patterns is not None:
                name = path.relative_to(folder).as_posix() + ("/" if is_folder else "")
                is_included = patterns.check_file(name).include
                if is_included is not None:
                    return bool(is_included)
        return False

    def leaves_out(self, path: Path, root: Path) -> bool:
        """Return True if a file, or a folder below ``root`` that it lies in, is ignored."""
        folders = [folder for folder in path.parents if folder.is_relative_to(root) and folder != root]
        return self.is_ignored(path) or any(self.is_ignored(folder, is_folder=True) for folder in folders)

    def _of(self, folder: Path) -> Any:
        """Return the patterns of a folder, None where it has no ignore file."""
        if folder not in self._patterns:
            self._patterns[folder] = _read(folder / IGNORE_FILE)
        return self._patterns[folder]


def _read(file: Path) -> Any:
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None
    except (OSError, UnicodeDecodeError) as problem:
        raise InvalidInputError(f"{file} cannot be read ({problem}); write a pattern on each line, in UTF-8") from None
    try:
        from pathspec import GitIgnoreSpec
    except ImportError as error:
        raise MissingPackageError(f"reading {file}", "'diptych[search]'") from error
    try:
        return GitIgnoreSpec.from_lines(lines)
    except ValueError as problem:
        raise InvalidInputError(f"{file} has a pattern that cannot be used: {problem}; mend it") from None


def add_patterns(folder: Path, patterns: Iterable[str]) -> None:
    """Add patterns to the ignore file of a folder, those that it lacks."""
    file = folder / IGNORE_FILE
    known = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    lines = [*known, *(pattern for pattern in dict.fromkeys(patterns) if pattern not in known)]
    if lines != known:
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
