"""Sessions on several PostgreSQL servers: each user on one of them, and a server that is away stops only its users."""

import json
import re
import time

from case import BIN
from kafka_case import cluster_main
from test_cluster import ClusterCase

import cluster
from campaign import Client, Habits, Session, check_effects
from daemon_process import Daemon

USERS = 24


class ShardCase(ClusterCase):
    shards = 3

    @classmethod
    def setUpClass(cls):
        cls.bring_up()
        cls.cluster = cluster.Cluster(BIN, cls.folder.name, cls.roles, cls.settings, cls.environment, shards=cls.shards)
        cls.addClassCleanup(cls.cluster.close)
        cls.report = cls.cluster.set_up(cls.bundle.replace("UPSTREAM", cls.upstream.url))
        cls.tokens = {endpoint["name"]: endpoint["urlToken"] for endpoint in cls.report["endpoints"]}
        cls.key = cls.cluster.key
        cls.daemon = cls.cluster.entrance()

    def keys_by_server(self):
        """Returns the sessions' keys on each server, each as a list of project, user, Endpoint and session."""
        return [[line.split("\x1f") for line in server.run_sql("SELECT key FROM sessions").splitlines()]
                for server in self.cluster.servers]

    def users_by_server(self):
        return [{key[1] for key in keys} for keys in self.keys_by_server()]

    def listed(self, *command):
        """Returns all entries of a list, read in small pages."""
        items, after = [], []
        while True:
            page = self.daemon.ctl(*command, "--limit", "7", *after)
            items += page["items"]
            if not page.get("next"):
                return items
            after = ["--after", str(page["next"])]

    def speak(self, users):
        for user in users:
            status, answer = self.say("echo", user, f"hello from {user}", userId=user)
            self.assertEqual((status, answer.get("text")), (200, f"hello from {user}"), answer)


class Spread(ShardCase):
    def test_each_user_is_on_one_server_and_lists_show_all(self):
        users = [f"spread-{number}" for number in range(USERS)]
        self.speak(users)
        for user in users[:6]:
            self.assertEqual(self.say("echo", f"second {user}", "again", userId=user)[0], 200)
        found = self.users_by_server()
        self.assertTrue(all(found), "a server has no user")
        for at, some in enumerate(found):
            for others in found[at + 1:]:
                self.assertFalse(some & others)
        self.assertLessEqual(set(users), set().union(*found))
        listed = self.listed("sessions", "list")
        self.assertLessEqual(set(users), {session["userId"] for session in listed})
        self.assertEqual(len({(session["userId"], session["sessionId"]) for session in listed}), len(listed))

    def test_a_users_data_is_shown_and_erased_wherever_it_is(self):
        users = [f"erased-{number}" for number in range(6)]
        self.speak(users)
        for user in users:
            self.assertIn(f"hello from {user}", json.dumps(self.daemon.ctl("users-data", "export", user)))
            self.daemon.ctl("users-data", "erase", user)
        self.assertFalse(set(users) & set().union(*self.users_by_server()))

    def test_follow_ups_come_from_every_server(self):
        users = [f"quiet-{number}" for number in range(12)]
        for user in users:
            self.assertEqual(self.inject("quiet", user, text="begin", userId=user)[0], 200)
        self.assertTrue(self.receiver.wait_for(lambda all: {
            body["userId"] for _, _, body in all if body["output"]["text"] == "Still there?"} >= set(users), 60))
        self.assertTrue(all(found & set(users) for found in self.users_by_server()), "a server has none of the users")


