"""Recorded sessions replayed on a changed Flow: the differences and nothing else, and without any effect."""

import http.client
import http.server
import json
import os
import pathlib
import pty
import sqlite3
import subprocess
import threading
import time
import unittest

from ctl_case import CTL, CtlCase

SESSIONS = 500
BUNDLE = """
conversed: 1
project: {name: Tests, locales: [en]}
connections:
  - {name: crm, type: httpBearer, fields: {token: "${CRM_TOKEN}"}}
flows:
  - name: Shop
    nodes:
      - addToContext: {n: "{{(context.n || 0) + 1}}"}
      - switch:
          on: text
          cases:
            order:
              - httpRequest: {method: GET, url: "UPSTREAM/orders/{{encodeURIComponent(input.userId)}}", connection: crm, storeIn: context.order}
              - say: "{{context.order.state}} at {{input.currentTime}} {{Math.random()}}"
            name: [{updateProfile: {name: "{{input.data.name}}"}}, {say: "I know you, {{profile.name}}."}]
            nap: [{say: "zzz"}, {sleep: 1s}, {say: "{{Math.random()}}"}]
            fail: [{id: again, goTo: again}]
            price: [{say: "It is 5."}]
          default: [{say: "{{context.n}} {{input.text}} {{input.data.size || 'none'}} {{profile.name || 'you'}}"}]
  - {name: Echo, nodes: [{say: "{{input.text}}"}]}
  - {name: Sub, nodes: [{say: "in"}]}
  - {name: Outer, nodes: [{executeFlow: Sub}]}
endpoints:
  - {name: shop, flow: Shop, errorText: "Sorry."}
  - {name: echo, flow: Echo}
  - {name: outer, flow: Outer}
"""


