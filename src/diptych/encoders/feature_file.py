"""One encoder's features on disk: a row for every item it has seen."""

from __future__ import annotations

import sqlite3
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from diptych.arrays import AnyArray

_ASK_AT_ONCE = 500
_WAIT_SECONDS = 60.0


class FeatureFile:
    """A SQLite file that maps the digest of an item to its feature row.

    Every write is one transaction: a killed process loses at most the batch in flight, and several processes may read
    and write at once.

    >>> import tempfile
    >>> import numpy as np
    >>> from diptych.encoders.feature_file import FeatureFile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = FeatureFile(f"{folder}/rows.sqlite")
    ...     file.write({b"k": np.ones(3, dtype=np.float32)})
    ...     found = file.read([b"k", b"unknown"])
    ...     file.close()
    >>> sorted(found), found[b"k"].tolist()
    ([b'k'], [1.0, 1.0, 1.0])
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._connection = self._open()

    def read(self, keys: Iterable[bytes]) -> dict[bytes, AnyArray]:
        """Return the rows of those keys that are known; a file found to be damaged is set aside and knows none."""
        wanted = list(dict.fromkeys(keys))
        try:
            return self._found(wanted)
        except sqlite3.OperationalError:
            raise
        except (sqlite3.DatabaseError, TypeError, ValueError) as error:
            self._start_anew(error)
            return {}

    def _found(self, wanted: list[bytes]) -> dict[bytes, AnyArray]:
        found: dict[bytes, AnyArray] = {}
        for start in range(0, len(wanted), _ASK_AT_ONCE):
            part = wanted[start : start + _ASK_AT_ONCE]
            places = ",".join("?" * len(part))
            query = f"SELECT key, dtype, row FROM features WHERE key IN ({places})"
            for key, dtype, row in self._connection.execute(query, part):
                found[key] = np.frombuffer(row, dtype=dtype)
        return found

    def write(self, rows: Mapping[bytes, AnyArray]) -> None:
        """Keep rows; a key that is already there stays as it is."""
        values = [(key, row.dtype.str, np.ascontiguousarray(row).tobytes()) for key, row in rows.items()]
        with self._connection:
            self._connection.executemany("INSERT OR IGNORE INTO features VALUES (?, ?, ?)", values)

    def __len__(self) -> int:
        (count,) = self._connection.execute("SELECT count(*) FROM features").fetchone()
        return int(count)

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def _open(self) -> sqlite3.Connection:
        try:
            return self._prepared(sqlite3.connect(self.path, timeout=_WAIT_SECONDS, check_same_thread=False))
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError as error:
            self._set_aside(error)
            return self._prepared(sqlite3.connect(self.path, timeout=_WAIT_SECONDS, check_same_thread=False))

    def _start_anew(self, error: Exception) -> None:
        self._connection.close()
        self._set_aside(error)
        self._connection = self._open()

    def _set_aside(self, error: Exception) -> None:
        # Features can be made again, so a damaged file gives way to a new one, which must not take over its journal.
        aside = self.path.with_suffix(".damaged")
        self.path.replace(aside)
        for ending in ("-wal", "-shm"):
            self.path.with_name(self.path.name + ending).unlink(missing_ok=True)
        warnings.warn(f"the cached features in {self.path} were damaged ({error}); they are now {aside}", stacklevel=3)

    @staticmethod
    def _prepared(connection: sqlite3.Connection) -> sqlite3.Connection:
        connection.execute("PRAGMA journal_mode=WAL")
        # A power cut may cost the last batch, which is made again; it never damages the file.
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute("CREATE TABLE IF NOT EXISTS features (key BLOB PRIMARY KEY, dtype TEXT, row BLOB)")
        connection.commit()
        return connection
