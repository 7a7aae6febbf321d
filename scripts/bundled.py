"""What comes with Diptych and was not written as code, read from ``bundled.toml``: files, their origins and terms.

`scripts/notice.py` and `scripts/sbom.py` read it, and a test checks that no file is left out.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "diptych"


@dataclass(frozen=True)
class Bundled:
    """Files of one origin: patterns below ``src/diptych``, an SPDX expression where there is one, and the story."""

    name: str
    patterns: list[str]
    kind: str  # of CycloneDX: "data", "file" or "machine-learning-model"
    licence: str
    story: str

    def files(self) -> list[Path]:
        """Return the files that are there."""
        return sorted(path for pattern in self.patterns for path in PACKAGE.glob(pattern))


_KNOWN = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
BUNDLED = tuple(Bundled(**one) for one in _KNOWN["bundled"])
WEIGHT_PACKAGES: dict[str, str] = {name: one["story"] for one in _KNOWN["weights"] for name in one["packages"]}
STRICTER_WHEELS: dict[str, str] = _KNOWN["stricter_wheels"]
LICENCE_FILES: dict[str, str] = _KNOWN["licence_files"]
ELSEWHERE: dict[str, str] = _KNOWN["elsewhere"]
