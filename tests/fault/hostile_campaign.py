#!/usr/bin/env python3
"""One organisation attacks. The campaign measures another one, the victim, before and during each attack.

It prints the victim's p50 and p99 and the daemon's peak memory. A daemon without a defense shows the figures below. The
bounds lie between them and those of a defended daemon on a busy machine, far from both:

    noisy    12 clients of a Flow whose Turns use their whole budget      the victim's messages took 13 s
    trailer  an upstream that answers with endless trailers               one call took 610 MiB
    import   8 imports of 3 MB by a user without a role                   the imports took 1,850 MiB
    guess    80 addresses that guess passwords                            25 of the victim's 26 sign-ins failed
    tarpit   40 webhooks that accept connections and never answer         the victim's deliveries took 9 to 20 s
"""

import argparse
import base64
import contextlib
import copy
import http.client
import json
import pathlib
import socket
import socketserver
import sys
import tempfile
import threading
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from daemon_process import EMAIL, PASSWORD, Daemon, Failed  # noqa: E402
from webhook_receiver import Receiver  # noqa: E402

SAMPLES = 60  # requests of the victim, before and during each attack
SIGN_INS = 26
PERIOD_S = 0.02  # between requests of the victim, so that its address stays below its rate limit
SLOWEST_P50_S = 1.0
SLOWEST_P99_S = 5.0
MOST_MEMORY_MIB = 256  # growth during an attack
SECRET = "whsec_c2VjcmV0IG9mIHRoZSBob3N0aWxlIGNhbXBhaWdu"
NOISY = "noisy@example.com"
STRANGER = "stranger@example.com"
NOISY_PASSWORD = "another correct battery horse"

VICTIM_BUNDLE = """
conversed: 1
project: {name: Victim, locales: [en]}
flows:
  - {name: Echo, nodes: [{say: "{{input.text || input.data.n}}"}]}
endpoints:
  - {name: web, flow: Echo, output: {webhook: {url: "${HOOK_URL}", secret: "${HOOK_SECRET}"}}}
"""


def noisy_bundle(trailer_port, tarpits):
    """Returns a bundle with a Flow that uses up its budget, a Flow that calls the endless upstream, and Endpoints with a
    tarpit as their webhook."""
    work = "{{context.list.map((x) => [x, x + 1, x * 2, x % 7].map((y) => y * y + x).join('-')).length}}"
    greedy = [{"addToContext": {"list": "{{'" + "x," * 900 + "x'.split(',').map((x, i) => i)}}"}}]
    greedy += [{"id" if number == 0 else "comment": f"n{number}",
                "addToContext": {f"v{number}_{i}": work for i in range(100)}} for number in range(10)]
    for node in greedy:
        node.pop("comment", None)
    greedy.append({"goTo": "n0"})
    call = {"httpRequest": {"method": "GET", "url": f"http://127.0.0.1:{trailer_port}/", "storeIn": "context.answer",
                            "timeout": "8s", "onError": [{"say": "failed"}]}}
    endpoints = [{"name": "greedy", "flow": "Greedy"}, {"name": "trailer", "flow": "Trailer"}]
    endpoints += [{"name": f"tarpit{i}", "flow": "Say", "output": {"webhook": {"url": url, "secret": SECRET}}}
                  for i, url in enumerate(tarpits)]
    return json.dumps({
        "conversed": 1, "project": {"name": "Noisy", "locales": ["en"]},
        "flows": [{"name": "Greedy", "nodes": greedy}, {"name": "Trailer", "nodes": [call]},
                  {"name": "Say", "nodes": [{"say": "stuck"}]}],
        "endpoints": endpoints})


