// A written bundle reads back as the same bundle, whatever its texts are.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>
#include <sstream>

#include "flows/bundle/loader.h"
#include "store/yaml/writer.h"

namespace conversed::flows {
namespace {

using nlohmann::json;

constexpr const char* signing_secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
constexpr LoadLimits no_variables{.variables = Variables::may_be_missing};

// All that an import takes from a Bundle, as one value to compare.
json value_of(const model::Bundle& bundle) {
  json all{{"project", bundle.project_name},
           {"locales", bundle.locales},
           {"proactive", bundle.proactive}};
  for (const auto& each : bundle.members) {
    all["members"].push_back({each.email, each.name, each.roles, each.allowed_locales});
  }
  for (const auto& each : bundle.tokens) {
    all["tokens"].push_back({each.label, each.type, each.script});
  }
  // The writer replaces a secret's text by a name.
  for (const auto& each : bundle.connections) {
    json fields = json::object();
    for (const auto& [name, source] : each.source.items()) {
      fields[name] = model::is_secret_field(each.type, name) ? json() : source;
    }
    all["connections"].push_back({each.name, each.type, fields});
  }
  for (const auto& each : bundle.lexicons) {
    json entries = json::array();
    for (const auto& entry : each.entries) {
      entries.push_back({entry.main_keyphrase, entry.keyphrases, entry.slots, entry.data});
    }
    all["lexicons"].push_back({each.name, each.slots, entries});
  }
  for (const auto& each : bundle.knowledge_stores) {
    for (const auto& source : each.sources) {
      for (const auto& chunk : source.chunks) {
        all["chunks"].push_back({each.name, source.name, chunk.text, chunk.data});
      }
    }
  }
  for (const auto& each : bundle.flows) all["flows"].push_back({each.name, each.definition});
  for (const auto& each : bundle.endpoints) {
    json webhooks = json::array();
    for (const auto& webhook : each.webhook) {
      webhooks.push_back({webhook.url, webhook.url_source, webhook.has_secret});
    }
    all["endpoints"].push_back({each.name, each.flow, each.session_expiry.count(), each.active_only,
                                each.error_text, each.error_flow, each.url_token, webhooks});
  }
  return all;
}

void expect_same(const std::string& text, const std::string& name) {
  const auto bundle = load_bundle(text, name, {}, no_variables);
  ASSERT_TRUE(bundle) << to_string(bundle.error()) << "\n" << text;
  const auto written = write_bundle(*bundle);
  const auto again = load_bundle(written.text, "written.yaml", {}, no_variables);
  ASSERT_TRUE(again) << to_string(again.error()) << "\n" << written.text;
  EXPECT_EQ(value_of(*again), value_of(*bundle)) << written.text;
  EXPECT_EQ(write_bundle(*again).text, written.text) << "a second write gives another text";
}

TEST(BundleWriter, GivesBackEveryBundleOfTheCorpus) {
  const std::filesystem::path root = CONVERSED_SOURCE_DIR;
  int bundles = 0;
  for (const char* folder : {"tests/fuzz/corpus/bundle", "tests/flows", "config/demo"}) {
    for (const auto& file : std::filesystem::directory_iterator(root / folder)) {
      const std::string name = file.path().filename().string();
      const bool is_bundle =
          name.starts_with("good") || name.ends_with(".flow.yaml") || name == "shop.yaml";
      if (!is_bundle) continue;
      std::ifstream stream(file.path(), std::ios::binary);
      std::stringstream text;
      text << stream.rdbuf();
      SCOPED_TRACE(name);
      expect_same(text.str(), name);
      ++bundles;
    }
  }
  EXPECT_GE(bundles, 12);
}

// The writer replaces a secret's own text by a name, so that these values can't be equal.
TEST(BundleWriter, WritesNoSecretAndNamesWhatAnImportNeeds) {
  const auto bundle = load_bundle(
      "conversed: 1\nproject: {name: P}\n"
      "connections:\n"
      "  - {name: crm, type: httpBasic, fields: {username: \"${USER_OF_CRM}\", password: s3cret}}\n"
      "  - {name: CRM, type: httpBearer, fields: {token: \"a $${ s3cret\", port: \"8080\"}}\n"
      "  - {name: \"2 Straße\", type: httpHeader, fields: {name: X-Key, value: \"k-${KEY}\"}}\n"
      "  - name: model\n"
      "    type: llm\n"
      "    fields: {baseUrl: \"https://llm.example.com/v1\", model: \"$${x}\", apiKey: s3cret}\n"
      "flows: [{name: F, nodes: []}]\n"
      "endpoints:\n"
      "  - {name: web, flow: F, output: {webhook: {url: \"${CRM_PASSWORD}\", secret: " +
          std::string(signing_secret) +
          "}}}\n"
          "  - {name: app, flow: F, output: {webhook: {url: \"https://x.example/$${A}/\"}}}\n",
      "b.yaml", {}, no_variables);
  ASSERT_TRUE(bundle) << to_string(bundle.error());
  const auto written = write_bundle(*bundle);
  EXPECT_EQ(written.text.find("s3cret"), std::string::npos) << written.text;
  EXPECT_EQ(written.text.find("whsec_"), std::string::npos) << written.text;
  EXPECT_EQ(written.variables,
            (std::vector<std::string>{"CRM_PASSWORD", "CRM_PASSWORD_2", "CRM_PORT", "CRM_TOKEN",
                                      "KEY", "MODEL_APIKEY", "USER_OF_CRM", "WEB_WEBHOOK_SECRET"}));
  const auto again = load_bundle(written.text, "again.yaml", {}, no_variables);
  ASSERT_TRUE(again) << to_string(again.error()) << "\n" << written.text;
  EXPECT_EQ(again->connections.at(0).source.at("password"), "${CRM_PASSWORD_2}");
  EXPECT_EQ(again->connections.at(2).fields.at("name"), "X-Key")
      << "a field without a secret stays";
  EXPECT_EQ(again->connections.at(3).fields.at("baseUrl"), "https://llm.example.com/v1");
  EXPECT_EQ(again->connections.at(3).fields.at("model"), "${x}");
  EXPECT_EQ(again->connections.at(2).source.at("value"), "k-${KEY}");
  EXPECT_EQ(again->endpoints.at(1).webhook.at(0).url, "https://x.example/${A}/");
}

TEST(BundleWriter, WritesNodesAsPeopleDo) {
  const auto bundle = load_bundle(
      R"({"conversed": 1, "project": {"name": "P"}, "flows": [{"nodes": [
          {"question": {"type": "text", "text": "Which?\nTell me."}, "id": "ask"},
          {"then": [{"say": "yes"}], "if": "context.a == 1", "else": [{"stop": true}]}],
        "name": "F"}]})",
      "b.json", {}, no_variables);
  ASSERT_TRUE(bundle) << to_string(bundle.error());
  EXPECT_EQ(write_bundle(*bundle).text,
            "conversed: 1\n"
            "project:\n"
            "  name: P\n"
            "  locales: [en]\n"
            "flows:\n"
            "  - name: F\n"
            "    nodes:\n"
            "      - id: ask\n"
            "        question:\n"
            "          text: |-\n"
            "            Which?\n"
            "            Tell me.\n"
            "          type: text\n"
            "      - if: \"context.a == 1\"\n"
            "        then:\n"
            "          - say: \"yes\"\n"
            "        else:\n"
            "          - stop: true\n");
}

