#!/usr/bin/env python3
"""Kills a daemon with -9 again and again under load, then counts effects.

8 clients send numbered injects into 50 sessions, each session's one after the other. Rounds end by SIGKILL: at a
random moment, or at a named point of the code. In the end:
  - every 2xx has its effects exactly once, and so has every keyed inject that was repeated until its 2xx,
  - an unknown outcome (5xx, broken connection) that was not repeated has them at most once,
  - the order within each session is the order of sending,
  - the session's state was counted up once for each effect,
  - each output reached the webhook under one constant id, first arrivals in order.

With --plant NAME the daemon is told to be wrong in that way, and the campaign succeeds if it finds violations.
"""

import argparse
import contextlib
import http.client
import pathlib
import random
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from daemon_process import Daemon, Failed  # noqa: E402
from webhook_receiver import Receiver  # noqa: E402

CLIENTS = 8
SESSIONS = 50
POINTS = [
    "log.before_commit", "log.after_commit", "log.before_position_commit", "log.after_position_commit",
    "store.before_commit", "store.after_commit", "turn.before_run", "turn.before_submit", "turn.after_commit",
    "deliver.after_post",
]
BUNDLE = """
conversed: 1
project: {name: Campaign, locales: [en]}
flows:
  - name: Count
    nodes:
      - addToContext: {count: "{{(context.count || 0) + 1}}"}
      - say: "{{input.data.n}} {{context.count}}"
endpoints:
  - {name: web, flow: Count, output: {webhook: {url: "${HOOK_URL}", secret: "${HOOK_SECRET}"}}}
"""


class Session:
    """What a client knows of one session it sends to. One thread at a time."""

    def __init__(self, number):
        self.user_id = f"user-{number}"
        self.session_id = f"session-{number}"
        self.next_n = 1
        self.unresolved = None  # the keyed n that is to be repeated until its outcome is known
        self.accepted = set()
        self.unknown = set()


class Client(threading.Thread):
    """Sends to its own sessions until told to stop. Survives the daemon's end."""

    def __init__(self, daemon, sessions, url_token, key, seed):
        super().__init__(daemon=True)
        self.target = daemon
        self.sessions = sessions
        self.url_token = url_token
        self.key = key
        self.random = random.Random(seed)
        self.halted = threading.Event()
        self.requests = 0

    def run(self):
        connection = None
        while not self.halted.is_set():
            session = self.random.choice(self.sessions)
            keyed = session.unresolved is not None or self.random.random() < 0.5
            n = session.unresolved or session.next_n
            try:
                if connection is None:
                    connection = self.target.connect(timeout=20)
                status = self.send(connection, session, n, keyed)
            except (OSError, http.client.HTTPException):
                status = None
                if connection is not None:
                    connection.close()
                    connection = None
            self.note(session, n, keyed, status)
            if status is None and self.halted.wait(0.05):  # the daemon is down: ask again a little later
                return

    def send(self, connection, session, n, keyed):
        headers = {"X-API-Key": self.key}
        if keyed:
            headers["Idempotency-Key"] = f"{session.session_id}-{n}"
        self.requests += 1
        status, body, _ = self.target.request(
            "POST", "/v2.0/endpoint/inject",
            {"URLToken": self.url_token, "userId": session.user_id, "sessionId": session.session_id,
             "data": {"n": n}}, headers, connection)
        if 400 <= status < 500:
            raise Failed(f"inject refused: {status} {body}")
        return status

    def note(self, session, n, keyed, status):
        if n == session.next_n:
            session.next_n += 1
        if status == 200:
            session.accepted.add(n)
            session.unknown.discard(n)
            session.unresolved = None
            return
        session.unknown.add(n)
        session.unresolved = n if keyed else None


def violations_of(session, outputs):
    found = []
    numbers = [int(output["text"].split()[0]) for output in outputs]
    counts = [int(output["text"].split()[1]) for output in outputs]
    name = session.session_id
    for n in sorted(session.accepted):
        if numbers.count(n) != 1:
            found.append(f"{name}: accepted {n} has its effects {numbers.count(n)} times")
    for n in sorted(set(numbers)):
        if numbers.count(n) > 1 and n not in session.accepted:
            found.append(f"{name}: {n}, of unknown outcome, has its effects {numbers.count(n)} times")
        if n not in session.accepted and n not in session.unknown:
            found.append(f"{name}: {n} was never sent")
    if numbers != sorted(numbers):
        found.append(f"{name}: out of order: {numbers}")
    if counts != list(range(1, len(counts) + 1)):
        found.append(f"{name}: the state counted {counts}")
    return found


def delivery_violations(session, outputs, deliveries):
    mine = [(id_, seq) for id_, seq, body in deliveries if body["sessionId"] == session.session_id]
    found = []
    first_arrivals = list(dict.fromkeys(id_ for id_, _ in mine))
    if len(first_arrivals) != len(outputs):
        found.append(f"{session.session_id}: {len(outputs)} outputs, {len(first_arrivals)} delivered")
    sequence = [next(seq for id_, seq in mine if id_ == wanted) for wanted in first_arrivals]
    if sequence != sorted(sequence):
        found.append(f"{session.session_id}: deliveries out of order: {sequence}")
    return found


