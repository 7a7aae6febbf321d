from __future__ import annotations

import socket

from diptych.service.operations.server import listen


def test_connections_send_at_once() -> None:
    """Small answers must not wait for the client to acknowledge what came before."""
    with listen("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname()):
        connection, _ = listening.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
