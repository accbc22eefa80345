"""A proxy that passes bytes on in odd pieces, and resets connections in the middle of events."""

import socket
import struct
import threading
import time

# Pieces begin and end in the middle of names, numbers and characters of several bytes.
SIZES = [1, 7, 3, 251, 61, 2, 509]
PAUSE_SECONDS = 0.001


class Stream:
    """An event stream or a socket; `left` is the number of bytes until it is reset, if it is."""

    left: int | None = None


class RoughProxy:
    """Forwards connections; `cut_after` resets all open event streams and sockets after a number of further bytes."""

    def __init__(self, port: int, slow: bool):
        self.upstream, self.slow = ("127.0.0.1", port), slow
        self.cuts = 0
        self.streams: set[Stream] = set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"

    def __enter__(self):
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.listener.close()

    def cut_after(self, count: int):
        for stream in list(self.streams):
            stream.left = count

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            server = socket.create_connection(self.upstream)
            threading.Thread(target=self._ask, args=(client, server), daemon=True).start()
            threading.Thread(target=self._answer, args=(client, server), daemon=True).start()

    def _ask(self, client: socket.socket, server: socket.socket):
        try:
            while part := client.recv(4096):
                server.sendall(part)
            server.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # One side closed its connection.

    def _answer(self, client: socket.socket, server: socket.socket):
        stream = Stream()
        with client, server:
            try:
                for piece in self._pieces(server, stream):
                    left = stream.left
                    allowed = piece if left is None else piece[:left]
                    client.sendall(allowed)
                    if left is None:
                        continue
                    stream.left = left - len(allowed)
                    if stream.left == 0:
                        self.cuts += 1
                        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                        break
                # Ends the wait of the other thread, during which a socket is not closed.
                client.shutdown(socket.SHUT_RD if stream.left == 0 else socket.SHUT_RDWR)
            except OSError:
                pass  # One side closed its connection.
            finally:
                self.streams.discard(stream)

    def _pieces(self, server: socket.socket, stream: Stream):
        count = 0
        while part := server.recv(4096):
            if b"text/event-stream" in part or b"101 Switching" in part:
                self.streams.add(stream)
            while part:
                size = SIZES[count % len(SIZES)] if self.slow else len(part)
                yield part[:size]
                part, count = part[size:], count + 1
                if self.slow:
                    time.sleep(PAUSE_SECONDS)
