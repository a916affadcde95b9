"""The service manager's side of the sd_notify protocol: a socket and its messages."""

import os
import socket
import time


class NotifySocket:
    """A datagram socket in the abstract namespace, which a daemon in a chroot finds, too. One thread.

    `messages` has a dict of the assignments in each datagram, in the order of arrival.
    """

    counter = 0

    def __init__(self):
        NotifySocket.counter += 1
        self.name = f"@conversed-test-{os.getpid()}-{NotifySocket.counter}"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind("\0" + self.name[1:])
        self.messages = []

    def environment(self, watchdog_ms=None):
        """Returns the variables that a service manager sets for a service."""
        variables = {"NOTIFY_SOCKET": self.name}
        if watchdog_ms:
            variables["WATCHDOG_USEC"] = str(watchdog_ms * 1000)
        return variables

    def next(self, timeout=60):
        """Returns the next message. Raises AssertionError if none comes in time."""
        self.socket.settimeout(timeout)
        try:
            text = self.socket.recv(65536).decode()
        except TimeoutError:
            raise AssertionError(f"no further message came; so far: {self.messages}") from None
        message = dict(line.split("=", 1) for line in text.splitlines())
        self.messages.append(message)
        return message

    def wait_for(self, condition, timeout=60):
        """Waits for a new message for which `condition(message)` holds, and returns it."""
        deadline = time.monotonic() + timeout
        while True:
            message = self.next(max(deadline - time.monotonic(), 0.01))
            if condition(message):
                return message

    def wait_for_key(self, key, timeout=60):
        return self.wait_for(lambda message: key in message, timeout)

    def close(self):
        self.socket.close()
