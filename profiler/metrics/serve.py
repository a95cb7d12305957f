# SPDX-License-Identifier: MIT
"""Answers to GET by HTTP, one at a time."""
from __future__ import annotations

import http.server
import ipaddress
import re
import signal
import socket
import socketserver
import threading
from typing import Callable

from profiler.tool.say import NO, OK, USAGE, Refusal

Answer = tuple[int, str, bytes]  # status, Content-Type, what is said
ENDS = [signal.SIGINT, signal.SIGTERM]


def place_of(said: str) -> tuple[str, int]:
    """ "[ADDRESS:]PORT"; an address of IPv6 stands in brackets."""
    address, _, port = said.rpartition(":")
    address = "127.0.0.1" if address in ("", "localhost") else address.removeprefix("[").removesuffix("]")
    try:
        ipaddress.ip_address(address)
        if not 0 <= int(port) <= 65535:
            raise ValueError
    except ValueError:
        raise Refusal(USAGE, f"'{said}' is no [ADDRESS:]PORT") from None
    return address, int(port)


def is_for_us(host: str) -> bool:
    """A browser may have been told by somebody's name server that a name of theirs is 127.0.0.1."""
    return re.fullmatch(r"(localhost|127(\.\d+){3}|\[::1\])(:\d+)?", host, re.IGNORECASE) is not None


def serve(where: str, paths: list[str], answer: Callable[[str], Answer]) -> int:
    """Serves until SIGINT or SIGTERM; port 0 is a free one. Prints where it serves, the first of the paths, as one line. At a
    loopback address only requests to a host of that kind are answered."""
    address, port = place_of(where)
    loopback, one_at_a_time = ipaddress.ip_address(address).is_loopback, threading.Lock()

    class Handler(http.server.BaseHTTPRequestHandler):
        timeout = 15  # seconds

        def do_GET(self) -> None:
            status = 200 if self.command in ("GET", "HEAD") else 405
            if status == 200 and loopback and not is_for_us(self.headers.get("Host", "localhost")):
                status = 403
            path = self.path.partition("?")[0]
            if status == 200 and path not in paths:
                status = 404
            said = status, "text/plain; charset=utf-8", f"{status}: this serves {paths[0]}\n".encode()
            if status == 200:
                with one_at_a_time:
                    said = answer(path)
            self.send_response(said[0])
            for name, value in (("Content-Type", said[1]), ("Content-Length", str(len(said[2]))), ("Cache-Control", "no-store"),
                                ("X-Content-Type-Options", "nosniff"), ("X-Frame-Options", "DENY"), ("Allow", "GET, HEAD")):
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(said[2])

        do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_GET

        def log_message(self, *_: object) -> None:
            pass

    class Server(http.server.ThreadingHTTPServer):
        server_bind = socketserver.TCPServer.server_bind  # HTTPServer's asks name servers for this machine's name
        address_family = socket.AF_INET6 if ":" in address else socket.AF_INET

        def handle_error(self, *_: object) -> None:
            """Who asked has gone."""

    signal.pthread_sigmask(signal.SIG_BLOCK, ENDS)  # before there is a thread, which inherits this
    try:
        server = Server((address, port), Handler)
    except OSError as error:
        raise Refusal(NO, f"{where}: cannot be served there: {error.strerror}") from None
    print(f"http://{f'[{address}]' if ':' in address else address}:{server.server_address[1]}{paths[0]}", flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    signal.sigwait(ENDS)
    return OK
