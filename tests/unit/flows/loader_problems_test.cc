// Bad bundles, each with its exact problems.
#include <gtest/gtest.h>

#include "flows/bundle/loader.h"
#include "flows/node_types.h"

namespace conversed::flows {
namespace {

struct BadBundle {
  std::string text;
  std::vector<std::string> problems;
};

std::optional<std::string> one_variable(std::string_view name) {
  if (name == "SET") return "value";
  return std::nullopt;
}

// Loads `head` followed by `text`, with the lines of `text` indented.
void expect_problems(const std::vector<BadBundle>& table, std::string_view head,
                     const std::string& indent = "") {
  for (const auto& [text, expected] : table) {
    std::string whole(head);
    bool line_begins = true;
    for (const char c : text) {
      if (line_begins) whole += indent;
      whole += c;
      line_begins = c == '\n';
    }
    const auto bundle = load_bundle(whole, "b.yaml", one_variable);
    ASSERT_FALSE(bundle) << text;
    std::vector<std::string> lines;
    for (const auto& problem : bundle.error()) lines.push_back(to_string(problem));
    EXPECT_EQ(lines, expected) << text;
  }
}

TEST(LoaderProblems, OfTheFileAsSuch) {
  expect_problems(
      {{"", {"b.yaml: the file is empty"}},
       {"a: [",
        {"b.yaml:1:5: is not valid YAML: end of sequence flow not found; the '[' of line 1 is not "
         "closed; write ']' (at the file's end)"}},
       {"a: {b: Which?}",
        {"b.yaml:1:13: is not valid YAML: unknown token; within {} and [] a text with a '?' stands "
         "in "
         "quotes"}},
       {"a: 1\na: 2", {"b.yaml:2:1: the key \"a\" is given twice, first in line 1"}},
       {"[a]: 1", {"b.yaml:1:1: a key must be a text"}},
       {"a: .inf", {"b.yaml:1:4: JSON has no such number; put it in quotes if a text is meant"}},
       {"a: !!binary x", {"b.yaml:1:4: the tag does not fit the value, or is unknown"}},
       {"a: 1\n---\nb: 2", {"b.yaml:2:1: a second document begins here; expected one only"}},
       {"- a", {"b.yaml:1:1: expected a mapping, not a list"}},
       {"{}", {"b.yaml:1:1: 'conversed' is missing", "b.yaml:1:1: 'project' is missing"}},
       {"conversed: 2\nproject: {name: P}",
        {"b.yaml:1:12: conversed: write 1: this version reads no other format"}},
       {"conversed: 1\nprojct: {name: P}",
        {"b.yaml:1:1: 'project' is missing",
         "b.yaml:2:1: projct: unknown key 'projct'; did you mean 'project'?"}}},
      "");
}

TEST(LoaderProblems, OfAssets) {
  expect_problems(
      {{"tokens: [{label: a}, {label: a}, {label: b, type: costum}, {script: x}]",
        {"b.yaml:3:30: tokens[1].label: 'a' is used twice; rename one",
         "b.yaml:3:51: tokens[2].type: unknown value 'costum'; did you mean 'custom'?; known are "
         "answer, context, custom, flow-input, flow-output, input, profile",
         "b.yaml:3:60: tokens[3]: 'label' is missing"}},
       {"members: [{email: nobody, roles: [projectAdmin, userAdmin], allowedLocales: [fr]}]",
        {"b.yaml:3:19: members[0].email: expected an e-mail address such as ann@example.com",
         "b.yaml:3:49: members[0].roles[1]: unknown value 'userAdmin'; known are connectionAdmin, "
         "conversationAdmin, memberManager, proactiveAdmin, projectAdmin, tokenAdmin",
         "b.yaml:3:78: members[0].allowedLocales[0]: the project has no locale 'fr'"}},
       {"connections: [{name: c, type: httpBearer, fields: {token: \"${UNSET} ${SET}\"}}]",
        {"b.yaml:3:59: connections[0].fields.token: the environment variable UNSET is not set; set "
         "it for the import, or by `environment` of a test file"}},
       {"connections: [{name: c, type: httpBasic, fields: {username: 5}}, {name: d, type: http}]",
        {"b.yaml:3:50: connections[0].fields: a Connection of type httpBasic needs the field "
         "'password'",
         "b.yaml:3:61: connections[0].fields.username: expected a text, not a number; write a "
         "number in quotes",
         "b.yaml:3:82: connections[1].type: unknown value 'http'; known are httpBasic, httpBearer, "
         "httpHeader, llm"}},
       {"connections: [{name: c, type: llm, fields: {baseUrl: \"https://x.example\", apiKey: 5}}]",
        {"b.yaml:3:83: connections[0].fields.apiKey: expected a text, not a number; write a number "
         "in quotes"}},
       {"connections: [{name: c, type: httpBearer, fields: {token: t}, hosts: [crm.example.com, "
        "\"https://crm.example.com\", CRM.example.com, \"*.example.com\"]}]",
        {"b.yaml:3:88: connections[0].hosts[1]: expected a host, and maybe its port, such as "
         "crm.example.com:8443",
         "b.yaml:3:115: connections[0].hosts[2]: 'crm.example.com' is in the list twice; remove "
         "one",
         "b.yaml:3:132: connections[0].hosts[3]: expected a host, and maybe its port, such as "
         "crm.example.com:8443"}},
       {"connections: [{name: m, type: llm}, {name: n, type: llm, fields: {baseUrl: here}}]",
        {"b.yaml:3:15: connections[0]: a Connection of type llm needs the field 'baseUrl'",
         "b.yaml:3:66: connections[1].fields: the field 'baseUrl' must be an absolute http or "
         "https URL without query and '..', such as https://llm.example.com/v1"}},
       {"lexicons: [{name: L, slots: [city], entries: [{mainKeyphrase: A, slots: [cty]}, "
        "{mainKeyphrase: A}]}]",
        {"b.yaml:3:74: lexicons[0].entries[0].slots[0]: the lexicon has no slot 'cty'; did you "
         "mean "
         "'city'?",
         "b.yaml:3:97: lexicons[0].entries[1].mainKeyphrase: 'A' is used twice; rename one"}},
       {"knowledgeStores: [{name: K, sources: [{name: S, chunks: [{text: 5}, {}]}]}]",
        {"b.yaml:3:65: knowledgeStores[0].sources[0].chunks[0].text: expected a text, not a "
         "number; "
         "put it in quotes",
         "b.yaml:3:69: knowledgeStores[0].sources[0].chunks[1]: 'text' is missing"}}},
      "conversed: 1\nproject: {name: P}\n");
}

TEST(LoaderProblems, OfEndpointsAndTheProactivePart) {
  expect_problems(
      {{"endpoints: [{name: e, flow: Man, sessionExpiry: 30, urlToken: abc, activeOnly: yes}]",
        {"b.yaml:4:29: endpoints[0].flow: there is no Flow 'Man'; did you mean 'Main'?",
         "b.yaml:4:49: endpoints[0].sessionExpiry: expected a duration such as 500ms, 10s, 5m, 2h "
         "or "
         "3d",
         "b.yaml:4:63: endpoints[0].urlToken: a URL token is 64 characters of 0-9 and a-f",
         "b.yaml:4:80: endpoints[0].activeOnly: expected true or false, not a text"}},
       {"endpoints: [{name: e, flow: Main, onError: Main}, {name: f, flow: Main, onError: Man}]",
        {"b.yaml:4:44: endpoints[0].onError: the Flow can't handle its own errors; name another "
         "one",
         "b.yaml:4:82: endpoints[1].onError: there is no Flow 'Man'; did you mean 'Main'?"}},
       {"endpoints: [{name: e, flow: Main, output: {webhook: {url: \"ftp://x\"}}}]",
        {"b.yaml:4:59: endpoints[0].output.webhook.url: expected an absolute http or https URL "
         "without user information"}},
       {"proactive: {journey: {after: 0s, quietHours: {from: \"24:00\", to: \"07:00\", timezone: "
        "Mars}}}",
        {"b.yaml:4:22: proactive.journey: 'text' is missing",
         "b.yaml:4:30: proactive.journey.after: the duration is too short; at least 1000ms",
         "b.yaml:4:53: proactive.journey.quietHours.from: expected a time of day such as \"22:00\"",
         "b.yaml:4:85: proactive.journey.quietHours.timezone: unknown time zone; expected one such "
         "as UTC or Europe/Berlin"}}},
      "conversed: 1\nproject: {name: P}\nflows: [{name: Main, nodes: []}]\n");
}

const std::string known_types = [] {
  std::string list;
  for (const auto* type : node_types()) {
    list.append(list.empty() ? "known are " : ", ").append(type->name);
  }
  return list;
}();

TEST(LoaderProblems, OfNodes) {
  expect_problems(
      {{"- sya: x",
        {"b.yaml:7:5: flows[0].nodes[0].sya: unknown Node type 'sya'; did you mean 'say'?; " +
         known_types}},
       {"- say: x\n  stop: true",
        {"b.yaml:8:5: flows[0].nodes[0].stop: a Node has one type, and this one is a 'say'; write "
         "a Node for each"}},
       {"- {id: null, say: x}",
        {"b.yaml:7:10: flows[0].nodes[0].id: an id is a letter and at most 63 letters, digits, `_` "
         "or `-`"}},
       {"- say: {txt: x}",
        {"b.yaml:7:10: flows[0].nodes[0].say: 'text' is missing",
         "b.yaml:7:11: flows[0].nodes[0].say.txt: unknown key 'txt'; did you mean 'text'?"}},
       {"- say: \"{{1 +}}\"\n- say: x\n  thn: []",
        {"b.yaml:7:10: flows[0].nodes[0].say: column 6: unexpected '}'",
         "b.yaml:9:5: flows[0].nodes[1].thn: unknown key 'thn' beside 'say'; known are id"}},
       {"- say: x\n  data: {a: 1}",
        {"b.yaml:8:5: flows[0].nodes[0].data: 'data' belongs to the mapping of 'say'; indent it "
         "further than 'say', or write `say: {text: .., data: ..}`"}},
       {"- question:\n  text: x",
        {"b.yaml:8:5: flows[0].nodes[0].text: 'text' belongs to the mapping of 'question'; "
         "indent it further than 'question', or write `question: {text: ..}`",
         "b.yaml:8:5: flows[0].nodes[0].question: 'text' is missing"}},
       {"- if: context.x\n  then:\n    - goTo: ask\n  els: []\n- {id: aks, wait: true}\n- {id: "
        "aks, "
        "wait: true}",
        {"b.yaml:9:15: flows[0].nodes[0].then[0].goTo: no Node of this Flow has the id 'ask'; did "
         "you mean 'aks'?",
         "b.yaml:10:5: flows[0].nodes[0].els: unknown key 'els' beside 'if'; did you mean 'else'?",
         "b.yaml:12:10: flows[0].nodes[2].id: the id 'aks' is used twice in this Flow; choose "
         "another"}},
       {"- httpRequest: {connection: crn, url: x, method: FETCH, timeout: 1h, retries: 11, "
        "headers: "
        "{Host: x}}",
        {"b.yaml:7:31: flows[0].nodes[0].httpRequest.connection: there is no Connection 'crn'; did "
         "you mean 'crm'?",
         "b.yaml:7:41: flows[0].nodes[0].httpRequest.url: expected an absolute http or https URL "
         "without user information",
         "b.yaml:7:52: flows[0].nodes[0].httpRequest.method: unknown value 'FETCH'; did you mean "
         "'PATCH'?; known are GET, HEAD, POST, PUT, PATCH, DELETE",
         "b.yaml:7:68: flows[0].nodes[0].httpRequest.timeout: the duration is too long; at most "
         "300s",
         "b.yaml:7:81: flows[0].nodes[0].httpRequest.retries: expected a whole number from 0 to 10",
         "b.yaml:7:101: flows[0].nodes[0].httpRequest.headers.Host: the daemon sets the header "
         "'Host'; remove it"}},
       {"- addToContext: {context.a: 1}\n- removeFromContext: []\n- stop: false\n- sleep: soon\n- "
        "wait",
        {"b.yaml:7:31: flows[0].nodes[0].addToContext[\"context.a\"]: write 'a' instead of "
         "'context.a'",
         "b.yaml:8:24: flows[0].nodes[1].removeFromContext: the list is empty; name a value",
         "b.yaml:9:11: flows[0].nodes[2].stop: write `stop: true`; there is nothing to configure",
         "b.yaml:10:12: flows[0].nodes[3].sleep: expected a duration such as 500ms, 10s, 5m, 2h or "
         "3d",
         "b.yaml:11:5: flows[0].nodes[4]: a Node is a mapping such as `say: Hello`, not a text"}},
       {"- switch: {on: input.text}\n- question: {type: text, storeIn: x}\n- {}",
        {"b.yaml:7:13: flows[0].nodes[0].switch: 'cases' is missing",
         "b.yaml:8:15: flows[0].nodes[1].question: 'text' is missing",
         "b.yaml:8:37: flows[0].nodes[1].question.storeIn: column 1: a place to store to begins "
         "with "
         "'context.' or 'profile.'",
         "b.yaml:9:5: flows[0].nodes[2]: a Node needs a type; " + known_types}}},
      "conversed: 1\nproject: {name: P}\nconnections: [{name: crm, type: httpBearer, fields: "
      "{token: t}}]\n"
      "flows:\n- name: F\n  nodes:\n",
      "  ");
}

TEST(LoaderProblems, OfNodesSayWhatToWrite) {
  expect_problems(
      {{"- handover: true\n- copySlotsToContext: true\n- handover:\n- return: true",
        {"b.yaml:7:15: flows[0].nodes[0].handover: write `handover: {}`; no key is needed",
         "b.yaml:8:25: flows[0].nodes[1].copySlotsToContext: write `copySlotsToContext: {}`; no "
         "key is needed"}},
       {"- interval: {every: \"3\", do: []}",
        {"b.yaml:7:23: flows[0].nodes[0].interval.every: a number of passes has no quotes; write "
         "`every: 3`"}},
       {"- if: input.text\n  then: [{say: Yes, that is right.}]",
        {"b.yaml:8:23: flows[0].nodes[0].then[0][\"that is right.\"]: unknown key 'that is "
         "right.' beside 'say'; known are id; a text with ',' within { } stands in quotes"}},
       {"- question: {text: Small, or large, type: text}",
        {"b.yaml:7:29: flows[0].nodes[0].question[\"or large\"]: unknown key 'or large'; known are "
         "text, type, storeIn, reprompt, maxAttempts, onNoAnswer, validIf, escape, escapeIf, "
         "onEscape, timeout, onTimeout, slot, pattern, dateOrder, timezone, yes, no, data, "
         "quickReplies; a text with ',' within { } stands in quotes"}}},
      "conversed: 1\nproject: {name: P}\nconnections: [{name: crm, type: httpBearer, fields: "
      "{token: t}}]\n"
      "flows:\n- name: F\n  nodes:\n",
      "  ");
}

TEST(LoaderProblems, OfButtonsCardsAndImages) {
  expect_problems(
      {{"- say: {text: a, quickReplies: [{value: 1}, {text: b, url: x}, {text: c, value: 1, url: "
        "\"http://x\"}], cards: x, image: {alt: b}}\n- question: {text: a, type: choice}",
        {"b.yaml:7:35: flows[0].nodes[0].say.quickReplies[0]: 'text' is missing",
         "b.yaml:7:62: flows[0].nodes[0].say.quickReplies[1].url: expected a URL that begins with "
         "https://, http://, mailto: or tel:",
         "b.yaml:7:91: flows[0].nodes[0].say.quickReplies[2].url: a button sends its value or "
         "opens its URL; remove one",
         "b.yaml:7:112: flows[0].nodes[0].say.cards: expected a list, not a text",
         "b.yaml:7:122: flows[0].nodes[0].say.image: 'url' is missing",
         "b.yaml:8:31: flows[0].nodes[1].question.type: a question of type choice needs "
         "'quickReplies'"}}},
      "conversed: 1\nproject: {name: P}\n\nflows:\n- name: Main\n  nodes:\n", "  ");
}

TEST(LoaderProblems, AreSaidOnce) {
  expect_problems({{"flows: [{name: F, nodse: []}, {name: F, nodes: []}]",
                    {"b.yaml:3:9: flows[0]: 'nodes' is missing",
                     "b.yaml:3:19: flows[0].nodse: unknown key 'nodse'; did you mean 'nodes'?",
                     "b.yaml:3:38: flows[1].name: 'F' is used twice; rename one"}},
                   {"flows: [5]\nlexicons: [{name: L, entries: [5, {mainKeyphrase: A, x: 1}]}]",
                    {"b.yaml:3:9: flows[0]: expected a mapping, not a number",
                     "b.yaml:4:32: lexicons[0].entries[0]: expected a mapping, not a number",
                     "b.yaml:4:54: lexicons[0].entries[1].x: unknown key 'x'; known are "
                     "mainKeyphrase, keyphrases, slots, data"}}},
                  "conversed: 1\nproject: {name: P}\n");
}

TEST(LoaderProblems, OfEscapesThatWouldBecomeSingleBytes) {
  for (const char* escape : {"\\N", "\\_"}) {
    const auto bundle =
        load_bundle("conversed: 1\nproject: {name: P}\ntokens: [{label: t, script: \"a" +
                        std::string(escape) + "\"}]\n",
                    "b.yaml", one_variable);
    ASSERT_FALSE(bundle) << escape;
    EXPECT_EQ(to_string(bundle.error()),
              "b.yaml:3:29: the escapes \\N and \\_ are not read; write \\u0085 and \\u00a0");
  }
}

TEST(LoaderProblems, AreLimitedAndCounted) {
  std::string text = "conversed: 1\nproject: {name: P}\ntokens:\n";
  for (int i = 0; i < 300; ++i) text += "  - {}\n";
  const auto bundle = load_bundle(text, "b.yaml", one_variable);
  ASSERT_FALSE(bundle);
  EXPECT_EQ(bundle.error().size(), 201U);
  EXPECT_EQ(bundle.error().back().message, "and 100 more problems");
}

TEST(LoaderProblems, NeverHoldASecret) {
  const auto bundle = load_bundle(
      "conversed: 1\nproject: {name: P}\nconnections: [{name: c, type: nope, fields: {token: "
      "\"${SET}\"}}]\n",
      "b.yaml", one_variable);
  ASSERT_FALSE(bundle);
  EXPECT_EQ(to_string(bundle.error()).find("value'"), std::string::npos);
}

}  // namespace
}  // namespace conversed::flows
