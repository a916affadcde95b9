// The Node `code`. sandbox_test.cc runs scripts.
#include "tests/unit/flows/conversation.h"

namespace conversed::flows {
namespace {

using nlohmann::json;

constexpr const char* total =
    "- addToContext: {cart: [2, 3], other: 1}\n"
    "- code:\n"
    "    script: return context.cart.reduce((a, b) => a + b, 0)\n"
    "    storeIn: context.total\n"
    "    timeout: 200ms\n"
    "    onError: [{say: \"{{input.error.code}}: {{input.error.message}}\"}]\n"
    "- say: \"total {{context.total}}\"";

TEST(CodeNode, EndsTheTurnWithItsScriptAndTheValuesThatItNames) {
  Conversation talk(total);
  const auto asked = talk.say("hi");
  ASSERT_TRUE(asked && asked->call && asked->call->code);
  EXPECT_FALSE(asked->call->http || asked->call->search || asked->call->due_at);
  const auto& code = *asked->call->code;
  EXPECT_EQ(code.script, "return context.cart.reduce((a, b) => a + b, 0)");
  EXPECT_EQ(code.values, (json{{"context", {{"cart", {2, 3}}, {"other", 1}}}}));
  EXPECT_EQ(code.timeout, std::chrono::milliseconds(200));
  EXPECT_EQ(texts(talk.answer_call(5)), (Texts{"total 5"}));
  EXPECT_EQ(talk.session.context["total"], 5);
}

TEST(CodeNode, TakesRootsAsWordsOnly) {
  Conversation talk(
      "- code: {script: \"return my_input + contexts + $profile\", storeIn: context.x}");
  const auto asked = talk.say("hi");
  ASSERT_TRUE(asked && asked->call && asked->call->code);
  EXPECT_EQ(asked->call->code->values, json::object());
  EXPECT_EQ(asked->call->code->timeout, std::chrono::seconds(1)) << "the default";
  Conversation all(
      "- code: {script: \"return [input.text,profile.a,values]\", storeIn: context.x,"
      " values: {n: \"{{1 + 1}}\"}}");
  const auto given = all.say("hi");
  ASSERT_TRUE(given && given->call && given->call->code);
  EXPECT_EQ(given->call->code->values["input"]["text"], "hi");
  EXPECT_TRUE(given->call->code->values["input"].contains("userId")) << "all members";
  EXPECT_EQ(given->call->code->values["profile"], json::object());
  EXPECT_EQ(given->call->code->values["values"], (json{{"n", 2}}));
}

TEST(CodeNode, TakesItsBranchOnErrorsOrFails) {
  Conversation talk(total);
  (void)talk.say("hi");
  EXPECT_EQ(texts(talk.fail_call("timeout", "too slow", 0)),
            (Texts{"timeout: too slow", "total "}));
  Conversation strict("- code: {script: return 1, storeIn: context.x}");
  (void)strict.say("hi");
  EXPECT_EQ(strict.fail_call("code_off", "off", 0).error().code, model::Errc::bad_upstream);
}

TEST(CodeNode, SendsNoMoreThanACallMayHave) {
  Conversation talk("- addToContext: {long: " + std::string(200, 'x') +
                    "}\n"
                    "- code: {script: return context, storeIn: context.x}");
  talk.limits.call_bytes = 100;
  const auto refused = talk.say("hi");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, model::Errc::too_large);
}

TEST(CodeNode, IsRefusedWithoutAReturnOrWithTooLongAScript) {
  const auto refused = [](const std::string& script) {
    const auto bundle = load_bundle(
        "conversed: 1\nproject: {name: T}\nflows: [{name: A, nodes: [{code: {script: \"" + script +
            "\", storeIn: context.x}}]}]\n",
        "test.yaml", {});
    return bundle ? std::string() : to_string(bundle.error());
  };
  EXPECT_NE(refused("1 + 1").find("has no `return`"), std::string::npos);
  EXPECT_NE(refused("return " + std::string(17'000, '1')).find("at most 16384 bytes"),
            std::string::npos);
}

}  // namespace
}  // namespace conversed::flows
