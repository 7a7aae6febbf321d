"""Requests that no honest client sends."""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

TOKEN = "a-token-that-only-the-tests-know"
BEARER = f"Authorization: Bearer {TOKEN}"
BASE = "/v1/collections/scenes"
BOUNDARY = "xXboundaryXx"


class Hostile(NamedTuple):
    """What is sent, and whether it is a whole request, whose answer is worth waiting for."""

    content: bytes
    is_whole: bool


def request(
    method: str = "GET", path: str | bytes = "/health", headers: Sequence[str | bytes] = (), body: bytes = b""
) -> bytes:
    """Return the bytes of a request; nothing is checked or encoded, and Host is added unless there is one."""
    lines = [_bytes(line) for line in headers]
    if not any(line.lower().startswith(b"host:") for line in lines):
        lines.insert(0, b"Host: localhost")
    if body and not any(line.lower().startswith((b"content-length:", b"transfer-encoding:")) for line in lines):
        lines.append(b"Content-Length: %d" % len(body))
    first = b" ".join((method.encode("latin-1"), _bytes(path), b"HTTP/1.1"))
    return b"\r\n".join([first, *lines, b"Connection: close", b"", b""]) + body


def written(path: str, body: bytes, content_type: str = "application/json", method: str = "POST") -> bytes:
    return request(method, path, [BEARER, f"Content-Type: {content_type}"], body)


def part(name: str, content: bytes, file_name: str | None = "a.png", content_type: str = "image/png") -> bytes:
    file = "" if file_name is None else f'; filename="{file_name}"'
    head = (
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"{file}\r\nContent-Type: {content_type}\r\n\r\n'
    )
    return head.encode() + content + b"\r\n"


def multipart(*parts: bytes, path: str = "/v1/uploads", is_closed: bool = True) -> bytes:
    body = b"".join(parts) + (f"--{BOUNDARY}--\r\n".encode() if is_closed else b"")
    return written(path, body, f"multipart/form-data; boundary={BOUNDARY}")


def _bytes(text: str | bytes) -> bytes:
    return text.encode("utf-8", errors="surrogateescape") if isinstance(text, str) else text


