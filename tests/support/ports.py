"""Free ports of 127.0.0.1 for servers that a test starts."""

import random
import socket

# Below Linux's default range for outgoing connections, so that no client's socket takes the port.
FIRST, LAST = 10_000, 32_767

_reservations = []


def free_port():
    """Returns a free port and reserves it until this process ends.

    The reservation is an abstract Unix socket: the kernel frees it with the process, and its name belongs to the network
    namespace, as a port does.
    """
    while True:
        port = random.randint(FIRST, LAST)
        reservation = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            reservation.bind(f"\0conversed-test-port-{port}")
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", port))
        except OSError:
            reservation.close()
            continue
        _reservations.append(reservation)
        return port
