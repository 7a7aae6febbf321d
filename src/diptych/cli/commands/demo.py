"""``diptych demo``: a collection of photographs to try searching with."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from diptych._version import __version__
from diptych.cli.console.output import check_folder, print_json, results
from diptych.cli.console.paths import is_collection, last_collection, remember
from diptych.cli.console.progress import Stages
from diptych.cli.options import DemoData, DeviceOption, JsonOption, QuietOption
from diptych.errors import InvalidInputError

if TYPE_CHECKING:
    from diptych.collection import Collection, Record

HOST = "127.0.0.1"
PORT = 8765


def demo(
    data: Annotated[
        DemoData,
        typer.Option(
            help="photographs: 42 of the package; flickr8k: 1,000 of the data set; auto: those if they are here."
        ),
    ] = "auto",
    page: Annotated[bool, typer.Option("--page/--no-page", help="Serve the web page at the end.")] = True,
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Try it: index photographs, and open the page."""
    from diptych.cli.answers import SearchSettings, search_and_print

    stages = Stages(quiet=quiet)
    shown = choose_demo(data)
    console = results()
    with shown.open(stages) as collection:
        # Someone's own collection stays the one that commands mean.
        is_own = last_collection() in (None, collection.folder.resolve())
        option = "" if is_own else f" --collection {collection.folder}"
        if is_own:
            remember(collection.folder)
        pictures = collection.status().pictures
        if as_json:
            found = {query: [answer.path for answer in collection.search(query, 3)] for query in shown.examples}
            facts = {"title": shown.title, "collection": collection.folder, "pictures": pictures}
            print_json({**facts, "searches": found})
            return
        console.print(f"{shown.title}: {pictures:,} pictures", style="bold", soft_wrap=True)
        for query in shown.examples:
            console.print(f"\n$ diptych search '{query}' -k 3{option}\n", style="bold", soft_wrap=True)
            search_and_print(collection, query, SearchSettings(k=3, format="table"), quiet=quiet)
    console.print("\nGo on:", style="bold")
    for command in ("search 'your words'", "search photo.jpg"):
        console.print(f"  diptych {command}{option}", soft_wrap=True)
    console.print("  diptych index FOLDER\n  diptych serve FOLDER")
    if page:
        console.print("\nThe page of the collection, until Ctrl+C:", style="bold")
        _serve(collection.folder, shown.name, open_page=sys.stdin.isatty() and console.is_terminal)


def _serve(folder: Path, name: str, *, open_page: bool) -> None:
    """Serve the collection to this machine until it is told to end, on the usual port or any that is free."""
    from diptych.cli.commands.serve import serve
    from diptych.service.operations.server import listen

    port = PORT
    try:
        listen(HOST, port).close()
    except InvalidInputError:
        port = 0
    serve([str(folder)], [name], host=HOST, port=port, open_page=open_page, quiet=True)


@dataclass(frozen=True)
class DemoCollection:
    """Photographs with captions in a folder, and what to search for."""

    name: str
    title: str
    examples: tuple[str, ...]
    root: Path
    make_records: Callable[[], Sequence[Record]]

    @contextmanager
    def open(self, stages: Stages) -> Iterator[Collection]:
        """Make the collection in the user's cache, or bring it up to date, and open it."""
        from diptych.cli.indexing import add_pictures
        from diptych.collection import Collection
        from diptych.data import cache_folder
        from diptych.retriever import Retriever
        from diptych.retriever.precision import in_precision

        records = self.make_records()
        with stages.run("retriever", "preparing the search model"):
            retriever = Retriever.default()
        # Another version, search model or place of the photographs makes another collection.
        made_of = f"{__version__} {retriever.fingerprint} {self.root.absolute()}"
        digest = hashlib.sha256(made_of.encode()).hexdigest()[:8]
        folder = cache_folder() / "demo" / f"{self.name}-{digest}"
        if is_collection(folder):
            collection = Collection.open(folder)
        else:
            check_folder(folder)
            with stages.run("precision", "preparing its networks"):
                retriever = in_precision(retriever, "auto", len(records))
            collection = Collection.create(folder, retriever, root=self.root)
        with collection:
            add_pictures(collection, records, stages)
            yield collection


def choose_demo(data: DemoData) -> DemoCollection:
    """Return what was asked for; ``auto`` is the best that this machine can show."""
    from diptych.data import find_dataset
    from diptych.data.sample_photographs import PHOTOGRAPHS_FOLDER

    flickr8k = find_dataset("flickr8k")
    if data == "flickr8k" or (data == "auto" and flickr8k.is_available):
        return DemoCollection(
            name="flickr8k",
            title="Flickr8k, the photographs of the test part",
            examples=("a dog running through water", "children on a swing", "a dog in the snow - a person"),
            root=flickr8k.folder(),
            make_records=_flickr8k_records,
        )
    return DemoCollection(
        name="photographs",
        title="Photographs that come with Diptych",
        examples=("a cat", "a building at night", "flowers"),
        root=PHOTOGRAPHS_FOLDER,
        make_records=_sample_records,
    )


def _flickr8k_records() -> list[Record]:
    from diptych.collection import Record
    from diptych.data import load_dataset

    pairs = load_dataset("flickr8k").test
    captions: list[list[str]] = [[] for _ in range(pairs.n_images)]
    for owner, text in zip(pairs.owners.tolist(), cast(Sequence[str], pairs.texts), strict=True):
        captions[owner].append(text)
    return [Record(path, captions[row]) for row, path in enumerate(pairs.images)]


def _sample_records() -> list[Record]:
    from diptych.collection import Record
    from diptych.data.sample_photographs import sample_photographs

    # The page shows whom a photograph is by, and under which licence, beside it.
    return [
        Record(photo.path, photo.captions, None, {"author": photo.author, "licence": photo.licence})
        for photo in sample_photographs()
    ]
