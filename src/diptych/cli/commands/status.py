"""``diptych status``: what is in a collection."""

from __future__ import annotations

from typing import TYPE_CHECKING

from diptych.cli.console.output import facts_table, print_json, results
from diptych.cli.console.paths import open_collection, printable
from diptych.cli.options import CollectionOption, JsonOption
from diptych.errors import counted

if TYPE_CHECKING:
    from diptych.collection import Status


def status(collection: CollectionOption = None, as_json: JsonOption = False) -> None:
    """Show what a collection holds, which retriever it uses, and what the last run could not read."""
    from dataclasses import asdict

    with open_collection(collection, quiet=True) as opened:
        state = opened.status()
    if as_json:
        print_json(asdict(state))
        return
    results().print(facts_table(_facts(state)))


def _facts(state: Status) -> dict[str, str]:
    facts = {
        "collection": printable(state.folder),
        "pictures from": printable(state.root),
        "pictures": f"{state.pictures:,}",
        "captions": f"{state.captions:,}",
        "retriever": f"{state.retriever} ({state.fingerprint[:12]})",
        "on disk": f"{_size(state.store_bytes)}, index {_size(state.index_bytes)}",
    }
    if state.point_bytes:
        form = f"codes of {8 * state.point_bytes:,} bits" if state.is_codes else f"{state.point_bytes // 4:,} numbers"
        facts["points"] = f"{form}, {_size(state.point_bytes)} each, {_size(state.memory_bytes)} in memory"
    if state.recall is not None:
        facts["search index"] = f"finds {100 * state.recall:.1f} % of the ten nearest"
    if state.items > state.pictures:
        facts["texts alone"] = f"{state.items - state.pictures:,}"
    if state.stale:
        facts["unfinished"] = (
            f"the change to retriever {state.pending}: {state.pending_done:,} of {counted(state.pictures, 'picture')}; "
            f"diptych index {printable(state.root)} finishes it"
        )
    if state.unsearchable:
        facts["not searchable"] = f"{counted(state.unsearchable, 'picture')}, which could not be read"
    if state.failures:
        path, reason = next(iter(state.failures.items()))
        many = "1 file" if len(state.failures) == 1 else f"{len(state.failures):,} files, first"
        facts["last skipped"] = f"{many} {printable(path)}: {printable(reason)}"
    return facts


def _size(count: int) -> str:
    size = float(count)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"
