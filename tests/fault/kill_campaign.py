#!/usr/bin/env python3
"""Kills a daemon with -9 repeatedly under load, then counts effects.

8 clients send numbered injects and messages into 50 sessions, one at a time into each. A round ends by SIGKILL, at a
random moment or at a named point of the code. support/campaign.py has the checks at the end.

The daemon gives up an event at the third kill during its run. So before each second round it finishes all events of
earlier rounds: two kills can hit the run of one event, but never three.

--plant NAME enables a planted fault. The campaign then succeeds if it finds violations. Chance decides whether a kill
shows the fault, so the campaign is repeated until it does, at most PLANTED_TRIES times.
"""

import argparse
import contextlib
import pathlib
import random
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from campaign import Client, Habits, Session, check_effects  # noqa: E402
from daemon_process import Daemon, Failed  # noqa: E402
from webhook_receiver import Receiver  # noqa: E402

CLIENTS = 8
SESSIONS = 50
# 8 rounds, half of them with a kill at the fault's point, missed `answer_before_commit` in one of 16 campaigns.
PLANTED_TRIES = 5
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


class Campaign:
    def __init__(self, options, folder):
        self.options = options
        self.random = random.Random(options.seed)
        self.receiver = Receiver("whsec_dGhlIHNlY3JldCBvZiB0aGUgY2FtcGFpZ24=")
        plant = {"CONVERSED_TEST_PLANT": options.plant} if options.plant else {}
        self.plant = plant
        # With these limits the daemon reads half of the events back from the log under load.
        self.daemon = Daemon(options.bin, folder, settings="workers: 4\nlimits: {in_flight: 4}\n", environment={
            "HOOK_URL": self.receiver.url, "HOOK_SECRET": self.receiver.secret})
        self.sessions = [Session(i) for i in range(SESSIONS)]
        self.wrong = []  # answers that no daemon may give

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
        return [Client([self.daemon], self.sessions[i::CLIENTS], self.url_token, self.key,
                       self.random.random(), Habits(messages=0.3)) for i in range(CLIENTS)]

    def round(self, number):
        """Starts the daemon, sends load, kills the daemon. Returns the place of the kill and the number of requests."""
        named = self.options.points[number % len(self.options.points)] if number % 2 else None
        environment = dict(self.plant)
        if named:
            # The daemon commits positions ten times a second, and passes the other points every few requests.
            times = self.random.randint(1, 5 if "position" in named else 60)
            environment["CONVERSED_TEST_KILL_AT"] = f"{named}:{times}"
        if not self.daemon.start(environment):
            return f"{named}, while it started", 0  # events of earlier rounds reached the point
        if not named:
            self.daemon.wait_idle(60)
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
            self.wrong += client.wrong
        return named or "a random moment", sum(client.requests for client in clients)

    def settle(self):
        """Starts the daemon without kills, repeats keyed injects of unknown outcome, and waits until the daemon is idle."""
        if not self.daemon.start(self.plant):
            raise Failed("the daemon did not start after the last kill")
        client = Client([self.daemon], [], self.url_token, self.key, 0)
        for session in self.sessions:
            client.resolve(session)
        self.daemon.wait_idle()

    def check(self):
        found, outputs = check_effects(self.daemon, self.url_token, self.sessions, self.receiver.deliveries)
        found += self.wrong
        if self.receiver.bad_signatures:
            found.append(f"{self.receiver.bad_signatures} deliveries had a wrong signature")
        accepted = sum(len(s.accepted) for s in self.sessions)
        unknown = sum(len(s.unknown) for s in self.sessions)
        print(f"{accepted} accepted, {unknown} of unknown outcome, "
              f"{outputs} outputs, {len(self.receiver.deliveries)} deliveries")
        if accepted < 10 * self.options.rounds and not self.options.plant:
            found.append(f"the daemon accepted only {accepted} sendings, too few for a result")
        return found

    def run(self):
        self.set_up()
        stuck = []
        try:
            for number in range(self.options.rounds):
                began = time.monotonic()
                where, requests = self.round(number)
                print(f"round {number + 1}/{self.options.rounds}: killed at {where}, {requests} requests, "
                      f"{time.monotonic() - began:.1f} s", flush=True)
            began = time.monotonic()
            self.settle()
            print(f"settled in {time.monotonic() - began:.1f} s", flush=True)
        except Failed as error:  # sessions that wait forever for lost events
            stuck.append(f"not settled: {error}")
        return stuck + self.check()


def run_campaign(options):
    """Returns the violations."""
    print(f"seed {options.seed}", flush=True)
    with contextlib.ExitStack() as stack:
        if options.keep:
            folder = pathlib.Path(options.keep) / str(options.seed)
            if folder.exists():
                raise SystemExit(f"{folder} exists: name another folder or seed")
            folder.mkdir(parents=True)
        else:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="conversed-fault-"))
        campaign = Campaign(options, folder)
        try:
            return campaign.run()
        finally:
            campaign.daemon.kill()
            campaign.receiver.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="folder of conversed and conversectl")
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--keep", help="keep the daemon's data and log in a new folder here, named by the seed")
    parser.add_argument("--plant", help="the fault to plant, which the campaign must find")
    parser.add_argument("--points", nargs="+", default=POINTS, help="points of the code for the kills of every second round")
    options = parser.parse_args()
    for _ in range(PLANTED_TRIES if options.plant else 1):
        found = run_campaign(options)
        if found:
            break
        options.seed += 1
    for line in found[:20]:
        print("violation:", line)
    if options.plant:
        print(f"planted {options.plant}: " + ("found" if found else "NOT found"))
        return 0 if found else 1
    print("no violations" if not found else f"{len(found)} violations")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
