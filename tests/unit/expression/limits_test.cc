// Every evaluation ends soon, with a value or an error, for any source and any input.
#include <chrono>
#include <ctime>

#include "flows/expression/template.h"
#include "tests/support/colliding_keys.h"
#include "tests/unit/expression/evaluate.h"

namespace conversed::flows::expression {
namespace {

using model::Errc;
using nlohmann::json;

std::string repeated(std::string_view piece, std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += piece;
  return out;
}

// High enough that the nesting limit stops a source before the length limit does.
constexpr Limits roomy{.max_source_bytes = 10'000'000};

TEST(Limits, DeepNestingIsRefusedWithoutDeepRecursion) {
  for (const char* piece : {"(", "[", "!", "-", "~", "typeof ", "- ", "{a:", "`${", "f(", "a[",
                            "1?", "1**", "''+(", "[1].map(x=>", "x?.[", "...", "[...", "+"}) {
    EXPECT_EQ(Expression::compile(repeated(piece, 100'000), roomy).has_value(), false) << piece;
    EXPECT_EQ(Expression::compile(repeated(piece, 100'000) + "1", roomy).has_value(), false)
        << piece;
  }
  EXPECT_EQ(error_of(repeated("(", 100'000), {}, roomy), Errc::too_large);
  EXPECT_EQ(error_of(repeated("!", 100'000), {}, roomy), Errc::too_large);
  EXPECT_EQ(result_of(repeated("(", 60) + "1" + repeated(")", 60)), "1");
}

TEST(Limits, LongChainsAreRefusedBeforeTheyCostStack) {
  EXPECT_EQ(error_of("1" + repeated("+1", 100'000), {}, roomy), Errc::too_large);
  EXPECT_EQ(error_of("context" + repeated(".a", 100'000), {}, roomy), Errc::too_large);
  EXPECT_EQ(error_of("context" + repeated("?.[0]", 100'000), {}, roomy), Errc::too_large);
  EXPECT_EQ(error_of("''" + repeated(".trim()", 100'000), {}, roomy), Errc::too_large);
  EXPECT_EQ(error_of(repeated("1?1:", 100'000) + "1", {}, roomy), Errc::too_large);
  EXPECT_EQ(result_of("1" + repeated("+1", 400)), "401");
}

TEST(Limits, ASourceHasALimit) {
  EXPECT_EQ(error_of("'" + std::string(20'000, 'a') + "'"), Errc::too_large);
  EXPECT_FALSE(Template::compile("{{'" + std::string(20'000, 'a') + "'}}"));
}

TEST(Limits, MemoryIsBounded) {
  for (const char* source :
       {"'x'.repeat(1e9)", "'x'.repeat(2 ** 53)", "'x'.padStart(1e9)", "'x'.padEnd(1e300, 'ab')",
        "'x'.repeat(1e5).split('').map(x => 'y'.repeat(1e5))",
        "['x'.repeat(1e4)].map(x => x + x + x).map(x => x.repeat(9)).map(x => x + x + x + x)",
        "[1,2,3,4,5,6,7,8].reduce((s, x) => s.replaceAll('', '$&$&$`$`xxxxxxxxxxxxxxxx'), "
        "'aaaaaaaaaaaaaaaa')",
        "'abcdefgh'.split('').reduce((s, x) => s + s + s + s + s + s, 'xxxxxxxxxxxx')",
        "'abcdefghijklmnopqrstuvwxyz'.split('').reduce((a, x) => [...a, ...a, ...a], [1])",
        "'abcdefghijklmnopqrstuvwxyz'.split('').reduce((a, x) => a.concat(a), [1])",
        "'abcdefghijklmnopqrstuvwxyz'.split('').reduce((a, x) => [a, a], [1])",
        "'abcdefghijklmnopqrstuvwxyz'.split('').reduce((a, x) => ({l: a, r: a}), 'xxxxxxxx')",
        "JSON.stringify('abcdefghijklmnopqrstuvwxyz'.split('').reduce((a, x) => [a, a], [1]))",
        "String('abcdefghijklmnopqrstuvwxyz'.split('').reduce((a, x) => [a, a], [1]))",
        "'abcdefghijklmnopqrstuvwxyz'.split('').reduce((a, x) => [a, a], [1]).flat(Infinity)",
        "JSON.stringify([[[[[[[[[[1]]]]]]]]]], null, '          ').repeat(1e4)"}) {
    EXPECT_EQ(error_of(source), Errc::too_large) << source;
  }
}

TEST(Limits, StepsAreBounded) {
  const std::string list = "[" + repeated("1,", 60) + "]";
  EXPECT_EQ(
      error_of(list + ".map(a => " + list + ".map(b => " + list + ".map(c => a + b + c).length))"),
      Errc::too_large);
  json context{{"list", json::array()}, {"text", std::string(1'000'000, 'a')}};
  for (int i = 0; i < 1000; ++i) context["list"].push_back(i);
  const Scope scope{.context = &context};
  for (const char* source :
       {"context.list.map(a => context.list.indexOf(-1))",
        "context.list.map(a => context.text.length)",
        "context.list.map(a => context.text == context.text + '')",
        "context.list.map(a => context.list.toSorted())",
        "context.list.map(a => Number(context.text))", "context.list.map(a => ({...context.list}))",
        "context.list.map(a => context.list.join('').length)"}) {
    EXPECT_EQ(error_of(source, scope), Errc::too_large) << source;
  }
}

TEST(Limits, SearchesAreLinearInTheirTexts) {
  json context{{"text", std::string(500'000, 'a')}, {"part", std::string(250'000, 'a') + "b"}};
  const Scope scope{.context = &context};
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(result_of("context.text.indexOf(context.part)", scope), "-1");
  EXPECT_EQ(result_of("context.text.includes(context.part)", scope), "false");
  EXPECT_EQ(result_of("context.text.lastIndexOf(context.part)", scope), "-1");
  EXPECT_EQ(result_of("context.text.split(context.part).length", scope), "1");
  EXPECT_EQ(error_of("context.text.lastIndexOf('aa')", scope), Errc::too_large);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

double cpu_seconds_of_keys(const std::vector<std::string>& keys) {
  json context{{"keys", keys}};
  const Scope scope{.context = &context};
  const std::clock_t begin = std::clock();
  EXPECT_EQ(result_of("Object.keys(Object.fromEntries(context.keys.map(k => [k, 1]))).length",
                      scope, {.max_steps = 10'000'000, .max_bytes = 100'000'000}),
            std::to_string(keys.size()));
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

TEST(Limits, KeysChosenToCollideCostNoMoreThanOthers) {
  constexpr std::size_t count = 20'000;
  std::vector<std::string> plain;
  for (std::size_t i = 0; i < count; ++i) plain.push_back("key " + std::to_string(i));
  const double usual = cpu_seconds_of_keys(plain);
  EXPECT_LT(cpu_seconds_of_keys(colliding_keys(count)), 5 * usual + 0.2);
}

// Comparing or reading a long text costs steps for its length.
TEST(Limits, LongTextsCostTheirLengthInEveryUse) {
  const std::string text(100'000, '7');
  json context{{"text", text}, {"list", json::array()}, {"map", {{text, 1}}}};
  for (int i = 0; i < 1000; ++i) context["list"].push_back(i);
  for (int i = 0; i < 100; ++i) context["same"].push_back(text.substr(1) + "x");
  const Scope scope{.context = &context};
  for (const char* source :
       {"context.list.map(a => context.same.includes(context.text))",
        "context.list.map(a => context.same.indexOf(context.text))",
        "context.list.map(a => parseFloat(context.text))",
        "context.list.map(a => parseInt(context.text))",
        "context.list.map(a => Date.parse(context.text))",
        "context.list.map(a => ({[context.text]: a}))",
        "context.list.map(a => context.list.map(b => context.map[context.text]))"}) {
    EXPECT_EQ(error_of(source, scope), Errc::too_large) << source;
  }
}

TEST(Limits, ALongTextOfDigitsIsNoIndexAndCostsNothing) {
  json context{{"digits", std::string(200'000, '7')}, {"list", std::vector<int>(1000)}};
  const Scope scope{.context = &context};
  EXPECT_EQ(result_of("context.list.map(a => context.list[context.digits])"
                      ".filter(a => a === undefined).length",
                      scope),
            "1000");
}

TEST(Limits, EachBindingOfAPatternIsAStep) {
  json context{{"rows", json::array()}, {"text", std::string(2'000, 'x')}};
  for (int i = 0; i < 1000; ++i) context["rows"].push_back({1, 2});
  const Scope scope{.context = &context};
  const std::string row = "context.rows.map(([a" + repeated(",b", 5'000) + "]) => a).length";
  EXPECT_NE(result_of(row, scope).find("too many steps"), std::string::npos);
  const std::string object = "context.rows.map(({a" + repeated(",b", 5'000) + "}) => a).length";
  EXPECT_EQ(error_of(object, scope), Errc::too_large);
}

TEST(Limits, APatternSpreadsATextOnce) {
  json context{{"text", std::string(2'000, 'x')}};
  EXPECT_EQ(result_of("[context.text].map(([a" + repeated(",b", 1'000) + "]) => a + b)",
                      {.context = &context}),
            R"(["xx"])");
}

TEST(Limits, ValuesThatNestDeepAreErrorsWhereverTheyAreWalked) {
  const std::string deep = "'x'.repeat(2000).split('').reduce((a, x) => [a], 1)";
  EXPECT_EQ(error_of(deep), Errc::too_large);
  EXPECT_EQ(error_of("String(" + deep + ")"), Errc::too_large);
  EXPECT_EQ(error_of("JSON.stringify(" + deep + ")"), Errc::too_large);
  EXPECT_EQ(error_of(deep + ".flat(Infinity)"), Errc::too_large);
  EXPECT_EQ(error_of(deep + ".join()"), Errc::too_large);
  EXPECT_EQ(error_of(deep + " == 1"), Errc::too_large);
  EXPECT_EQ(result_of(deep + ".length"), "1");
}

TEST(Limits, JsonParseStopsAtItsDepth) {
  EXPECT_EQ(result_of("JSON.parse('['.repeat(64) + ']'.repeat(64)).length"), "1");
  EXPECT_EQ(error_of("JSON.parse('['.repeat(65) + ']'.repeat(65))"), Errc::too_large);
  EXPECT_EQ(error_of("JSON.parse('['.repeat(100000))"), Errc::too_large);
  EXPECT_EQ(error_of("JSON.parse('{\"a\":'.repeat(50000))"), Errc::too_large);
}

TEST(Limits, FunctionsAreNoValuesSoNothingCallsItself) {
  EXPECT_EQ(error_of("[1].map(f => f(f))"), Errc::invalid_argument);
  EXPECT_EQ(error_of("[1].reduce((f, x) => f, x => x)"), Errc::invalid_argument);
  EXPECT_EQ(error_of("[1].concat(x => x)"), Errc::invalid_argument);
  EXPECT_EQ(error_of("[x => x]"), Errc::invalid_argument);
  EXPECT_EQ(error_of("(x => x)(1)"), Errc::invalid_argument);
}

TEST(Limits, AWholeTextSharesOneBudget) {
  json context{{"text", std::string(300'000, 'a')}};
  const Scope scope{.context = &context};
  const auto compiled = Template::compile(repeated("{{context.text}}", 1000));
  ASSERT_TRUE(compiled);
  EXPECT_EQ(compiled->render(scope).size(), 900'000u);
  const auto tree = JsonTemplate::compile(json(std::vector<std::string>(1000, "{{context}}")));
  ASSERT_TRUE(tree);
  EXPECT_LT(tree->value(scope).dump().size(), 1'000'000u);
}

TEST(Limits, TheLimitsAreTheCallers) {
  EXPECT_EQ(error_of("1 + 1", {}, {.max_steps = 2}), Errc::too_large);
  EXPECT_EQ(result_of("1 + 1", {}, {.max_steps = 4}), "2");
  EXPECT_EQ(error_of("'abc' + 'def'", {}, {.max_bytes = 5}), Errc::too_large);
  EXPECT_EQ(error_of("((1))", {}, {.max_depth = 2}), Errc::too_large);
}

}  // namespace
}  // namespace conversed::flows::expression
