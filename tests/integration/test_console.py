"""The web console in Chromium, driven page by page at a daemon under load: what its pages show, that they fit narrow and wide windows
in light and dark, that keyboards and screen readers can use them, and its defense against hostile data and pages."""

import base64
import contextlib
import itertools
import os
import pathlib
import re
import shutil
import sys
import threading
import unittest
import urllib.parse

from case import BIN, DaemonCase, daemon_process
from chromium import Browser  # of tests/support, which case.py puts into the path

AXE = pathlib.Path(__file__).resolve().parents[2] / "build" / "tools" / "node" / "node_modules" / "axe-core" / "axe.min.js"
PICTURES = pathlib.Path(BIN).parent / "pictures" / "console"

BUNDLE = """
conversed: 1
project: {name: Tests, locales: [en]}
connections:
  - {name: crm, type: httpBearer, fields: {token: "${CRM_TOKEN}"}}
flows:
  - name: Orders
    nodes:
      - if: {condition: "input.text == 'fail'", then: [{httpRequest: {connection: crm, url: "http://127.0.0.1:1/"}}]}
      - if: {condition: "input.text == 'ask'", then: [{id: where, question: {text: "Where to?", storeIn: context.where}}]}
      - say: "Heard: {{input.text}}"
  - {name: Draft, nodes: [{say: "Hi {{contxt.name}}"}]}
  - {name: Rotor, nodes: [{id: again, addToContext: {n: 1}}, {goTo: again}]}
  - name: Shipping
    nodes:
      - {id: greeting, say: "Welcome"}
      - {id: price, say: "It is free"}
endpoints:
  - {name: web, flow: Orders}
  - {name: webhook, flow: Shipping, output: {webhook: {url: "http://127.0.0.1:1/"}}}
  - {name: yonder, flow: Shipping, output: {webhook: {url: "http://127.0.0.1:1/"}}}
  - {name: zigzag, flow: Rotor}
"""
# Streams of one organisation that a daemon takes while no other has any.
STREAMS_OF_ONE = 100
# Windows and colors. Each page is seen narrow and wide, light and dark; nightly in all four ways.
LOOKS = ((1280, 800, "light"), (390, 844, "dark"), (1280, 800, "dark"), (390, 844, "light"))
NIGHTLY = os.environ.get("CONVERSED_NIGHTLY") == "1"
# The elements of a kind that go beyond the right edge of a place that has them, less a margin.
BEYOND = ("[...document.querySelectorAll('{0}')].flatMap((place) => [...place.querySelectorAll('{1}')].filter((each) => each.getClientRects().length"
          " && each.getBoundingClientRect().right > place.getBoundingClientRect().right - {2})).map(({{ outerHTML }}) => outerHTML)")
# As markup this text would change the page's title.
HOSTILE = "<img src=x onerror=\"document.title='owned'\">"


class Load:
    """Users who send messages, and a system that injects, from when it is made until `stop`."""

    def __init__(self, case):
        self.ended = threading.Event()
        self.sent = 0
        self.thread = threading.Thread(target=self.run, args=(case,))
        self.thread.start()

    def run(self, case):
        for number in itertools.count():
            if self.ended.wait(0.05):
                return
            case.say("web", f"load {number % 20}", "hello")
            case.inject("web", f"load {number % 20}", text="news")
            self.sent += 1

    def stop(self):
        self.ended.set()
        self.thread.join()


class ConsoleCase(DaemonCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.stop)

    def setUp(self):
        self.browser.open("about:blank")
        self.browser.look(1280, 800, "light")
        self.browser.events.clear()

    def open(self, view):
        """Opens a page of the console, and waits until it is shown."""
        who = urllib.parse.quote(daemon_process.EMAIL) + ":" + urllib.parse.quote(daemon_process.PASSWORD)
        self.browser.open("about:blank")
        self.browser.open(f"http://{who}@127.0.0.1:{self.daemon.ports['api']}/new/management/console#{view}")
        self.browser.wait_until("document.body && document.body.dataset.shown")

    def dom(self, view):
        """Opens a page of the console. Returns the HTML of its `main` element."""
        self.open(view)
        shown = self.browser.run("document.querySelector('main').innerHTML")
        self.assertTrue(self.browser.run("document.title").endswith("conversed"))
        self.assertNotIn('role="alert"', shown)
        self.assertEqual(self.browser.problems(), [])
        return shown