class Away(ShardCase):
    shards = 2

    def test_a_server_that_is_away_stops_only_its_users(self):
        users = [f"away-{number}" for number in range(USERS)]
        self.speak(users)
        here, there = (sorted(found & set(users)) for found in self.users_by_server())
        server = self.cluster.servers[1]
        server.kill()
        self.addCleanup(lambda: server.process or server.start())
        for number, user in enumerate(there):
            self.assertEqual(self.inject("echo", user, text=f"waits {number}", userId=user)[0], 200)
        for _ in range(3):
            self.speak(here)
        other = self.cluster.daemons[1]
        self.assertEqual(other.terminate(), 0)
        self.assertTrue(other.start(), "the daemon does not start without the server")
        deadline = time.monotonic() + 60
        while not {"daemon-1", "daemon-2"} <= set(self.cluster.partitions(self.daemon).values()):
            self.assertFalse(other.wait_end(0.1), "the daemon ended")
            self.assertLess(time.monotonic(), deadline)
        self.speak(here)
        self.assertEqual(self.daemon.get_status(self.daemon.ports["admin"], "/readyz"), 200)
        self.assertIn(self.say("echo", there[0], "hello", userId=there[0])[0], (503, 504))
        server.start()
        self.assertTrue(self.receiver.wait_for(lambda all: {
            body["userId"] for _, _, body in all if body["output"]["text"].startswith("waits ")} >= set(there), 120))
        self.speak(there)


class Moves(ShardCase):
    shards = 2

    def place_of_all(self):
        """Returns {partition: number of its server}."""
        table = self.cluster.program("shards")
        self.assertEqual(table.returncode, 0, table.stderr)
        rows = [line.split() for line in table.stdout.split("\n\n")[0].splitlines()[1:]]
        return {int(row[0]): int(row[1]) for row in rows}

    def test_partitions_move_under_load_and_each_event_has_its_effect_once(self):
        sessions = [Session(number) for number in range(40)]
        client_count = 4
        clients = [Client(self.cluster.daemons, sessions[at::client_count], self.tokens["count"], self.key, at,
                          Habits(keyed=0.5, messages=0.3)) for at in range(client_count)]
        places = self.place_of_all()
        self.assertEqual(set(places.values()), {0, 1})
        for client in clients:
            client.start()
        for partition, server in list(places.items())[:5]:
            moved = self.cluster.program("move-partition", "--partition", str(partition), "--to", str(1 - server))
            self.assertEqual(moved.returncode, 0, moved.stderr)
            self.assertIn("Copied", moved.stdout)
            self.assertEqual(self.place_of_all()[partition], 1 - server)
        for client in clients:
            client.halted.set()
        for client in clients:
            client.join()
            self.assertEqual(client.wrong, [])
        resolver = Client(self.cluster.daemons, [], self.tokens["count"], self.key, 0)
        for session in sessions:
            resolver.resolve(session)
        self.cluster.wait_idle()
        self.assertGreater(sum(len(session.accepted) for session in sessions), 100)
        found, _ = check_effects(self.daemon, self.tokens["count"], sessions, self.receiver.deliveries)
        self.assertEqual(found, [])
        # Each user is on the server of its partition alone.
        here, there = self.users_by_server()
        self.assertFalse(here & there)

    def test_nonsense_is_refused(self):
        for arguments, words in ((("--partition", "99", "--to", "1"), "partition"),
                                 (("--partition", "0", "--to", "7"), "shard"),
                                 (("--partition", "x", "--to", "1"), "partition")):
            refused = self.cluster.program("move-partition", *arguments)
            self.assertNotEqual(refused.returncode, 0)
            self.assertIn(words, refused.stderr)


class Servers(ShardCase):
    shards = 2

    def test_a_list_in_another_order_or_without_a_server_is_refused(self):
        self.speak(["somebody"])
        text = self.daemon.config.read_text().split("egress: {allow: [127.0.0.0/8]}\n")[1]
        first, second = (server.url for server in self.cluster.servers)
        swapped = text.replace(first, "FIRST").replace(second, first).replace("FIRST", second)
        lacking = re.sub(r"shards: \[[^]]*\]", "shards: []", text)
        for changed, reason in ((swapped, "keep the order"), (lacking, "does not list")):
            other = Daemon(BIN, self.cluster.folder / reason.replace(" ", "-"),
                           changed.replace("name: daemon-1", "name: other"), self.environment)
            other.take_key(self.daemon)
            self.addCleanup(other.kill)
            self.assertFalse(other.start())
            self.assertIn(reason, other.log_path.read_text())


if __name__ == "__main__":
    cluster_main()
