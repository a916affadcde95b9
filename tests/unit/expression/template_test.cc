#include "flows/expression/template.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace conversed::flows::expression {
namespace {

using nlohmann::json;

class TemplateTest : public testing::Test {
 protected:
  json input_ =
      json::parse(R"({"text": "hi", "list": [1, "a", {"b": null}], "none": null, "yes": true})");
  json context_ = json::parse(R"({"count": 4, "id": 9007199254740993})");
  Tokens tokens_{
      {"shop name", "The Shop"}, {"count-1", "token"}, {"Ann's {nice}", "Ann"}, {"x", "X"}};
  Scope scope_{.input = &input_, .context = &context_, .tokens = &tokens_};

  std::string render(std::string_view source, const IsLabel& is_label = {}) {
    const auto compiled = Template::compile(source, {}, is_label);
    return compiled ? compiled->render(scope_) : "error: " + compiled.error().message;
  }
  json value(std::string_view source) { return Template::compile(source)->value(scope_); }
};

TEST_F(TemplateTest, PutsValuesIntoTexts) {
  EXPECT_EQ(render("Say {{input.text}}, {{ context.count + 1 }} times{{'!'}}"), "Say hi, 5 times!");
  EXPECT_EQ(render("{{input.list}}|{{ {a: {b: 1}} }}|{{{a:{b:1}}}}"),
            R"([1,"a",{"b":null}]|{"a":{"b":1}}|{"a":{"b":1}})");
  EXPECT_EQ(render("{{input.yes}} {{context.id}}"), "true 9007199254740993");
  EXPECT_EQ(render("{{'}}'}} {{`${'{{'}`}} }} { {"), "}} {{ }} { {");
}

TEST_F(TemplateTest, BadValuesAreEmptyText) {
  EXPECT_EQ(render("<{{input.none}}{{input.missing}}{{input.a.b.c}}{{nowhere}}{{0/0}}{{1/0}}>"),
            "<>");
}

TEST_F(TemplateTest, AConstantEvaluatesNothing) {
  const auto compiled = Template::compile("no braces } here {");
  ASSERT_TRUE(compiled);
  EXPECT_TRUE(compiled->is_constant());
  EXPECT_EQ(compiled->render({}), "no braces } here {");
  EXPECT_EQ(compiled->value({}), "no braces } here {");
}

TEST_F(TemplateTest, OneExpressionKeepsItsType) {
  EXPECT_EQ(value("{{(context.count || 0) + 1}}"), 5);
  EXPECT_EQ(value("{{ input.list }}"), input_["list"]);
  EXPECT_EQ(value("{{context.id}}"), 9007199254740993);
  EXPECT_EQ(value("{{input.none}}"), nullptr);
  EXPECT_EQ(value("{{input.a.b}}"), nullptr);
  EXPECT_EQ(value("{{context.count}} "), "4 ");
  EXPECT_EQ(value("{{1}}{{2}}"), "12");
}

TEST_F(TemplateTest, TokensAreLookedUpAsTheyAreWritten) {
  EXPECT_EQ(render("At {{shop name}} and {{ shop name }}"), "At The Shop and The Shop");
  EXPECT_EQ(render("{{count-1}}"), "token");
  EXPECT_EQ(render("{{x + x}}"), "XX");
  EXPECT_EQ(render("{{opening hours}}"), "");
  EXPECT_EQ(value("{{shop name}}"), "The Shop");
}

TEST_F(TemplateTest, ALoaderCanNameTheLabels) {
  const IsLabel known = [&](std::string_view label) { return tokens_.contains(label); };
  EXPECT_EQ(render("Hi {{Ann's {nice}}} there", known).substr(0, 3), "err");
  EXPECT_EQ(render("Hi {{ Ann's {nice} }} there", known), "Hi Ann there");
  EXPECT_EQ(render("{{ Ann's {nice} }}").substr(0, 5), "error");
}

TEST_F(TemplateTest, ACompileErrorNamesItsColumn) {
  EXPECT_EQ(render("Hi {{input.text"), "error: column 4: '{{' without '}}'");
  EXPECT_EQ(render("Hi {{input.text +}}"), "error: column 18: unexpected '}'");
  EXPECT_EQ(render("Hi {{}}"), "error: column 6: unexpected '}'");
  EXPECT_EQ(render("{{a = 1}}"),
            "error: column 5: assignment is not supported; '==' or '===' compares");
  EXPECT_EQ(render("\xff"), "error: the text is not UTF-8");
}

TEST_F(TemplateTest, LoneSurrogatesComeOutAsReplacements) {
  EXPECT_EQ(render("{{'😀'[0]}}{{'😀'[1]}}"), "\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST_F(TemplateTest, JsonTemplatesAreFilledInDeep) {
  const json source = json::parse(
      R"({"a": ["{{context.count}}", 7, {"b": "n={{context.count}}"}], "{{k}}": true, "e": [], "f": null})");
  const auto compiled = JsonTemplate::compile(source);
  ASSERT_TRUE(compiled);
  EXPECT_EQ(compiled->value(scope_),
            json::parse(R"({"a": [4, 7, {"b": "n=4"}], "{{k}}": true, "e": [], "f": null})"));
  EXPECT_EQ(JsonTemplate::compile("{{context.count}}")->value(scope_), 4);
  EXPECT_EQ(JsonTemplate::compile(nullptr)->value(scope_), nullptr);
}

TEST_F(TemplateTest, JsonTemplatesNameThePlaceOfAProblem) {
  const auto bad = JsonTemplate::compile(json::parse(R"({"headers": ["ok", "{{1 +}}"]})"));
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().message, "/headers/1: column 6: unexpected '}'");
  json deep = 1;
  for (int i = 0; i < 100; ++i) deep = json::array({deep});
  EXPECT_EQ(JsonTemplate::compile(deep).error().code, model::Errc::too_large);
}

}  // namespace
}  // namespace conversed::flows::expression
