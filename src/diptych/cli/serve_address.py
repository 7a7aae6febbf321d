"""Where a service listens."""

from __future__ import annotations

import errno
import socket
from ipaddress import ip_address

from diptych.errors import InvalidInputError
from diptych.service.security.token_file import no_token_message

_TRIED_PORTS = 100
_BACKLOG = 1024


def refuse_strangers(host: str, token: str | None, *, is_forwarded: bool) -> bool:
    """Say whether others than this machine could reach a service; without a token they may not.

    They can where it listens beyond this machine, and where something on this machine forwards to it.
    """
    if _is_this_machine(host) and not is_forwarded:
        return False
    if token is None:
        raise InvalidInputError(no_token_message(host))
    return True


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens, or raise an error that names a port that is free."""
    family = _family(host)
    try:
        listening = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OverflowError:
        raise InvalidInputError(f"there is no port {port}; choose one up to 65535") from None
    except OSError as problem:
        if problem.errno == errno.EADDRINUSE:
            raise InvalidInputError(f"port {port} is in use; {_advice(host, port, family)}") from None
        if problem.errno == errno.EACCES:
            raise InvalidInputError(f"port {port} is for the system; choose one above 1023") from None
        raise InvalidInputError(f"cannot listen on {host}: {problem.strerror or problem}; check --host") from None
    # Connections inherit it. Otherwise the body of an answer waits 40 ms for the client to acknowledge its headers.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def page_address(host: str, port: int) -> str:
    """Return the address of the page.

    >>> from diptych.cli.serve_address import page_address
    >>> page_address("127.0.0.1", 8765), page_address("::1", 80), page_address("0.0.0.0", 8765)
    ('http://127.0.0.1:8765/', 'http://[::1]:80/', 'http://127.0.0.1:8765/')
    """
    shown = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://{f'[{shown}]' if ':' in shown else shown}:{port}/"


def _is_this_machine(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _family(host: str) -> socket.AddressFamily:
    try:
        return socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][0]
    except (socket.gaierror, UnicodeError):
        raise InvalidInputError(f"{host!r} is no address of this machine; give one, such as 127.0.0.1") from None


def _advice(host: str, port: int, family: socket.AddressFamily) -> str:
    for candidate in range(port + 1, min(port + _TRIED_PORTS, 65536)):
        try:
            with socket.create_server((host, candidate), family=family):
                return f"{candidate} is free: --port {candidate}"
        except OSError:
            continue
    return "take any that is free with --port 0"
