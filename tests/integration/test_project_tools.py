"""`conversectl flow versions`, `diff` and `rollback`, `export`, `import --prune`, `connections usages`; and calls of a deleted Connection."""

import json
import os
import pathlib
import subprocess
import unittest

from case import BIN, CONNECTION_TOKEN, DaemonCase

BUNDLE = """
conversed: 1
project: {name: Tests, locales: [en]}
connections: [{name: crm, type: httpBearer, fields: {token: "${CRM_TOKEN}"}}]
flows:
  - name: Lookup
    nodes:
      - id: look
        httpRequest: {connection: crm, method: POST, url: "UPSTREAM/orders", body: "{{input.text}}", retries: 5}
      - say: "found"
  - name: Careful
    nodes:
      - say: looking
      - id: ask
        question: "Which?"
      - id: look
        httpRequest: {connection: crm, url: "UPSTREAM/orders",
                      onError: [{say: "{{input.error.code}}: {{input.error.message}}"}]}
  - name: Sleeper
    nodes:
      - sleep: {for: 1h}
      - say: version 1
  - {name: Greeting, nodes: [{say: hello}]}
endpoints:
  - {name: lookup, flow: Lookup, errorText: sorry}
  - {name: careful, flow: Careful}
  - {name: sleeper, flow: Sleeper}
  - {name: greeting, flow: Greeting}
"""


def unordered(report):
    """Returns the report of an import with sorted lists, so that the order of the bundle does not matter. Without warnings."""
    return {part: sorted(items, key=json.dumps) if isinstance(items, list) else items
            for part, items in report.items() if part != "warnings"}