// --- Generated bundles -------------------------------------------------------------------------

class Generator {
 public:
  explicit Generator(std::uint64_t seed) : random_(seed) {}

  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(random_() % bound); }

  // Texts that YAML could take for something else than a text.
  std::string text() {
    static const std::vector<std::string> pieces{"a",
                                                 "word",
                                                 " ",
                                                 "  ",
                                                 "\n",
                                                 "\n\n",
                                                 "\t",
                                                 "\r",
                                                 ":",
                                                 ": ",
                                                 " #",
                                                 "- ",
                                                 "?",
                                                 "yes",
                                                 "no",
                                                 "null",
                                                 "~",
                                                 "true",
                                                 "1",
                                                 "0x1F",
                                                 "1e3",
                                                 ".5",
                                                 "'",
                                                 "\"",
                                                 "\\",
                                                 "{",
                                                 "}",
                                                 "[",
                                                 "]",
                                                 ",",
                                                 "&a",
                                                 "*a",
                                                 "!t",
                                                 "|",
                                                 ">",
                                                 "%",
                                                 "@",
                                                 "`",
                                                 "---",
                                                 "...",
                                                 "ß",
                                                 "😀",
                                                 "\x7f",
                                                 "\xC2\x85",
                                                 "\x01",
                                                 "{{",
                                                 "}}",
                                                 "$${",
                                                 "<<",
                                                 "=",
                                                 "\xE2\x80\xA8",
                                                 "\xEF\xBB\xBF",
                                                 "\xC2\x80",
                                                 "é",
                                                 "\xC2\xA0",
                                                 "No",
                                                 "OFF",
                                                 "y",
                                                 std::string(1, '\0')};
    std::string text;
    for (std::size_t count = below(7); count > 0; --count) text += pieces[below(pieces.size())];
    return text;
  }

  // A text for a Node. Braces would be expressions.
  std::string plain_text() {
    std::string plain = "t" + text();
    std::replace(plain.begin(), plain.end(), '{', '(');
    return plain;
  }

  std::string name() {
    static const std::vector<std::string> words{"crm", "A b",  "yes", "1",     "x: y", "- z",
                                                "ß",   "null", "#1",  "\"q\"", "a.b",  "[c]"};
    return words[below(words.size())] + std::to_string(++names_);
  }

  json value(int depth) {
    switch (below(depth > 0 ? 9 : 6)) {
      case 0:
        return nullptr;
      case 1:
        return below(2) == 0;
      case 2:
        return random_();
      case 3:
        return -static_cast<std::int64_t>(below(1'000'000));
      case 4:
        return static_cast<double>(below(100'000)) * (below(2) == 0 ? 1e-9 : 1e18) / 7;
      case 5:
        return text();
      case 6:
      case 7: {
        json object = json::object();
        for (std::size_t count = below(4); count > 0; --count) {
          object[below(20) == 0 ? std::string(1500, 'k') : text()] = value(depth - 1);
        }
        return object;
      }
      default: {
        json list = json::array();
        for (std::size_t count = below(4); count > 0; --count) list.push_back(value(depth - 1));
        return list;
      }
    }
  }

  // The value with its texts as templates without expressions.
  static json plain(json value) {
    if (value.is_string()) {
      auto& text = value.get_ref<std::string&>();
      std::replace(text.begin(), text.end(), '{', '(');
    } else if (value.is_structured()) {
      for (auto& part : value) part = plain(part);
    }
    return value;
  }

  json nodes(int depth) {
    json list = json::array();
    for (std::size_t count = below(4); count > 0; --count) list.push_back(node(depth));
    return list;
  }

  json node(int depth) {
    switch (below(depth > 0 ? 6 : 3)) {
      case 0:
        return {{"say", {{"text", plain_text()}, {"data", {{"d", plain(value(2))}}}}}};
      case 1:
        return {{"id", "n" + std::to_string(++names_)}, {"say", plain_text()}};
      case 2:
        return {{"stop", true}};
      case 3:
        return {{"if", "context.a"}, {"then", nodes(depth - 1)}, {"else", nodes(depth - 1)}};
      case 4:
        return {{"switch",
                 {{"on", "input.text"},
                  {"cases", {{"c" + text(), nodes(depth - 1)}}},
                  {"default", nodes(depth - 1)}}}};
      default:
        return {{"once", nodes(depth - 1)}};
    }
  }

  json bundle() {
    json all{{"conversed", 1}, {"project", {{"name", name()}, {"locales", {name(), name()}}}}};
    const json lexicon_slot = name();
    all["tokens"] = {{{"label", name()}, {"type", "custom"}, {"script", text()}}};
    all["connections"] = {{{"name", name()},
                           {"type", "llm"},
                           {"fields",
                            {{"baseUrl", "https://llm.example.com/" + std::to_string(below(9))},
                             {"apiKey", "${KEY}"},
                             {"model", text()},
                             {name(), text()}}}}};
    all["lexicons"] = {{{"name", name()},
                        {"slots", {lexicon_slot}},
                        {"entries",
                         {{{"mainKeyphrase", name()}, {"keyphrases", {name()}}, {"data", value(3)}},
                          {{"mainKeyphrase", name()}, {"slots", {lexicon_slot}}}}}}};
    all["knowledgeStores"] = {
        {{"name", name()},
         {"sources",
          {{{"name", name()}, {"chunks", {{{"text", "t" + text()}, {"data", value(3)}}}}}}}}};
    const json flow = name();
    const json other = name();
    all["flows"] = {{{"name", flow}, {"nodes", nodes(3)}}, {{"name", other}, {"nodes", nodes(2)}}};
    all["endpoints"] = {{{"name", name()},
                         {"flow", flow},
                         {"sessionExpiry", std::to_string(1000 + below(100'000'000)) + "ms"},
                         {"activeOnly", below(2) == 0},
                         {"errorText", text()},
                         {"onError", other},
                         {"urlToken", std::string(64, static_cast<char>('a' + below(6)))}}};
    return all;
  }

 private:
  std::mt19937_64 random_;
  int names_ = 0;
};

std::uint64_t chosen_seed() {
  const char* chosen = std::getenv("CONVERSED_TEST_SEED");
  const std::uint64_t seed = chosen != nullptr ? std::stoull(chosen) : std::random_device{}();
  std::cout << "seed " << seed << " (CONVERSED_TEST_SEED sets it)\n";
  return seed;
}

TEST(BundleWriter, GivesBackGeneratedBundles) {
  Generator generate(chosen_seed());
  const int rounds = std::getenv("CONVERSED_NIGHTLY") != nullptr ? 100'000 : 200;
  for (int round = 0; round < rounds; ++round) {
    const std::string text = generate.bundle().dump(-1, ' ', true);
    ASSERT_NO_FATAL_FAILURE(expect_same(text, "generated.json"));
    ASSERT_FALSE(HasFailure());
  }
}

TEST(YamlText, IsReadBackAsItWas) {
  Generator generate(chosen_seed());
  for (int round = 0; round < 3000; ++round) {
    const json value{{"v", generate.value(4)}};
    const std::string text = yaml::write(nlohmann::ordered_json(value));
    const auto read = read_source(text, "v.yaml", {});
    ASSERT_TRUE(read) << to_string(read.error()) << "\n" << text;
    ASSERT_EQ(read->to_json(), value) << text;
  }
}

}  // namespace
}  // namespace conversed::flows
