"""The alert rules and the dashboard of config/monitoring fit the daemon's metrics, and the handbook describes each metric."""

import json
import pathlib
import re
import subprocess
import sys
import unittest

from case import BIN, ECHO, DaemonCase

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parents[1]
MONITORING = SOURCE / "config" / "monitoring"
PROMTOOL = SOURCE / "build" / "tools" / "promtool" / "promtool"
METRIC = re.compile(r"\bconversed_[a-z_]+")

if not PROMTOOL.exists():
    print("\n!! SKIPPED: promtool is missing; run `tests/tools/fetch promtool`\n", file=sys.stderr)
    sys.exit(77)


class Monitoring(DaemonCase):
    bundle = ECHO

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # Metrics by status exist once an answer has had the status.
        for key in (cls.key, "nobody's"):
            cls.daemon.request("POST", "/v2.0/endpoint/inject", {"URLToken": cls.tokens["echo"], "userId": "u", "sessionId": "s"},
                               {"X-API-Key": key})
        connection = cls.daemon.connect()
        connection.port = cls.daemon.ports["admin"]
        cls.exposed = cls.daemon.request("GET", "/metrics", connection=connection)[1]
        connection.close()
        cls.types = dict(re.findall(r"^# TYPE (conversed_\w+) (\w+)$", cls.exposed, re.MULTILINE))
        cls.dashboard = json.loads((MONITORING / "dashboard.json").read_text())
        cls.panels = [panel for panel in cls.dashboard["panels"] if panel["type"] != "row"]

    def promtool(self, *arguments):
        done = subprocess.run([PROMTOOL, *arguments], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def exists(self, name):
        histogram = re.sub("_(bucket|sum|count)$", "", name)
        return name in self.types or self.types.get(histogram) == "histogram"

    def test_the_rules_are_valid_and_fire_for_their_faults_only(self):
        self.promtool("check", "rules", str(MONITORING / "alerts.yaml"))
        self.promtool("test", "rules", str(HERE / "alerts_test.yaml"))

    def test_each_alert_has_a_test_and_says_what_to_do(self):
        rules = (MONITORING / "alerts.yaml").read_text()
        alerts = re.findall(r"- alert: (\w+)", rules)
        self.assertEqual(sorted(alerts), sorted(re.findall(r'alertname="(\w+)"', (HERE / "alerts_test.yaml").read_text())))
        self.assertEqual(len(re.findall(r"^ +runbook: >-\n", rules, re.MULTILINE)), len(alerts))
        self.assertEqual(len(re.findall("severity: (?:page|ticket)}", rules)), len(alerts))

    def test_commands_of_runbooks_and_readme_exist(self):
        texts = [(MONITORING / name).read_text() for name in ("alerts.yaml", "README.md", "dashboard.json")]
        commands = set(re.findall(r"`conversectl ([a-z -]+?)(?: [A-Z]+)?`", "\n".join(texts)))
        self.assertIn("deadletters replay", commands)
        for command in commands:
            done = subprocess.run([f"{BIN}/conversectl", *command.split(), "--help"], capture_output=True, text=True,
                                  check=False)
            self.assertEqual(done.returncode, 0, command)
            self.assertNotIn("Subcommands:", done.stdout, command)

    def test_metrics_of_rules_and_dashboard_exist(self):
        for name in ("alerts.yaml", "dashboard.json"):
            for metric in METRIC.findall((MONITORING / name).read_text()):
                self.assertTrue(self.exists(metric), f"{metric} in {name}")

    def test_the_dashboard_has_each_metric_once_at_least(self):
        shown = set(METRIC.findall(json.dumps(self.panels)))
        for metric, kind in self.types.items():
            self.assertIn(metric + ("_bucket" if kind == "histogram" else ""), shown)

    def test_the_handbook_has_each_metric_and_no_other(self):
        handbook = (SOURCE / "systemd" / "README.md").read_text()
        documented = set(re.findall(r"`(conversed_[a-z_]+)(?:\{[a-z,]+\})?`", handbook))
        self.assertEqual(documented, set(self.types))

    def test_series_that_rules_select_exist(self):
        for text in (MONITORING / "alerts.yaml", MONITORING / "dashboard.json"):
            for label, value in re.findall(r'(reason|outcome)=\\?"(\w+)\\?"', text.read_text()):
                self.assertIn(f'{label}="{value}"', self.exposed)

    def test_panels_have_ids_places_and_queries_that_are_valid(self):
        ids = [panel["id"] for panel in self.dashboard["panels"]]
        self.assertEqual(len(set(ids)), len(ids))
        places = set()
        for panel in self.dashboard["panels"]:
            place = panel["gridPos"]
            cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
            self.assertFalse(cells & places, panel["title"])
            self.assertLessEqual(place["x"] + place["w"], 24)
            places |= cells
        queries = [target["expr"] for panel in self.panels for target in panel["targets"]]
        rules = [{"record": "q", "expr": query.replace("$__rate_interval", "5m")} for query in queries]
        path = pathlib.Path(self.folder.name) / "queries.yaml"
        path.write_text(json.dumps({"groups": [{"name": "queries", "rules": [
            {**rule, "labels": {"n": str(n)}} for n, rule in enumerate(rules)]}]}))
        self.promtool("check", "rules", str(path))


if __name__ == "__main__":
    unittest.main()