class ProjectTools(DaemonCase):
    bundle = BUNDLE

    def setUp(self):
        self.tokens = self.load(BUNDLE)

    def print(self, *arguments, code=0):
        """Runs conversectl without --json. Returns its standard output and standard error."""
        done = subprocess.run(
            [pathlib.Path(BIN) / "conversectl", "--url", f"http://127.0.0.1:{self.daemon.ports['api']}", *arguments],
            capture_output=True, text=True, env=self.daemon.environment, timeout=60)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout, done.stderr

    def refuse(self, *arguments):
        """Runs conversectl, which fails. Returns its standard error."""
        done = subprocess.run(
            [pathlib.Path(BIN) / "conversectl", "--url", f"http://127.0.0.1:{self.daemon.ports['api']}", *arguments],
            capture_output=True, text=True, env=self.daemon.environment, timeout=60)
        self.assertEqual(done.returncode, 1, done)
        return done.stderr

    def delete_connection(self):
        connection = self.report["connections"][0]["_id"]
        status, _, _ = self.daemon.request("DELETE", f"/v2.0/connections/{connection}", None, {"X-API-Key": self.key})
        self.assertEqual(status, 204)

    def test_versions_are_listed_compared_and_rolled_back(self):
        first = self.daemon.ctl("flow", "versions", "Greeting")["items"][0]["version"]
        self.load(BUNDLE.replace("[{say: hello}]", "[{say: good day}, {id: more, say: you}]"))
        self.assertEqual(self.say("greeting", "g1", "x")[1]["text"], "good day\nyou")
        text, _ = self.print("flow", "diff", "Greeting")
        self.assertIn(f"Greeting: version {first} to {first + 1}\n", text)
        self.assertIn("  ~ nodes[0] say\n      say: \"hello\" -> \"good day\"\n", text)
        self.assertIn("  + nodes[1] say 'more': \"you\"\n", text)
        text, _ = self.print("flow", "rollback", "Greeting", str(first))
        self.assertIn(f"at version {first + 2}, which is equal to version {first}", text)
        self.assertEqual(self.say("greeting", "g1", "x")[1]["text"], "hello")
        text, _ = self.print("flow", "versions", "Greeting", "--project", "Tests")
        self.assertRegex(text, rf"\n{first + 2}\t.*\tadmin@example.com\t{first}\n")
        self.assertIn("no Flow 'Greetings'; there are: Careful, Greeting", self.refuse("flow", "rollback", "Greetings", "1"))

    def test_a_version_that_a_session_is_pinned_to_outlives_twenty_others(self):
        status, _, _ = self.inject("sleeper", "asleep", text="x")
        self.assertEqual(status, 200)
        self.daemon.wait_end(0)
        while not [s for s in self.daemon.ctl("sessions", "list")["items"]
                   if s["sessionId"] == "asleep" and s["state"] == "busy"]:
            self.assertFalse(self.daemon.wait_end(0.02), "the daemon ended")
        pinned = self.daemon.ctl("flow", "versions", "Sleeper")["items"][0]["version"]
        for n in range(23):
            self.load(BUNDLE.replace("version 1", f"later {n}"))
        kept = [item["version"] for item in self.daemon.ctl("flow", "versions", "Sleeper")["items"]]
        self.assertEqual(len(kept), 21)
        self.assertEqual(kept[-1], pinned)

    def test_an_exported_bundle_imports_to_the_same_project(self):
        report = self.report
        text, notes = self.print("export", "Tests")
        self.assertNotIn(CONNECTION_TOKEN, text)
        self.assertIn("${CRM_TOKEN}", text)
        self.assertIn("CRM_TOKEN", notes)
        self.assertNotIn("refuse", notes)
        path = pathlib.Path(self.folder.name) / "exported.yaml"
        self.print("export", "Tests", "-o", str(path))
        self.assertEqual(path.read_text(), text)
        self.assertEqual(unordered(self.daemon.ctl("import", str(path))), unordered(report))
        # `flow check` needs no daemon to check the exported bundle.
        checked = subprocess.run([pathlib.Path(BIN) / "conversectl", "--json", "flow", "check", str(path)],
                                 capture_output=True, text=True, env=dict(os.environ), timeout=60)
        findings = json.loads(checked.stdout)
        self.assertFalse([f for f in findings if f["severity"] == "error"], findings)

    def test_an_import_that_prunes_waits_for_the_sessions_of_what_it_deletes(self):
        self.tokens = self.load(BUNDLE.replace("endpoints:\n", """\
  - {name: Old, nodes: [{question: "Which?"}, {say: done}]}
endpoints:
  - {name: old, flow: Old}
"""))
        self.assertEqual(self.say("old", "asked", "x")[1]["text"], "Which?")
        path = pathlib.Path(self.folder.name) / "pruned.yaml"
        path.write_text(BUNDLE.replace("UPSTREAM", self.upstream.url))
        planned, _ = self.print("import", "--plan", "--prune", str(path), code=1)
        self.assertIn("deleted\tFlow\tOld\n", planned)
        self.assertIn("deleted\tEndpoint\told\n", planned)
        self.assertIn("Flow\tOld\tsessions that wait in it: 1; reset them, or wait until they expire\n", planned)
        self.assertNotIn("no problems", self.print("import", "--check", "--prune", str(path), code=1)[0])
        refused = self.refuse("import", "--prune", str(path))
        self.assertIn("nothing was imported", refused)
        self.assertIn("\n  Endpoint old: sessions that wait at it: 1; ", refused)
        self.assertEqual(self.say("old", "asked", "that")[1]["text"], "done", "the session goes on")
        pruned, _ = self.print("import", "--prune", str(path))
        self.assertIn("Deleted the Flow Old\nDeleted the Endpoint old\n", pruned)
        self.assertEqual(self.say("old", "asked", "x")[0], 404)
        self.assertIn("would change nothing", self.print("import", "--plan", "--prune", str(path))[0])

    def test_a_call_of_a_deleted_connection_fails_at_once_and_names_the_node(self):
        self.assertEqual(self.say("careful", "waiting", "x")[1]["text"], "looking\nWhich?")
        usages = self.daemon.ctl("connections", "usages", self.report["connections"][0]["_id"])
        self.assertEqual([(flow["name"], [node["node"] for node in flow["nodes"]]) for flow in usages["flows"]],
                         [("Careful", ["look"]), ("Lookup", ["look"])])
        waiting = [s for s in usages["sessions"]["items"] if s["sessionId"] == "waiting"]
        self.assertEqual([s["meets"] for s in waiting], ["ahead"])
        text, _ = self.print("connections", "usages", "crm")
        self.assertRegex(text, r"\nCareful\t\d+\tlook\thttpRequest\n")
        self.assertIn(usages["_id"], self.print("connections", "list")[0])

        self.delete_connection()
        calls = len(self.upstream.requests)
        status, answer = self.say("lookup", "without", "x")
        self.assertEqual((status, answer["text"]), (200, "sorry"))
        status, answer = self.say("careful", "waiting", "x")
        self.assertEqual((status, answer["text"]),
                         (200, "connection_deleted: the Connection 'crm' does not exist any more"))
        self.assertEqual(len(self.upstream.requests), calls, "the upstream got a request")
        letter = next(l for l in self.daemon.ctl("deadletters", "list")["items"] if l["sessionId"] == "without")
        for part in ("Flow 'Lookup'", "Node look (httpRequest)", "Connection 'crm'"):
            self.assertIn(part, letter["reason"])
        _, notes = self.print("export", "Tests")
        self.assertIn("An import would refuse line", notes)

    def test_the_next_try_of_a_call_fails_if_its_connection_was_deleted(self):
        self.upstream.open.clear()
        try:
            self.upstream.requests.clear()
            self.upstream.statuses[:] = [503]
            self.assertEqual(self.inject("lookup", "midway", text="x")[0], 200)
            self.assertTrue(self.upstream.wait_for(1))
            usages = self.daemon.ctl("connections", "usages", "crm")
            midway = [s for s in usages["sessions"]["items"] if s["sessionId"] == "midway"]
            self.assertEqual([(s["state"], s["meets"]) for s in midway], [("busy", "ahead")])
            self.delete_connection()
        finally:
            self.upstream.open.set()
        self.assertEqual(self.outputs("lookup", "midway", wait=30)[0]["text"], "sorry")
        letter = next(l for l in self.daemon.ctl("deadletters", "list")["items"] if l["sessionId"] == "midway")
        self.assertIn("Node look (httpRequest)", letter["reason"])
        self.assertIn("Connection 'crm'", letter["reason"])


if __name__ == "__main__":
    unittest.main()
