"""A new option of searches takes three files: its declaration, what it does, and the page."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import diptych
from diptych.collection import Collection

PACKAGE = Path(diptych.__file__).parent

# By file: what stands there, and what the option adds to it.
EDITS = {
    "collection/searching/options.py": (
        "    retriever: str | None = field(",
        """\
    min_rating: float | None = field(
        default=None, metadata={"description": "Leave out items that are rated lower.", "ge": 0, "le": 5}
    )
""",
    ),
    "collection/searching/query.py": (
        "        if self.k < 1 or self.offset < 0:",
        """\
        if self.min_rating is not None:
            rated = Filter.parse(f"rating>={self.min_rating:g}")
            object.__setattr__(self, "filter", rated if self.filter is None else self.filter & rated)
""",
    ),
    "service/page/static/js/parts/search-state.js": (
        "    retriever: state.retriever ?? undefined,",
        "    min_rating: state.rating ?? undefined,\n",
    ),
}

ASK = """
import json, sys
from pathlib import Path
from starlette.testclient import TestClient
from diptych.cli import main
from diptych.collection import Collection
from diptych.collection.searching.query import Query, SearchRequest
from diptych.service.app import create_app
from diptych.service.settings import Settings

folder = Path(sys.argv[1])
with Collection.open(folder) as collection:
    library = [answer.id for answer in collection.answer(SearchRequest(Query.text("a boat"), min_rating=4))]
with TestClient(create_app(Settings(collections={"scenes": folder}, read_only=True)), "http://localhost") as client:
    address = "/v1/collections/scenes/search"
    sent = client.post(address, json={"query": "a boat", "min_rating": 4}).json()
    by_address = client.get(address, params={"q": "a boat", "min_rating": 4}).json()
    wrong = client.post(address, json={"query": "a boat", "min_rating": 6}).status_code
    schema = client.get("/v1/openapi.json").json()["components"]["schemas"]["SearchRequest"]["properties"]["min_rating"]
    page = client.get("/static/js/parts/search-state.js").text
print(json.dumps({
    "library": library,
    "sent": [answer["id"] for answer in sent["answers"]],
    "by_address": [answer["id"] for answer in by_address["answers"]],
    "wrong": wrong,
    "described": schema["description"],
    "page": "min_rating" in page,
}), flush=True)
sys.argv = ["diptych", "search", "a boat", "--collection", str(folder), "--min-rating", "4", "--json"]
main()
"""


def test_a_search_option_takes_three_files(own_scene_collection: Path, tmp_path: Path) -> None:
    folder = own_scene_collection / ".diptych"
    with Collection.open(folder) as collection:
        rated = [item.id for item in collection.items()[:3]]
        for rating, item in enumerate(rated, start=3):
            collection.update(item, metadata={"rating": rating})
    scratch = tmp_path / "package"
    shutil.copytree(PACKAGE, scratch / "diptych", copy_function=os.symlink, ignore=shutil.ignore_patterns("*.pyc"))
    for name, (anchor, added) in EDITS.items():
        file = scratch / "diptych" / name
        text = file.read_text(encoding="utf-8")
        assert text.count(anchor) == 1, name
        file.unlink()
        file.write_text(text.replace(anchor, added + anchor), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(scratch), "PYTHONDONTWRITEBYTECODE": "1"}
    run = subprocess.run(
        [sys.executable, "-c", ASK, str(folder)], capture_output=True, text=True, check=False, env=environment
    )
    assert run.returncode == 0, run.stderr
    first, _, rest = run.stdout.partition("\n")
    found, command = json.loads(first), [answer["id"] for answer in json.loads(rest)["answers"]]
    assert sorted(found["library"]) == sorted(rated[1:])
    assert found["sent"] == found["by_address"] == command == found["library"]
    assert (found["wrong"], found["page"]) == (422, True)
    assert found["described"] == "Leave out items that are rated lower."