class WithoutProject(ConsoleCase):
    @classmethod
    def load(cls, _):
        return {}

    def test_pages_say_how_to_get_a_project(self):
        for view in ("overview", "sessions", "deliveries", "deadletters", "timers", "schedules", "flows", "endpoints", "connections",
                     "chat", "search?q=ann"):
            with self.subTest(view=view):
                self.assertIn("conversectl import FILE", self.dom(view))


class Console(ConsoleCase):
    bundle = BUNDLE

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.daemon.request("POST", f"/new/{cls.tokens['web']}", {"userId": "ann", "sessionId": "s", "text": HOSTILE},
                           {"X-API-Key": cls.key})
        cls.daemon.request("POST", f"/new/{cls.tokens['web']}", {"userId": "bob", "sessionId": "s", "text": "fail"},
                           {"X-API-Key": cls.key})
        cls.daemon.request("POST", f"/new/{cls.tokens['web']}", {"userId": "cem", "sessionId": "s", "text": "ask"})

    def receipt_of(self, user, session, endpoint="web"):
        """The id of the session's last event."""
        query = urllib.parse.urlencode({"URLToken": self.tokens[endpoint], "userId": user, "sessionId": session})
        _, shown, _ = self.daemon.request("GET", f"/new/management/sessions/show?{query}", basic=True)
        return shown["lastReceipt"]

    def letters(self, session):
        """The dead letters of the session of the Flow Rotor."""
        query = urllib.parse.urlencode({"URLToken": self.tokens["zigzag"], "userId": f"user of {session}", "sessionId": session})
        _, letters, _ = self.daemon.request("GET", f"/new/management/deadletters?{query}", basic=True)
        return letters["items"]

    def fail_in_rotor(self, session):
        """Lets an event of the session fail in the Flow Rotor. Returns its dead letter."""
        self.inject("zigzag", session, text="news")
        while not (letters := self.letters(session)):
            self.assertFalse(self.daemon.wait_end(0.05))
        return letters[0]

    def audit(self, operation):
        _, entries, _ = self.daemon.request("GET", f"/new/management/audit?operation={operation}", basic=True)
        return entries["items"]

    def pages(self):
        _, letters, _ = self.daemon.request("GET", "/new/management/deadletters", basic=True)
        return {
            "overview": "overview", "sessions": "sessions", "session": "/".join(["sessions", self.tokens["web"], "ann", "s"]),
            "deadletters": "deadletters", "deadletter": "deadletter/" + letters["items"][0]["_id"],
            "timers": "timers", "schedules": "schedules", "flows": "flows",
            "deliveries": "deliveries", "endpoints": "endpoints", "flow": "flow/" + self.report["flows"][0]["_id"], "connections": "connections",
            "connection": "connection/" + self.report["connections"][0]["_id"], "chat": "chat", "jobs": "jobs",
            "receipt": "receipt/" + self.receipt_of("ann", "s"), "users": "users", "audit": "audit", "search": "search?q=ann",
            "import": "import",
        }

    def looks(self):
        """The pages, each with the looks in which it is seen: every other page has the colors the other way around."""
        for number, (name, view) in enumerate(self.pages().items()):
            for look in LOOKS if NIGHTLY else LOOKS[2 * (number % 2):][:2]:
                yield name, view, look

    def test_every_page_fits_wide_and_narrow_windows_in_light_and_dark(self):
        PICTURES.mkdir(parents=True, exist_ok=True)
        load = Load(self)
        self.addCleanup(load.stop)
        for name, view, (width, height, scheme) in self.looks():
            with self.subTest(page=name, width=width, scheme=scheme):
                self.browser.look(width, height, scheme)
                self.dom(view)
                self.assertEqual(self.browser.run("document.body.dataset.shown"), name)
                self.browser.picture(PICTURES / f"{name}-{width}-{scheme}.png")
                # Nothing is cut off: no element but tables that scroll by themselves goes beyond the window.
                self.assertLessEqual(self.browser.run("document.documentElement.scrollWidth - innerWidth"), 0)
                # A wide window has room for all columns, and panels for their fields.
                if width == LOOKS[0][0]:
                    self.assertEqual(self.browser.run("[...document.querySelectorAll('.table')].filter((each) => each.scrollWidth > each.clientWidth)"
                                                      ".map(({ innerText }) => innerText)"), [])
                self.assertEqual(self.browser.run(BEYOND.format("main .panel", "input, select, textarea, button", 8)), [])
                self.assertEqual(self.browser.run(BEYOND.format(".graph svg", "g > rect", 0)), [])
                # Each line of a chart has a color of its own.
                self.assertEqual(self.browser.run("[...document.querySelectorAll('.legend')].filter((each) => { const colors = [...each.querySelectorAll('i')]"
                                                  ".map((mark) => getComputedStyle(mark).backgroundColor);"
                                                  " return colors.includes('rgba(0, 0, 0, 0)') || new Set(colors).size < colors.length; })"
                                                  ".map(({ innerText }) => innerText)"), [])
        self.assertGreater(load.sent, 0)

    @unittest.skipUnless(AXE.exists(), "axe-core is missing; run `tests/tools/fetch node`")
    def test_screen_readers_can_use_every_page(self):
        checks = AXE.read_text()
        for name, view, (width, height, scheme) in self.looks():
            with self.subTest(page=name, width=width, scheme=scheme):
                self.browser.look(width, height, scheme)
                self.dom(view)
                self.browser.run(checks + "; 0")
                found = self.browser.run("axe.run().then(({ violations }) => violations"
                                         ".filter(({ impact }) => ['serious', 'critical'].includes(impact))"
                                         ".map(({ id, nodes }) => id + ': ' + nodes.slice(0, 3).map(({ html }) => html).join(' ')))")
                self.assertEqual(found, [])

    def press(self, key, text=""):
        for kind in ("keyDown", "keyUp"):
            self.browser.call("Input.dispatchKeyEvent", type=kind, key=key, text=text if kind == "keyDown" else "")

    def test_keys_reach_the_search_and_what_it_finds(self):
        self.open("sessions")
        self.press("/", "/")
        self.assertEqual(self.browser.run("document.activeElement.name"), "q")
        for letter in "Orders":
            self.press(letter, letter)
        self.press("Enter", "\r")
        self.browser.wait_until("document.body.dataset.shown === 'search' && document.querySelector('main a')")
        self.assertIn("Orders", self.browser.run("document.querySelector('main').innerText"))

    def test_the_search_finds_tokens_clients_outputs_and_audit_entries_by_id(self):
        _, token, _ = self.daemon.request("POST", "/new/management/tokens", {"name": "nightly", "scopes": ["read"]}, basic=True)
        _, client, _ = self.daemon.request("POST", "/new/management/oauth/clients",
                                           {"name": "Till", "redirectUris": ["https://till.example/callback"]}, basic=True)
        _, entries, _ = self.daemon.request("GET", "/new/management/audit?operation=createOauthClient&limit=1", basic=True)
        for text, found in ((token["_id"], "nightly"), (client["clientId"], "Till"), (entries["items"][0]["_id"], "createOauthClient")):
            self.open("search?q=" + text)
            self.assertIn(found, self.shown())
        self.browser.events.clear()  # kinds of things that do not have this id have answered 404

    def test_the_menu_of_a_narrow_window_opens_and_closes_by_keys(self):
        self.browser.look(390, 844, "light")
        self.open("overview")
        self.assertEqual(self.browser.run("getComputedStyle(document.getElementById('menu')).visibility"), "hidden")
        self.browser.run("document.getElementById('menu-button').focus()")
        self.press("Enter", "\r")
        self.browser.wait_until("getComputedStyle(document.getElementById('menu')).visibility === 'visible'")
        self.assertEqual(self.browser.run("document.activeElement.textContent"), "Overview")
        self.press("Escape")
        self.browser.wait_until("getComputedStyle(document.getElementById('menu')).visibility === 'hidden'")
        self.assertEqual(self.browser.run("document.activeElement.id"), "menu-button")

    def test_a_chosen_theme_stays(self):
        self.open("overview")
        self.addCleanup(self.browser.run, "localStorage.clear()")
        for _ in range(2):
            self.browser.run("document.getElementById('theme').click()")
        self.open("flows")
        self.assertEqual(self.browser.run("document.documentElement.dataset.theme"), "dark")
        self.assertEqual(self.browser.run("getComputedStyle(document.documentElement).colorScheme"), "dark")

    def test_an_error_says_what_happened_and_the_page_can_be_tried_again(self):
        self.open("deadletter/" + 24 * "z")
        alert = self.browser.run("document.querySelector('[role=alert]').innerText")
        self.assertIn("There is no such dead letter", alert)
        self.assertIn("Try again", alert)

    def test_a_test_chat_with_an_endpoint_shows_answer_and_context(self):
        self.open("chat")
        self.browser.run(f"document.querySelector('[name=token]').value = {self.tokens['web']!r}")
        self.browser.run("document.querySelector('input[name=text]').value = 'good day';"
                         "document.querySelector('form.compose').requestSubmit()")
        self.browser.wait_until("document.querySelector('main').innerText.includes('Heard: good day')")
        self.browser.wait_until("document.querySelector('main').innerText.includes('Open the session')")
        self.browser.wait_until("document.querySelector('.waterfall').innerText.includes('Turn of Orders v1')")

    def test_the_overview_shows_the_daemons_health(self):
        page = self.dom("overview")
        for text in ("Needs attention", "Dead letters", "Partitions", "Version"):
            self.assertIn(text, page)
        self.browser.wait_until("document.getElementById('health').innerText.includes('healthy')")

    def test_sessions_are_filtered_by_user_and_by_words(self):
        self.assertNotIn("bob", self.dom("sessions?userId=cem"))
        self.assertIn("cem", self.dom("sessions?userId=cem"))
        self.assertIn("cem", self.dom("sessions?text=where%20to"))
        self.assertIn("No session matches", self.dom("sessions?text=nobody%20says%20this"))

    def test_the_overview_draws_the_last_hour(self):
        self.open("overview")
        self.browser.wait_until("document.querySelectorAll('.plot canvas').length === 6")
        self.assertIn("Events a second in the last hour; now accepted",
                      self.browser.run("document.querySelector('.plot').getAttribute('aria-label')"))

    def test_a_sessions_page_follows_the_session(self):
        self.say("web", "live", "first")
        self.open("/".join(["sessions", self.tokens["web"], "user of live", "live"]))
        self.assertIn("Heard: first", self.browser.run("document.querySelector('main').innerText"))
        self.say("web", "live", "second")
        self.browser.wait_until("document.querySelector('main').innerText.includes('Heard: second')")
        self.say("web", "live", "third")
        self.browser.wait_until("document.querySelector('main').innerText.includes('Heard: third')")

    def refuse(self, *addresses):
        """Lets requests of these addresses fail as if the daemon did not answer. None: ends it."""
        self.browser.call("Network.enable")
        self.browser.call("Network.setBlockedURLs", urls=list(addresses))

    def shown(self):
        return self.browser.run("document.querySelector('main').innerText")

    def test_a_page_that_is_not_live_says_so_and_follows_again(self):
        self.say("web", "cut off", "first")
        self.open("/".join(["sessions", self.tokens["web"], "user of cut off", "cut off"]))
        self.assertNotIn("Not live", self.shown())
        self.refuse("*sessions/events*")
        self.addCleanup(self.refuse)
        self.say("web", "cut off", "second")  # ends the request that waits
        self.browser.wait_until("document.querySelector('main').innerText.includes('Not live; trying again')")
        self.assertIn("The daemon does not answer", self.shown())
        self.refuse()
        self.say("web", "cut off", "third")
        self.browser.wait_until("document.querySelector('main').innerText.includes('Heard: third')")
        self.browser.wait_until("!document.querySelector('main').innerText.includes('Not live')")

    def test_navigation_that_fails_shows_the_error_and_can_be_tried_again(self):
        self.open("overview")
        self.refuse("*pages/schedules.js*", "*management/schedules*")
        self.addCleanup(self.refuse)
        self.browser.run("location.hash = 'schedules'")
        self.browser.wait_until("document.querySelector('main [role=alert]')")
        self.assertIn("Try again", self.shown())
        self.refuse()
        self.browser.run("document.querySelector('main [role=alert] button').click()")
        self.browser.wait_until("document.querySelector('main').innerText.includes('No schedules')")

    def test_a_sessions_timeline_has_messages_injects_turns_and_calls(self):
        self.say("web", "told", "hello")
        self.inject("web", "told", text="news")
        self.say("web", "told", "fail")
        self.open("/".join(["sessions", self.tokens["web"], "user of told", "told"]))
        self.browser.wait_until("document.querySelectorAll('.timeline .bubble.me').length === 2")
        shown = self.browser.run("document.querySelector('.timeline').innerText")
        for text in ("hello", "Heard: hello", "inject: news", "Heard: news", "Turn of Orders v1", "Call to 127.0.0.1:1"):
            self.assertIn(text, shown)

    def test_a_receipt_shows_each_step_of_an_event(self):
        self.say("web", "seen", "hello")
        page = self.dom("receipt/" + self.receipt_of("user of seen", "seen"))
        for text in ("Accepted", "Turn of Orders v1", "nodes[2]", "user of seen"):
            self.assertIn(text, page)
        self.open("search?q=" + self.receipt_of("user of seen", "seen"))
        self.assertIn("Receipt", self.browser.run("document.querySelector('main').innerText"))

    def test_a_flow_is_drawn_with_the_sessions_that_wait_at_its_nodes(self):
        page = self.dom("flow/" + self.report["flows"][0]["_id"])
        self.assertEqual(self.browser.run("document.querySelectorAll('.graph .node').length"), 5)
        self.assertEqual(self.browser.run("document.querySelector('.graph .stands .type').textContent"), "question")
        self.assertEqual(self.browser.run("document.querySelector('.graph text.count').textContent"), "1")
        self.assertIn("Where to?", page)

    def test_a_flow_shows_which_nodes_fail(self):
        self.dom("flow/" + self.report["flows"][0]["_id"])
        self.assertEqual(self.browser.run("document.querySelector('.graph text.failed').textContent"), "100 %")
        self.assertIn("nodes[0].then[0]", self.shown())

    def test_two_versions_of_a_flow_stand_side_by_side(self):
        self.addCleanup(self.load, BUNDLE, prune=True)
        changed = BUNDLE.replace("It is free", "It costs 5").replace("      - {id: greeting, say: \"Welcome\"}\n", "")
        self.load(changed.replace("endpoints:", "      - {id: end, say: \"Bye\"}\nendpoints:"))
        shipping = next(flow["_id"] for flow in self.report["flows"] if flow["name"] == "Shipping")
        page = self.dom(f"flow/{shipping}?version=2&from=1")
        self.assertIn("From version 1 to 2", page)
        marked = self.browser.run("[...document.querySelectorAll('.graph')].map((graph) => [...graph.querySelectorAll('.node')]"
                                  ".map((node) => node.getAttribute('class').replace('node', '').trim()))")
        self.assertEqual(marked, [["removed", "changed"], ["changed", "added"]])

    def test_an_open_receipt_and_its_session_hear_of_deliveries(self):
        # An Endpoint of its own: one that has failed for long is tried rarely.
        self.inject("yonder", "waits", text="news")
        session = "/".join(["sessions", self.tokens["yonder"], "user of waits", "waits"])
        self.open(session)
        self.browser.wait_until("document.querySelector('main').innerText.match(/after \\d+ failed tr(y|ies)/)")
        self.assertIn("The webhook of the Endpoint yonder", self.shown())
        self.assertIn("inject: news from " + daemon_process.EMAIL, self.shown())
        receipt = self.receipt_of("user of waits", "waits", "yonder")
        self.open("receipt/" + receipt)
        self.browser.wait_until("document.querySelector('.waterfall').innerText.includes('try 2')")
        self.browser.wait_until("document.querySelector('.waterfall').innerText.includes('The webhook of the Endpoint yonder')")
        views = [each for each in self.audit("showReceipt") if each["object"].startswith(f"receiptId={receipt}, projectId=")]
        self.assertEqual(len(views), 1, "one view, however often it is refreshed")
        self.open(session)
        self.daemon.request("POST", "/new/management/sessions/reset", {"URLToken": self.tokens["yonder"], "userId": "user of waits",
                                                                      "sessionId": "waits"}, basic=True)
        self.browser.wait_until("document.querySelector('main').innerText.match(/Turns\\s+2/)")

    def test_a_refused_stream_says_so(self):
        self.say("web", "crowded", "hello")
        query = urllib.parse.urlencode({"URLToken": self.tokens["web"], "userId": "user of crowded", "sessionId": "crowded"})
        path = f"/new/management/sessions/events?{query}"
        _, event, _ = self.daemon.request("GET", path, basic=True)
        known = {"Last-Event-ID": re.search("^id: (.*)$", event, re.MULTILINE)[1]}
        credentials = base64.b64encode(f"{daemon_process.EMAIL}:{daemon_process.PASSWORD}".encode()).decode()
        with contextlib.ExitStack() as streams:
            for _ in range(STREAMS_OF_ONE):
                stream = streams.enter_context(contextlib.closing(self.daemon.connect()))
                stream.request("GET", path, headers={**known, "Authorization": f"Basic {credentials}"})
            self.open("/".join(["sessions", self.tokens["web"], "user of crowded", "crowded"]))
            self.browser.wait_until("document.querySelector('main').innerText.includes('Too many streams are open')")
            self.assertIn("Heard: hello", self.shown())
        self.browser.wait_until("!document.querySelector('main').innerText.includes('Not live')")

    def test_the_console_shows_text_of_conversations_never_as_markup(self):
        self.assertIn("ann", self.dom("sessions?userId=ann"))
        page = self.dom("/".join(["sessions", self.tokens["web"], "ann", "s"]))
        self.assertIn("Heard: &lt;img src=x", page)

    def test_shows_dead_letters_with_their_reasons(self):
        page = self.dom("deadletters")
        self.assertIn("nodes[0].then[0]", page)
        self.assertIn("Run again", page)
        self.assertIn("By reason", page)
        self.browser.run("[...document.querySelectorAll('tr')].find((row) => row.innerText.includes('nodes[0].then[0]'))"
                         ".querySelector('button').click()")
        self.browser.wait_until("document.querySelector('main').innerText.includes('With this reason')")
        self.assertIn("bob", self.browser.run("document.querySelector('main').innerText"))

    def test_a_dead_letter_is_tried_without_effects(self):
        letter = self.fail_in_rotor("tried")
        self.open("deadletter/" + letter["_id"])
        self.browser.run("[...document.querySelectorAll('button')].find((each) => each.textContent === 'Try without effects').click()")
        self.browser.wait_until("document.querySelector('main').innerText.includes('nothing was sent or stored')")
        self.assertIn("It fails again at again", self.shown())
        self.assertIn("addToContext", self.browser.run("document.querySelector('main details').textContent"))
        self.assertEqual(self.letters("tried"), [letter])

    def test_each_reason_has_words_for_people(self):
        _, document, _ = self.daemon.request("GET", "/new/openapi.json")
        reasons = document["components"]["schemas"]["Wait"]["properties"]["reason"]["enum"]
        self.assertGreater(len(reasons), 10)
        self.open("overview")
        named = self.browser.run(f"import('./console/shell/reasons.js').then(({{ reasonBadge }}) => {reasons}.map((name) => reasonBadge(name).textContent))")
        for name, words in zip(reasons, named):
            if name != "asleep":
                self.assertNotEqual(words, name)

    def test_lists_are_filtered_by_reason(self):
        self.assertIn("No session matches", self.dom("sessions?reason=asleep"))
        self.inject("webhook", "filtered", text="news")
        self.open("deliveries?reason=deliveryFailing")
        while "user of filtered" not in self.shown():
            self.open("deliveries?reason=deliveryFailing")
        self.assertIn("webhook fails", self.shown())
        self.assertNotIn("user of filtered", self.dom("deliveries?reason=endpointPaused"))

    def test_the_overview_shows_a_dead_letter_that_takes_the_place_of_another(self):
        _, others, _ = self.daemon.request("GET", "/new/management/deadletters?state=new&flow=Rotor", basic=True)
        for letter in others["items"]:
            self.daemon.request("POST", f"/new/management/deadletters/{letter['_id']}/discard", basic=True)
        before = self.fail_in_rotor("before")
        self.open("overview")
        self.browser.wait_until("document.querySelector('main').innerText.includes('Rotor version 1')")
        self.browser.run("document.getElementById('question').showModal()")  # the page rests
        self.daemon.request("POST", f"/new/management/deadletters/{before['_id']}/discard", basic=True)
        self.say("web", "after", "fail")
        self.browser.run("document.getElementById('question').close()")
        self.browser.wait_until("!document.querySelector('main').innerText.includes('Rotor version 1')")

    def test_the_overview_that_stays_open_is_one_view_in_the_audit_trail(self):
        self.dom("overview")
        looks = len(self.audit("groupDeadLetters"))
        self.browser.run("new Promise((resolve) => { const ask = window.fetch; let left = 3; window.fetch = (address, ...more) => {"
                         " if (String(address).includes('/deliveries') && --left === 0) resolve(); return ask(address, ...more); }; })")
        self.assertEqual(len(self.audit("groupDeadLetters")), looks)

    def test_shows_which_nodes_use_a_connection(self):
        connection = self.report["connections"][0]["_id"]
        self.assertIn("crm", self.dom("connections"))
        page = self.dom("connection/" + connection)
        for text in ("Orders", "nodes[0].then[0]", "httpRequest", "Sessions that meet it"):
            self.assertIn(text, page)
        self.assertNotIn("token-of-the-connection", page)

    def test_checks_the_flows_of_a_project(self):
        self.open("flows")
        self.browser.run("[...document.querySelectorAll('button')].find((each) => each.textContent === 'Check the Flows').click()")
        self.browser.wait_until("document.querySelector('main').innerText.includes('Findings')")
        page = self.browser.run("document.querySelector('main').innerText")
        for text in ("Flow 'Draft', nodes[0]", "did you mean 'context'?", "nothing uses the Flow 'Draft'"):
            self.assertIn(text, page)

    def click(self, text):
        self.browser.run(f"[...document.querySelectorAll('main button')].find((each) => each.textContent === {text!r}).click()")

    def type(self, field, text):
        self.browser.run(f"{{ const into = document.querySelector('main [name={field}]'); into.value = {text!r}; "
                         "into.dispatchEvent(new Event('input')); }")

    def test_a_bundle_is_imported_after_its_plan(self):
        self.addCleanup(self.load, BUNDLE, prune=True)
        self.open("import")
        self.type("text", "conversed: 1\nproject: {name: Tests}\nflows: 5\n")
        self.click("Plan")
        self.browser.wait_until("document.querySelector('main').innerText.includes('Problems')")
        self.type("text", BUNDLE.replace("name: yonder", "name: imported"))
        self.browser.run("document.querySelector('main [name=prune]').click()")
        self.type("CRM_TOKEN", "token-of-the-connection")
        self.click("Plan")
        self.browser.wait_until("document.querySelector('main').innerText.includes('deleted')")
        self.assertRegex(self.shown(), r"deleted\s+Endpoint\s+yonder")
        self.browser.run("document.querySelector('main [name=prune]').click()")
        self.assertNotIn("yonder", self.browser.run("document.querySelector('main [aria-live]').innerText"))
        self.click("Plan")
        self.browser.wait_until("document.querySelector('main').innerText.includes('left over')")
        self.click("Import")
        self.browser.wait_until("document.querySelector('main').innerText.includes('Imported Tests')")
        self.assertIn("imported", [item["name"] for item in self.daemon.ctl("endpoints", "list")["items"]])

    def test_an_import_is_of_the_bundle_that_was_planned(self):
        self.open("import")
        self.type("text", BUNDLE.replace("name: yonder", "name: planned"))
        self.type("CRM_TOKEN", "token-of-the-connection")
        self.browser.run("document.querySelector('main [name=prune]').click()")
        # Each request waits until the test lets it go, and keeps its body.
        self.browser.run("{ const ask = window.fetch; window.held = []; window.fetch = (address, options) => "
                         "String(address).includes('import') ? new Promise((go) => window.held.push({ body: JSON.parse(options.body), "
                         "go: () => go(ask(address, options)) })) : ask(address, options); }")
        self.click("Plan")
        self.browser.wait_until("window.held.length === 1")
        self.browser.run("document.querySelector('main [name=prune]').click()")
        self.browser.run("window.held[0].go()")
        self.browser.wait_until("![...document.querySelectorAll('main button')].find((each) => each.textContent === 'Plan').disabled")
        self.assertEqual(self.browser.run("document.querySelector('main [aria-live]').innerText"), "", "the plan is of other fields")
        self.click("Plan")
        self.browser.wait_until("window.held.length === 2")
        self.browser.run("window.held[1].go()")
        self.browser.wait_until("document.querySelector('main').innerText.includes('planned')")
        self.browser.run("document.querySelector('main [name=text]').value = 'other'")  # without an event
        self.click("Import")
        self.browser.wait_until("window.held.length === 3")
        self.assertTrue(self.browser.run("JSON.stringify(window.held[2].body) === JSON.stringify(window.held[1].body) && !window.held[2].body.prune"))
        self.assertEqual(self.browser.run("document.querySelector('main [name=CRM_TOKEN]').autocomplete"), "new-password")

    def test_shows_flows_jobs_and_schedules(self):
        self.assertIn("Orders", self.dom("flows"))
        self.assertIn("in effect", self.dom("flow/" + self.report["flows"][0]["_id"]))
        self.assertIn("No jobs", self.dom("jobs"))
        self.assertIn("No schedules", self.dom("schedules"))
        self.assertIn("No timers", self.dom("timers"))

    def test_a_file_that_the_browser_keeps_is_not_sent_again(self):
        path = "/new/management/console/shell/main.js"
        status, _, headers = self.daemon.request("GET", path, basic=True)
        self.assertEqual(status, 200)
        status, body, _ = self.daemon.request("GET", path, headers={"If-None-Match": headers["ETag"]}, basic=True)
        self.assertEqual((status, body or ""), (304, ""))
        status, _, _ = self.daemon.request("GET", path, headers={"If-None-Match": '"other"'}, basic=True)
        self.assertEqual(status, 200)

    def test_the_page_needs_credentials_and_runs_no_other_script(self):
        status, _, headers = self.daemon.request("GET", "/new/management/console")
        self.assertEqual(status, 401)
        self.assertIn("Basic", headers["WWW-Authenticate"])
        status, _, headers = self.daemon.request("GET", "/new/management/console", basic=True)
        self.assertEqual(status, 200)
        policy = headers["Content-Security-Policy"]
        self.assertIn("default-src 'none'", policy)
        self.assertIn("frame-ancestors 'none'", policy)
        self.assertNotIn("unsafe", policy)

    def test_requests_of_other_sites_with_remembered_credentials_are_refused(self):
        _, letters, _ = self.daemon.request("GET", "/new/management/deadletters", basic=True)
        discard = f"/new/management/deadletters/{letters['items'][0]['_id']}/discard"
        for told in ({"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"},
                     {"Origin": "https://evil.example"}):
            status, _, _ = self.daemon.request("POST", discard, headers=told, basic=True)
            self.assertEqual(status, 403, told)
        _, after, _ = self.daemon.request("GET", "/new/management/deadletters", basic=True)
        self.assertEqual(after["items"], letters["items"])


if __name__ == "__main__":
    if shutil.which("chromium") is None:
        print("SKIPPED: chromium is not installed; `./dev test` installs it")
        sys.exit(77)
    unittest.main()
