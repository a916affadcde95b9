"""A webhook on loopback that checks signatures and keeps deliveries."""

import base64
import hashlib
import hmac
import http.server
import json
import threading


class Receiver:
    """Thread-safe. `deliveries` are (webhook-id, sequence, body) in the order of arrival."""

    def __init__(self, secret, port=0):
        self.secret = secret
        self.secrets = [secret]  # a delivery may have the signature of any of these
        self.signed_by = []  # the secrets that signed each delivery, in the order of its header
        self.lock = threading.Lock()
        self.arrived = threading.Condition(self.lock)
        self.deliveries = []
        self.traceparents = []  # of the deliveries
        self.tracestates = []
        self.bad_signatures = 0
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.take(self.headers, body)
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, *_):
                pass  # a test killed the sender

        self.server = Server(("127.0.0.1", port), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/hook"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    @staticmethod
    def signature(secret, headers, body):
        """Returns the signature of Standard Webhooks: HMAC-SHA256 over `id.timestamp.body`."""
        text = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        key = secret.encode()
        if secret.startswith("whsec_"):
            key = base64.b64decode(secret[len("whsec_"):])
        return "v1," + base64.b64encode(hmac.new(key, text, hashlib.sha256).digest()).decode()

    def take(self, headers, body):
        given = (headers.get("webhook-signature") or "").split(" ")
        by = {self.signature(secret, headers, body): secret for secret in self.secrets}
        signed_by = [by[signature] for signature in given if signature in by]
        with self.lock:
            self.signed_by.append(signed_by)
            if not signed_by or len(signed_by) != len(given):
                self.bad_signatures += 1
            self.traceparents.append(headers.get("traceparent", ""))
            self.tracestates.append(headers.get("tracestate"))
            self.deliveries.append(
                (headers["webhook-id"], int(headers.get("x-conversed-sequence", "0")), json.loads(body)))
            self.arrived.notify_all()

    def wait_for(self, condition, timeout):
        """Waits until `condition(deliveries)` holds. Returns whether it did."""
        with self.lock:
            return self.arrived.wait_for(lambda: condition(self.deliveries), timeout)

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
