#!/usr/bin/env python3
"""Shows conversed at work: a shop's customer chats while the shop's systems push events into the conversation.

The demo starts a daemon with the embedded log and store, a webhook receiver and a slow order desk. It shows the
transcript as it happens. It kills the daemon with -9 in the middle, then counts effects. At the end it sets up proactive
follow-up and shows the progress. The customer falls silent, gets a follow-up, and cancels the next one by an answer.
The exit code is 0 only if no event was lost, doubled or out of order, and the follow-ups came as promised.

With --cluster the demo runs two daemons on Kafka and PostgreSQL. It kills one, and the other one continues.
With --serve it keeps a daemon running with the same project, and prints curl commands to try.
"""

import argparse
import http.client
import http.server
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "tests" / "support"))
import cluster  # noqa: E402
from daemon_process import Daemon, EMAIL, PASSWORD, wait_idle  # noqa: E402
from webhook_receiver import Receiver  # noqa: E402

SECRET = "whsec_dGhlIHNob3AncyBzZWNyZXQgb2YgdGhlIGRlbW8="
CRM_TOKEN = "crm-token-of-the-demo"
PROVISIONING_TOKEN = "provisioning-token-of-the-demo-of-32-bytes"
CRM_IN_BUNDLE = "127.0.0.1:9101"
USER, SESSION = "ann", "ann-1"
FOLLOW_UP = "Is there anything else that I can do for you?"
SCANS = 40
SCANS_BEFORE_KILL = 15
PLACES = ["Hamburg", "Bremen", "Hanover", "Kassel", "Frankfurt", "Mannheim", "Karlsruhe", "Basel"]


class Screen:
    """Prints the transcript, one line for each event. Thread-safe."""

    COLORS = {"you": "36", "shop": "32", "event": "33", "daemon": "31", "note": "90"}

    def __init__(self):
        self.began = time.monotonic()
        self.lock = threading.Lock()
        self.color = sys.stdout.isatty()

    def show(self, who, text):
        with self.lock:
            line = f"{time.monotonic() - self.began:6.2f}s  {who:>7}  {text}"
            print(f"\033[{self.COLORS[who]}m{line}\033[0m" if self.color else line, flush=True)


class OrderDesk:
    """The upstreams. The order desk answers the Flow after 1.5 s. The provisioning service answers after 1 s."""

    def __init__(self):
        desk = self
        self.keys = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                desk.keys.append(self.headers["Idempotency-Key"])
                desk.waiting.wait(1.5)
                known = self.headers["Authorization"] == f"Bearer {CRM_TOKEN}"
                body = json.dumps({"id": "A-1017", "state": "being packed", "items": ["lamp", "bulb"]}).encode()
                self.send_response(200 if known else 401)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_POST(self):
                """The provisioning service: proactive set-up announces its tenant here."""
                self.rfile.read(int(self.headers["Content-Length"]))
                desk.waiting.wait(1)
                known = self.headers["Authorization"] == f"Bearer {PROVISIONING_TOKEN}"
                self.send_response(201 if known else 401)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.waiting = threading.Event()  # never set: each wait ends by its timeout
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


