"""A TCP proxy by which a test cuts the network between two programs: it stalls, resets or refuses connections."""

import enum
import selectors
import socket
import struct
import threading

BUFFER = 256 * 1024  # bytes that a direction holds before its sender has to wait


class Cut(enum.Enum):
    """What happens to existing and new connections until `heal`."""

    STALL = "the proxy holds all bytes back until the network is healed"
    STALL_REQUESTS = "the proxy holds back bytes to the server only"
    STALL_ANSWERS = "the proxy holds back bytes to the client only"
    RESET = "the proxy resets connections, and accepts and resets new ones"
    REFUSE = "the proxy resets connections, and refuses new ones"


ENDS_CONNECTIONS = (Cut.RESET, Cut.REFUSE)


class Direction:
    """Forwards bytes from one socket to another one. For the proxy's thread."""

    def __init__(self, source, sink, stalled_by):
        self.source, self.sink = source, sink
        self.stalled_by = stalled_by
        self.held = bytearray()
        self.ended = False  # the source has closed its side

    def is_stalled(self, cut):
        return cut in self.stalled_by

    def wants_bytes(self, cut):
        return not self.ended and not self.is_stalled(cut) and len(self.held) < BUFFER

    def wants_room(self, cut):
        return bool(self.held) and not self.is_stalled(cut)

    def take(self):
        data = self.source.recv(64 * 1024)
        self.held += data
        self.ended = not data

    def give(self):
        del self.held[:self.sink.send(self.held)]

    def pass_on_end(self):
        if self.ended and not self.held and self.sink.fileno() >= 0:
            self.sink.shutdown(socket.SHUT_WR)


class Proxy:
    """Listens on a free port of 127.0.0.1. `target` is (host, port), or the path of a Unix socket. Thread-safe."""

    def __init__(self, target):
        self.target = target
        self.listener = self.listen(0)
        self.port = self.listener.getsockname()[1]
        self.cut_by = None
        self.stopping = False
        self.links = []
        self.lock = threading.Lock()
        self.changed = threading.Condition(self.lock)
        self.wanted = None
        self.wake, self.woken = socket.socketpair()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    @staticmethod
    def listen(port):
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(256)
        listener.setblocking(False)
        return listener

    def cut(self, how):
        """Cuts the network. The cut is in effect when this returns."""
        with self.lock:
            self.wanted = how
            self.wake.send(b"!")
            self.changed.wait_for(lambda: self.cut_by == self.wanted)

    def heal(self):
        self.cut(None)

    def stop(self):
        self.stopping = True
        self.wake.send(b"!")
        self.thread.join()
        self.end_links()
        for each in (self.listener, self.wake, self.woken):
            each.close()

    def run(self):
        while not self.stopping:
            self.obey()
            with selectors.DefaultSelector() as selector:
                selector.register(self.woken, selectors.EVENT_READ)
                if self.listener.fileno() >= 0:
                    selector.register(self.listener, selectors.EVENT_READ)
                for link in self.links:
                    self.register(selector, link)
                for key, events in selector.select():
                    self.serve(key, events)
            self.links = [link for link in self.links if any(way.source.fileno() >= 0 for way in link)]

    def register(self, selector, link):
        for socket_, incoming, outgoing in ((link[0].source, link[0], link[1]), (link[1].source, link[1], link[0])):
            if socket_.fileno() < 0:
                continue
            events = selectors.EVENT_READ if incoming.wants_bytes(self.cut_by) else 0
            events |= selectors.EVENT_WRITE if outgoing.wants_room(self.cut_by) else 0
            if events:
                selector.register(socket_, events, (link, incoming, outgoing))

    def serve(self, key, events):
        if key.fileobj is self.woken:
            self.woken.recv(64)
            return
        if key.fileobj is self.listener:
            self.accept()
            return
        link, incoming, outgoing = key.data
        try:
            if events & selectors.EVENT_READ:
                incoming.take()
            if events & selectors.EVENT_WRITE:
                outgoing.give()
            for way in (incoming, outgoing):
                way.pass_on_end()
            if all(way.ended and not way.held for way in link):
                self.end(link)
        except BlockingIOError:
            pass
        except OSError:
            self.end(link)

    def accept(self):
        try:
            client, _ = self.listener.accept()
        except OSError:
            return
        if self.cut_by == Cut.RESET:
            self.reset(client)
            return
        server = socket.socket(socket.AF_UNIX if isinstance(self.target, str) else socket.AF_INET)
        try:
            server.connect(self.target)
        except OSError:
            server.close()
            self.reset(client)
            return
        for each in (client, server):
            each.setblocking(False)
        for each in (client, server) if server.family == socket.AF_INET else (client,):
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.links.append((Direction(client, server, (Cut.STALL, Cut.STALL_REQUESTS)),
                           Direction(server, client, (Cut.STALL, Cut.STALL_ANSWERS))))

    def obey(self):
        with self.lock:
            if self.wanted == self.cut_by:
                return
            if self.wanted in ENDS_CONNECTIONS:
                self.end_links()
            if self.wanted == Cut.REFUSE:
                self.listener.close()
            elif self.listener.fileno() < 0:
                self.listener = self.listen(self.port)
            self.cut_by = self.wanted
            self.changed.notify_all()

    def end_links(self):
        for link in self.links:
            self.end(link)
        self.links = []

    def end(self, link):
        for way in link:
            if way.source.fileno() >= 0:
                self.reset(way.source)

    @staticmethod
    def reset(connection):
        """Ends the connection by RST."""
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
