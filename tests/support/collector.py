"""A collector of OpenTelemetry traces on loopback. It decodes them with OpenTelemetry's own types."""

import http.server
import json
import pathlib
import subprocess
import threading

PYTHON = pathlib.Path(__file__).resolve().parents[2] / "build" / "tools" / "python" / "bin" / "python"
# Only the Python of build/tools has opentelemetry-proto. OTLP writes ids as hex, which protobuf's reader would take for base64.
DECODE = """
import base64, json, sys
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

def value(any_value):
    return getattr(any_value, any_value.WhichOneof("value"))

spans = []
for body in json.load(sys.stdin):
    for resource in body["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                for name in {"traceId", "spanId", "parentSpanId"} & span.keys():
                    span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()
    for resource in json_format.ParseDict(body, ExportTraceServiceRequest()).resource_spans:
        service = {each.key: value(each.value) for each in resource.resource.attributes}
        for scope in resource.scope_spans:
            spans += [{"trace": span.trace_id.hex(), "id": span.span_id.hex(), "parent": span.parent_span_id.hex(),
                       "name": span.name, "kind": span.kind, "begin": span.start_time_unix_nano,
                       "end": span.end_time_unix_nano, "error": span.status.code == 2,
                       "attributes": {each.key: value(each.value) for each in span.attributes},
                       "service": service} for span in scope.spans]
print(json.dumps(spans))
"""


class Collector:
    """Thread-safe. `bodies` and `headers` are those of the requests, in the order of arrival."""

    def __init__(self, port=0):
        self.arrived = threading.Condition()
        self.bodies = []
        self.headers = []
        self.status = 200
        self.open = threading.Event()  # while it is not set, no request is answered
        self.open.set()
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with collector.arrived:
                    collector.bodies.append(body)
                    collector.headers.append(dict(self.headers))
                    collector.arrived.notify_all()
                collector.open.wait()
                try:
                    self.send_response(collector.status)
                    self.send_header("Content-Length", "2")
                    self.end_headers()
                    self.wfile.write(b"{}")
                except OSError:
                    pass  # the daemon has given up

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            allow_reuse_address = True

        self.server = Server(("127.0.0.1", port), Handler)
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/v1/traces"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def wait_for(self, condition, timeout=60):
        """Waits until `condition(text of all bodies)` holds. Returns whether it did."""
        with self.arrived:
            return self.arrived.wait_for(lambda: condition(b"".join(self.bodies).decode()), timeout)

    def spans(self):
        with self.arrived:
            bodies = [json.loads(body) for body in self.bodies]
        done = subprocess.run([PYTHON, "-c", DECODE], input=json.dumps(bodies), capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    def stop(self):
        self.open.set()
        self.server.shutdown()
        self.server.server_close()
