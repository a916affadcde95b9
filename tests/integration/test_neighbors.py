"""Two organisations share a daemon: slow Flows of one do not delay the answers of the other."""

import contextlib
import statistics
import threading
import time
import unittest

from case import DaemonCase

TEN = "[0,1,2,3,4,5,6,7,8,9]"
SQUARES = " + ".join(["c * c"] * 12)
MANY = f"{TEN}.flatMap(a => {TEN}).flatMap(b => {TEN}).map(c => {SQUARES}).length"

QUIET = """
conversed: 1
project: {name: Quiet, locales: [en]}
flows:
  - {name: Echo, nodes: [{say: "{{input.text}}"}]}
endpoints:
  - {name: echo, flow: Echo}
"""

# Each expression takes about 50,000 steps. `busy` runs it `input.data.times` times, `endless` forever.
NOISY = f"""
conversed: 1
project: {{name: Noisy, locales: [en]}}
flows:
  - name: Busy
    nodes:
      - id: again
        addToContext: {{n: "{{{{ (context.n || 0) + 1 }}}}", x: "{{{{ {MANY} }}}}"}}
      - if: context.n < input.data.times
        then: [{{goTo: again}}]
      - resetContext: true
      - say: done
  - name: Count
    nodes:
      - addToContext: {{count: "{{{{ (context.count || 0) + 1 }}}}"}}
      - say: "{{{{input.data.n}}}} {{{{context.count}}}}"
  - name: Endless
    nodes:
      - id: again
        addToContext: {{{", ".join(f'k{i}: "{{{{ {MANY} }}}}"' for i in range(100))}}}
      - goTo: again
endpoints:
  - {{name: busy, flow: Busy}}
  - {{name: count, flow: Count}}
  - {{name: endless, flow: Endless, errorText: sorry}}
"""

CLIENTS = 12


class TwoOrganisations(DaemonCase):
    bundle = QUIET
    settings = "workers: 2\n"
    times = 3  # the repeats of the expression in a slow Turn; `measure_alone` raises it

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.tokens.update(cls.load_elsewhere("Noisy", NOISY))

    def timed(self, endpoint, session, text, expected, **body):
        """Sends a message and checks its answer. Returns the seconds until the answer."""
        begun = time.monotonic()
        status, answer = self.say(endpoint, session, text, **body)
        self.assertEqual((status, answer["text"]), (200, expected), answer)
        return time.monotonic() - begun

    def turn_alone(self):
        return min(self.timed("busy", "alone", "x", "done", data={"times": self.times}) for _ in range(3))

    def measure_alone(self):
        """Raises `times` until a slow Turn takes 0.25 s on an idle daemon. Returns the seconds of such a Turn."""
        while (alone := self.turn_alone()) < 0.25 and self.times < 90:  # at most 96: a Node may run 100 times in a Turn
            self.times *= 2
        return alone

    def lag(self):
        return self.daemon.status()[0].get("lag", 0)

    def send(self, endpoint, messages):
        """Sends each (session, data) over one connection, without waiting for the Turns."""
        with contextlib.closing(self.daemon.connect()) as connection:
            for session, data in messages:
                body = {"userId": f"user of {session}", "sessionId": session, "text": "x", "data": data}
                status, answer, _ = self.daemon.request("POST", f"/{self.tokens[endpoint]}", body,
                                                        {"Prefer": "respond-async"}, connection)
                self.assertEqual(status, 202, answer)

    def send_slow(self, count):
        self.send("busy", [(f"slow {n}", {"times": self.times}) for n in range(count)])


class Neighbors(TwoOrganisations):
    def test_slow_flows_of_one_organisation_do_not_delay_another(self):
        alone = self.measure_alone()
        self.timed("echo", "quiet", "first", "first")
        ended = threading.Event()
        failures = []

        def make_noise(number):
            while not ended.is_set():
                status, answer = self.say("busy", f"noisy {number}", "x", data={"times": self.times})
                if status != 200:
                    failures.append((status, answer))

        clients = [threading.Thread(target=make_noise, args=(number,)) for number in range(CLIENTS)]
        for client in clients:
            client.start()
        try:
            time_to_fill = [self.timed("echo", "quiet", f"fill {n}", f"fill {n}") for n in range(5)]
            waited = [self.timed("echo", "quiet", str(n), str(n)) for n in range(40)]
        finally:
            ended.set()
            for client in clients:
                client.join()
        self.assertEqual(failures, [])
        self.assertLess(statistics.median(waited), alone / 2, (alone, time_to_fill, waited))

    def test_a_turn_without_end_is_a_dead_letter_and_the_daemon_goes_on(self):
        for number in range(3):
            self.timed("endless", f"endless {number}", "x", "sorry")
        self.timed("echo", "afterwards", "still here", "still here")


class Backlog(TwoOrganisations):
    settings = "workers: 2\nlimits: {in_flight: 64}\n"

    def test_a_backlog_of_slow_turns_does_not_delay_another_organisation(self):
        alone = self.measure_alone()
        self.timed("echo", "quiet", "first", "first")
        self.send_slow(320)
        waited = [self.timed("echo", f"quiet {n}", str(n), str(n)) for n in range(40)]
        self.assertGreater(self.lag(), 64)
        self.assertLess(statistics.median(waited), alone / 2, (alone, waited))


class BacklogAtACrash(TwoOrganisations):
    settings = "workers: 2\nlimits: {in_flight: 64}\n"

    def test_a_backlog_runs_once_and_in_order_after_a_crash_and_does_not_delay_another_organisation(self):
        alone = self.measure_alone()
        self.send_slow(60)  # later events wait behind these
        sessions = [f"counted {n}" for n in range(50)]
        clients = [threading.Thread(target=self.send, args=("count", [(session, {"n": n}) for n in range(1, 101)
                                                                      for session in sessions[first::4]]))
                   for first in range(4)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        self.assertGreater(self.lag(), 1000)
        self.daemon.kill()
        self.daemon.start()
        # The event that was in hand at the crash runs first and alone: one slow Turn.
        waited = self.timed("echo", "quiet", "hello", "hello")
        self.assertGreater(self.lag(), 1000)
        self.assertLess(waited, 2 * alone + 2)
        self.daemon.wait_idle(300)
        for session in sessions:
            self.assertEqual(self.texts("count", session), [f"{n} {n}" for n in range(1, 101)])


if __name__ == "__main__":
    unittest.main()
