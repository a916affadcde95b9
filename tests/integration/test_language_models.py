"""The Nodes llmPrompt, aiAgent and searchKnowledge with fakellm, an independent server of a language model."""

import http.client
import subprocess
import sys
import tempfile
import unittest

from case import DaemonCase
from language_model import PYTHON, LanguageModel

if not PYTHON.is_file() or subprocess.run([PYTHON, "-c", "import fakellm"], capture_output=True).returncode != 0:
    print("\n!! SKIPPED: fakellm is missing; run `tests/tools/fetch python`\n", file=sys.stderr)
    sys.exit(77)

KEY = "key-of-the-model-7c21"
# The first matching rule answers. `turn` counts the requests with the same first message of the user.
RULES = f"""
version: 1
rules:
  - name: no key
    when: {{header.authorization: "Bearer wrong"}}
    respond: {{status: 401, error: wrong key}}
  - name: twice too many
    when: {{messages_contain: crowded, turn_in: [1, 2]}}
    respond: {{status: 429, error: slow down}}
  - name: crowd is gone
    when: {{messages_contain: crowded}}
    respond: {{content: Now it is quiet.}}
  - name: broken for good
    when: {{messages_contain: broken}}
    respond: {{status: 500, error: broken}}
  - name: hostile
    when: {{messages_contain: hostile}}
    respond: {{content: "{{{{context.secret}}}} ${{secret}}"}}
  - name: order is known
    when: {{tool_result_contains: shipped}}
    respond: {{content: It is on its way.}}
  - name: order is asked for
    when: {{messages_contain: "Where is A-1", tools_include: orderStatus}}
    respond: {{tool_calls: [{{name: orderStatus, arguments: {{id: A-1}}}}]}}
  - name: manual is known
    when: {{tool_result_contains: "14 days"}}
    respond: {{content: 14 days.}}
  - name: manual is asked for
    when: {{messages_contain: send back, tools_include: searchKnowledge}}
    respond: {{tool_calls: [{{name: searchKnowledge, arguments: {{query: "return, sent back"}}}}]}}
  - name: remembers
    when: {{messages_contain: My name is Ann, turn: 2}}
    respond: {{content: You are Ann.}}
  - name: is told
    when: {{messages_contain: My name is Ann}}
    respond: {{content: Hello Ann.}}
  - name: right model and key
    when: {{model_matches: "small-*", header.authorization: "Bearer {KEY}", messages_contain: say hello}}
    respond: {{content: Hello.}}
"""
BUNDLE = f"""
conversed: 1
project: {{name: Models, locales: [en]}}
connections:
  - {{name: model, type: llm, fields: {{baseUrl: "MODEL", model: small-1, apiKey: {KEY}}}}}
  - {{name: wrong, type: llm, fields: {{baseUrl: "MODEL/", apiKey: wrong}}}}
knowledgeStores:
  - name: Manual
    sources:
      - {{name: FAQ, chunks: [{{text: "Returns take 14 days."}}, {{text: "Lieferung in zwei Tagen."}}]}}
      - {{name: Terms, chunks: [{{text: "No returns of opened goods."}}]}}
flows:
  - name: Prompt
    nodes:
      - addToContext: {{secret: s3cret}}
      - if: input.data.connection == "wrong"
        then:
          - llmPrompt: {{connection: wrong, prompt: "{{{{input.text}}}}", onError: [{{say: "{{{{input.error.code}}}} {{{{input.error.status}}}}"}}]}}
        else:
          - llmPrompt: {{connection: model, prompt: "{{{{input.text}}}}", retries: 2, onError: [{{say: "{{{{input.error.code}}}} {{{{input.error.status}}}}"}}]}}
  - name: Agent
    nodes:
      - aiAgent:
          connection: model
          instructions: You help.
          knowledge: {{store: Manual}}
          tools:
            - name: orderStatus
              description: Tells how far an order is.
              parameters: {{type: object, properties: {{id: {{type: string}}}}, required: [id]}}
              do: [{{httpRequest: {{url: "UPSTREAM/orders/{{{{input.tool.arguments.id}}}}", storeIn: context.order}}}}]
              result: "{{{{context.order.state}}}}"
          onError: [{{say: "{{{{input.error.code}}}}"}}]
  - name: Search
    nodes:
      - if: input.data.sources
        then: [{{searchKnowledge: {{store: Manual, sources: [Terms], storeIn: context.hits}}}}]
        else: [{{searchKnowledge: {{store: Manual, storeIn: context.hits}}}}]
      - say: "{{{{context.hits.map(hit => hit.source + ': ' + hit.text).join(' | ')}}}}"
endpoints:
  - {{name: prompt, flow: Prompt}}
  - {{name: agent, flow: Agent}}
  - {{name: search, flow: Search}}
"""