class Shop:
    """The daemons with the shop's project, and their clients and upstreams. `daemon` gets the requests."""

    def __init__(self, binaries, folder, screen, port=0, clustered=False):
        self.screen = screen
        self.desk = OrderDesk()
        self.receiver = Receiver(SECRET)
        settings = f'proactive: {{provisioning: {{url: "{self.desk.url}/tenants", token: "{PROVISIONING_TOKEN}"}}}}\n'
        environment = {"CRM_TOKEN": CRM_TOKEN, "HOOK_URL": self.receiver.url, "HOOK_SECRET": SECRET}
        self.cluster = None
        if clustered:
            self.cluster = cluster.Cluster(binaries, folder, [cluster.ALL_ROLES] * 2, settings, environment)
            self.daemons = self.cluster.daemons
        else:
            self.daemons = [Daemon(binaries, folder, settings, environment, port)]
        self.daemon = self.daemons[0]
        self.accepted = []
        self.answers = []

    def set_up(self):
        bundle = self.daemon.folder / "shop.yaml"
        bundle.write_text((HERE / "shop.yaml").read_text().replace(CRM_IN_BUNDLE, self.desk.url.removeprefix("http://")))
        if self.cluster:
            self.cluster.prepare()
            self.screen.show("note", "a Kafka broker and a PostgreSQL server are up; two daemons share them")
        elif not (self.daemon.folder / "data" / "store.db").exists():
            self.daemon.init()
        for daemon in self.daemons:
            self.start(daemon)
        report = self.daemon.ctl("import", str(bundle))
        self.project = report["project"]["_id"]
        self.url_token = report["endpoints"][0]["urlToken"]
        self.key = self.daemon.ctl("apikey", "create", "--name", "shop systems")["key"]

    def start(self, daemon):
        began = time.monotonic()
        daemon.start()
        self.screen.show("daemon", f"ready on port {daemon.ports['api']} after {time.monotonic() - began:.2f} s")

    def kill(self):
        """Kills the daemon that gets the requests. Then the other daemon of a cluster gets them. A single daemon starts
        again."""
        killed = self.daemon
        killed.kill()
        self.screen.show("daemon", "killed with -9 while it works")
        if not self.cluster:
            return self.start(killed)
        self.daemon = next(daemon for daemon in self.daemons if daemon is not killed)
        self.screen.show("note", "the other daemon takes requests at once, and the partitions when Kafka misses their owner")

    def wait_idle(self):
        wait_idle([daemon for daemon in self.daemons if daemon.is_running()])

    def close(self):
        for daemon in self.daemons:
            daemon.kill()
        if self.cluster:
            self.cluster.close()
        self.receiver.stop()

    def say(self, text):
        self.screen.show("you", text)
        status, body, _ = self.daemon.request("POST", f"/{self.url_token}",
                                              {"userId": USER, "sessionId": SESSION, "text": text})
        if status != 200:
            raise SystemExit(f"the shop did not answer: {status} {body}")
        for output in body["outputStack"]:
            self.screen.show("shop", output["text"])
            self.answers.append(output["text"])

    def inject(self, data, key):
        """Repeats the inject under the same key until the daemon accepts it, as a careful client does."""
        asked_again = False
        while True:
            try:
                status, body, _ = self.daemon.request(
                    "POST", "/v2.0/endpoint/inject",
                    {"URLToken": self.url_token, "userId": USER, "sessionId": SESSION, "data": data},
                    {"X-API-Key": self.key, "Idempotency-Key": key})
                if status == 200:
                    self.accepted.append(data)
                    return
                if status < 500:
                    raise SystemExit(f"inject refused: {status} {body}")
            except (OSError, http.client.HTTPException):
                pass
            if not asked_again:
                self.screen.show("event", f"no answer for {data}: repeats the inject until the daemon answers")
                asked_again = True
            self.retry_pause.wait(0.05)

    retry_pause = threading.Event()  # never set: each wait ends by its timeout

    def set_up_follow_up(self):
        """Starts the set-up job and shows its progress as an operator sees it. Returns whether the job ended done."""
        status, job, _ = self.daemon.request("POST", f"/v2.0/projects/{self.project}/settings/proactive/setup",
                                             headers={"X-API-Key": self.key})
        if status != 201:
            raise SystemExit(f"set-up refused: {status} {job}")
        watched = subprocess.run([self.daemon.binaries / "conversectl", "--url",
                                  f"http://127.0.0.1:{self.daemon.ports['api']}", "jobs", "watch", job["_id"]],
                                 env=self.daemon.environment, check=False)
        return watched.returncode == 0

    def follow_ups(self):
        return [text for text in self.delivered_texts() if text == FOLLOW_UP]

    def delivered_texts(self):
        seen = {}
        for id_, _, body in self.receiver.deliveries:
            seen.setdefault(id_, body["output"]["text"])
        return list(seen.values())

    def show_deliveries(self):
        """Shows the outputs that reach the webhook, and marks repeats. Runs in its own thread."""
        shown, seen = 0, set()
        while True:
            self.receiver.wait_for(lambda deliveries: len(deliveries) > shown, None)
            for id_, _, body in self.receiver.deliveries[shown:]:
                again = "  (a repeat of the same webhook-id)" if id_ in seen else ""
                self.screen.show("shop", body["output"]["text"] + again)
                seen.add(id_)
                shown += 1


