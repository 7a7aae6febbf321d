"""``diptych add``, ``remove`` and ``duplicates``: the items of a collection."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from diptych.cli.console.output import confirm, print_json, print_outcome, results
from diptych.cli.console.paths import open_collection, printable, shown_path
from diptych.cli.console.progress import Stages
from diptych.cli.options import (
    CollectionOption,
    DeviceOption,
    FilterOption,
    JsonOption,
    QuietOption,
    YesOption,
)
from diptych.data.picture_files import is_video
from diptych.data.remote_files import full_path
from diptych.errors import InvalidInputError, counted

if TYPE_CHECKING:
    from diptych.collection import Collection, Item, Record


def add(
    paths: Annotated[
        list[Path] | None, typer.Argument(help="Picture files and folders; none: the captions are a text of their own.")
    ] = None,
    caption: Annotated[list[str] | None, typer.Option(help="Describes the pictures; may be repeated.")] = None,
    label: Annotated[list[str] | None, typer.Option(help="A label of the pictures; may be repeated.")] = None,
    meta: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="Anything else to filter by; may be repeated.")
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Forget earlier captions, labels and metadata of these pictures.")
    ] = False,
    device: DeviceOption = "auto",
    collection: CollectionOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Add pictures, or captions, labels and metadata to pictures."""
    from diptych.cli.arguments import parse_assignments
    from diptych.cli.commands.index import counts, report_skipped, summarise
    from diptych.cli.indexing import SKIPPED_FILE

    stages = Stages(quiet=quiet)
    metadata = parse_assignments(meta or [], "--meta")
    with open_collection(collection, quiet=quiet) as opened:
        records = _described_records(opened, paths or [], caption or [], label or [], metadata, replace=replace)
        with stages.run("add", f"adding {counted(len(records), 'item')}") as advance:
            report = opened.add(records, progress=lambda step: advance(step.done, step.total))
        report_skipped(report.skipped, opened.folder / SKIPPED_FILE, stages)
        facts = {"collection": opened.place, "items": len(opened), **counts(report)}
        print_outcome(f"{summarise(report)}; {len(opened):,} items in {opened.place}", facts, as_json=as_json)
    if not report.changed and not report.unchanged:
        raise typer.Exit(1)


def _described_records(
    collection: Collection,
    paths: list[Path],
    captions: list[str],
    labels: list[str],
    metadata: dict[str, Any],
    *,
    replace: bool,
) -> list[Record]:
    """Return a record for each picture, joined to what is known unless it is to ``replace`` that; or one of words."""
    from diptych.collection import Record

    if not paths and not captions:
        raise InvalidInputError("there is nothing to add; name pictures, or give the words of a text with --caption")
    if not paths:
        return [Record(captions=captions, labels=labels or None, metadata=metadata or None)]
    pictures = list(_pictures(paths))
    if replace:
        return [Record(path, captions, labels, metadata) for path in pictures]
    records = []
    for path in pictures:
        known = collection[path] if path in collection else Record(path)
        all_captions, all_labels = (
            tuple(dict.fromkeys((*(old or ()), *new))) if new else None
            for old, new in ((known.captions, captions), (known.labels, labels))
        )
        all_metadata = {**(known.metadata or {}), **metadata} if metadata else None
        records.append(Record(path, all_captions, all_labels, all_metadata))
    return records


def _pictures(paths: Sequence[Path]) -> Iterator[Path]:
    from diptych.data import find_pictures

    for path in map(full_path, paths):
        if path.is_dir():
            found = list(find_pictures(path))
            if not found:
                raise InvalidInputError(f"there is no picture in {path}; name another folder")
            yield from found
        else:
            yield path


def remove(
    items: Annotated[
        list[str] | None, typer.Argument(metavar="[PATH|ID]...", help="Pictures, folders of pictures, or ids.")
    ] = None,
    filter: FilterOption = None,
    yes: YesOption = False,
    collection: CollectionOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Remove items from a collection; no file is deleted.

    The next `index` of the folder adds what is still there again.
    """
    if (not items) == (filter is None):
        raise InvalidInputError("say what to remove: paths or ids, or --filter, not both")
    with open_collection(collection, quiet=quiet) as opened:
        chosen = opened.items(filter) if items is None or filter is not None else _items_named(opened, items)
        if not chosen:
            print_outcome("nothing to remove", {"removed": [], "left": len(opened)}, as_json=as_json)
            return
        many = f"{len(chosen):,} of {len(opened):,} items"
        names = ", ".join(item.path or item.id for item in chosen[:3]) + (", …" if len(chosen) > 3 else "")
        confirm(f"Remove {many} ({printable(names)})?", yes=yes, told=f"{many} would be removed")
        opened.remove([item.id for item in chosen])
        done = f"{counted(len(chosen), 'item')} removed, {len(opened):,} left; the files stay where they are"
        print_outcome(done, {"removed": [item.id for item in chosen], "left": len(opened)}, as_json=as_json)


def _items_named(collection: Collection, names: list[str]) -> list[Item]:
    chosen: dict[str, Item] = {}
    for name in names:
        folder = full_path(name)
        # A video stands for all its moments, as a folder does for all that is in it.
        if is_video(folder) or (name not in collection and folder.is_dir()):
            for item in collection:
                path = collection.path_of(item)
                if path is not None and path.is_relative_to(folder):
                    chosen[item.id] = item
        else:
            item = collection[name.removeprefix("item:")]
            chosen[item.id] = item
    return list(chosen.values())


def duplicates(
    threshold: Annotated[
        float, typer.Option(min=-1, max=1, help="Least cosine of the features of nearly equal pictures.")
    ] = 0.97,
    only_exact: Annotated[
        bool, typer.Option("--only-exact", help="Only pictures that are equal byte for byte.")
    ] = False,
    collection: CollectionOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """List copies and nearly equal pictures."""
    with open_collection(collection, quiet=quiet) as opened:
        groups = opened.duplicates(None if only_exact else threshold)
        if as_json:
            print_json(groups)
        elif not groups:
            results().print("no two pictures are the same")
        else:
            for group in groups:
                title = "copies:" if group.exact else f"nearly the same (cosine {group.similarity:.3f}):"
                results().print(title, style="bold")
                paths = [opened.path_of(opened[item]) for item in group.ids]
                for path in paths:
                    if path is not None:
                        results().print(f"  {printable(shown_path(path))}", soft_wrap=True)
