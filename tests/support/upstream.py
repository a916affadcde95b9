"""An HTTP upstream on loopback. Tests hold its answers back or choose their status."""

import http.server
import json
import threading


class Upstream:
    """Thread-safe. `requests` are (path, headers, body) in the order of arrival."""

    def __init__(self):
        self.lock = threading.Lock()
        self.arrived = threading.Condition(self.lock)
        self.requests = []
        self.statuses = []  # statuses of the next answers; 200 when empty
        self.padding = ""  # makes answers longer
        self.open = threading.Event()
        self.open.set()
        upstream = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                with upstream.lock:
                    upstream.requests.append((self.path, dict(self.headers), body))
                    status = upstream.statuses.pop(0) if upstream.statuses else 200
                    upstream.arrived.notify_all()
                upstream.open.wait()
                answer = {"path": self.path, "state": "shipped"}
                if upstream.padding:
                    answer["padding"] = upstream.padding
                payload = json.dumps(answer).encode()
                try:
                    self.send_response(status)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(payload)))
                    self.end_headers()
                    self.wfile.write(payload)
                except OSError:
                    pass  # the caller has closed the connection

            do_GET = do_POST = do_PUT = do_DELETE = answer

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 1024

            def handle_error(self, *_):
                pass  # a test killed the calling daemon

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def wait_for(self, count, timeout=60):
        with self.lock:
            return self.arrived.wait_for(lambda: len(self.requests) >= count, timeout)

    def stop(self):
        self.open.set()
        self.server.shutdown()
        self.server.server_close()
