"""`conversectl flow new` and `flow chat` work on files, without a daemon."""

import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
CTL = pathlib.Path(os.environ["CONVERSED_TEST_BIN"]) / "conversectl"

BUNDLE = """conversed: 1
project: {name: Shop}
flows:
  - name: Orders
    nodes:
      - if: input.source == 'inject'
        then: [{say: "Event {{input.data.event}} of {{input.data.id}}."}, {stop: true}]
      - switch:
          on: input.text
          cases:
            call:
              - httpRequest:
                  url: https://crm.example.com/orders
                  storeIn: context.order
                  onError: [{say: "Failed: {{input.error.code}}."}, {stop: true}]
              - say: "It is {{context.order.state}}."
            sleep: [{sleep: 2h}, {say: "Two hours later."}]
            ask:
              - question: {text: "Your name?", storeIn: context.name, onNoAnswer: [{say: "No name."}, {stop: true}]}
              - say: "Hello {{context.name}}."
          default: [{say: {text: "You said {{input.text}}.", data: {card: 1}}}]
  - name: Other
    nodes: [{say: The other Flow.}]
endpoints:
  - {name: web, flow: Orders}
  - {name: sms, flow: Other}
proactive: {journey: {after: 20m, text: "Are you there?"}}
"""

FENCE = re.compile(r"^```(yaml|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HEAD = "conversed: 1\nproject: {name: Recipes, locales: [en, de]}\nendpoints: [{name: web, flow: Main}]\n"
# Connections that recipes use, and their knowledge store.
CONNECTIONS = {"crm": "{name: crm, type: httpBearer, fields: {token: secret}}",
               "model": "{name: model, type: llm, fields: {baseUrl: 'https://llm.example.com/v1'}}"}
STORE = "knowledgeStores: [{name: Manual, sources: [{name: FAQ, chunks: [{text: Returns take 14 days.}]}]}]\n"


def recipes():
    """Yields each conversation of the handbook with its page and the Nodes above it."""
    for page in sorted((HERE.parent.parent / "docs" / "flows").glob("*.md")):
        nodes = None
        for language, block in FENCE.findall(page.read_text()):
            if language == "text":
                yield page.name, nodes, block
            elif block.startswith("- "):
                nodes = block


class FlowFiles(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "shop.yaml").write_text(BUNDLE)

    def ctl(self, *arguments, lines=(), code=0):
        done = subprocess.run([CTL, *arguments], input="".join(f"{line}\n" for line in lines), capture_output=True, text=True,
                              cwd=self.folder, timeout=60)
        self.assertEqual(done.returncode, code, done)
        return done

    def chat(self, *lines, arguments=("shop.yaml",), code=0):
        return self.ctl("flow", "chat", *arguments, lines=lines, code=code).stdout.splitlines()

    def test_a_new_bundle_has_no_findings_and_passes_its_tests(self):
        for arguments, made in (((), "flow"), (("pizza.flow.yaml",), "pizza"), (("my shop",), "my shop")):
            with self.subTest(made):
                self.ctl("flow", "new", *arguments)
                bundle = arguments[0] if arguments else "flow.yaml"
                bundle = bundle if bundle.endswith(".yaml") else f"{bundle}.yaml"
                self.assertIn("no findings", self.ctl("flow", "check", "--strict", bundle).stdout)
                self.assertEqual(self.ctl("flow", "test", f"{made}.test.yaml").stdout.count("ok    "), 2)
                for file, kind in ((bundle, "bundle"), (f"{made}.test.yaml", "test")):
                    first = (self.folder / file).read_text().splitlines()[0]
                    self.assertEqual(first, f"# yaml-language-server: $schema=.conversed/{kind}.json")
                    self.assertEqual((self.folder / ".conversed" / f"{kind}.json").read_text(), self.ctl("flow", "schema", kind).stdout)

    def test_new_overwrites_no_file(self):
        self.assertIn("shop.yaml: exists already", self.ctl("flow", "new", "shop.yaml", code=1).stderr)
        self.assertEqual((self.folder / "shop.yaml").read_text(), BUNDLE)
        self.assertFalse((self.folder / "shop.test.yaml").exists())

    def test_shows_texts_and_data(self):
        self.assertEqual(self.chat("Hi", "//slash"), ["> Hi", "< You said Hi.", '  data: {"card":1}',
                                                      "> //slash", "< You said /slash.", '  data: {"card":1}'])
        made = self.ctl("--json", "flow", "chat", "shop.yaml", lines=["Hi"]).stdout
        self.assertEqual(json.loads(made), {"text": "You said Hi.", "data": {"card": 1}})

    def test_runs_the_named_endpoint_and_flow(self):
        self.assertEqual(self.chat("Hi", arguments=("shop.yaml", "--endpoint", "sms"))[1], "< The other Flow.")
        self.assertEqual(self.chat("Hi", arguments=("shop.yaml", "--flow", "Other"))[1], "< The other Flow.")
        self.assertIn("shop.yaml: the bundle has no Endpoint 'x'",
                      self.ctl("flow", "chat", "shop.yaml", "--endpoint", "x", code=1).stderr)

    def test_wait_runs_sleeps_and_follow_ups(self):
        self.assertEqual(self.chat("sleep", "Hi", "/wait 119m", "/wait 1m", "/wait 20m", "/wait 1d", code=1),
                         ["> sleep", "? sleeps; advance the time with /wait 2h", "> Hi",
                          "? sleeps; advance the time with /wait 2h", "> /wait 119m",
                          "? sleeps; advance the time with /wait 1m", "> /wait 1m", "< Two hours later.",
                          "> /wait 20m", "< Are you there?", "> /wait 1d"])

    def test_a_users_message_cancels_follow_ups(self):
        self.assertEqual(self.chat("a", "/wait 19m", "ask", "/wait 19m", "Ann", "/wait 19m", "/wait 1m")[4:],
                         ["> ask", "< Your name?", "> /wait 19m", "> Ann", "< Hello Ann.", "> /wait 19m", "> /wait 1m",
                          "< Are you there?"])

    def test_calls_wait_for_an_answer(self):
        waits = "? waits for GET https://crm.example.com/orders; give it with /answer {status: 200, body: {}}"
        self.assertEqual(self.chat("call", "/answer {body: {state: shipped}}", "call", "/answer {error: timeout}"),
                         ["> call", waits, "> /answer {body: {state: shipped}}", "< It is shipped.",
                          "> call", waits, "> /answer {error: timeout}", "< Failed: timeout."])

    def test_stubs_of_a_test_file_answer_calls(self):
        (self.folder / "shop.test.yaml").write_text("bundle: shop.yaml\ncalls: [{url: /crm/, body: {state: packed}}]\n"
                                                    "tests: [{name: a, steps: [{user: call}]}]\n")
        self.assertEqual(self.chat("call", arguments=("shop.test.yaml",)), ["> call", "< It is packed."])

    def test_injects_and_shows_the_context(self):
        shown = self.chat("/inject packed {id: 7}", "/inject {event: lost, id: 8}", "ask", "/context")
        self.assertEqual([line for line in shown if line.startswith("<")],
                         ["< Event packed of 7.", "< Event lost of 8.", "< Your name?"])
        state = json.loads("\n".join(shown[shown.index("> /context") + 1:]))
        self.assertEqual(state, {"context": {}, "profile": {}, "waitsAt": 'nodes[1].cases["ask"][0]', "nextTimerIn": "20m"})

    def test_trace_shows_nodes_values_changes_and_calls(self):
        shown = self.chat("ask", "Ann", "call", "/answer {body: {state: new}}", arguments=("shop.yaml", "--trace"))
        self.assertEqual(shown[1:8], ["  Orders: nodes[0] if: input.source == 'inject'", "      input.source == 'inject' = false",
                                      "  Orders: nodes[1] switch: input.text", "      input.text = \"ask\"",
                                      '  Orders: nodes[1].cases["ask"][0] question: Your name?', "< Your name?", "> Ann"])
        self.assertEqual(shown[8:13], ['  Orders: nodes[1].cases["ask"][0] question: Your name?',
                                       '      context.name: nothing -> "Ann"',
                                       '  Orders: nodes[1].cases["ask"][1] say: Hello {{context.name}}.',
                                       '      context.name = "Ann"', "< Hello Ann."])
        self.assertIn('      call {"body":"","method":"GET","url":"https://crm.example.com/orders"}', shown)
        self.assertIn('      context.order: nothing -> {"state":"new"}', shown)
        lines = self.ctl("--json", "flow", "chat", "shop.yaml", "--trace", lines=["Hi"]).stdout.splitlines()
        nodes = [json.loads(line) for line in lines]
        self.assertEqual([node.get("type") for node in nodes], ["if", "switch", "say", None])
        self.assertEqual(nodes[2]["evaluations"], [{"source": "input.text", "value": "Hi"}])

    def test_trace_shows_expressions_that_fail(self):
        (self.folder / "shop.yaml").write_text('conversed: 1\nproject: {name: P}\nflows: [{name: F, nodes: [{say: "{{context.a.b}}"}]}]\n')
        self.assertIn("      context.a.b failed: column 13: can't read 'b' of undefined",
                      self.chat("Hi", arguments=("shop.yaml", "--trace")))

    def test_wrong_lines_are_named_and_the_conversation_goes_on(self):
        done = self.ctl("flow", "chat", "shop.yaml", code=1,
                        lines=["/wiat 2h", "/wait soon", "/answer {}", "call", "/answer {stauts: 2}", "/answer {llm: Hi}", "/help", "/quit", "never"])
        self.assertIn("there is no command /wiat; /help lists them", done.stderr)
        self.assertIn("such as /wait 2h", done.stderr)
        self.assertIn("no call waits for an answer", done.stderr)
        self.assertIn("unknown key 'stauts'; did you mean 'status'?", done.stderr)
        self.assertIn("this call asks no language model; give `status` and `body`", done.stderr)
        for command in ("/wait", "/inject", "/answer", "/context", "/help", "/quit"):
            self.assertIn(f"\n{command}", done.stdout)
        self.assertNotIn("never", done.stdout)

    def test_recipes_of_the_handbook_hold_their_conversations(self):
        pages = set()
        for page, nodes, conversation in recipes():
            pages.add(page)
            with self.subTest(page=page, conversation=conversation.splitlines()[0]):
                used = ", ".join(one for name, one in CONNECTIONS.items() if f"connection: {name}\n" in nodes)
                parts = f"connections: [{used}]\n" + (STORE if "store: Manual" in nodes else "")
                indented = "".join(f"      {line}\n" for line in nodes.splitlines())
                (self.folder / "recipe.yaml").write_text(f"{HEAD}{parts}flows:\n  - name: Main\n    nodes:\n{indented}")
                found = self.ctl("flow", "check", "--strict", "recipe.yaml").stdout
                self.assertEqual(found, "recipe.yaml: no findings\n")
                lines = [line[2:] for line in conversation.splitlines() if line.startswith("> ")]
                # The handbook leaves data out.
                said = [line for line in self.chat(*lines, arguments=("recipe.yaml",)) if line != "< " and not line.startswith("  data: ")]
                self.assertEqual(said, conversation.splitlines())
        self.assertEqual(pages, {"concepts.md", "first-flow.md", "recipes.md"})

    def test_the_first_flow_of_the_handbook_passes_its_test(self):
        page = (HERE.parent.parent / "docs" / "flows" / "first-flow.md").read_text()
        nodes, tests = (block for language, block in FENCE.findall(page) if language == "yaml")
        self.ctl("flow", "new", "first.yaml")
        bundle = self.folder / "first.yaml"
        text = bundle.read_text()
        begin, end = text.index("      - say:"), text.index("endpoints:")
        bundle.write_text(text[:begin] + "".join(f"      {line}\n" for line in nodes.splitlines()) + text[end:])
        (self.folder / "first.test.yaml").write_text(tests)
        self.assertIn("ok    first.test.yaml: Tells where the order is", self.ctl("flow", "test", "first.test.yaml").stdout)

    def test_the_example_of_the_handbook_passes_its_tests(self):
        page = (HERE.parent.parent / "docs" / "flows" / "example.md").read_text()
        bundle, tests = (block for language, block in FENCE.findall(page) if language == "yaml")
        (self.folder / "pizza.yaml").write_text(bundle)
        (self.folder / "pizza.test.yaml").write_text(tests)
        self.assertEqual(self.ctl("flow", "check", "--strict", "pizza.yaml").stdout, "pizza.yaml: no findings\n")
        self.assertEqual(self.ctl("flow", "test", "pizza.test.yaml").stdout.count("ok    "), 5)


if __name__ == "__main__":
    unittest.main()
