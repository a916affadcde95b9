"""Lists of conversectl that are longer than a page."""

import re
import unittest

from ctl_case import SHOP, CtlCase


class LongLists(CtlCase):
    bundle = SHOP

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.session = ("--endpoint", "web", "--user", "ann", "--session", "s1")

    def test_each_list_names_the_option_that_reads_on(self):
        for number in range(2):
            self.run_ctl("inject", *self.session, "--text", "later", "--in", "2h")
            self.run_ctl("deadletters", "discard", self.dead_letter(f"letter {number}", text="x"))
            self.run_ctl("deadletters", "discard", "--older-than", "300d")  # makes a job
        for command in (("sessions", "list"), ("deadletters", "list", "--state", "all"), ("jobs", "list"), ("schedules", "list"),
                        ("audit",)):
            with self.subTest(command=command):
                first = self.run_ctl(*command, "--limit", "1")
                after = re.fullmatch(r"more with --after (\S+)\n", first.stderr)[1]
                second = self.run_ctl(*command, "--limit", "1", "--after", after)
                self.assertEqual(len(second.stdout.splitlines()), 2)
                if command != ("audit",):  # each command is an entry
                    both = self.run_ctl(*command, "--limit", "2").stdout.splitlines()
                    self.assertEqual(first.stdout.splitlines()[1:] + second.stdout.splitlines()[1:], both[1:])


if __name__ == "__main__":
    unittest.main()
