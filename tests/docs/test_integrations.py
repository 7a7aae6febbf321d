"""The snippets for LangChain and LlamaIndex run as they are printed, with the real packages."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from diptych import Collection, Retriever
from diptych.data.sample_photographs import sample_photographs

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "integrations.md"


def snippet(heading: str) -> str:
    section = PAGE.read_text(encoding="utf-8").partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"^```py\n(.*?)^```", section, re.MULTILINE | re.DOTALL)[0]


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Any:
    paths = [photo.path for photo in sample_photographs()]
    with Collection.create(tmp_path_factory.mktemp("photos") / "c", Retriever.default()) as made:
        made.add([*paths[:5], *(path for path in paths if path.name == "rocket.jpg")])
        yield made


def test_langchain_gets_likely_pictures(collection: Any) -> None:
    pytest.importorskip("langchain_core")
    names: dict[str, Any] = {"collection": collection}
    exec(snippet("LangChain"), names)
    best = names["documents"][0]
    assert "rocket" in best.metadata["path"]
    assert best.metadata["probability"] > 0.1
    assert names["PictureRetriever"](collection=collection).invoke("qwxz vbnq") == []


def test_llama_index_gets_likely_pictures(collection: Any) -> None:
    pytest.importorskip("llama_index.core")
    names: dict[str, Any] = {"collection": collection}
    exec(snippet("LlamaIndex"), names)
    assert "rocket" in names["nodes"][0].node.image_path
    assert names["nodes"][0].score > 0.1


def test_notebooks_show_pictures_and_parts(collection: Any) -> None:
    shown = collection.search("a <rocket>", k=2)._repr_html_()
    assert shown.count("data:image/jpeg;base64,") == 2
    assert "rocket.jpg" in shown
    nothing = collection.search("qwxz vbnq", k=1)._repr_html_()
    assert "no good match" in nothing
    parts = collection.retriever._repr_html_()
    assert "EfficientNetLite" in parts
    assert "<Efficient" not in parts
