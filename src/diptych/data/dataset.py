"""What a data set declares about itself, and what loading it gives."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from diptych.data.downloads import Download
from diptych.data.folders import data_folder
from diptych.data.pairs import Pairs
from diptych.errors import InvalidInputError, MissingDataError, UnknownNameError

CAPTIONS_HELP = (
    "'all' captions as separate texts, 'join' them into one document per image, or the number of one, counted from 0"
)


@dataclass(frozen=True)
class DatasetSplits:
    """The parts of one data set, as :func:`diptych.data.load_dataset` returns them.

    ``dev`` is None where the data set has no development part. ``name`` and ``options`` say how the parts were made,
    defaults included. ``extras`` holds loaders of further material, such as human judgements, which are read only
    when :meth:`extra` asks for them.

    >>> from diptych.data import load_dataset
    >>> splits = load_dataset("scenes", n_train=8, n_test=4, size=32)
    >>> splits.train.n_images, splits.test.n_images, splits.dev, splits.options["seed"]
    (8, 4, None, 0)
    """

    train: Pairs
    test: Pairs
    dev: Pairs | None = None
    name: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    extras: Mapping[str, Callable[[], Any]] = field(default_factory=dict, repr=False)

    def extra(self, name: str) -> Any:
        """Load one of the extras, for example ``splits.extra("expert_judgements")`` of Flickr8k."""
        if name not in self.extras:
            raise UnknownNameError(f"extra of {self.name or 'this data set'}", name, self.extras)
        return self.extras[name]()

    @property
    def parts(self) -> dict[str, Pairs]:
        """The parts that exist, by name: train, test and perhaps dev."""
        parts = {"train": self.train, "test": self.test}
        return parts if self.dev is None else {**parts, "dev": self.dev}

    def describe(self) -> str:
        """Return one line per part."""
        return "\n".join(f"{part}: {pairs.describe()}" for part, pairs in self.parts.items())


@dataclass(frozen=True)
class Dataset:
    """A declaration: what the data set is, where it comes from, what it needs on disk and how to load it.

    ``files`` are paths relative to the data set's folder, ``data_folder() / name``; an empty tuple means that the data
    set needs nothing on disk. ``downloads`` are the archives that hold them, where these are public by address;
    otherwise ``steps`` says in words how to get them. ``loader`` takes keyword options only, each with a default, and
    ``options`` explains them. To add a data set, write one file that ends in such a declaration and add it to
    ``DATASETS`` in ``diptych.data.datasets``.
    """

    name: str
    summary: str
    homepage: str
    citation: str
    licence: str
    splits: str
    loader: Callable[..., DatasetSplits]
    files: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    downloads: tuple[Download, ...] = ()
    steps: str = ""

    @property
    def expected_folder(self) -> Path:
        """Where the files are looked for."""
        return data_folder() / self.name

    @property
    def is_available(self) -> bool:
        """Whether the declared files are on this machine."""
        return not self._missing(self.files)

    def folder(self, *further_files: str) -> Path:
        """Return the data set's folder, or say which files are expected there and where to get them.

        ``further_files`` are those that only some options need.
        """
        wanted = tuple(dict.fromkeys((*self.files, *further_files)))
        missing = self._missing(wanted)
        if missing:
            can_download = bool(self.downloads) and set(missing) <= set(self.files)
            shortcut = f"; `diptych datasets get {self.name}` does all this" if can_download else ""
            raise MissingDataError(
                f"the data set {self.name!r} is not complete on this machine: {self.expected_folder} lacks "
                f"{', '.join(missing)}. Get it from {self.homepage}, put {', '.join(wanted)} into a folder named "
                f"{self.name!r}, and set DIPTYCH_DATA to the folder above it{shortcut}"
            )
        return self.expected_folder

    def _missing(self, files: tuple[str, ...]) -> list[str]:
        return [file for file in files if not (self.expected_folder / file).exists()]

    @property
    def defaults(self) -> dict[str, Any]:
        """The options and their default values."""
        parameters = inspect.signature(self.loader).parameters.values()
        return {parameter.name: parameter.default for parameter in parameters}

    def load(self, **options: Any) -> DatasetSplits:
        """Load the data set; unknown options raise an error that lists the known ones."""
        known = self.defaults
        for option in options:
            if option not in known:
                raise InvalidInputError(
                    f"the data set {self.name!r} has no option {option!r}; it knows: {', '.join(known) or 'none'}"
                )
        chosen = {**known, **options}
        return replace(self.loader(**chosen), name=self.name, options=chosen)


def photograph_pairs(folder: Path, captions: Mapping[str, Sequence[str]], **more: Any) -> Pairs:
    """Return photographs, all of them files of ``folder``, with the captions of each; ``more`` is for `Pairs`."""
    present = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    missing = [name for name in captions if name not in present]
    if missing:
        raise InvalidInputError(f"{folder} lacks {len(missing)} of {len(captions)} photographs, first {missing[0]}")
    return Pairs(
        [folder / name for name in captions],
        [caption for listed in captions.values() for caption in listed],
        ids=list(captions),
        owners=[row for row, listed in enumerate(captions.values()) for _ in listed],
        **more,
    )


def choose_captions(pairs: Pairs, captions: Any) -> Pairs:
    """Keep all captions, one document of all captions, or the k-th caption of each image."""
    if captions == "all":
        return pairs
    if captions == "join":
        return pairs.one_text_per_image("join")
    if isinstance(captions, int) and not isinstance(captions, bool):
        return pairs.one_text_per_image(captions)
    raise InvalidInputError(f"captions must be 'all', 'join' or the position of one caption, got {captions!r}")
