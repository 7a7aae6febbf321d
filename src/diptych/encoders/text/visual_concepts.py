"""The names of what can be seen in pictures."""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from diptych.errors import MissingPackageError

_REQUIREMENT = "timm==1.0.30"
_SYNSETS = "imagenet22k_synsets.txt"
_NAMES = "imagenet_synset_to_lemma.txt"


@lru_cache(maxsize=1)
def imagenet_concepts() -> tuple[str, ...]:
    """Return the words and phrases of the 21,841 concepts of ImageNet, each once.

    ImageNet (Deng et al., "ImageNet: a large-scale hierarchical image database", CVPR 2009) has pictures of concepts
    of WordNet, and each concept has one or more names. They are read from two text files of the package timm, which is
    not imported and needs none of the packages that it asks for: ``pip install --no-deps timm==1.0.30``.

    Use it as the vocabulary of :class:`Visualness`, which does so by default, or as words to label pictures with.

    Examples
    --------
    >>> from diptych.encoders import imagenet_concepts
    >>> len(imagenet_concepts()), "soccer ball" in imagenet_concepts(), "funny" in imagenet_concepts()
    (37006, True, False)
    """
    folder = _folder()
    wanted = set((folder / _SYNSETS).read_text(encoding="utf-8").split())
    lines = (folder / _NAMES).read_text(encoding="utf-8").splitlines()
    named = (line.split("\t") for line in lines)
    return tuple(dict.fromkeys(name for synset, names in named if synset in wanted for name in names.split(", ")))


def _folder() -> Path:
    # Looking for a package does not run it.
    package = find_spec("timm")
    for place in (package.submodule_search_locations or []) if package is not None else []:
        folder = Path(place) / "data" / "_info"
        if (folder / _SYNSETS).is_file() and (folder / _NAMES).is_file():
            return folder
    raise MissingPackageError("the list of ImageNet's concepts", f"--no-deps {_REQUIREMENT}")
