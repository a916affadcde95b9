#include "flows/bundle/loader.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <utility>
#include <vector>

#include "flows/flow.h"
#include "flows/node_types.h"
#include "flows/tools/node_pages.h"
#include "flows/tools/schema.h"

namespace conversed::flows {
namespace {

using nlohmann::json;

std::optional<std::string> environment(std::string_view name) {
  if (name == "CRM_TOKEN") return "s3cret";
  if (name == "HOOK_SECRET") return "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
  return std::nullopt;
}

constexpr auto shop = R"(conversed: 1                                   # format
project: {name: Shop, locales: [en, de]}
members: [{email: ann@example.com, name: Ann, roles: [projectAdmin], allowedLocales: [en]}]
tokens: [{label: shopName, type: custom, script: "The Shop"}]
connections:
  - {name: crm, type: httpBearer, fields: {token: "${CRM_TOKEN}"}}
lexicons:
  - name: Cities
    slots: [city]
    entries: [{mainKeyphrase: Paris, keyphrases: [paree, "city of light"], slots: [city], data: {country: FR}}]
knowledgeStores:
  - name: Manual
    sources: [{name: FAQ, chunks: [{text: "Returns take 14 days.", data: {page: 3}}]}]
flows:
  - name: Orders
    lexicons: [Cities]
    nodes:
      - addToContext: {count: "{{(context.count || 0) + 1}}"}
      - if: input.source == "inject" && input.data.event == "shipped"
        then:
          - say: "Your order {{input.data.orderId}} is on its way."
        else:
          - id: ask
            question: {text: "Which city?", type: text, storeIn: context.city, reprompt: "Sorry, which city?", maxAttempts: 3}
      - httpRequest: {connection: crm, method: GET, url: "https://crm.example.com/orders/{{input.data.orderId}}", storeIn: context.order, timeout: 8s, onError: [{say: "Please try later."}]}
      - switch: {on: input.text, cases: {"yes": [{say: Good.}], "no": [{stop: true}]}, default: [{goTo: ask}]}
endpoints:
  - {name: web, flow: Orders, sessionExpiry: 30m, activeOnly: false, output: {webhook: {url: "http://127.0.0.1:9000/hook", secret: "${HOOK_SECRET}"}}}
proactive: {journey: {after: 20m, text: "Are you still there?", quietHours: {from: "22:00", to: "07:00", timezone: Europe/Berlin}, expiresAfter: 4h, maxPerSession: 1}}
)";

TEST(Loader, TakesAWholeBundle) {
  const auto bundle = load_bundle(shop, "shop.yaml", environment);
  ASSERT_TRUE(bundle) << to_string(bundle.error());
  EXPECT_EQ(bundle->project_name, "Shop");
  EXPECT_EQ(bundle->locales, (std::vector<std::string>{"en", "de"}));
  EXPECT_EQ(bundle->members.at(0).email, "ann@example.com");
  EXPECT_EQ(bundle->members.at(0).roles, (std::vector<std::string>{"projectAdmin"}));
  EXPECT_EQ(bundle->tokens.at(0).script, "The Shop");
  EXPECT_EQ(bundle->connections.at(0).fields, (json{{"token", "s3cret"}}));
  EXPECT_EQ(bundle->connections.at(0).source, (json{{"token", "${CRM_TOKEN}"}}));
  EXPECT_EQ(bundle->lexicons.at(0).entries.at(0).data, (json{{"country", "FR"}}));
  EXPECT_EQ(bundle->knowledge_stores.at(0).sources.at(0).chunks.at(0).data, (json{{"page", 3}}));
  EXPECT_EQ(bundle->flows.at(0).definition["nodes"].size(), 4U);
  EXPECT_TRUE(Flow::compile(bundle->flows.at(0).definition));
  EXPECT_EQ(bundle->endpoints.at(0).session_expiry, std::chrono::minutes(30));
  EXPECT_EQ(bundle->endpoints.at(0).webhook.at(0).secret, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
  EXPECT_EQ(bundle->endpoints.at(0).webhook.at(0).secret_source, "${HOOK_SECRET}");
  EXPECT_EQ(bundle->proactive["journey"]["maxPerSession"], 1);
}

TEST(Loader, TakesTheSameBundleAsJson) {
  const auto yaml = read_source(shop, "shop.yaml", {});
  ASSERT_TRUE(yaml);
  const std::string text = yaml->to_json().dump(2);
  for (const auto* name : {"shop.json", "SHOP.JSON", "upload", "shop.yaml"}) {
    const auto parsed = read_source(text, name, {});
    ASSERT_TRUE(parsed) << name;
    EXPECT_EQ(parsed->to_json(), yaml->to_json());
    const auto bundle = load_bundle(text, name, environment);
    ASSERT_TRUE(bundle) << name;
    EXPECT_EQ(bundle->flows.at(0).definition,
              load_bundle(shop, "shop.yaml", environment)->flows.at(0).definition);
  }
}

TEST(Loader, ReplacesVariablesAndKeepsEscapedOnes) {
  const auto bundle = load_bundle(
      "conversed: 1\nproject: {name: P}\nconnections: [{name: c, type: httpBearer, fields: {token: "
      "t, a: "
      "\"x${CRM_TOKEN}y${HOOK_SECRET}\", b: \"$${CRM_TOKEN}\", c: \"5\", d: \"$5\"}}]\n",
      "a.yaml", environment);
  ASSERT_TRUE(bundle) << to_string(bundle.error());
  EXPECT_EQ(bundle->connections[0].fields,
            (json{{"token", "t"},
                  {"a", "xs3cretywhsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"},
                  {"b", "${CRM_TOKEN}"},
                  {"c", "5"},
                  {"d", "$5"}}));
}

json yaml_value(const std::string& text) {
  const auto read = read_source(text, "a.yaml", {});
  if (!read) return "error: " + to_string(read.error());
  return read->to_json();
}

TEST(YamlSource, ResolvesTheCoreSchemaAndNothingElse) {
  const std::vector<std::pair<std::string, json>> cases{
      {"yes", "yes"},
      {"No", "No"},
      {"on", "on"},
      {"\"123\"", "123"},
      {"'true'", "true"},
      {"true", true},
      {"FALSE", false},
      {"~", nullptr},
      {"null", nullptr},
      {"12", 12},
      {"+12", 12},
      {"-12", -12},
      {"0o17", 15},
      {"0xFf", 255},
      {"017", 17},
      {"1_000", "1_000"},
      {"1.5", 1.5},
      {"-.5", -0.5},
      {"1e3", 1000.0},
      {"1.", 1.0},
      {".", "."},
      {"1e", "1e"},
      {"1.2.3", "1.2.3"},
      {"12:30", "12:30"},
      {"2026-11-21", "2026-11-21"},
      {"18446744073709551615", 18446744073709551615ULL},
      {"18446744073709551616", 18446744073709551616.0},
      {"1e-999", 0.0},
      {"!!str 12", "12"},
      {"!!int 12", 12},
      {"|\n  a\n  b\n", "a\nb\n"},
      {"\"\\u00e4\"", "ä"},
      {"[a, {b: c}]", json::parse(R"(["a",{"b":"c"}])")}};
  for (const auto& [text, expected] : cases) EXPECT_EQ(yaml_value(text), expected) << text;
}

TEST(YamlSource, ExpandsAliasesAndRefusesBombs) {
  EXPECT_EQ(yaml_value("a: &x [1, 2]\nb: *x"), json::parse(R"({"a":[1,2],"b":[1,2]})"));
  std::string bomb = "a0: &a0 [x, x]\n";
  for (int i = 1; i < 30; ++i) {
    const auto n = std::to_string(i);
    const auto before = std::to_string(i - 1);
    bomb += "a" + n + ": &a" + n + " [*a" + before + ", *a" + before + "]\n";
  }
  const auto read = read_source(bomb, "bomb.yaml", {});
  ASSERT_FALSE(read);
  EXPECT_NE(read.error()[0].message.find("too much memory"), std::string::npos);
  const auto nested = read_source("a: &a [*a]", "a.yaml", {});
  ASSERT_FALSE(nested);
}

TEST(Sources, RefuseFilesThatWouldTakeTooMuchMemory) {
  std::string many = "[[]";
  while (many.size() < 600'000) many += ",[]";
  many += "]";
  std::string names = "{a: 1";
  for (int i = 0; i < 80'000; ++i) names += ",b" + std::to_string(i) + ":";
  names += "}";
  for (const auto& [text, name] :
       {std::pair(&many, "a.json"), std::pair(&many, "a.yaml"), std::pair(&names, "a.yaml")}) {
    const auto read = read_source(*text, name, {});
    ASSERT_FALSE(read) << name;
    ASSERT_EQ(read.error().size(), 1U);
    EXPECT_NE(read.error()[0].message.find("too much memory"), std::string::npos)
        << read.error()[0].message;
  }
  // Most values need more bytes than these.
  std::string texts = "[abcdef";
  while (texts.size() < 600'000) texts += ", abcdefghij";
  EXPECT_TRUE(read_source(texts + "]", "a.yaml", {}));
}

TEST(Sources, RefuseDeepNestingOfBothKinds) {
  for (const std::string& text :
       {std::string(100'000, '['), std::string(65, '[') + std::string(65, ']'),
        "{\"a\":" + std::string(100'000, '[')}) {
    for (const auto* name : {"a.json", "a.yaml"}) {
      const auto read = read_source(text, name, {});
      ASSERT_FALSE(read) << name;
      EXPECT_EQ(read.error().size(), 1U);
    }
  }
  const std::string deepest = std::string(64, '[') + std::string(64, ']');
  EXPECT_TRUE(read_source(deepest, "a.json", {}));
  EXPECT_TRUE(read_source(deepest, "a.yaml", {}));
}

TEST(JsonSource, KnowsThePlaceOfEachValue) {
  const auto read = read_json("{\n  \"ä\": [1,\n   \"x\", {\"b\":true}]}", "a.json", {});
  ASSERT_TRUE(read);
  const auto& list = read->members().at(0);
  EXPECT_EQ(list.place, (Place{2, 3}));
  EXPECT_EQ(list.value.place(), (Place{2, 8}));
  EXPECT_EQ(list.value.items()[0].place(), (Place{2, 9}));
  EXPECT_EQ(list.value.items()[1].place(), (Place{3, 4}));
  EXPECT_EQ(list.value.items()[2].members()[0].value.place(), (Place{3, 14}));
}

TEST(JsonSource, HasJsonsSemantics) {
  const auto pair = read_source(R"({"a":"\ud83d\ude00"})", "a.json", {});
  ASSERT_TRUE(pair);
  EXPECT_EQ(pair->to_json()["a"], "😀");
  for (const auto* bad : {R"({"a":"\ud83d"})", R"({"a":1,"a":2})", "{\"a\":1e400}", "{\"a\":01}",
                          "{a: 1}", "{} {}", "", "{\"a\":1,}"}) {
    EXPECT_FALSE(read_source(bad, "a.json", {})) << bad;
  }
}

TEST(Sources, RefuseBadBytesWithTheirPlace) {
  const auto bad = read_source("a: 1\nb: \xC3(", "a.yaml", {});
  ASSERT_FALSE(bad);
  EXPECT_EQ(to_string(bad.error()), "a.yaml:2:4: the file is no valid UTF-8 from here on");
  const auto control = read_source(std::string("a: b\x04"), "a.yaml", {});
  ASSERT_FALSE(control);
  EXPECT_EQ(control.error()[0].place, (Place{1, 5}));
  EXPECT_FALSE(
      read_source("\xFF\xFE"
                  "a",
                  "a.yaml", {}));
  EXPECT_TRUE(
      read_source("\xEF\xBB\xBF"
                  "a: 1",
                  "a.yaml", {}));
  LoadLimits small;
  small.max_bytes = 3;
  EXPECT_FALSE(read_source("a: 1", "a.yaml", small));
}

TEST(NodeTypes, AreSortedByNameAndFound) {
  const auto types = node_types();
  for (std::size_t i = 1; i < types.size(); ++i) EXPECT_LT(types[i - 1]->name, types[i]->name);
  for (const auto* type : types) EXPECT_EQ(find_node_type(type->name), type);
  EXPECT_EQ(find_node_type("nothing"), nullptr);
}

// The section of each Node type in docs/flows/nodes.md, by heading.
std::map<std::string, std::string> reference_of_node_types() {
  std::ifstream file(CONVERSED_SOURCE_DIR "/docs/flows/nodes.md");
  std::map<std::string, std::string> sections;
  std::string* section = nullptr;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("## `") && line.ends_with('`')) {
      section = &sections[line.substr(4, line.size() - 5)];
    } else if (section != nullptr) {
      *section += line + '\n';
    }
  }
  return sections;
}

TEST(Schema, KnowsEveryNodeTypeWithItsSentences) {
  const auto node = tools::bundle_schema()["$defs"]["node"]["properties"];
  EXPECT_EQ(node.size(), node_types().size() + 6) << "with id, then, else, item, index and do";
  for (const auto* type : node_types()) {
    const auto& schema = node.at(std::string(type->name));
    EXPECT_FALSE(schema.value("description", "").empty()) << type->name;
    for (const auto& field : type->fields) {
      EXPECT_NE(schema.dump().find('"' + std::string(field.name) + '"'), std::string::npos);
      const auto sentence = tools::description_of(type->name, field.name);
      EXPECT_FALSE(sentence.empty()) << type->name << "." << field.name;
      EXPECT_EQ(sentence.find("]("), std::string::npos) << sentence;
    }
  }
  const auto beside = node["else"]["description"].get<std::string>();
  EXPECT_TRUE(beside.starts_with("`if`: Run if not.")) << beside;
  EXPECT_NE(beside.find("\n`once`: Run at every later pass."), beside.npos) << beside;
  EXPECT_EQ(tools::description_of("say", "order"),
            "How one of a list is chosen. `inTurn` begins again after the last one, `oneByOne` "
            "repeats the last one. (`random`, `inTurn` or `oneByOne`; default `random`)");
}

TEST(NodeTypes, HaveExamplesThatLoad) {
  for (const auto& [name, section] : reference_of_node_types()) {
    const auto begin = section.find("```yaml\n");
    ASSERT_NE(begin, std::string::npos) << name << " has no example";
    const auto end = section.find("```\n", begin + 8);
    const std::string example = section.substr(begin + 8, end - begin - 8);
    EXPECT_NE(example.find(name), std::string::npos) << name << " has the example of another type";
    std::string text =
        "conversed: 1\nproject: {name: P}\nconnections:\n"
        "- {name: crm, type: httpBearer, fields: {token: t}}\n"
        "- {name: model, type: llm, fields: {baseUrl: \"https://llm.example.com/v1\"}}\n"
        "tokens: [{label: shopName, script: The Shop}]\n"
        "knowledgeStores: [{name: Manual, sources: [{name: FAQ, chunks: []}]}]\n"
        "lexicons: [{name: Cities, slots: [city], entries: []}]\n"
        "flows:\n- name: Orders\n  nodes: []\n- name: F\n  lexicons: [Cities]\n  nodes:\n";
    std::istringstream lines(example);
    for (std::string line; std::getline(lines, line);) text += "  " + line + "\n";
    if (example.find("id: ask") == std::string::npos) text += "  - {id: ask, wait: true}\n";
    const auto bundle = load_bundle(text, "example.yaml", {});
    EXPECT_TRUE(bundle) << name << "\n" << to_string(bundle.error());
  }
}

}  // namespace
}  // namespace conversed::flows
