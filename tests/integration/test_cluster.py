"""Several daemons on one Kafka and one PostgreSQL: roles, repeated keys at several daemons, rolling restarts."""

from case import BIN, DaemonCase, Upstream
from kafka_case import BUNDLE, cluster_main
from main_job import MainJob

import cluster
from campaign import Client, Habits, Session, check_effects

QUIET = """
  - name: Quiet
    nodes: [{followUp: {after: 1s, text: "Still there?"}}]
  - name: Nap
    nodes: [{sleep: 50ms}, {say: "awake"}]
  - name: Count
    nodes:
      - addToContext: {count: "{{(context.count || 0) + 1}}"}
      - say: "{{input.data.n}} {{context.count}}"
endpoints:
  - {name: quiet, flow: Quiet, output: {webhook: {url: "${HOOK_URL}", secret: "${HOOK_SECRET}"}}}
  - {name: nap, flow: Nap}
  - {name: count, flow: Count, output: {webhook: {url: "${HOOK_URL}", secret: "${HOOK_SECRET}"}}}
"""


class ClusterCase(DaemonCase):
    """`roles` has the roles of each daemon. The tests send their requests to `daemon`."""

    bundle = BUNDLE.replace("endpoints:\n", QUIET.lstrip("\n"))
    roles = (cluster.ALL_ROLES, cluster.ALL_ROLES)

    @classmethod
    def setUpClass(cls):
        cls.bring_up()
        cls.cluster = cluster.Cluster(BIN, cls.folder.name, cls.roles, cls.settings, cls.environment)
        cls.addClassCleanup(cls.cluster.close)
        cls.report = cls.cluster.set_up(cls.bundle.replace("UPSTREAM", cls.upstream.url))
        cls.tokens = {endpoint["name"]: endpoint["urlToken"] for endpoint in cls.report["endpoints"]}
        cls.key = cls.cluster.key
        cls.daemon = cls.cluster.entrance()


class Roles(MainJob, ClusterCase):
    roles = (("api",), ("worker",), ("scheduler",))
    settings = "delivery: {pause_after: 1ms}\n"
    bundle = ClusterCase.bundle.replace(
        "  - {name: nap,",
        '  - {name: paused, flow: Nap, output: {webhook: {url: "HOOK/hook", secret: "${HOOK_SECRET}"}}}\n  - {name: nap,')

    @classmethod
    def bring_up(cls):
        super().bring_up()
        cls.hook = Upstream()
        cls.addClassCleanup(cls.hook.stop)
        cls.bundle = cls.bundle.replace("HOOK/", cls.hook.url + "/")

    def test_status_lists_the_roles_of_each_daemon(self):
        self.cluster.wait_owned(self.cluster.daemons[1:2])
        members = {member["name"]: member["roles"] for member in self.daemon.full_status()["members"]}
        self.assertEqual(members, {"daemon-1": ["api"], "daemon-2": ["worker"], "daemon-3": ["scheduler"]})

    def test_an_operator_reaches_the_owner_of_a_delivery(self):
        self.hook.statuses.extend([503] * 1000)  # the webhook fails until the owner has shown that it knows of both commands
        self.assertEqual(self.inject("paused", "paused", text="hello")[0], 200)
        while "paused" not in [each["state"] for each in self.daemon.manage("GET", "deliveries")["items"]]:
            self.assertFalse(self.daemon.wait_end(0.05))
        tries = len(self.hook.requests)
        delivery = self.daemon.manage("GET", "deliveries")["items"][0]
        self.daemon.ctl("deliveries", "retry", delivery["_id"])
        self.assertTrue(self.hook.wait_for(tries + 1, 30), "the owner waits for the next try of a minute")
        tries = len(self.hook.requests)
        endpoint = next(each["_id"] for each in self.report["endpoints"] if each["name"] == "paused")
        self.daemon.ctl("endpoints", "resume", endpoint)
        self.assertTrue(self.hook.wait_for(tries + 1, 30), "the owner does not know of the resume")
        self.hook.statuses.clear()
        self.daemon.ctl("deliveries", "retry", delivery["_id"], check=False)  # fails if it is delivered already
        while self.daemon.manage("GET", "deliveries")["items"]:
            self.assertFalse(self.daemon.wait_end(0.05))

    def test_partitions_without_a_worker_are_named(self):
        worker = self.cluster.daemons[1]
        self.assertEqual(worker.terminate(), 0)
        while set(self.cluster.partitions(self.daemon).values()) != {None}:
            self.assertFalse(self.daemon.wait_end(0.05))
        self.assertEqual(self.inject("echo", "ownerless", text="hello")[0], 200)
        answer = self.daemon.ctl("why", "--endpoint", self.tokens["echo"], "--user", "user of ownerless",
                                 "--session", "ownerless", check=False)
        wait = answer["waits"][0]
        self.assertEqual((wait["reason"], wait["code"]), ("partitionWithoutOwner", 15))
        self.assertIn("session ownerless", wait["subject"])
        self.assertIn("Start a daemon with the role worker", wait["remedy"])
        self.assertTrue(worker.start())
        self.assertEqual(self.outputs("echo", "ownerless", wait=30)[0]["text"], "hello")

    def test_due_timers_fire(self):
        self.assertEqual(self.say("nap", "tired", "hello")[1]["text"], "awake")
        self.assertEqual(self.say("quiet", "silent", "hello")[0], 200)
        self.assertTrue(self.receiver.wait_for(
            lambda all: any(body["output"]["text"] == "Still there?" for _, _, body in all), 60))


class Two(ClusterCase):
    def test_every_daemon_gives_a_repeated_key_the_same_answer(self):
        ids = set()
        for daemon in self.cluster.daemons * 2:
            status, _, headers = daemon.request(
                "POST", "/v2.0/endpoint/inject",
                {"URLToken": self.tokens["echo"], "userId": "ann", "sessionId": "keyed", "text": "once"},
                {"X-API-Key": self.key, "Idempotency-Key": "parcel-1"})
            self.assertEqual(status, 200)
            ids.add(headers["X-Inject-Id"])
        self.assertEqual(len(ids), 1)
        self.cluster.wait_idle()
        _, page, _ = self.daemon.request("GET", f"/{self.tokens['echo']}/outputs?userId=ann&sessionId=keyed&after=0")
        self.assertEqual([item["text"] for item in page["items"]], ["once"])

    def test_a_rolling_restart_neither_loses_nor_doubles_effects(self):
        sessions = [Session(number) for number in range(16)]
        clients = [Client(self.cluster.daemons, sessions[i::4], self.tokens["count"], self.key, i,
                          Habits(messages=0.3)) for i in range(4)]
        for client in clients:
            client.start()
            self.addCleanup(client.halted.set)

        def wait_for_load():
            goal = sum(len(session.accepted) for session in sessions) + 100
            while sum(len(session.accepted) for session in sessions) < goal:
                self.assertFalse(any(daemon.wait_end(0.02) for daemon in self.cluster.daemons), "a daemon ended")

        wait_for_load()
        for daemon in self.cluster.daemons * 2:
            self.assertEqual(daemon.terminate(), 0)
            self.assertTrue(daemon.start())
            wait_for_load()
        for client in clients:
            client.halted.set()
        for client in clients:
            client.join()
            self.assertEqual((client.wrong, client.too_late), ([], 0))
        for session in sessions:
            clients[0].resolve(session)
        self.cluster.wait_idle()
        found, _ = check_effects(self.daemon, self.tokens["count"], sessions, self.receiver.deliveries)
        self.assertEqual(found, [])


if __name__ == "__main__":
    cluster_main()