def play(shop):
    """Plays the conversation. Returns {check: whether it passed}."""
    show = shop.screen.show
    threading.Thread(target=shop.show_deliveries, daemon=True).start()
    shop.say("Hello")
    show("event", "the warehouse injects: packed")
    shop.inject({"event": "packed", "orderId": "A-1017"}, "packed")
    lookup = threading.Thread(target=shop.say, args=("Where is my order?",))
    lookup.start()
    show("note", "the order desk is slow; events that arrive meanwhile wait in the session's inbox")
    shop.desk.waiting.wait(0.5)
    shop.inject({"event": "scanned", "place": "the warehouse"}, "scan-0")
    show("event", "the carrier injects: scanned in the warehouse, accepted while the call is pending")
    lookup.join()

    show("event", f"the carrier injects {SCANS} scans, one after the other")
    half_way = threading.Event()

    def scan():
        for n in range(1, SCANS + 1):
            shop.inject({"event": "scanned", "place": f"{PLACES[n % len(PLACES)]} ({n})"}, f"scan-{n}")
            if n == SCANS_BEFORE_KILL:
                half_way.set()

    carrier = threading.Thread(target=scan)
    carrier.start()
    half_way.wait()
    shop.kill()
    carrier.join()

    show("event", "the carrier injects: delivered")
    shop.inject({"event": "delivered", "orderId": "A-1017"}, "delivered")
    shop.receiver.wait_for(lambda deliveries: any("How many stars" in body["output"]["text"]
                                                  for _, _, body in deliveries), 60)
    shop.say("lots")
    shop.say("5")
    for daemon in shop.daemons:
        if not daemon.is_running():
            shop.start(daemon)
            show("note", "the killed daemon is back, and takes its share of partitions again")
    shop.wait_idle()
    seen = check(shop)
    seen.update(fall_silent(shop))
    return seen


def fall_silent(shop):
    """The customer falls silent and gets a follow-up. Then the customer answers and gets no other one."""
    show = shop.screen.show
    show("note", "an operator sets up proactive follow-up and watches the job: conversectl jobs watch")
    done = shop.set_up_follow_up()
    shop.say("Let me think")
    show("note", "the customer falls silent")
    shop.receiver.wait_for(lambda _: shop.follow_ups(), 30)
    shop.say("One moment, please")
    show("note", "the next follow-up is pending; the customer answers before it is due")
    shop.say("No, that is all. Bye!")
    before = len(shop.follow_ups())
    shop.receiver.wait_for(lambda _: len(shop.follow_ups()) > before, 5)
    return {
        "the set-up of proactive follow-up ended done": done,
        "the silent customer got one follow-up": len(shop.follow_ups()) == 1,
        "the answer cancelled the next follow-up": len(shop.follow_ups()) == before,
    }