class FlowReplay(CtlCase):
    bundle = BUNDLE

    def changed(self, *replacements):
        """Writes the bundle with changes, and returns its path."""
        text = BUNDLE.replace("UPSTREAM", self.upstream.url)
        for old, new in replacements:
            self.assertIn(old, text)
            text = text.replace(old, new)
        path = pathlib.Path(self.folder.name) / "changed.yaml"
        path.write_text(text)
        return path

    def talk(self, session, *texts, endpoint="shop", **body):
        for text in texts:
            status, answer = self.say(endpoint, session, text, **body)
            self.assertEqual(status, 200, answer)

    def failing(self, session):
        self.assertEqual(self.say("shop", session, "fail")[0], 200)

    def rows(self):
        """Returns the numbers of rows of all tables that a conversation writes."""
        tables = ("sessions", "receipts", "receipt_numbers", "later_steps", "plain_deliveries", "profiles", "outputs", "deliveries", "pending_calls", "follow_ups", "dead_letters",
                  "inbox", "claims", "flow_versions")
        with sqlite3.connect(f"file:{self.daemon.folder}/data/store.db?mode=ro", uri=True) as store:
            known = {name for name, in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            return {table: list(store.execute(f"SELECT * FROM {table}")) for table in tables if table in known}

    def replay(self, *arguments, code):
        return self.json("flow", "replay", *arguments, code=code)

    def kill_in_the_middle(self, path):
        """Kills a replay when it tells of its first page: in a terminal it shows its progress."""
        terminal, its_end = pty.openpty()
        process = subprocess.Popen([CTL, "--url", f"http://127.0.0.1:{self.daemon.ports['api']}", "flow", "replay", "Shop", path],
                                   stdout=subprocess.DEVNULL, stderr=its_end, env=self.daemon.environment)
        self.assertIn(f"replayed 100 of {SESSIONS} sessions", os.read(terminal, 1000).decode())
        process.kill()
        process.wait()
        os.close(terminal)
        os.close(its_end)

    def kill_the_daemon_in_the_middle(self, path):
        """Kills the daemon when a replay asks for its second page."""
        daemon = self.daemon

        class Between(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                if "&after=" in self.path:
                    daemon.kill()
                    return
                connection = http.client.HTTPConnection("127.0.0.1", daemon.ports["api"], timeout=60)
                connection.request("GET", self.path, headers={"Authorization": self.headers["Authorization"]})
                answer = connection.getresponse()
                self.send_response(answer.status)
                self.end_headers()
                self.wfile.write(answer.read())
                connection.close()

            def log_message(self, *_):
                pass

        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Between) as between:
            threading.Thread(target=between.serve_forever, daemon=True).start()
            done = subprocess.run([CTL, "--url", f"http://127.0.0.1:{between.server_address[1]}", "flow", "replay", "Shop", path],
                                  capture_output=True, text=True, env=daemon.environment, timeout=120)
            between.shutdown()
        self.assertTrue(daemon.wait_end(0))
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stdout, "", "no report of a part of the sessions")
        self.assertIn("no answer from", done.stderr)

    def test_flow_replay(self):
        for i in range(SESSIONS):
            name = f"many {i}"
            if i % 10 == 0:
                self.talk(name, "hello", "price", "bye")
            elif i % 10 == 1:
                self.talk(name, "order", "bye")
            elif i == 2:
                self.talk(name, "nap", "bye")
            elif i == 3:
                self.failing(name)
            elif i == 4:
                self.talk(name, "name", data={"name": "Ann"})
                self.talk(name, "hello", "bye")
            else:
                self.talk(name, "hello " + "long " * 60, data={"size": i})
        self.talk("other", "hello", endpoint="echo")
        self.daemon.wait_idle()
        calls = len(self.upstream.requests)
        rows = self.rows()

        same = self.replay("Shop", self.changed(), "--last", SESSIONS, code=0)
        self.assertEqual({key: same[key] for key in ("sessions", "same", "different", "notComparable")},
                         {"sessions": SESSIONS, "same": SESSIONS, "different": 0, "notComparable": 0}, same)

        path = self.changed(("It is 5.", "It is 6."), ("/orders/", "/v2/orders/"))
        began = time.monotonic()
        found = self.replay("Shop", path, code=1)
        took = time.monotonic() - began
        print(f"\nreplayed {found['sessions']} sessions in {took:.1f} s", flush=True)
        self.assertEqual((found["sessions"], found["same"], found["different"], found["notComparable"]),
                         (SESSIONS, SESSIONS - 2 * SESSIONS // 10, 2 * SESSIONS // 10, 0))
        differing = {each["sessionId"]: each for each in found["differences"]}
        self.assertEqual(set(differing), {f"many {i}" for i in range(SESSIONS) if i % 10 < 2})
        priced = differing["many 10"]
        self.assertEqual(priced["same"], 1)
        self.assertEqual([(each["input"], each["differs"]) for each in priced["exchanges"]], [("> price", True), ("> bye", False)])
        self.assertEqual((priced["exchanges"][0]["recorded"], priced["exchanges"][0]["replayed"]),
                         ([{"text": "It is 5.", "data": None}], [{"text": "It is 6.", "data": None}]))
        called = differing["many 11"]["exchanges"]
        host = self.upstream.url.removeprefix("http://")
        self.assertEqual(len(called), 1, "the replay ends at the new call")
        self.assertRegex(called[0]["note"], f"a call that the recording lacks: GET {host}, at the Node nodes")
        self.assertEqual(called[0]["replayed"], [])
        self.assertIn("shipped at ", called[0]["recorded"][0]["text"])

        self.assertEqual(len(self.upstream.requests), calls, "a replay makes no calls")
        self.assertEqual(self.rows(), rows, "a replay changes nothing")

        shown = self.people("flow", "replay", "Shop", path, "--show", 1, code=1)
        self.assertIn(f"{SESSIONS} sessions of Shop replayed on {path}: {SESSIONS - 100} same, 100 different, 0 not comparable", shown)
        self.assertEqual(shown.count("RECORDED\tREPLAYED"), 1)
        self.assertIn("and 99 more sessions that differ", shown)

        self.kill_in_the_middle(path)
        self.kill_the_daemon_in_the_middle(path)
        self.daemon.start()
        self.daemon.wait_idle()
        self.assertEqual(self.rows(), rows, "nothing is lost or doubled")
        self.assertEqual(self.replay("Shop", path, code=1), found, "and the next replay finds the same")

    def test_a_replay_is_chosen_by_flow_endpoint_and_version(self):
        self.talk("entered", "hi", endpoint="outer")
        self.talk("said", "hi", endpoint="echo")
        self.daemon.wait_idle()
        self.assertEqual(self.replay("Sub", code=0)["sessions"], 1, "a Flow that another one entered")
        newest = self.replay("Echo", "--endpoint", "echo", "--last", 1, code=0)
        self.assertEqual((newest["sessions"], newest["same"], newest["on"]), (1, 1, "version 1"))
        self.assertEqual(self.replay("Echo", "--endpoint", "outer", code=0)["sessions"], 0)
        path = self.changed(('say: "{{input.text}}"', 'say: "You said {{input.text}}"'))
        self.load(path.read_text())
        self.assertEqual(self.replay("Echo", code=1)["on"], "version 2")
        self.assertEqual(self.replay("Echo", "--version", 1, code=0)["different"], 0)
        for wrong in (("Nothing",), ("Echo", "--version", "77")):
            self.run_ctl("flow", "replay", *wrong, code=1)
        self.load(BUNDLE)

    def test_an_answer_that_is_too_large_is_said_to_be_missing(self):
        self.upstream.padding = os.urandom(20_000).hex()
        self.talk("large", "order")
        self.upstream.padding = ""
        self.daemon.wait_idle()
        found = self.replay("Shop", "--last", 1, code=0)
        self.assertEqual((found["notComparable"], found["reasons"][0]["reason"]),
                         (1, f"an answer of {self.upstream.url.removeprefix('http://')} is too large to be recorded"))

    def test_the_data_of_an_erased_user_is_not_replayed(self):
        self.talk("erased", "order", data={"secret": "of the user"})
        self.daemon.wait_idle()
        exported = self.json("users-data", "export", "user of erased")
        text = json.dumps(exported)
        self.assertIn("of the user", text)
        self.assertIn('"state": "shipped"', text)
        before = self.replay("Shop", "--last", 5000, code=0)["sessions"]
        for _ in range(600):
            erased = subprocess.run([CTL, "--url", f"http://127.0.0.1:{self.daemon.ports['api']}", "users-data", "erase", "user of erased"],
                                    capture_output=True, text=True, env=self.daemon.environment)
            if erased.returncode == 0:
                break
            self.assertFalse(self.daemon.wait_end(0.05), "the daemon ended")
        self.assertEqual(erased.returncode, 0, erased)
        self.assertEqual(self.replay("Shop", "--last", 5000, code=0)["sessions"], before - 1)


if __name__ == "__main__":
    unittest.main()
