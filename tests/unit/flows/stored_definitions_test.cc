// Definitions that earlier versions of the daemon accepted. The store holds such definitions. Their
// Flows run even if an import now refuses them.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "flows/bundle/loader.h"
#include "flows/flow.h"

namespace conversed::flows {
namespace {

using nlohmann::json;

json with_node(json node) {
  return {
      {"name", "Stored"}, {"lexicons", json::array()}, {"nodes", json::array({std::move(node)})}};
}

// The error of the compiler of stored definitions; empty if it accepts this one.
std::string stored(json node) {
  const auto flow = Flow::compile_text(with_node(std::move(node)).dump());
  return flow ? "" : to_string(flow.error());
}

// The error of an import; empty if it accepts this one. JSON is a syntax of bundles, too.
std::string imported(json node) {
  const json bundle = {{"conversed", 1},
                       {"project", {{"name", "P"}}},
                       {"flows", json::array({with_node(std::move(node))})}};
  const auto loaded = load_bundle(bundle.dump(), "b.json", {});
  return loaded ? "" : to_string(loaded.error());
}

TEST(StoredDefinitions, CompileWithWordsThatTheirTypeIgnores) {
  const json node = {
      {"question", {{"text", "q"}, {"type", "number"}, {"yes", {"ja"}}, {"no", {"n"}}}}};
  EXPECT_EQ(stored(node), "");
  const auto refused = imported(node);
  EXPECT_NE(refused.find("'yes' is for questions of type yesNo only"), std::string::npos)
      << refused;
  EXPECT_NE(refused.find("'no' is for questions of type yesNo only"), std::string::npos) << refused;
}

TEST(StoredDefinitions, CompileWithWordsThatFoldToNothing) {
  const json node = {{"question", {{"text", "q"}, {"type", "yesNo"}, {"yes", {"y", "!"}}}}};
  EXPECT_EQ(stored(node), "");
  const auto refused = imported(node);
  EXPECT_NE(refused.find("'!' has no words to compare"), std::string::npos) << refused;
  EXPECT_NE(imported({{"question", {{"text", "q"}, {"escape", {"..."}}}}}).find("'...'"),
            std::string::npos);
}

TEST(StoredDefinitions, CompileFromEveryNodeTypeOfTheFirstVersion) {
  const json nodes = json::parse(R"([
    {"addToContext": {"count": "{{(context.count || 0) + 1}}", "cart.total": 0}},
    {"id": "ask", "goTo": "ask"},
    {"goTo": {"node": "ask"}},
    {"httpRequest": {"connection": "gone", "url": "https://crm.example.com/{{input.data.id}}",
                     "method": "POST", "headers": {"X-A": "b"}, "body": {"a": "{{input.text}}"},
                     "storeIn": "context.order", "timeout": "8s", "retries": 2,
                     "onError": [{"say": "Please try later."}]}},
    {"if": "context.count > 3", "then": [{"say": "Many."}], "else": [{"say": "Few."}]},
    {"if": {"condition": "context.count > 3", "then": [{"say": "Many."}]}},
    {"log": "order {{input.data.orderId}} came in"},
    {"once": [{"say": "Welcome!"}], "else": [{"say": "Welcome back."}]},
    {"question": {"text": "How many?", "type": "number", "storeIn": "context.count",
                  "reprompt": "Sorry, how many?", "maxAttempts": 2,
                  "onNoAnswer": [{"say": "Never mind."}, {"stop": true}], "data": {"a": 1}}},
    {"question": "And?"},
    {"removeFromContext": ["count", "cart.total"]},
    {"resetContext": true},
    {"say": {"text": ["Hello {{profile.name}}", "{{A Token that is gone}}"], "data": {"a": 1},
             "quickReplies": ["Orders", {"text": "Help", "value": "help me"}]}},
    {"sleep": "2s"},
    {"stop": true},
    {"switch": {"on": "input.text", "cases": {"yes": [{"say": "Good."}]}, "default": []}},
    {"updateProfile": {"name": "{{input.text}}"}},
    {"wait": true}])");
  for (const auto& node : nodes) {
    json named = node;
    named["id"] = "ask";  // the target of Nodes that go somewhere
    EXPECT_EQ(stored(named), "") << node.dump();
  }
}

}  // namespace
}  // namespace conversed::flows
