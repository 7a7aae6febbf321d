"""A server of S3 on this machine, in memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.request import Request, urlopen

import pytest


@contextmanager
def s3_server() -> Iterator[str]:
    """Yield the address of a server that has no buckets, with the credentials for it in the environment."""
    moto = pytest.importorskip("moto.server")
    s3fs = pytest.importorskip("s3fs")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    address = "http://{}:{}".format(*server.get_host_and_port())
    environment = {
        "AWS_ENDPOINT_URL": address,
        "AWS_ACCESS_KEY_ID": "reader",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        # Both remember the server before.
        urlopen(Request(f"{address}/moto-api/reset", method="POST")).close()
        s3fs.S3FileSystem.clear_instance_cache()
        try:
            yield address
        finally:
            server.stop()