class ModelCase(DaemonCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="conversed-test-")
        cls.addClassCleanup(folder.cleanup)
        cls.model = LanguageModel(folder.name, RULES)
        cls.addClassCleanup(cls.model.stop)
        cls.bundle = BUNDLE.replace("MODEL", cls.model.url)
        super().setUpClass()

    def answer(self, endpoint, session, text, **body):
        status, answer = self.say(endpoint, session, text, **body)
        self.assertEqual(status, 200, answer)
        return answer["text"]

    def metric(self, name):
        connection = http.client.HTTPConnection("127.0.0.1", self.daemon.ports["admin"], timeout=60)
        self.addCleanup(connection.close)
        status, text, _ = self.daemon.request("GET", "/metrics", connection=connection)
        self.assertEqual(status, 200)
        return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(name))


class LanguageModels(ModelCase):
    def test_the_connection_sets_address_model_and_key(self):
        self.assertEqual(self.answer("prompt", "hello", "Please say hello"), "Hello.")
        self.assertEqual(self.answer("prompt", "wrong", "say hello", data={"connection": "wrong"}), "status 401")

    def test_a_request_that_got_429_is_tried_again(self):
        self.assertEqual(self.answer("prompt", "crowded", "It is crowded"), "Now it is quiet.")

    def test_an_answer_500_takes_the_error_branch(self):
        self.assertEqual(self.answer("prompt", "broken", "It is broken"), "status 500")

    def test_texts_of_a_model_are_not_evaluated(self):
        self.assertEqual(self.answer("prompt", "hostile", "Be hostile"), "{{context.secret}} ${secret}")

    def test_an_agent_uses_tools(self):
        self.assertEqual(self.answer("agent", "order", "Where is A-1?"), "It is on its way.")
        self.assertIn("/orders/A-1", [path for path, _, _ in self.upstream.requests])

    def test_an_agent_searches_knowledge(self):
        self.assertEqual(self.answer("agent", "manual", "Can I send back a shoe?"), "14 days.")

    def test_an_agent_remembers_earlier_messages(self):
        self.assertEqual(self.answer("agent", "ann", "My name is Ann"), "Hello Ann.")
        self.assertEqual(self.answer("agent", "ann", "Who am I?"), "You are Ann.")

    def test_an_agent_remembers_earlier_messages_after_a_restart(self):
        self.assertEqual(self.answer("agent", "ann2", "Ann2: My name is Ann"), "Hello Ann.")
        self.daemon.kill()
        self.daemon.start()
        self.assertEqual(self.answer("agent", "ann2", "Who am I?"), "You are Ann.")

    def test_tokens_are_counted(self):
        before = self.metric("conversed_model_")
        self.answer("prompt", "counted", "Please say hello")
        self.assertGreater(self.metric("conversed_model_"), before)

    def test_the_key_is_neither_in_the_log_nor_in_clear_on_disk(self):
        self.answer("prompt", "secret", "Please say hello")
        self.assertNotIn(KEY, self.daemon.log_path.read_text())
        for path in (self.daemon.folder / "data").rglob("*"):
            if path.is_file():
                self.assertNotIn(KEY.encode(), path.read_bytes(), path)


class Knowledge(ModelCase):
    def test_hits_are_ranked_and_filtered(self):
        self.assertEqual(self.answer("search", "s1", "How long do returns take?"),
                         "FAQ: Returns take 14 days. | Terms: No returns of opened goods.")
        self.assertEqual(self.answer("search", "s2", "RETURNS", data={"sources": True}),
                         "Terms: No returns of opened goods.")
        self.assertEqual(self.answer("search", "s3", "lieferungen"), "FAQ: Lieferung in zwei Tagen.")

    def test_search_syntax_in_a_question_is_no_error(self):
        for n, text in enumerate(('"', "a AND", "NEAR(", "*", "x:y", "')--")):
            status, answer = self.say("search", f"odd{n}", text)
            self.assertEqual(status, 200, (text, answer))

    def test_imported_chunks_are_found_at_once(self):
        bundle = BUNDLE.replace("MODEL", self.model.url)
        self.load(bundle.replace("No returns of opened goods.", "Opened goods are yours."))
        try:
            self.assertEqual(self.answer("search", "i1", "returns"), "FAQ: Returns take 14 days.")
            self.assertEqual(self.answer("search", "i2", "goods"), "Terms: Opened goods are yours.")
        finally:
            self.load(bundle)


class Quota(ModelCase):
    settings = "quota: {model_tokens_per_month: 1}\n"

    def test_no_request_reaches_the_model_after_the_quota_is_used_up(self):
        self.assertEqual(self.answer("prompt", "q1", "Please say hello"), "Hello.")
        asked = self.model.stats()["total_requests"]
        self.assertEqual(self.answer("prompt", "q2", "Please say hello"), "quota_exhausted 0")
        self.assertEqual(self.model.stats()["total_requests"], asked)


if __name__ == "__main__":
    unittest.main()
