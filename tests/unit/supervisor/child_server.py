"""A small server for the supervisor to run: `child_server.py NAME PORT JOURNAL [FLAG [LINGER]]`.

It writes `+NAME` to the journal when it starts and `-NAME` when SIGTERM has ended it, after LINGER seconds. With a FLAG
file it answers 503 until that file exists.
"""

import os
import signal
import socket
import sys
import time

name, port, journal, flag, linger = (*sys.argv[1:], *["", "0"][len(sys.argv) - 4 :])


def note(sign: str) -> None:
    descriptor = os.open(journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(descriptor, f"{sign}{name}\n".encode())
    os.close(descriptor)


def end(*_: object) -> None:
    time.sleep(float(linger))
    note("-")
    os._exit(0)


signal.signal(signal.SIGTERM, end)
note("+")
with socket.create_server(("127.0.0.1", int(port))) as server:
    while True:
        connection, _ = server.accept()
        with connection:
            connection.recv(65536)
            ready = not flag or os.path.exists(flag)  # noqa: PTH110 -- pathlib would double the start time
            status, body = (b"200 OK", b"ok") if ready else (b"503 No", b"[+]ping ok\n[-]flag is missing\n")
            connection.sendall(
                b"HTTP/1.1 %s\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % (status, len(body)) + body
            )
