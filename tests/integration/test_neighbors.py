"""Organisations that share a daemon: whatever the Flows of one do, the users of the other have their answers."""

import pathlib
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

# Each expression takes some 50,000 steps: `busy` as many times as the message says, `endless` without end.
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
  - name: Endless
    nodes:
      - id: again
        addToContext: {{{", ".join(f'k{i}: "{{{{ {MANY} }}}}"' for i in range(100))}}}
      - goTo: again
endpoints:
  - {{name: busy, flow: Busy}}
  - {{name: endless, flow: Endless, errorText: sorry}}
"""

CLIENTS = 12


class Neighbors(DaemonCase):
    bundle = QUIET
    settings = "workers: 2\n"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.daemon.ctl("organisation", "add", "Noisy", "--admin", "admin@noisy.example", "--password-stdin",
                       input="a long enough passphrase\n")
        own = dict(cls.daemon.environment)
        cls.daemon.environment.update(CONVERSECTL_AS="admin@noisy.example",
                                      CONVERSECTL_PASSWORD="a long enough passphrase")
        path = pathlib.Path(cls.folder.name) / "noisy.yaml"
        path.write_text(NOISY)
        report = cls.daemon.ctl("import", str(path))
        cls.daemon.environment.clear()
        cls.daemon.environment.update(own)
        cls.tokens.update({endpoint["name"]: endpoint["urlToken"] for endpoint in report["endpoints"]})

    def timed(self, endpoint, session, text, expected, **body):
        """Seconds until the answer."""
        begun = time.monotonic()
        status, answer = self.say(endpoint, session, text, **body)
        self.assertEqual((status, answer["text"]), (200, expected), answer)
        return time.monotonic() - begun

    def turn_alone(self, times):
        return min(self.timed("busy", "alone", "x", "done", data={"times": times}) for _ in range(3))

    def test_slow_flows_of_one_organisation_keep_no_other_waiting(self):
        times = 3  # to 96: a Node may run 100 times in a Turn
        while (alone := self.turn_alone(times)) < 0.25 and times < 90:
            times *= 2
        self.timed("echo", "quiet", "first", "first")
        ended = threading.Event()
        failures = []

        def make_noise(number):
            while not ended.is_set():
                status, answer = self.say("busy", f"noisy {number}", "x", data={"times": times})
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


if __name__ == "__main__":
    unittest.main()
