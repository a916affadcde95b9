"""conversectl takes names in place of ids."""

import pathlib
import unittest

from case import ECHO
from ctl_case import CtlCase
from daemon_process import EMAIL


class Names(CtlCase):
    bundle = ECHO

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        path = pathlib.Path(cls.folder.name) / "second.yaml"
        path.write_text(ECHO.replace("Tests", "Second").replace("flow: Echo}", "flow: Echo}\n  - {name: own, flow: Echo}"))
        cls.second = cls.daemon.ctl("import", str(path))

    def ids(self, kind):
        """The ids of the two objects of this kind."""
        return [next(item["_id"] for item in report[kind] if item["name"].lower() == "echo") for report in (self.report, self.second)]

    def with_project(self, name, *arguments, code=0):
        self.daemon.environment["CONVERSECTL_PROJECT"] = name
        self.addCleanup(self.daemon.environment.pop, "CONVERSECTL_PROJECT", None)
        return self.run_ctl(*arguments, code=code)

    def test_a_name_that_two_projects_have_is_refused_with_both_ids(self):
        flows = self.ids("flows")
        errors = self.run_ctl("flow", "versions", "Echo", code=1).stderr
        self.assertIn("several: Flow 'Echo'", errors)
        self.assertIn(f"\n  {flows[0]} in Tests\n", errors)
        self.assertIn(f"\n  {flows[1]} in Second\n", errors)
        for flow in flows:
            self.assertEqual(self.json("flow", "versions", flow)["items"][0]["version"], 1)

    def test_the_project_decides_between_equal_names(self):
        self.assertIn("flowchart", self.people("flow", "graph", "Echo", "--project", "Second"))
        self.assertIn("flowchart", self.people("flow", "graph", "Echo", "--project", self.second["project"]["_id"]))
        self.assertIn("flowchart", self.with_project("Second", "flow", "graph", "Echo").stdout)
        self.assertIn("there is no project 'Third'; there are: Second, Tests",
                      self.with_project("Third", "flow", "graph", "Echo", code=1).stderr)

    def test_a_file_is_drawn_although_the_variable_names_a_project(self):
        path = pathlib.Path(self.folder.name) / "drawn.yaml"
        path.write_text(ECHO.replace("{{input.text}}", "of the file"))
        self.assertIn("of the file", self.with_project("Second", "flow", "graph", path).stdout)
        self.assertIn("there is no Flow", self.run_ctl("flow", "graph", path, "--project", "Second", code=1).stderr)

    def test_a_list_of_one_of_several_projects_needs_its_name(self):
        for group in ("endpoints", "sessions"):
            self.assertIn("name the project by --project, since there are several projects: Second, Tests\n",
                          self.run_ctl(group, "list", code=1).stderr)
        self.assertIn("own", self.people("endpoints", "list", "--project", "Second"))

    def test_without_a_project_a_list_tells_how_to_make_one(self):
        password = "a long enough password"
        self.run_ctl("organisation", "add", "Empty", "--admin", "empty@example.com", "--password-stdin", input=password + "\n")
        environment = self.daemon.environment
        self.addCleanup(environment.update, {name: environment[name] for name in ("CONVERSECTL_AS", "CONVERSECTL_PASSWORD")})
        environment.update(CONVERSECTL_AS="empty@example.com", CONVERSECTL_PASSWORD=password)
        self.assertEqual(self.run_ctl("sessions", "list", code=1).stderr,
                         "conversectl: there is no project in which you have the role conversationAdmin: an admin can give you the "
                         "role, or `conversectl import` makes a project of a bundle\n")

    def test_an_endpoint_is_named_by_name_id_or_token(self):
        token = next(item["urlToken"] for item in self.second["endpoints"] if item["name"] == "own")
        endpoint = next(item["_id"] for item in self.daemon.ctl("endpoints", "list", "--project", "Second")["items"]
                        if item["name"] == "own")
        for name in ("own", endpoint, token, token.upper()):
            with self.subTest(name=name):
                said = self.run_ctl("chat", name, "--user", "ann", "--session", name, input="hello\n").stdout
                self.assertIn("< hello\n", said)
                session = ("--endpoint", name, "--user", "ann", "--session", name)
                self.assertEqual(self.json("sessions", "show", *session)["userId"], "ann")
                self.json("inject", *session, "--text", "x", "--in", "1h")
                self.assertEqual(len(self.json("timers", "list", "--project", "Second", *session)["items"]), 1)
        self.assertIn("several: Endpoint 'echo'", self.run_ctl("chat", "echo", input="", code=1).stderr)

    def test_an_id_wins_over_a_name(self):
        first = self.daemon.ctl("apikey", "create", "--name", "first")
        second = self.daemon.ctl("apikey", "create", "--name", first["_id"])
        self.run_ctl("apikey", "revoke", first["_id"])
        self.assertEqual([key["_id"] for key in self.json("apikey", "list")["items"] if key["_id"] in (first["_id"], second["_id"])],
                         [second["_id"]])

    def test_a_name_of_two_keys_is_refused_and_of_one_is_enough(self):
        keys = [self.daemon.ctl("apikey", "create", "--name", name)["_id"] for name in ("twin", "twin", "single")]
        errors = self.run_ctl("apikey", "revoke", "twin", code=1).stderr
        self.assertTrue(keys[0] in errors and keys[1] in errors, errors)
        self.run_ctl("apikey", "revoke", "single")
        self.assertNotIn(keys[2], [key["_id"] for key in self.json("apikey", "list")["items"]])

    def test_a_user_is_named_by_address_in_any_case(self):
        roles = next(user["roles"] for user in self.daemon.ctl("user", "list")["items"] if user["email"] == EMAIL)
        self.assertEqual(self.json("user", "roles", EMAIL.upper(), "--roles", ",".join(roles))["email"], EMAIL)


if __name__ == "__main__":
    unittest.main()