class EndlessTrailers(socketserver.ThreadingTCPServer):
    """Answers each request with an empty chunked body, then trailers until the client closes, at most 1 GiB."""

    daemon_threads = True
    allow_reuse_address = True

    class Handler(socketserver.BaseRequestHandler):
        def handle(self):
            self.request.recv(65536)
            with contextlib.suppress(OSError):
                self.request.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n")
                block = b"".join(b"X-T%d: %s\r\n" % (i, b"t" * 1000) for i in range(64))
                for _ in range(16384):
                    self.request.sendall(block)

    def __init__(self):
        super().__init__(("127.0.0.1", 0), self.Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Tarpit:
    """Accepts connections and never answers. Each URL has its own port."""

    def __init__(self, count):
        self.listeners = []
        for _ in range(count):
            listener = socket.create_server(("127.0.0.1", 0), backlog=128)
            self.listeners.append(listener)
        self.urls = [f"http://127.0.0.1:{each.getsockname()[1]}/hook" for each in self.listeners]

    def close(self):
        for each in self.listeners:
            each.close()


class Attack:
    """Threads that repeat `act(number)` until the attack ends."""

    def __init__(self, threads, act):
        self.over = threading.Event()
        self.acts = 0
        self.threads = [threading.Thread(target=self.run, args=(act, number), daemon=True) for number in range(threads)]

    def run(self, act, number):
        while not self.over.is_set():
            with contextlib.suppress(OSError, http.client.HTTPException):
                act(number)
                self.acts += 1

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join(60)


def quantile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


class Campaign:
    def __init__(self, options, folder, stack):
        self.receiver = Receiver(SECRET)
        stack.callback(self.receiver.stop)
        self.tarpit = Tarpit(40)
        stack.callback(self.tarpit.close)
        self.trailers = EndlessTrailers()
        stack.callback(self.trailers.server_close)
        stack.callback(self.trailers.shutdown)
        # Freed memory in AddressSanitizer's quarantine counts as the daemon's.
        self.daemon = Daemon(options.bin, folder, "limits: {public_requests_per_second: 200}\n", environment={
            "HOOK_URL": self.receiver.url, "HOOK_SECRET": SECRET, "ASAN_OPTIONS": "quarantine_size_mb=8"})
        stack.callback(self.daemon.kill)
        self.samples = 0
        self.pace = threading.Event()  # never set: each wait ends by its timeout
        self.found = []

    def set_up(self):
        self.daemon.init()
        if not self.daemon.start():
            raise Failed("the daemon ended at its start")
        self.web = self.load(self.daemon, VICTIM_BUNDLE)["web"]
        self.key = self.daemon.ctl("apikey", "create", "--name", "campaign")["key"]
        client = self.daemon.ctl("oauth-client", "add", "--name", "campaign", "--password-grant")
        self.client = (client["clientId"], client["clientSecret"])
        self.daemon.ctl("organisation", "add", "Noisy", "--admin", NOISY, "--password-stdin", input=NOISY_PASSWORD)
        noisy = copy.copy(self.daemon)
        noisy.environment = {**self.daemon.environment, "CONVERSECTL_AS": NOISY, "CONVERSECTL_PASSWORD": NOISY_PASSWORD}
        self.noisy = self.load(noisy, noisy_bundle(self.trailers.server_address[1], self.tarpit.urls))
        self.noisy_key = noisy.ctl("apikey", "create", "--name", "campaign")["key"]
        noisy.ctl("user", "add", STRANGER, "--password-stdin", input=NOISY_PASSWORD)

    def load(self, daemon, text):
        bundle = self.daemon.folder / "bundle.yaml"
        bundle.write_text(text)
        return {each["name"]: each["urlToken"] for each in daemon.ctl("import", str(bundle))["endpoints"]}

    def ask(self, address, path, body, headers=None, timeout=60):
        """Sends one POST from a loopback address, since limits count by address. Returns the status of the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.daemon.ports["api"], timeout=timeout,
                                                source_address=(address, 0))
        with contextlib.closing(connection):
            connection.request("POST", path, body if isinstance(body, (bytes, str)) else json.dumps(body), headers or {})
            answer = connection.getresponse()
            answer.read()
            return answer.status

    # --- The victim's requests: each returns whether it succeeded --------------------------------------------------

    def message(self):
        self.samples += 1
        body = {"userId": "victim", "sessionId": f"s{self.samples}", "text": "hello"}
        return self.ask("127.0.2.1", f"/{self.web}", body) == 200

    def delivery(self):
        self.samples += 1
        number = self.samples
        body = {"URLToken": self.web, "userId": "victim", "sessionId": f"s{number}", "data": {"n": number}}
        status = self.ask("127.0.2.1", "/v2.0/endpoint/inject", body, {"X-API-Key": self.key})
        return status == 200 and self.receiver.wait_for(
            lambda all: any(each[2]["sessionId"] == f"s{number}" for each in reversed(all)), 60)

    def sign_in(self):
        form = urllib.parse.urlencode({"grant_type": "password", "username": EMAIL, "password": PASSWORD,
                                       "client_id": self.client[0], "client_secret": self.client[1]})
        return self.ask("127.0.2.1", "/auth/oauth2/token", form,
                        {"Content-Type": "application/x-www-form-urlencoded"}) == 200

    # --- The attacks -----------------------------------------------------------------------------------------------

    def noisy_turn(self, number):
        body = {"userId": "n", "sessionId": f"n{number}", "text": "go"}
        self.ask(f"127.0.3.{number + 1}", f"/{self.noisy['greedy']}", body)

    def trailer_call(self, number):
        body = {"userId": "t", "sessionId": f"t{number}", "text": "go"}
        self.ask(f"127.0.4.{number + 1}", f"/{self.noisy['trailer']}", body)

    def import_flood(self, number):
        credentials = base64.b64encode(f"{STRANGER}:{NOISY_PASSWORD}".encode()).decode()
        self.ask(f"127.0.5.{number + 1}", "/management/import", "[" + "[]," * 1_000_000 + "[]]",
                 {"Authorization": f"Basic {credentials}", "Content-Type": "application/json"})

    def guess(self, number):
        credentials = base64.b64encode(f"{EMAIL}:wrong guess {number} {time.monotonic_ns()}".encode()).decode()
        self.ask(f"127.0.6.{number + 1}", "/management/status", "", {"Authorization": f"Basic {credentials}"})

    def stuck_delivery(self, number):
        for endpoint in range(40):
            body = {"URLToken": self.noisy[f"tarpit{endpoint}"], "userId": "t", "sessionId": f"t{number}-{endpoint}",
                    "data": {"n": 1}}
            self.ask(f"127.0.7.{number + 1}", "/v2.0/endpoint/inject", body, {"X-API-Key": self.noisy_key})

    # --- Measuring -------------------------------------------------------------------------------------------------

    def measure(self, victim, count):
        """Returns the duration of each successful request in seconds, and the number of failed ones."""
        times, failed = [], 0
        for _ in range(count):
            began = time.monotonic()
            right = victim()
            if right:
                times.append(time.monotonic() - began)
            else:
                failed += 1
            self.pace.wait(max(0.0, began + PERIOD_S - time.monotonic()))
        return times, failed

    def peak_mib(self):
        for line in pathlib.Path(f"/proc/{self.daemon.process.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
        raise Failed("the kernel does not report the daemon's peak memory")

    def forget_peak(self):
        pathlib.Path(f"/proc/{self.daemon.process.pid}/clear_refs").write_text("5")

    def attack(self, name, threads, act, victim, count=SAMPLES, enough=1):
        before, failed_before = self.measure(victim, count)
        self.forget_peak()
        memory = self.peak_mib()
        with Attack(threads, act) as attack:
            times, failed = self.measure(victim, count)
            deadline = time.monotonic() + 60
            while attack.acts < enough and time.monotonic() < deadline:
                more, also_failed = self.measure(victim, 1)
                times, failed = times + more, failed + also_failed
        grown = self.peak_mib() - memory
        self.judge(name, failed_before, before, times, failed, grown, attack.acts, enough)

    def judge(self, name, failed_before, before, times, failed, grown, acts, enough):
        if failed_before or not before:
            raise Failed(f"{name}: the victim failed {failed_before} times before the attack began")
        if not times:
            self.found.append(f"{name}: all requests of the victim failed")
            times = [float("inf")]
        p50, p99 = quantile(times, 0.5), quantile(times, 0.99)
        print(f"{name:8} {quantile(before, 0.5) * 1e3:8.1f} {quantile(before, 0.99) * 1e3:8.1f} {p50 * 1e3:8.1f} "
              f"{p99 * 1e3:8.1f} {failed:7} {grown:10.0f} {acts:8}", flush=True)
        if failed:
            self.found.append(f"{name}: {failed} of the victim's requests failed")
        if p50 > SLOWEST_P50_S or p99 > SLOWEST_P99_S:
            self.found.append(f"{name}: the victim waited {p50:.1f} s at p50 and {p99:.1f} s at p99")
        if grown > MOST_MEMORY_MIB:
            self.found.append(f"{name}: the daemon's memory grew by {grown:.0f} MiB")
        if acts < enough:
            self.found.append(f"{name}: the attack ran {acts} times, too few for a result")

    def run(self):
        self.set_up()
        print(f"{'':8} {'before':>17} {'during':>17}\n{'attack':8} {'p50 ms':>8} {'p99 ms':>8} {'p50 ms':>8} "
              f"{'p99 ms':>8} {'failed':>7} {'memory MiB':>10} {'attacks':>8}", flush=True)
        self.attack("noisy", 12, self.noisy_turn, self.message, enough=12)
        self.attack("trailer", 4, self.trailer_call, self.message, enough=4)
        self.attack("import", 8, self.import_flood, self.message, enough=8)
        self.attack("guess", 80, self.guess, self.sign_in, count=SIGN_INS, enough=80)
        self.attack("tarpit", 4, self.stuck_delivery, self.delivery, enough=4)
        if not self.daemon.is_running():
            self.found.append("the daemon has ended")
        return self.found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="folder of conversed and conversectl")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="conversed-hostile-"))
        campaign = Campaign(options, folder, stack)
        try:
            found = campaign.run()
        except Failed:
            print(campaign.daemon.log_path.read_text()[-4000:], file=sys.stderr)
            raise
    for each in found:
        print(each)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