def check(shop):
    scans = [text for text in shop.delivered_texts() if text.startswith("Your parcel was scanned")]
    expected = [f"Your parcel was scanned in {data['place']}. (update {number})"
                for number, data in enumerate(shop.accepted, start=1) if data["event"] == "scanned"]
    arrivals = {}
    for id_, sequence, _ in shop.receiver.deliveries:
        arrivals.setdefault(id_, sequence)
    letters = shop.daemon.ctl("deadletters", "list")["items"]
    return {
        f"all {len(shop.accepted)} accepted events had their effects once, in order": scans == expected,
        "the call was answered, and the event that arrived meanwhile waited":
            any("being packed" in text for text in shop.answers)
            and expected[0] == (scans or [""])[0],
        "deliveries came in order, and repeats had the same id": list(arrivals.values()) == sorted(arrivals.values()),
        "every delivery was signed": shop.receiver.bad_signatures == 0,
        "the question repeated itself after a wrong answer, then took the right one":
            shop.answers[-2:] == ["Sorry, a number from 1 to 5, please.", "Thank you for 5 stars!"],
        "there are no dead letters": not letters,
    }


def demo(options):
    with tempfile.TemporaryDirectory(prefix="conversed-demo-") as folder:
        try:
            shop = Shop(options.bin, folder, Screen(), clustered=options.cluster)
        except cluster.Unavailable as missing:
            print(f"the demo needs Kafka and PostgreSQL: {missing}", file=sys.stderr)
            return 1
        try:
            shop.set_up()
            seen = play(shop)
            codes = []
            for daemon in shop.daemons:
                codes.append(daemon.terminate())
                shop.screen.show("daemon", f"drained and ended with exit code {codes[-1]}")
            seen["SIGTERM drained, exit 0"] = not any(codes)
        finally:
            shop.close()
    print("\nSummary")
    for check_name, passed in seen.items():
        print(f"  {'ok  ' if passed else 'FAIL'}  {check_name}")
    return 0 if all(seen.values()) else 1


CURLS = """
The demo project runs on http://127.0.0.1:{port}. Ctrl-C stops it. Its data stays in {folder}.

Chat, as a user (no key):
  curl -s http://127.0.0.1:{port}/{token} -d '{{"userId":"bob","sessionId":"s1","text":"Hello"}}'

Push an event into that conversation, as another system:
  curl -s http://127.0.0.1:{port}/v2.0/endpoint/inject -H 'X-API-Key: {key}' \\
    -d '{{"URLToken":"{token}","userId":"bob","sessionId":"s1","data":{{"event":"packed","orderId":"A-1"}}}}'

Read the outputs (they also arrive at the webhook, shown here):
  curl -s 'http://127.0.0.1:{port}/{token}/outputs?userId=bob&sessionId=s1'

Operate it:
  export CONVERSECTL_URL=http://127.0.0.1:{port} CONVERSECTL_AS={email} CONVERSECTL_PASSWORD='{password}'
  {bin}/conversectl status
  {bin}/conversectl chat {token}
"""


def serve(options):
    folder = pathlib.Path(options.data or "build/run").resolve()
    shop = Shop(options.bin, folder, Screen(), options.port)
    signal.signal(signal.SIGTERM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    try:
        shop.set_up()
        print(CURLS.format(port=shop.daemon.ports["api"], token=shop.url_token, key=shop.key, folder=folder,
                           email=EMAIL, password=PASSWORD, bin=options.bin), flush=True)
        threading.Thread(target=shop.show_deliveries, daemon=True).start()
        shop.daemon.process.wait()
        print(f"the daemon has ended; read {shop.daemon.log_path}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return shop.daemon.terminate()
    finally:
        shop.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="folder of conversed and conversectl")
    parser.add_argument("--cluster", action="store_true", help="two daemons on Kafka and PostgreSQL")
    parser.add_argument("--serve", action="store_true", help="keep a daemon running with the demo project")
    parser.add_argument("--port", type=int, default=8080, help="port of the daemon, with --serve")
    parser.add_argument("--data", help="data folder of --serve; default build/run")
    options = parser.parse_args()
    return serve(options) if options.serve else demo(options)


if __name__ == "__main__":
    sys.exit(main())
