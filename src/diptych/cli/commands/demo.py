"""``diptych demo``: a collection of photographs to try searching with."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from diptych._version import __version__
from diptych.cli.console.output import check_folder, print_json, results
from diptych.cli.console.paths import is_collection, last_collection, remember
from diptych.cli.console.progress import Stages
from diptych.cli.options import DeviceOption, JsonOption, QuietOption
from diptych.errors import InvalidInputError

if TYPE_CHECKING:
    from diptych.collection import Collection

HOST = "127.0.0.1"
PORT = 8765
NAME = "photographs"
TITLE = "Photographs that come with Diptych"
EXAMPLES = ("a cat", "a building at night", "flowers")


def demo(
    page: Annotated[bool, typer.Option("--page/--no-page", help="Serve the web page at the end.")] = True,
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Try it: index photographs, and open the page."""
    from diptych.cli.answers import search_and_print, typed_query
    from diptych.cli.commands.serve import serve
    from diptych.collection.searching.query import SearchRequest

    console = results()
    with demo_collection(Stages(quiet=quiet)) as collection:
        # Someone's own collection stays the one that commands mean.
        is_own = last_collection() in (None, collection.folder.resolve())
        option = "" if is_own else f" --collection {collection.folder}"
        if is_own:
            remember(collection.folder)
        pictures = collection.status().pictures
        if as_json:
            found = {query: [answer.path for answer in collection.search(query, 3)] for query in EXAMPLES}
            print_json({"title": TITLE, "collection": collection.folder, "pictures": pictures, "searches": found})
            return
        console.print(f"{TITLE}: {pictures:,} pictures", style="bold", soft_wrap=True)
        for query in EXAMPLES:
            console.print(f"\n$ diptych search '{query}' -k 3{option}\n", style="bold", soft_wrap=True)
            search_and_print(collection, SearchRequest(typed_query(collection, query), k=3), "table", quiet=quiet)
    console.print("\nGo on:", style="bold")
    for command in ("search 'your words'", "search photo.jpg"):
        console.print(f"  diptych {command}{option}", soft_wrap=True)
    console.print("  diptych index FOLDER\n  diptych serve FOLDER")
    if page:
        console.print("\nThe page of the collection, until Ctrl+C:", style="bold")
        open_page = sys.stdin.isatty() and console.is_terminal
        serve([str(collection.folder)], [NAME], host=HOST, port=_port(), open_page=open_page, quiet=True)


def _port() -> int:
    """Return the usual port, or 0 for any free one where that is taken."""
    from diptych.service.operations.server import listen

    try:
        listen(HOST, PORT).close()
    except InvalidInputError:
        return 0
    return PORT


@contextmanager
def demo_collection(stages: Stages) -> Iterator[Collection]:
    """Make the collection in the user's cache, or bring it up to date, and open it."""
    from diptych.cli.indexing import add_pictures
    from diptych.collection import Collection, Record
    from diptych.data import cache_folder
    from diptych.data.sample_photographs import PHOTOGRAPHS_FOLDER, sample_photographs
    from diptych.retriever import Retriever
    from diptych.retriever.precision import in_precision

    # The page shows whom a photograph is by, and under which licence, beside it.
    records = [
        Record(photo.path, photo.captions, None, {"author": photo.author, "licence": photo.licence})
        for photo in sample_photographs()
    ]
    with stages.run("retriever", "preparing the search model"):
        retriever = Retriever.default()
    # Another version, search model or place of the photographs makes another collection.
    made_of = f"{__version__} {retriever.fingerprint} {PHOTOGRAPHS_FOLDER.absolute()}"
    folder = cache_folder() / "demo" / f"{NAME}-{hashlib.sha256(made_of.encode()).hexdigest()[:8]}"
    if is_collection(folder):
        collection = Collection.open(folder)
    else:
        check_folder(folder)
        with stages.run("precision", "preparing its networks"):
            retriever = in_precision(retriever, "auto", len(records))
        collection = Collection.create(folder, retriever, root=PHOTOGRAPHS_FOLDER)
    with collection:
        add_pictures(collection, records, stages)
        yield collection
