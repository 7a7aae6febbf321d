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
from diptych.cli.options import DemoData, DeviceOption, JsonOption, QuietOption
from diptych.errors import InvalidInputError

if TYPE_CHECKING:
    from diptych.collection import Collection, Record
    from diptych.retriever import Retriever

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
    # Someone's own collection stays the one that commands mean.
    is_own = last_collection() in (None, shown.folder.resolve())
    option = "" if is_own else f" --collection {shown.folder}"
    console = results()
    with shown.open(stages) as collection:
        if is_own:
            remember(shown.folder)
        pictures = collection.status().pictures
        if as_json:
            found = {query: [answer.path for answer in collection.search(query, 3)] for query in shown.examples}
            print_json({"title": shown.title, "collection": shown.folder, "pictures": pictures, "searches": found})
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
        _serve(shown, open_page=sys.stdin.isatty() and console.is_terminal)


def _serve(shown: DemoCollection, *, open_page: bool) -> None:
    """Serve the collection to this machine until it is told to end, on the usual port or any that is free."""
    from diptych.cli.commands.serve import serve
    from diptych.service.operations.server import listen

    port = PORT
    try:
        listen(HOST, port).close()
    except InvalidInputError:
        port = 0
    serve([str(shown.folder)], [shown.name], host=HOST, port=port, open_page=open_page, quiet=True)


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
