"""A page on loopback and a headless Chromium that opens it. The page reports how a browser treats an API."""

import http.server
import json
import pathlib
import select
import os
import subprocess
import sys
import tempfile
import threading

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
from chromium import CHROMIUM, FLAGS  # noqa: E402,F401


class Page:
    """Serves one page with a script, on its own origin. The script posts its results to `results`."""

    def __init__(self, script, requests):
        page = self
        self.results = None
        self.posted_reader, self.posted_writer = os.pipe()
        contents = {
            "/": ("text/html", b"<!doctype html><title>Test</title><script src=/script.js></script>"),
            "/script.js": ("text/javascript", (HERE / script).read_bytes()),
            "/requests": ("application/json", json.dumps(requests).encode()),
        }

        class Handler(http.server.BaseHTTPRequestHandler):
            def answer(self, status, content_type="text/plain", body=b""):
                self.send_response(status)
                self.send_header("Content-Type", content_type)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self):
                if self.path in contents:
                    self.answer(200, *contents[self.path])
                else:
                    self.answer(404)

            def do_POST(self):
                page.results = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self.answer(204)
                os.write(page.posted_writer, b"1")

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.origin = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def open(self, timeout=180):
        """Opens the page in a new browser. Returns the results of the script. Ends the browser."""
        with tempfile.TemporaryDirectory(prefix="conversed-chromium-", ignore_cleanup_errors=True) as folder:
            with open(pathlib.Path(folder) / "log", "w+b") as log:
                # The browser and its helpers are one process group, so that `killpg` ends all of them.
                browser = subprocess.Popen([CHROMIUM, *FLAGS, f"--user-data-dir={folder}/profile", self.origin],
                                           stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
                ended = os.pidfd_open(browser.pid)
                try:
                    ready, _, _ = select.select([self.posted_reader, ended], [], [], timeout)
                finally:
                    os.killpg(browser.pid, 9)
                    browser.wait()
                    os.close(ended)
                if self.posted_reader not in ready:
                    log.seek(0)
                    raise RuntimeError("the page posted nothing; output of the browser:\n"
                                       + log.read().decode(errors="replace")[-4000:])
        return self.results

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        os.close(self.posted_reader)
        os.close(self.posted_writer)