def all_outputs(daemon, url_token, session):
    items, after = [], 0
    while True:
        status, page, _ = daemon.request(
            "GET", f"/{url_token}/outputs?userId={session.user_id}&sessionId={session.session_id}&after={after}")
        if status != 200:
            raise Failed(f"outputs: {status} {page}")
        if not page["items"]:
            return items
        items += page["items"]
        after = page["items"][-1]["seq"]


class Campaign:
    def __init__(self, options, folder):
        self.options = options
        self.random = random.Random(options.seed)
        self.receiver = Receiver("whsec_c2VjcmV0IG9mIHRoZSBjYW1wYWlnbg==")
        plant = {"CONVERSED_TEST_PLANT": options.plant} if options.plant else {}
        self.plant = plant
        self.daemon = Daemon(options.bin, folder, environment={
            "HOOK_URL": self.receiver.url, "HOOK_SECRET": self.receiver.secret})
        self.sessions = [Session(i) for i in range(SESSIONS)]

    def set_up(self):
        bundle = self.daemon.folder / "bundle.yaml"
        bundle.write_text(BUNDLE)
        self.daemon.init()
        if not self.daemon.start():
            raise Failed("the daemon ended at its first start")
        report = self.daemon.ctl("import", str(bundle))
        self.url_token = report["endpoints"][0]["urlToken"]
        self.key = self.daemon.ctl("apikey", "create", "--name", "campaign")["key"]
        self.daemon.terminate()

    def clients(self):
        return [Client(self.daemon, self.sessions[i::CLIENTS], self.url_token, self.key,
                       self.random.random()) for i in range(CLIENTS)]

    def round(self, number):
        """One start, some load, one SIGKILL. The number of requests that were sent."""
        named = self.options.points[number % len(self.options.points)] if number % 2 else None
        environment = dict(self.plant)
        if named:
            # Positions are committed ten times a second, everything else for every few requests.
            times = self.random.randint(1, 5 if "position" in named else 60)
            environment["CONVERSED_TEST_KILL_AT"] = f"{named}:{times}"
        if not self.daemon.start(environment):
            return f"{named}, while it started", 0  # what was left over was enough to reach the point
        clients = self.clients()
        for client in clients:
            client.start()
        if named:
            if not self.daemon.wait_end(5.0):
                named += " (not reached)"
        else:
            self.daemon.wait_end(self.random.uniform(0.05, 0.8))
        self.daemon.kill()
        for client in clients:
            client.halted.set()
        for client in clients:
            client.join()
        return named or "a random moment", sum(client.requests for client in clients)

    def settle(self):
        """A last start without kills: keyed injects of unknown outcome are repeated, all is worked off."""
        if not self.daemon.start(self.plant):
            raise Failed("the daemon did not start after the last kill")
        for session in self.sessions:
            if session.unresolved:
                client = Client(self.daemon, [session], self.url_token, self.key, 0)
                status = client.send(None, session, session.unresolved, True)
                client.note(session, session.unresolved, True, status)
        self.daemon.wait_idle()

    def check(self):
        found = []
        outputs = {s.session_id: all_outputs(self.daemon, self.url_token, s) for s in self.sessions}
        for session in self.sessions:
            found += violations_of(session, outputs[session.session_id])
            found += delivery_violations(session, outputs[session.session_id], self.receiver.deliveries)
        letters = self.daemon.ctl("deadletters", "list")["items"]
        found += [f"dead letter: {letter['reason']}" for letter in letters]
        if self.receiver.bad_signatures:
            found.append(f"{self.receiver.bad_signatures} deliveries with a wrong signature")
        accepted = sum(len(s.accepted) for s in self.sessions)
        unknown = sum(len(s.unknown) for s in self.sessions)
        print(f"{accepted} accepted, {unknown} of unknown outcome, "
              f"{sum(map(len, outputs.values()))} outputs, {len(self.receiver.deliveries)} deliveries")
        if accepted < 10 * self.options.rounds:
            found.append(f"too little was accepted for the campaign to say anything: {accepted}")
        return found

    def run(self):
        self.set_up()
        for number in range(self.options.rounds):
            began = time.monotonic()
            where, requests = self.round(number)
            print(f"round {number + 1}/{self.options.rounds}: killed at {where}, {requests} requests, "
                  f"{time.monotonic() - began:.1f} s", flush=True)
        began = time.monotonic()
        stuck = []
        try:
            self.settle()
            print(f"settled in {time.monotonic() - began:.1f} s", flush=True)
        except Failed as error:  # sessions that wait for ever for what was lost
            stuck.append(f"not settled: {error}")
        return stuck + self.check()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="folder of conversed and conversectl")
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--keep", help="an empty folder where the daemon's data and log stay")
    parser.add_argument("--plant", help="the fault to plant: the campaign has to find it")
    parser.add_argument("--points", nargs="+", default=POINTS, help="where to kill in every second round")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    with contextlib.ExitStack() as stack:
        folder = options.keep or stack.enter_context(tempfile.TemporaryDirectory(prefix="conversed-fault-"))
        campaign = Campaign(options, folder)
        try:
            found = campaign.run()
        finally:
            campaign.daemon.kill()
            campaign.receiver.stop()
    for line in found[:20]:
        print("violation:", line)
    if options.plant:
        print(f"planted {options.plant}: " + ("found" if found else "NOT found"))
        return 0 if found else 1
    print("no violations" if not found else f"{len(found)} violations")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
