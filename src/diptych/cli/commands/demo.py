"""``diptych demo``: a collection of photographs to try searching with."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from diptych.cli.console.output import check_folder, print_json, results
from diptych.cli.console.paths import is_collection, last_collection, remember
from diptych.cli.console.progress import Stages
from diptych.cli.options import DemoData, DeviceOption, QuietOption
from diptych.errors import InvalidInputError, MissingDataError

if TYPE_CHECKING:
    from diptych.collection import Collection, Record
    from diptych.data import Dataset
    from diptych.retriever import Retriever

_NAMES = {"flickr8k": "flickr8k", "pascal": "pascal_sentence"}
_HOST = "127.0.0.1"
_PORT = 8765


def demo(
    data: Annotated[
        DemoData,
        typer.Option(help="Which pictures; auto: those of a data set if it is here, or else of the package."),
    ] = "auto",
    everything: Annotated[
        bool, typer.Option("--all", help="All photographs instead of the 1,000 of the test part.")
    ] = False,
    page: Annotated[bool, typer.Option(help="Serve the web page at the end.")] = True,
    terminal: Annotated[bool, typer.Option("--terminal", help="Search in the terminal instead of the page.")] = False,
    device: DeviceOption = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print what is found as JSON, and serve no page.")] = False,
    quiet: QuietOption = False,
) -> None:
    """Index a demonstration collection, show three searches, and open a page to search it."""
    from diptych.cli.commands.search import run_prompt
    from diptych.cli.commands.search_session import SearchSession, SearchSettings

    stages = Stages(quiet=quiet)
    shown = choose_demo(data, everything=everything)
    # Someone's own collection stays the one that commands mean.
    is_own = last_collection() in (None, shown.folder.resolve())
    console = results()
    with shown.open(stages) as collection:
        if is_own:
            remember(shown.folder)
        if as_json:
            found = {query: [answer.path for answer in collection.search(query, 3)] for query in shown.examples}
            pictures = collection.status().pictures
            print_json({"title": shown.title, "collection": shown.folder, "pictures": pictures, "searches": found})
            return
        console.print(f"{shown.title}: {collection.status().pictures:,} pictures", style="bold", soft_wrap=True)
        option = "" if is_own else f" --collection {shown.folder}"
        session = SearchSession(collection, SearchSettings(k=3, format="table"), quiet=quiet)
        for query in shown.examples:
            console.print(f"\n$ diptych search '{query}' -k 3{option}\n", style="bold", soft_wrap=True)
            session.search(query)
        if terminal and sys.stdin.isatty() and console.is_terminal:
            console.print("\nType a query; :help explains, :quit ends.", style="bold")
            run_prompt(SearchSession(collection, SearchSettings(), quiet=quiet))
    console.print("\nGo on:", style="bold")
    for command in (
        f"diptych search 'your words'{option}",
        f"diptych search photo.jpg{option}",
        "diptych index FOLDER",
        "diptych serve FOLDER",
    ):
        console.print(f"  {command}", soft_wrap=True)
    if page and not terminal:
        console.print("\nThe page of the collection, until Ctrl+C:", style="bold")
        is_watched = sys.stdin.isatty() and console.is_terminal
        serve_page(shown, open_page=is_watched)


@dataclass(frozen=True)
class DemoCollection:
    """Photographs with captions in a folder, and what to search for."""

    name: str
    title: str
    examples: tuple[str, ...]
    root: Path
    make_records: Callable[[], Sequence[Record]]

    @property
    def folder(self) -> Path:
        """Where the collection is kept: in the user's cache, since it can be made again."""
        from diptych.data import cache_folder

        return cache_folder() / "demo" / self.name

    @contextmanager
    def open(self, stages: Stages) -> Iterator[Collection]:
        """Make the collection, or bring it up to date, and open it."""
        from diptych.cli.indexing import add_pictures

        records = self.make_records()
        with self._open_or_create(stages, len(records)) as collection:
            add_pictures(collection, records, stages)
            yield collection

    def _open_or_create(self, stages: Stages, n_pictures: int) -> Collection:
        from diptych.collection import Collection, CollectionError
        from diptych.retriever import Retriever
        from diptych.retriever.precision import in_precision

        with stages.run("retriever", "preparing the search model"):
            retriever = Retriever.default()
        if is_collection(self.folder):
            # A demonstration holds nothing of the user's own: what does not fit is made again.
            with suppress(CollectionError):
                collection = Collection.open(self.folder)
                if collection.root == Path(os.path.abspath(self.root)) and _is_of(collection, retriever):
                    return collection
                collection.close()
            shutil.rmtree(self.folder)
        check_folder(self.folder)
        with stages.run("precision", "preparing its networks"):
            retriever = in_precision(retriever, "auto", n_pictures)
        return Collection.create(self.folder, retriever, root=self.root)


