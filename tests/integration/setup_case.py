"""Shared by the tests of the set-up of proactive follow-up: makes projects, and counts the parts of a set-up in the store."""

import json
import pathlib
import sqlite3

from case import DaemonCase

import postgres  # case.py adds its folder to the path

RANKS = {"queued": 0, "active": 1, "cancelling": 2, "done": 3, "cancelled": 3, "error": 3}
BUNDLE = """
conversed: 1
project: {{name: {name}, locales: [{locale}]}}
flows:
  - {{name: Main, nodes: [{{say: "hi"}}]}}
endpoints:
  - {{name: web, flow: Main}}
  - {{name: phone, flow: Main}}
proactive: {proactive}
"""
JOURNEY = '{journey: {after: 20m, text: "Still there?", expiresAfter: 4h, maxPerSession: 1}}'


class SetUpCase(DaemonCase):
    bundle = BUNDLE.format(name="Tests", locale="en", proactive=JOURNEY)
    settings = """
proactive: {provisioning: {url: "UPSTREAM/tenants", token: "a-token-of-32-bytes-or-more-for-tests", retry_for: 20s}}
"""

    def setUp(self):
        if self.daemon.process.poll() is not None:
            self.daemon.start()
        self.upstream.open.set()
        self.upstream.requests.clear()
        self.upstream.statuses.clear()

    def project(self, locale="en", proactive=JOURNEY):
        name = self.id().rsplit(".", 1)[1] + str(len(self.names))
        self.names.append(name)
        path = pathlib.Path(self.folder.name) / "project.yaml"
        path.write_text(BUNDLE.format(name=name, locale=locale, proactive=proactive))
        return self.import_file(path)["project"]["_id"]

    names = []

    def ask(self, method, path):
        return self.daemon.request(method, path, headers={"X-API-Key": self.key})[:2]

    def begin(self, project):
        return self.ask("POST", f"/v2.0/projects/{project}/settings/proactive/setup")

    def follow(self, task, until=lambda job: RANKS[job["status"]] == 3):
        """Polls the job until `until(job)` is true. The job's progress and the rank of its status must never fall."""
        while True:
            status, job = self.ask("GET", f"/v2.0/tasks/{task}?wait=10")
            self.assertEqual(status, 200, job)
            self.check_progress(job)
            if until(job):
                return job

    seen = {}

    def check_progress(self, job):
        before = self.seen.get(job["_id"], (0, 0, 0))
        now = (RANKS[job["status"]], job["progress"], job["currentStep"])
        for earlier, later in zip(before, now):
            self.assertLessEqual(earlier, later, (before, job))
        self.seen[job["_id"]] = now

    def made(self, project):
        """Counts the project's parts in the store: tenants, active journeys, generated Flows, attached Endpoints."""
        return tuple(self.count(table, project) for table in (
            "proactive_tenants WHERE", "journeys WHERE active = 1 AND", "flows WHERE name LIKE 'Follow-up%' AND",
            "endpoints WHERE follow_up_flow_id IS NOT NULL AND"))

    def journey(self, project):
        return json.loads(self.value(f"SELECT definition FROM journeys WHERE project_id = '{project}'"))

    def rows(self, project):
        return sum(self.count(f"{table} WHERE", project) for table in ("proactive_tenants", "journeys")) + \
            self.made(project)[2]

    def count(self, rows, project):
        return int(self.value(f"SELECT COUNT(*) FROM {rows} project_id = '{project}'"))

    def value(self, query):
        """Runs a query in the daemon's store, PostgreSQL or SQLite. Returns its only value."""
        if url := self.daemon.environment.get("CONVERSED_STORE_POSTGRES_URL"):
            return postgres.run_sql(url, query)
        store = sqlite3.connect(f"file:{self.folder.name}/data/store.db?mode=ro", uri=True)
        try:
            return store.execute(query).fetchone()[0]
        finally:
            store.close()
