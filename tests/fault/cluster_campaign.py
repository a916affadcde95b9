#!/usr/bin/env python3
"""Breaks a cluster of three daemons on Kafka and two PostgreSQL servers repeatedly under load, then counts effects.

8 clients send numbered injects and users' messages into 50 sessions, to any daemon that answers. Half of the sendings have
an Idempotency-Key. Flows call an upstream, sleep, and plan follow-ups. Meanwhile the campaign
  - kills daemons with -9, at a random moment or at a named point of the code, and starts them again,
  - freezes daemons by SIGSTOP until others have taken their partitions, then lets them continue as zombies,
  - stops daemons cleanly and starts them again,
  - kills the broker and one of two PostgreSQL servers and starts them again,
  - moves partitions between the two PostgreSQL servers. A move that an outage ends is repeated.
At each moment at least one daemon is whole and can answer. At the end, besides the checks of support/campaign.py:
  - no daemon has ended by itself,
  - the lag of the log is 0 within 30 s of the last fault,
  - each call of a Flow had one key in all its repeats, and each follow-up came once.

CONVERSED_TEST_SEED repeats the decisions of a run, but not their moments.
"""

import argparse
import collections
import contextlib
import http.client
import os
import pathlib
import random
import signal
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import cluster  # noqa: E402
from campaign import Client, Habits, Sending, Session, check_effects  # noqa: E402
from cluster import Cluster  # noqa: E402
from daemon_process import Failed  # noqa: E402
from kill_campaign import POINTS  # noqa: E402
from upstream import Upstream  # noqa: E402
from webhook_receiver import Receiver  # noqa: E402

CLIENTS = 8
SESSIONS = 50
DAEMONS = 3
PARTITIONS = 12
SHARDS = 2
LAG_GONE_WITHIN = 30  # seconds after the last fault
OF_DAEMONS = ("kill", "freeze", "leave")
OF_SERVERS = ("broker", "database")
BUNDLE = """
conversed: 1
project: {name: Campaign, locales: [en]}
flows:
  - name: Count
    nodes:
      - if: input.data.n % 7 == 2
        then: [{sleep: 100ms}]
      - if: input.data.n % 5 == 3
        then:
          - httpRequest: {method: POST, url: "UPSTREAM/{{input.sessionId}}/{{input.data.n}}", storeIn: context.order,
                          timeout: 20s}
      - addToContext: {count: "{{(context.count || 0) + 1}}"}
      - say: "{{input.data.n}} {{context.count}}"
  - name: Quiet
    nodes:
      - followUp: {after: 2s, expiresAfter: 1h, text: "Still there, {{input.sessionId}}?"}
endpoints:
  - {name: web, flow: Count, output: {webhook: {url: "${HOOK_URL}", secret: "${HOOK_SECRET}"}}}
  - {name: quiet, flow: Quiet, output: {webhook: {url: "${HOOK_URL}", secret: "${HOOK_SECRET}"}}}
"""


class Faults:
    """Reserves daemons for faults. One daemon stays whole. One thread has a daemon at a time. Thread-safe."""

    def __init__(self, daemons):
        self.whole = collections.deque(daemons)
        self.changed = threading.Condition()

    @contextlib.contextmanager
    def victim(self):
        with self.changed:
            self.changed.wait_for(lambda: len(self.whole) > 1)
            daemon = self.whole.popleft()
        try:
            yield daemon
        finally:
            with self.changed:
                self.whole.append(daemon)
                self.changed.notify_all()


