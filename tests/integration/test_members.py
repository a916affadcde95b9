"""Several daemons on one Kafka and one PostgreSQL: the list of members, their roles, and commands that need a single daemon."""

import subprocess

from kafka_case import PostgresCase, cluster_main


BUNDLE = """
conversed: 1
project: {name: Tests, locales: [en]}
flows:
  - name: Echo
    nodes:
      - say: "{{input.text}}"
  - name: Sleepy
    nodes:
      - say: "good night"
      - sleep: 1s
      - say: "good morning"
endpoints:
  - {name: echo, flow: Echo, output: {webhook: {url: "${HOOK_URL}", secret: "${HOOK_SECRET}"}}}
  - {name: sleepy, flow: Sleepy}
"""


class Members(PostgresCase):
    """The daemon of the class has only the role `api`. Each test adds other daemons."""

    bundle = BUNDLE

    cluster_settings = "cluster: {name: front}\nroles: [api]\n"

    def another(self, name, roles="worker, scheduler"):
        """Makes another daemon without starting it."""
        daemon = self.beside(
            name, self.settings.replace("{name: front}", f"{{name: {name}}}").replace("[api]", f"[{roles}]"))
        self.addCleanup(daemon.kill)
        return daemon

    def members(self):
        status, body, _ = self.daemon.request("GET", "/management/status", basic=True)
        self.assertEqual(status, 200, body)
        return {member["name"]: member for member in body["members"]}

    def wait_members(self, *names):
        while set(self.members()) != set(names):
            self.assertFalse(self.daemon.wait_end(0.05), "the daemon ended")

    def test_each_daemon_does_the_work_of_its_roles_and_status_lists_them(self):
        worker = self.another("worker")
        self.assertTrue(worker.start(), worker.log_path.read_text())
        self.assertEqual(set(worker.ports), {"admin"})
        self.wait_members("front", "worker")
        members = self.members()
        self.assertEqual(members["front"]["roles"], ["api"])
        self.assertEqual(members["front"]["partitions"], [])
        self.assertEqual(members["worker"]["roles"], ["worker", "scheduler"])
        self.assertEqual(self.inject("echo", "shared", text="hello")[0], 200)
        self.assertTrue(self.receiver.wait_for(
            lambda all: any(body["output"]["text"] == "hello" for _, _, body in all), 60))
        self.assertEqual(self.inject("sleepy", "shared", text="go")[0], 200)
        while "good morning" not in self.texts("sleepy", "shared"):
            self.assertFalse(worker.wait_end(0.05), worker.log_path.read_text())
        self.assertEqual(worker.terminate(), 0)
        self.wait_members("front")

    def test_a_crashed_daemon_rejoins_at_once_under_its_name(self):
        worker = self.another("crashing")
        self.assertTrue(worker.start())
        self.wait_members("front", "crashing")
        worker.kill()
        self.assertTrue(worker.start(), worker.log_path.read_text())
        self.assertNotIn("ran lately", worker.log_path.read_text())
        worker.kill()
        self.wait_members("front")

    def test_a_second_daemon_of_the_same_name_is_refused(self):
        twin = self.another("twin", "worker")
        self.assertTrue(twin.start())
        same = self.another("other", "worker")
        same.config.write_text(same.config.read_text().replace("{name: other}", "{name: twin}"))
        self.assertFalse(same.start())
        self.assertIn("another daemon runs as twin on this store", same.log_path.read_text())
        self.assertEqual(twin.terminate(), 0)

    def test_commands_that_need_one_daemon_name_the_running_ones(self):
        worker = self.another("late", "worker")
        self.assertTrue(worker.start())
        self.wait_members("front", "late")
        status, body, _ = self.daemon.request("POST", "/management/key/rotate", basic=True)
        self.assertEqual(status, 409, body)
        self.assertIn("stop the others first (late)", body["detail"])
        self.assertEqual(worker.terminate(), 0)
        refused = subprocess.run([worker.binaries / "conversed", "new-epoch", "--config", worker.config],
                                 capture_output=True, text=True, env=worker.environment, timeout=120)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("stop them first: front", refused.stderr)


if __name__ == "__main__":
    cluster_main()