def png(width: int, height: int, pixels: bytes) -> bytes:
    """Return a PNG of one bit per pixel with compressed pixels that nobody checked."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def bomb(side: int = 50_000) -> bytes:
    """Return a small file that unpacks to side × side pixels."""
    packer = zlib.compressobj(1)
    block = b"\0" * (1 + side // 8) * 500
    return png(side, side, b"".join(packer.compress(block) for _ in range(side // 500)) + packer.flush())


def traversals(secret: Path) -> Iterator[bytes]:
    """Ways out of a folder, on every address that takes a name."""
    target = str(secret)
    deep = "../" * 12 + target.lstrip("/")
    names = [
        target,
        deep,
        deep.replace("/", "%2f"),
        deep.replace("../", "..%2f"),
        deep.replace("../", "%2e%2e/"),
        deep.replace("../", "%2e%2e%2f"),
        deep.replace("../", "%252e%252e%252f"),
        deep.replace("../", "..%5c"),
        deep.replace("../", "..\\"),
        deep.replace("../", "....//"),
        deep.replace("../", "..;/"),
        deep.replace("../", "%c0%ae%c0%ae/"),
        deep.replace("../", "%uff0e%uff0e/"),
        f"%00{target}",
        f"{target}%00.png",
        f"scene-000001.png%00{target}",
        f"file://{target}",
        f"file:%2f%2f{target}",
        target.replace("/", "%2F"),
        "/" + target,
        "%2e%2e",
        "..",
        ".",
        "~root/.ssh/id_rsa",
        "uploads/../../" + secret.name,
        "%2fproc%2fself%2fenviron",
        "/proc/self/cwd" + target,
        "link.png",
        "linked%2fcanary.png",
        "a" * 5_000,
    ]
    for name in names:
        for address in (
            f"{BASE}/items/{name}",
            f"{BASE}/items/{name}/original",
            f"{BASE}/items/{name}/thumbnail",
            f"/v1/collections/{name}",
            f"/v1/collections/{name}/items",
            f"/v1/uploads/{name}",
            f"{BASE}/jobs/{name}",
            f"/static/{name}",
            f"/item/{name}",
            f"/{name}",
        ):
            yield request("GET", address)
        yield request("DELETE", f"{BASE}/retrievers/{name}", [BEARER])
        yield request("POST", f"{BASE}/retrievers/{name}/activate", [BEARER])
        yield written(f"{BASE}/search", b'{"terms": [{"item": "%s"}]}' % name.replace("\\", "\\\\").encode())
        yield written(f"{BASE}/search", b'{"terms": [{"upload": "%s"}]}' % name.replace("\\", "\\\\").encode())
        yield written(f"{BASE}/search", b'{"query": "%s"}' % name[:1900].replace("\\", "\\\\").encode())
        yield request("GET", f"{BASE}/search?q={name[:1900]}")
        yield multipart(part("picture", b"no picture", name[:200]))
        yield multipart(part("picture", b"no picture", name[:200]), path=f"{BASE}/items/picture")


def bad_uploads() -> Iterator[bytes]:
    """Pictures that are none, or too many, or far too large."""
    huge = bomb()
    for path in ("/v1/uploads", f"{BASE}/search/picture", f"{BASE}/items", f"{BASE}/items/picture"):
        yield multipart(part("picture", huge), path=path)
        yield multipart(part("picture", png(2**31 - 1, 2**31 - 1, zlib.compress(b"\0"))), path=path)
        yield multipart(part("picture", png(0, 0, b"")), path=path)
        yield multipart(part("picture", png(100, 100, b"not zlib")), path=path)
        yield multipart(part("picture", b"GIF89a" + struct.pack("<HH", 65535, 65535) + b"\xf7" * 64), path=path)
        yield multipart(part("picture", b"\xff\xd8\xff\xe0" + b"\0" * 200), path=path)
        yield multipart(part("picture", b"BM" + b"\xff" * 60), path=path)
        yield multipart(
            part("picture", b"<svg xmlns='http://www.w3.org/2000/svg'><image href='file:///etc/passwd'/></svg>")
        )
        yield multipart(part("picture", b""), path=path)
        yield multipart(part("other", huge[:1000]), path=path)
        yield multipart(part("picture", huge[:1000], None), path=path)
        yield multipart(part("picture", b"x" * (25 * 2**20)), path=path)
        yield multipart(*(part("picture", b"x") for _ in range(2_000)), path=path)
        yield multipart(*(part(f"field{number}", b"x", None) for number in range(2_000)), path=path)
        yield multipart(part("picture", b"x"), is_closed=False, path=path)
        yield multipart(path=path)
        for cut in range(20, 200, 12):
            yield written(path, part("picture", b"x")[:cut], f"multipart/form-data; boundary={BOUNDARY}")
        for kind in ("multipart/form-data", "multipart/form-data; boundary=", "multipart/form-data; boundary=\x7f"):
            yield written(path, part("picture", b"x"), kind)
        yield written(path, part("picture", b"x"), "multipart/form-data; boundary=" + "b" * 5_000)
        yield written(path, b"\0" * 1_000, "application/x-www-form-urlencoded")
        yield written(f"{BASE}/items", b'{"captions": ["a"], "path": "/etc/passwd"}')


def bad_documents() -> Iterator[bytes]:
    """Bodies that are no document, or not the one that is asked for."""
    bodies = [
        b"",
        b"{",
        b"null",
        b"[]",
        b'"text"',
        b"NaN",
        b'{"query": NaN}',
        b'{"query": "a", "limit": 1e999}',
        b'{"query": "a", "limit": -1}',
        b'{"query": "a", "offset": 99999999999999999999999}',
        b'{"query": "a", "hybrid": "yes"}',
        b'{"query": "\\ud800"}',
        b'{"query": "\\u0000"}',
        b'{"query": "a", "filter": "\\u0000 and x>1"}',
        b'{"query": "a", "filter": "label:x\' or 1=1 --"}',
        b'{"query": "a", "filter": "' + b"(" * 5_000 + b'"}',
        b'{"query": "a", "filter": "' + b"not " * 5_000 + b'a=1"}',
        b'{"query": "a", "retriever": "../../../etc/passwd"}',
        b'{"query": "item:../../../../etc/passwd"}',
        b'{"query": "/etc/passwd"}',
        b'{"query": "' + b"+ a " * 400 + b'"}',
        b'{"query": "' + b"a" * 100_000 + b'"}',
        b'{"terms": [{"text": "a", "weight": 1e308}, {"text": "b", "weight": -1e308}]}',
        b'{"terms": [' + b",".join(b'{"text": "a"}' for _ in range(5_000)) + b"]}",
        b'{"query": "a", "search_id": "../../x"}',
        b"[" * 100_000 + b"]" * 100_000,
        b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
        b'{"query": "' + b"a" * (2 * 2**20) + b'"}',
        b"\xff\xfe\x00",
        b"\x80" * 100,
        b"\xef\xbb\xbf{}",
        b'{"captions": ["\\ud800"]}',
        b'{"captions": ["a"], "id": "../../x", "metadata": {"a": 1e999}}',
        b'{"token": "' + b"a" * 900_000 + b'"}',
        b'{"kind": "index", "root": "/etc"}',
        b'{"kind": "rm -rf /"}',
        b'{"name": "../../etc"}',
        b'{"search_id": "' + b"0" * 32 + b'", "item": "x", "position": 99999999999999999999, "kind": "open"}',
    ]
    paths = ["search", "items", "clicks", "jobs", "retrievers", "explanations"]
    for body in bodies:
        for path in (*(f"{BASE}/{name}" for name in paths), "/v1/session"):
            yield written(path, body)
        yield written(f"{BASE}/items/unknown", body, method="PATCH")
    kinds = [
        "text/plain",
        "application/xml",
        "image/png",
        "application/json; charset=utf-7",
        "application/json;",
        "a/b/c",
    ]
    for kind in (*kinds, "", "application/" + "j" * 3_000, "application/octet-stream", "multipart/related"):
        for path in (f"{BASE}/search", f"{BASE}/items", f"{BASE}/items/picture", "/v1/uploads"):
            yield written(path, b'{"query": "a"}', kind)


def bad_lines(random_bytes: random.Random) -> Iterator[bytes]:
    """Requests whose first line or headers break the rules of HTTP."""
    for method in ("PUT", "PATCH", "DELETE", "TRACE", "CONNECT", "OPTIONS", "PROPFIND", "get", "G" * 300, "POST"):
        for path in (
            "/health",
            "/metrics",
            f"{BASE}/search",
            f"{BASE}/items",
            "/",
            "/static/x",
            "/v1/openapi.json",
            "*",
        ):
            yield request(method, path)
    long = "a" * 40_000
    headers: list[list[str | bytes]] = [
        [f"X-Long: {long}"],
        [f"X-{number}: 1" for number in range(3_000)],
        [b"X-Null: a\0b"],
        [b"X-Raw: \xff\xfe\x80"],
        [b"X-Line: a\rb"],
        ["X Space: 1"],
        [": empty"],
        ["X-Fold: a\r\n b"],
        ["no colon at all"],
        ["Host: localhost", "Host: evil.example"],
        ["Host: localhost", "Host: localhost"],
        ["Host: evil.example"],
        ["Host: localhost:99999999"],
        ["Host: localhost/../.."],
        [b"Host: \xff\xfe"],
        ["Host:"],
        ["Host: " + "a" * 10_000],
        ["Host: localhost, evil.example"],
        ["Host: user:password@localhost"],
        ["Content-Length: -1"],
        ["Content-Length: 0x10"],
        ["Content-Length: 5", "Content-Length: 6"],
        ["Content-Length: 99999999999999999999"],
        ["Content-Length: 5, 5"],
        ["Content-Length: +5"],
        ["Transfer-Encoding: chunked", "Content-Length: 4"],
        ["Transfer-Encoding: xchunked"],
        ["Transfer-Encoding: chunked, identity"],
        ["Transfer-Encoding : chunked"],
        ["Transfer-Encoding:\x0bchunked"],
        ["Expect: 100-continue"],
        ["Expect: something-else"],
        ["Upgrade: websocket", "Sec-WebSocket-Key: x", "Sec-WebSocket-Version: 13"],
        ["Upgrade: h2c", "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA"],
        ["X-Forwarded-For: 127.0.0.1", "X-Forwarded-Host: evil.example"],
        ["X-HTTP-Method-Override: DELETE"],
        ["X-Original-URL: /v1/session", "X-Rewrite-URL: /etc/passwd"],
        ["X-Request-ID: a\tb<script>"],
        ["X-Request-ID: " + "z" * 5_000],
        ["Accept-Encoding: " + "gzip," * 2_000],
        ["If-None-Match: " + '"a",' * 2_000],
        ["If-Modified-Since: never"],
    ]
    for lines in headers:
        for method, path in (("GET", "/health"), ("POST", f"{BASE}/search"), ("GET", f"{BASE}/items")):
            yield request(method, path, lines, b"0\r\n\r\nGET /metrics HTTP/1.1\r\nHost: evil\r\n\r\n")
    for chunk in (
        b"zz\r\nhello\r\n0\r\n\r\n",
        b"-1\r\n",
        b"ffffffffffffffff\r\nx",
        b"5;" + b"e" * 50_000,
        b"5\nhello\n0\n\n",
    ):
        lines = [BEARER, "Content-Type: application/json", "Transfer-Encoding: chunked"]
        yield request("POST", f"{BASE}/items", lines, chunk)
    for line in (
        b"GET",
        b"GET /",
        b"GET / HTTP/9.9",
        b"GET / HTTP/1.1 x",
        b"\r\n\r\n\r\n",
        b"GET \xff HTTP/1.1",
        b"\0" * 50,
    ):
        yield line + b"\r\nHost: localhost\r\n\r\n"
    for path in (
        b"/" + b"a" * 30_000,
        b"/" + b"%41" * 9_000,
        b"//evil.example/..",
        b"http://evil.example/",
        b"/\x00",
        b"/%",
    ):
        yield request("GET", path)
    for path in (
        b"/%ff%fe",
        b"/%zz",
        b"/v1/collections/%ff/items",
        b"/v1/collections/scenes/items/%00",
        b"?",
        b"/?%ff=%00",
    ):
        yield request("GET", path)
    for _ in range(150):
        yield random_bytes.randbytes(random_bytes.randint(1, 400)) + b"\r\n\r\n"


def bad_visitors() -> Iterator[bytes]:
    """Requests that pretend to come from the page, or from someone who may write."""
    cookies = [
        "diptych=",
        "diptych_00000000=a.b.c",
        "diptych_00000000=" + "a" * 20_000,
        "=;=;=",
        "a=b; " * 1_000,
        "\x01=\x02",
    ]
    sites = ["cross-site", "same-site", "same-origin", "none", "\x7f", ""]
    origins = [
        "https://evil.example",
        "null",
        "http://localhost",
        "http://localhost.evil.example",
        "http://[",
        "file://",
    ]
    for cookie in cookies:
        yield request("POST", f"{BASE}/items", [f"Cookie: {cookie}", "X-Diptych-CSRF: 0"], b'{"captions": ["a"]}')
        yield request("DELETE", f"{BASE}/clicks", [f"Cookie: {cookie}"])
    for site in sites:
        for origin in origins:
            lines = [f"Sec-Fetch-Site: {site}", f"Origin: {origin}", "Content-Type: text/plain"]
            yield request("POST", f"{BASE}/items", lines, b'{"captions": ["a"]}')
            yield request("DELETE", f"{BASE}/items/x", lines)
    for token in ("", TOKEN[:-1], TOKEN + "x", TOKEN.upper(), "\xff", "a" * 20_000, "Bearer " + TOKEN):
        yield request("POST", f"{BASE}/items", [f"Authorization: Bearer {token}"], b'{"captions": ["a"]}')
        yield request("GET", f"{BASE}/items", [f"Authorization: Basic {token}"])


def bad_ranges(item: str) -> Iterator[bytes]:
    """Ranges of a picture that are none."""
    ranges = [
        "bytes=",
        "bytes=-",
        "bytes=a-b",
        "bytes=5-1",
        "bytes=-0",
        "bytes=99999999999-",
        "bytes=0-99999999999999999999",
    ]
    ranges += [
        "items=0-1",
        "bytes=0-0," * 3_000 + "0-0",
        "bytes=" + "0-," * 500,
        "bytes=-99999999999",
        "bytes=0-1,-1",
        "\x7f",
    ]
    for value in ranges:
        for path in (f"{BASE}/items/{item}/original", f"{BASE}/items/{item}/thumbnail", "/static/app.js", "/"):
            yield request("GET", path, [f"Range: {value}"])
            yield request("HEAD", path, [f"Range: {value}", 'If-Range: "x"'])


def bad_questions() -> Iterator[bytes]:
    """Parameters that no form sends."""
    values = [
        "",
        "-1",
        "1e9",
        "NaN",
        "%00",
        "%ff%fe",
        "a" * 3_000,
        "' or 1=1 --",
        "../../etc/passwd",
        "%F0%9F%92%A9",
        "[]",
    ]
    for value in values:
        safe = value.replace(" ", "%20")
        for name in ("limit", "offset", "filter", "hybrid", "retriever", "target", "min_probability", "search_id"):
            yield request("GET", f"{BASE}/search?q=a&{name}={safe}")
        for path in ("items?filter=", "items?limit=", "facets?filter=", "suggestions?prefix=", "suggestions?limit="):
            yield request("GET", f"{BASE}/{path}{safe}")
        yield request("GET", f"{BASE}/map?retriever={safe}")
        yield request("GET", f"{BASE}/query-log?days={safe}", [BEARER])
        yield request("GET", f"{BASE}/clicks?format={safe}", [BEARER])


def spoilt(requests: Sequence[bytes], chance: random.Random, count: int = 300) -> Iterator[bytes]:
    """Requests with some bytes changed, left out or said twice."""
    for content in chance.choices([content for content in requests if len(content) < 2_000], k=count):
        changed = bytearray(content)
        for _ in range(chance.randint(1, 6)):
            place = chance.randrange(len(changed))
            changed[place : place + chance.randint(0, 3)] = chance.randbytes(chance.randint(0, 3))
        yield bytes(changed)


def hostile_requests(secret: Path, item: str) -> list[Hostile]:
    chance = random.Random(7)
    whole = [
        *traversals(secret),
        *bad_uploads(),
        *bad_documents(),
        *bad_visitors(),
        *bad_ranges(item),
        *bad_questions(),
    ]
    broken = [*bad_lines(chance), *spoilt(whole, chance)]
    made = [*(Hostile(content, True) for content in whole), *(Hostile(content, False) for content in broken)]
    chance.shuffle(made)
    return made
