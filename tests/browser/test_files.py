"""The files of the page, as a program sees them."""

from __future__ import annotations

import gzip
import re

import httpx
import pytest

from diptych.service.page import FOLDER, VIEWS, page_document, page_version


def files() -> dict[str, bytes]:
    return {path.relative_to(FOLDER).as_posix(): path.read_bytes() for path in FOLDER.rglob("*") if path.is_file()}


def test_every_view_is_the_same_document(site) -> None:
    pages = {httpx.get(site.url + view.replace("{item:path}", "some-item")).content for view in VIEWS}
    assert pages == {page_document().encode()}


def test_files_carry_a_tag_and_a_type_and_come_packed(site) -> None:
    first = httpx.get(f"{site.url}/static/js/main.js")
    assert first.headers["content-type"] == "text/javascript; charset=utf-8"
    assert first.headers["content-encoding"] == "gzip"
    again = httpx.get(f"{site.url}/static/js/main.js", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    plain = httpx.get(f"{site.url}/static/js/main.js", headers={"Accept-Encoding": "identity"})
    assert plain.content == first.content == files()["js/main.js"]


def test_the_document_names_files_that_a_browser_may_keep_until_the_page_changes(site) -> None:
    document = httpx.get(site.url)
    assert document.headers["cache-control"] == "no-cache"
    named = re.findall(r'(?:href|src)="(/static/[^"]+)"', document.text)
    assert len(named) >= 7
    for address in named:
        answer = httpx.get(site.url + address)
        assert answer.headers["cache-control"] == "max-age=31536000, immutable"
        name = address.removeprefix(f"/static/{page_version()}/")
        assert answer.content == httpx.get(f"{site.url}/static/{name}").content == files()[name]
    # A page that was loaded before the files changed goes on, and what it gets is not kept for its version.
    other = httpx.get(f"{site.url}/static/v-0123456789abcdef/js/main.js")
    assert (other.status_code, other.headers["cache-control"]) == (200, "no-cache")
    assert other.content == files()["js/main.js"]


@pytest.mark.parametrize(
    "name",
    [
        "../page.py",
        "%2e%2e/page.py",
        "..%2fpage.py",
        "/etc/passwd",
        "js",
        "",
        "js/none.js",
        "v-0123456789abcdef/js/none.js",
    ],
)
def test_nothing_else_can_be_asked_for(site, name: str) -> None:
    answer = httpx.get(f"{site.url}/static/{name}")
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"


def test_the_policy_forbids_what_the_page_does_not_need(site) -> None:
    policy = httpx.get(site.url).headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "*" not in policy
    markup = page_document()
    assert not re.search(r"\sstyle=|\son\w+=|<script>|<style|https?://", markup)


def test_the_page_is_small() -> None:
    assert sum(len(gzip.compress(content)) for content in files().values()) < 110_000


def test_every_module_that_is_imported_exists() -> None:
    known = files()
    for name, content in known.items():
        if not name.endswith(".js"):
            continue
        folder = name.rpartition("/")[0]
        for imported in re.findall(r'(?:from |import\()"([^"]+)"', content.decode()):
            parts: list[str] = folder.split("/")
            for step in imported.split("/"):
                if step == "..":
                    parts.pop()
                elif step != ".":
                    parts.append(step)
            assert "/".join(parts) in known, f"{name} imports {imported}"


def test_what_a_person_reads_is_said_in_plain_words() -> None:
    """Texts are the strings with a blank in them or a capital in front; the others are names in the interface."""
    words = re.compile(
        r"retriever|triad|cut-off|\banew\b|forget it|speaks? (most )?for|\bpoints?\b|^Whole$|Visible|Re-encode"
    )
    said = []
    for name, content in files().items():
        source = re.sub(r"^\s*//.*$", "", content.decode(), flags=re.MULTILINE) if name.endswith(".js") else ""
        # What is filled into a text is a value or another text.
        strings = re.findall(r'"([^"\n]*)"|`([^`\n]*)`', re.sub(r"\$\{[^{}]*\}", "", source))
        texts = [text for pair in strings for text in pair if re.match(r"[A-Z]|.*[a-z,.:;] [a-zA-Z]", text)]
        said += [f"{name}: {text}" for text in texts if words.search(text)]
    assert said == []