class Campaign:
    def __init__(self, options, folder):
        self.options = options
        self.random = random.Random(options.seed)
        self.receiver = Receiver("whsec_dGhlIHNlY3JldCBvZiB0aGUgY2FtcGFpZ24=")
        self.upstream = Upstream()
        self.cluster = Cluster(
            options.bin, folder, [cluster.ALL_ROLES] * DAEMONS,
            # If a daemon with a pending call dies, the next owner repeats the call under the same key.
            "api: {turn_timeout: 15s}\n",
            {"HOOK_URL": self.receiver.url, "HOOK_SECRET": self.receiver.secret}, PARTITIONS, shards=SHARDS)
        self.sessions = [Session(i) for i in range(SESSIONS)]
        self.quiet = []  # sessions that must get a follow-up
        self.wrong = []
        self.done = collections.Counter()
        self.stopping = threading.Event()  # set when the campaign can't continue
        self.lock = threading.Lock()

    def note(self, text):
        print(f"{time.monotonic() - self.began:6.1f}s {text}", flush=True)

    def set_up(self):
        report = self.cluster.set_up(BUNDLE.replace("UPSTREAM", self.upstream.url))
        tokens = {each["name"]: each["urlToken"] for each in report["endpoints"]}
        self.url_token, self.quiet_token = tokens["web"], tokens["quiet"]
        self.clients = [
            Client(self.cluster.daemons, self.sessions[i::CLIENTS], self.url_token, self.cluster.key,
                   self.random.random(), Habits(keyed=0.5, messages=0.3)) for i in range(CLIENTS)]

    def accepted(self):
        return sum(len(session.accepted) for session in self.sessions)

    def wait_for_load(self, more):
        """Waits until the daemons accepted `more` further sendings, so that the next fault could lose one."""
        goal, deadline = self.accepted() + more, time.monotonic() + 120
        while self.accepted() < goal:
            if self.stopping.wait(0.05):
                return
            if time.monotonic() > deadline:
                raise Failed(f"no daemon accepts sendings any more: {[client.statuses for client in self.clients]}")

    def bring_up(self, daemon, environment=None):
        """Starts the daemon until it succeeds, as a supervisor does: its servers may be down."""
        deadline = time.monotonic() + 120
        while not daemon.start(environment, timeout=120):
            if time.monotonic() > deadline or self.stopping.is_set():
                raise Failed(f"{daemon.name} does not start any more; read {daemon.log_path}")

    def kill(self, daemon, chance):
        """Kills a daemon at a random moment, or at a named point that it reaches after its next start."""
        if chance.random() < 0.5:
            daemon.kill()
            return self.bring_up(daemon)
        point = chance.choice(POINTS)
        daemon.kill()
        if daemon.start({"CONVERSED_TEST_KILL_AT": f"{point}:{chance.randint(1, 5 if 'position' in point else 40)}"}):
            daemon.wait_end(5.0)
        daemon.kill()
        return self.bring_up(daemon)

    def freeze(self, daemon, chance):
        """Freezes a daemon that owns partitions until other daemons have taken all of them."""
        self.wait_until(lambda: self.had_by(lambda name: name == daemon.name))
        daemon.signal(signal.SIGSTOP)
        try:
            every = set(range(PARTITIONS))
            self.wait_until(lambda: self.had_by(lambda name: name != daemon.name, daemon) == every)
        finally:
            daemon.signal(signal.SIGCONT)

    def wait_until(self, condition):
        deadline = time.monotonic() + 120
        while not condition() and not self.stopping.wait(0.2):
            if time.monotonic() > deadline:
                raise Failed("partitions do not change owners any more")

    def had_by(self, wanted, frozen=None):
        """Returns the partitions of members with a `wanted` name, as a daemon reports them. Empty if none answers."""
        for witness in self.cluster.daemons:
            if witness is not frozen and witness.is_running():
                with contextlib.suppress(OSError, KeyError, Failed, http.client.HTTPException):
                    members = witness.full_status(timeout=10)["members"]
                    return {partition for member in members if wanted(member["name"])
                            for partition in member["partitions"]}
        return set()

    def leave(self, daemon, chance):
        """Stops a daemon cleanly and starts it again. While a server is down, the stop may fail to store state in time."""
        code = daemon.terminate()
        if code not in (0, 1):
            self.wrong.append(f"{daemon.name} left with exit code {code}")
        self.bring_up(daemon)

    def break_daemons(self, kinds, chance):
        for kind in kinds:
            with self.faults.victim() as daemon:
                if self.stopping.is_set():
                    return
                self.wait_for_load(10)
                if not daemon.is_running():
                    self.wrong.append(f"{daemon.name} ended by itself with code {daemon.process.returncode}")
                    self.bring_up(daemon)
                getattr(self, kind)(daemon, chance)
                self.count(kind)

    def break_servers(self, kinds, chance):
        for kind in kinds:
            self.wait_for_load(20)
            if self.stopping.is_set():
                return
            server = self.cluster.broker if kind == "broker" else chance.choice(self.cluster.servers)
            server.kill()
            self.stopping.wait(chance.choice((0, 0, 0.5, 2)))
            server.start()
            self.count(kind)

    def move_partitions(self, chance):
        """Moves partitions to and fro until the other faults are over."""
        while not self.faults_over.is_set():
            partition, server = chance.randrange(PARTITIONS), chance.randrange(SHARDS)
            while not self.stopping.is_set():
                moved = self.cluster.program("move-partition", "--partition", str(partition), "--to", str(server),
                                             "--drain", "5s")
                if moved.returncode == 0:
                    self.count("move")
                if moved.returncode == 0 or f"the partition is in shard {server} already" in moved.stderr:
                    break
                if self.faults_over.is_set() and time.monotonic() > self.moves_until:
                    self.wrong.append(f"a move does not end: {moved.stderr}")
                    return
                self.note(f"a move ended early: {moved.stderr.strip()[:200]}")
                self.stopping.wait(0.5)
            self.faults_over.wait(chance.choice((0.5, 2, 4)))

    def ask_for_follow_ups(self, chance):
        """Lets sessions fall silent. Each must get one follow-up."""
        client = Client(self.cluster.daemons, [], self.quiet_token, self.cluster.key, chance.random())
        while not self.faults_over.is_set():
            session = Session(f"quiet-{len(self.quiet)}")
            session.next_n, session.unresolved = 2, Sending(1, True)
            client.resolve(session, attempts=10_000)
            self.quiet.append(session)
            self.faults_over.wait(0.5)

    def count(self, kind):
        with self.lock:
            self.done[kind] += 1
            self.note(f"{kind} {self.done[kind]}, {self.accepted()} accepted")

    def in_thread(self, work, *arguments):
        def run():
            try:
                work(*arguments)
            except BaseException as error:
                self.wrong.append(f"{work.__name__}: {error!r}")
                self.stopping.set()

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread

    def all_faults(self):
        self.faults = Faults(self.cluster.daemons)
        self.faults_over = threading.Event()
        of_daemons = list(OF_DAEMONS) * self.options.faults
        self.random.shuffle(of_daemons)
        of_servers = list(OF_SERVERS) * self.options.faults
        self.random.shuffle(of_servers)
        seeds = [random.Random(self.random.random()) for _ in range(5)]
        asking = self.in_thread(self.ask_for_follow_ups, seeds[3])
        moving = self.in_thread(self.move_partitions, seeds[4])
        breaking = [self.in_thread(self.break_daemons, of_daemons[::2], seeds[0]),
                    self.in_thread(self.break_daemons, of_daemons[1::2], seeds[1]),
                    self.in_thread(self.break_servers, of_servers, seeds[2])]
        for thread in breaking:
            thread.join()
        self.moves_until = time.monotonic() + 120
        self.faults_over.set()
        moving.join()
        return asking

    def wait_lag_gone(self):
        """Waits until the lag is 0. Fails if that takes longer than LAG_GONE_WITHIN."""
        began = time.monotonic()
        for client in self.clients:
            client.halted.set()
        while True:
            try:
                lag = self.cluster.lag()
            except (OSError, Failed) as error:
                lag = error
            took = time.monotonic() - began
            if lag == 0:
                return self.note(f"no lag {took:.1f} s after the last fault")
            if took > LAG_GONE_WITHIN:
                raise Failed(f"{took:.0f} s after the last fault the lag is {lag}")
            self.stopping.wait(0.1)

    def settle(self, asking):
        asking.join()
        for client in self.clients:
            client.join()
            self.wrong += client.wrong
        resolver = Client(self.cluster.daemons, [], self.url_token, self.cluster.key, 0)
        for session in self.sessions:
            resolver.resolve(session)
        self.cluster.wait_idle()
        wanted = len(self.quiet)
        if not self.receiver.wait_for(lambda _: len(self.follow_ups()) >= wanted, 30):
            self.wrong.append(f"{wanted} sessions fell silent, {len(self.follow_ups())} follow-ups came")

    def follow_ups(self):
        """Returns {session: ids of its follow-ups}."""
        arrived = collections.defaultdict(set)
        for id_, _, body in list(self.receiver.deliveries):
            if body["sessionId"].startswith("session-quiet-"):
                arrived[body["sessionId"]].add(id_)
        return arrived

    def check(self):
        entrance = self.cluster.entrance()
        # A daemon that was frozen still reads the requests in its sockets, so unanswered ones may take effect late.
        found, outputs = check_effects(entrance, self.url_token, self.sessions, [
            each for each in self.receiver.deliveries if not each[2]["sessionId"].startswith("session-quiet-")], False)
        found += self.wrong
        found += [f"{session} got {len(ids)} follow-ups" for session, ids in self.follow_ups().items() if len(ids) != 1]
        keys = collections.defaultdict(set)
        for path, headers, _ in self.upstream.requests:
            keys[path].add(headers["Idempotency-Key"])
        found += [f"{path} was called under {len(used)} keys" for path, used in keys.items() if len(used) != 1]
        for session in self.sessions:
            found += [f"{session.session_id}: the Flow made no call for {n}" for n in session.accepted
                      if n % 5 == 3 and f"/{session.session_id}/{n}" not in keys]
        for daemon in self.cluster.daemons:
            if not daemon.is_running():
                found.append(f"{daemon.name} ended by itself with code {daemon.process.returncode}")
        if not self.done["move"]:
            found.append("no partition was moved")
        if self.receiver.bad_signatures:
            found.append(f"{self.receiver.bad_signatures} deliveries had a wrong signature")
        statuses = sum((collections.Counter(client.statuses) for client in self.clients), collections.Counter())
        print(f"{dict(self.done)}: {self.accepted()} accepted, {outputs} outputs, "
              f"{len(self.receiver.deliveries)} deliveries, {len(self.quiet)} follow-ups, answers {dict(statuses)}")
        return found

    def run(self):
        self.began = time.monotonic()
        self.set_up()
        self.note(f"{DAEMONS} daemons are up")
        for client in self.clients:
            client.start()
        asking = self.all_faults()
        if self.stopping.is_set():
            return self.wrong
        try:
            self.wait_lag_gone()
            self.settle(asking)
        except Failed as error:
            return [*self.wrong, f"not settled: {error}"]
        return self.check()

    def stop(self):
        self.stopping.set()
        self.cluster.close()
        self.upstream.stop()
        self.receiver.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="folder of conversed and conversectl")
    parser.add_argument("--faults", type=int, default=30, help="number of faults of each kind")
    parser.add_argument("--seed", type=int,
                        default=os.environ.get("CONVERSED_TEST_SEED") or random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--keep", help="an empty folder that keeps the daemons' data and logs")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    with contextlib.ExitStack() as stack:
        folder = options.keep or stack.enter_context(tempfile.TemporaryDirectory(prefix="conversed-fault-"))
        try:
            campaign = Campaign(options, folder)
        except cluster.Unavailable as missing:
            print(f"SKIPPED: this test needs Kafka and PostgreSQL: {missing}", file=sys.stderr)
            return cluster.SKIPPED
        try:
            found = campaign.run()
        finally:
            campaign.stop()
    for line in found[:20]:
        print("violation:", line)
    print("no violations" if not found else f"{len(found)} violations")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
