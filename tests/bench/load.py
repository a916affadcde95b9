"""The load of both benchmarks: the Flows, and the native tool that loads daemons and receives their outputs."""

import json
import pathlib
import subprocess
import sys

from ports import free_port  # bench.py adds its folder to the path

BUNDLE = """
conversed: 1
project: {name: Bench, locales: [en]}
tokens: [{label: shopName, type: custom, script: "The Shop"}]
flows:
  - name: One
    nodes:
      - addToContext: {count: "{{(context.count || 0) + 1}}"}
  - name: Eight
    nodes:
      - addToContext: {count: "{{(context.count || 0) + 1}}"}
      - if: input.source == "inject" && input.data.event == "shipped"
        then:
          - addToContext: {lastOrder: "{{input.data.orderId}}"}
          - switch:
              on: context.lastOrder
              cases: {"A-1017": [{addToContext: {known: true}}]}
          - if: context.count > 0 && context.known
            then:
              - addToContext: {shop: "{{shopName}}"}
              - removeFromContext: [known]
              - say: "t={{input.data.t}} Your order {{context.lastOrder}} of {{context.shop}} is on its way."
  - name: Slow
    nodes:
      - httpRequest: {method: GET, url: "UPSTREAM/", storeIn: context.answer, timeout: 60s}
endpoints:
  - {name: slow, flow: Slow}
  - {name: one, flow: One}
  - {name: eight, flow: Eight, output: {webhook: {url: "${HOOK_URL}", secret: "${HOOK_SECRET}"}}}
"""


class Tool:
    """The native tool, and the targets of its loads."""

    def __init__(self, options):
        self.options = options
        self.tool = pathlib.Path(options.bin) / "conversed_bench_tool"
        self.hook_port = free_port()
        self.secret = "whsec_dGhlIHNlY3JldCBvZiBhbGwgYmVuY2ggcnVucw=="
        self.environment = {"HOOK_URL": f"http://127.0.0.1:{self.hook_port}/hook", "HOOK_SECRET": self.secret}

    def take_report(self, report, key):
        """Keeps the URL tokens in the report of the bundle's import, and the API key."""
        self.tokens = {each["name"]: each["urlToken"] for each in report["endpoints"]}
        self.key = key

    def run_tool(self, *arguments, prefix=()):
        """Runs the tool, under the command `prefix`. Returns its result."""
        done = subprocess.run([*prefix, self.tool, *map(str, arguments)], capture_output=True, text=True, timeout=300)
        if not done.stdout:
            raise SystemExit(f"{arguments[0]}: {done.stderr}")
        if done.stderr:
            print(done.stderr[:500], file=sys.stderr)
        return json.loads(done.stdout)

    def inject_arguments(self, endpoint, ports):
        return [*ports, "--key", self.key, "--url-token", self.tokens[endpoint],
                "--connections", self.options.connections, "--sessions", self.options.sessions]


def chosen_kinds(kinds, options, beside=()):
    """Returns the kinds of --only, or all. `beside` names kinds that rounds do not measure."""
    wanted = options.only or list(kinds)
    unknown = set(wanted) - set(kinds) - set(beside)
    if unknown:
        raise SystemExit(f"--only: no such kind: {', '.join(unknown)}; the kinds are: {', '.join([*kinds, *beside])}")
    return {kind: run for kind, run in kinds.items() if kind in wanted}


def show_round(options, number, kind, result):
    print(f"round {number + 1}/{options.rounds}  {kind:<13} {result['rate']:>9,.0f}/s   "
          f"p50 {result['p50_ms']:.2f} ms   p99 {result['p99_ms']:.2f} ms   "
          f"refused {result['refused']}", file=sys.stderr, flush=True)
