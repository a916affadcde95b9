"""Free ports of 127.0.0.1 for servers that a test starts."""

import random
import socket

# Below Linux's default range for outgoing connections, so that no client's socket takes the port meanwhile.
FIRST, LAST = 10_000, 32_767

_reservations = []


def free_port():
    """A port that nothing listens on. No other test gets it until this process ends.

    An abstract Unix socket holds the reservation: the kernel frees it with the process, and its names belong to the
    network namespace, as ports do.
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
