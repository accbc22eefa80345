"""A proxy that resets event streams in the middle."""

import re
import socket
import struct
import threading


class Cutter:
    """Forwards everything, one request per connection; resets the n-th event stream after `cuts[n]` events."""

    def __init__(self, port: int, cuts: list[int]):
        self.upstream, self.cuts = ("127.0.0.1", port), list(cuts)
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"

    def __enter__(self):
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.listener.close()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket):
        with client, socket.create_connection(self.upstream) as server:
            try:
                self._ask(client, server)
                self._answer(client, server)
            except OSError:
                pass  # One side closed its connection.

    def _ask(self, client: socket.socket, server: socket.socket):
        head, body = read_head(client)
        lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        method, target, _ = lines[0].split(" ")
        self.requests.append((method, target, headers))
        kept = [line for line in lines if not re.match("(?i)(connection|host):", line)]
        kept += [f"host: 127.0.0.1:{self.upstream[1]}", "connection: close"]
        server.sendall("\r\n".join(kept).encode("latin-1") + b"\r\n\r\n" + body)
        missing = int(headers.get("content-length", 0)) - len(body)
        while missing > 0:
            part = client.recv(4096)
            if not part:
                raise OSError("closed before the body was complete")
            server.sendall(part)
            missing -= len(part)

    def _answer(self, client: socket.socket, server: socket.socket):
        head, rest = read_head(server)
        streams = b"text/event-stream" in head
        left = self.cuts.pop(0) if streams and self.cuts else None
        # With `connection: close`, a client may take a reset for the end.
        if left is not None:
            head = re.sub(rb"(?i)\r\nconnection: close", b"", head)
        client.sendall(head + b"\r\n\r\n")
        while rest:
            if left is not None:
                left -= len(re.findall(rb"^event:", rest, re.MULTILINE))
            client.sendall(rest)
            if left is not None and left <= 0:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return
            rest = server.recv(256)

    def streams(self) -> list[tuple[str, str | None]]:
        """Returns the stream requests so far: method and Last-Event-ID."""
        asked = [request for request in self.requests if request[1].split("?")[0].endswith("/stream")]
        return [(method, headers.get("last-event-id")) for method, _, headers in asked]


def read_head(source: socket.socket) -> tuple[bytes, bytes]:
    """Reads up to the blank line; returns this part and the bytes received after it."""
    data = b""
    while b"\r\n\r\n" not in data:
        part = source.recv(4096)
        if not part:
            raise OSError("closed before the head was complete")
        data += part
    head, _, rest = data.partition(b"\r\n\r\n")
    return head, rest