def _is_of(collection: Collection, retriever: Retriever) -> bool:
    """Return True if a collection is searched by this retriever, or by one that it was taught since."""
    from diptych.retriever.precision import in_eight_bits

    active = collection.retrievers()[0]
    same = (retriever.fingerprint, in_eight_bits(retriever).fingerprint)
    return active.name != retriever.name or active.fingerprint in same


_EXAMPLES = {
    "flickr8k": ("a dog running through water", "children on a swing", "a dog in the snow - a person"),
    "pascal": ("an aeroplane in the sky", "a cat on a sofa", "a horse in a field - a person"),
}


def dataset_of(data: DemoData) -> Dataset:
    """Return the data set that the photographs come from."""
    from diptych.data import find_dataset

    return find_dataset(_NAMES[data])


def photograph_demo(data: DemoData, *, everything: bool) -> DemoCollection:
    """Return photographs of a data set; of a large set those of its test part, or everything."""
    has_parts = data == "flickr8k" and not everything
    return DemoCollection(
        name=_NAMES[data],
        title={"flickr8k": "Flickr8k", "pascal": "Pascal Sentence"}[data]
        + (", the photographs of the test part" if has_parts else ""),
        examples=_EXAMPLES[data],
        root=dataset_of(data).folder(),
        make_records=lambda: list(_photograph_records(data, only_test=has_parts)),
    )


def _photograph_records(data: DemoData, *, only_test: bool) -> Iterator[Record]:
    from diptych.collection import Record

    splits = dataset_of(data).load()
    for pairs in [splits.test] if only_test else splits.parts.values():
        captions: list[list[str]] = [[] for _ in range(pairs.n_images)]
        for owner, text in zip(pairs.owners.tolist(), cast(Sequence[str], pairs.texts), strict=True):
            captions[owner].append(text)
        for row, path in enumerate(pairs.images):
            yield Record(path, captions[row], None if pairs.labels is None else [str(pairs.labels[row])])


def sample_demo() -> DemoCollection:
    """Return the photographs that come with the package."""
    from diptych.data.sample_photographs import PHOTOGRAPHS_FOLDER

    return DemoCollection(
        name="photographs",
        title="Photographs that come with Diptych",
        examples=("a cat", "a building at night", "flowers"),
        root=PHOTOGRAPHS_FOLDER,
        make_records=_sample_records,
    )


def _sample_records() -> list[Record]:
    from diptych.collection import Record
    from diptych.data.sample_photographs import sample_photographs

    # The page shows whom a photograph is by, and under which licence, beside it.
    return [
        Record(photo.path, photo.captions, None, {"author": photo.author, "licence": photo.licence})
        for photo in sample_photographs()
    ]


def choose_demo(data: DemoData, *, everything: bool) -> DemoCollection:
    """Return what was asked for; ``auto`` is the best that this machine can show."""
    if data == "photographs":
        return sample_demo()
    if data != "auto":
        dataset = dataset_of(data)
        if not dataset.is_available:
            raise MissingDataError(f"{dataset.name} is not on this machine; see: diptych datasets {dataset.name}")
        return photograph_demo(data, everything=everything)
    for kind in ("flickr8k", "pascal"):
        if dataset_of(kind).is_available:
            return photograph_demo(kind, everything=everything)
    return sample_demo()


def serve_page(shown: DemoCollection, *, open_page: bool) -> None:
    """Serve the collection to this machine until it is told to end, on the usual port or any that is free."""
    from diptych.cli.commands.serve import serve
    from diptych.service.operations.server import listen

    port = _PORT
    try:
        listen(_HOST, port).close()
    except InvalidInputError:
        port = 0
    serve([str(shown.folder)], [shown.name], host=_HOST, port=port, open_page=open_page, quiet=True)
