// The properties that Flows rely on: scope, errors, exactness, threads.
#include <thread>
#include <vector>

#include "tests/unit/expression/evaluate.h"

namespace conversed::flows::expression {
namespace {

using nlohmann::json;

class ExpressionTest : public testing::Test {
 protected:
  json input_ = json::parse(R"({"text": "hi", "data": {"orderId": 12}, "source": "inject"})");
  json context_ = json::parse(R"({"count": 4, "id": 9007199254740993, "huge": 18446744073709551615,
                                  "list": [1, 2], "none": null, "constructor": "mine"})");
  json profile_ = json::parse(R"({"name": "Ann"})");
  Tokens tokens_{{"shopName", "The Shop"}};
  Scope scope_{.input = &input_,
               .context = &context_,
               .profile = &profile_,
               .tokens = &tokens_,
               .now = model::from_unix_ms(1'700'000'000'123),
               .random = Random(7)};

  std::string result(std::string_view source) { return result_of(source, scope_); }
};

TEST_F(ExpressionTest, ReadsTheScope) {
  EXPECT_EQ(result("input.text"), "\"hi\"");
  EXPECT_EQ(result("context.count + 1"), "5");
  EXPECT_EQ(result("profile.name.length"), "3");
  EXPECT_EQ(result("context.list"), "[1,2]");
  EXPECT_EQ(result("shopName + '!'"), "\"The Shop!\"");
  EXPECT_EQ(result("Date.now()"), "1700000000123");
}

TEST_F(ExpressionTest, AMemberOfTheInputIsMadeWhenItIsRead) {
  std::vector<std::string> made;  // empty: all members
  scope_.complete_input = [&](std::string_view name) {
    made.emplace_back(name);
    for (const std::string_view each : {"channel", "userId"}) {
      if (name.empty() || name == each) input_[each] = "ann";
    }
  };
  EXPECT_EQ(result("input.text + input.data.orderId + input['text'].length"), "\"hi122\"");
  EXPECT_EQ(result("input.source == 'inject' && input.data"), "{\"orderId\":12}");
  EXPECT_EQ(made, std::vector<std::string>());
  EXPECT_EQ(result("input.userId + input.userId"), "\"annann\"");
  EXPECT_EQ(made, (std::vector<std::string>{"userId"})) << "once, and no other member";
  EXPECT_EQ(result("input[context.none ?? 'text']"), "\"hi\"");
  EXPECT_EQ(made, (std::vector<std::string>{"userId", ""})) << "a computed name needs them all";
  input_.erase("userId");
  EXPECT_EQ(result("Object.keys(input).join()"), "\"channel,data,source,text,userId\"");
  input_.erase("userId");
  EXPECT_EQ(result("input.data.orderId + Object.keys(input).length"), "17");
  EXPECT_EQ(result("input.nothing"), "undefined");
}

TEST_F(ExpressionTest, FollowsChangesOfTheScope) {
  const auto compiled = Expression::compile("context.count > 4");
  ASSERT_TRUE(compiled);
  EXPECT_FALSE(compiled->truthy(scope_));
  context_["count"] = 5;
  EXPECT_TRUE(compiled->truthy(scope_));
}

TEST_F(ExpressionTest, ConditionsTakeErrorsForFalseAndTellThem) {
  const auto compiled = Expression::compile("context.a.b == 1");
  ASSERT_TRUE(compiled);
  EXPECT_FALSE(compiled->truthy(scope_));
  const auto tested = compiled->test(scope_);
  ASSERT_FALSE(tested);
  EXPECT_EQ(tested.error().code, model::Errc::invalid_argument);
  EXPECT_EQ(tested.error().message, "column 11: can't read 'b' of undefined");
}

TEST_F(ExpressionTest, MissingMembersAreUndefinedAndTheirOwnMembersAreErrors) {
  EXPECT_EQ(result("context.missing"), "undefined");
  EXPECT_EQ(result("context.none.x"), "error: column 14: can't read 'x' of null");
  EXPECT_EQ(result("nowhere"), "error: column 1: 'nowhere' is not defined");
  EXPECT_EQ(result("typeof nowhere"), "\"undefined\"");
  EXPECT_EQ(result("typeof shopName"), "\"string\"");
  EXPECT_EQ(result_of("context"), "undefined");
}

TEST_F(ExpressionTest, UndefinedIsNullWhereOnlyJsonCounts) {
  const auto value = Expression::compile("context.missing")->evaluate(scope_);
  ASSERT_TRUE(value);
  EXPECT_TRUE(value->is_null());
  EXPECT_EQ(result("[undefined, NaN]"), "[null,null]");
  EXPECT_EQ(result("{a: undefined, b: 1}"), "{\"b\":1}");
}

TEST_F(ExpressionTest, PrototypesDoNotExist) {
  for (const char* source :
       {"context.__proto__", "''.constructor", "[].constructor", "(1).constructor",
        "context.hasOwnProperty", "input['__proto__']", "context.list.map"}) {
    EXPECT_EQ(result(source), "undefined") << source;
  }
  EXPECT_EQ(result("context.constructor"), "\"mine\"");
  EXPECT_EQ(result("context.constructor('x')").substr(0, 6), "error:");
}

TEST_F(ExpressionTest, IntegersThatAreOnlyPassedOnStayExact) {
  EXPECT_EQ(result("context.id"), "9007199254740993");
  EXPECT_EQ(result("[context.huge, {a: context.id}]"),
            "[18446744073709551615,{\"a\":9007199254740993}]");
  EXPECT_EQ(result("context.none || context.id"), "9007199254740993");
  EXPECT_EQ(result("String(context.huge)"), "\"18446744073709551615\"");
  EXPECT_EQ(result("context.id + 0"), "9007199254740992");
  EXPECT_EQ(result("context.id == 9007199254740992"), "true");
  EXPECT_EQ(result("typeof context.huge"), "\"number\"");
}

TEST_F(ExpressionTest, WholeResultsAreJsonIntegers) {
  EXPECT_TRUE(Expression::compile("4 / 2")->evaluate(scope_)->is_number_integer());
  EXPECT_EQ(result("4 / 2"), "2");
  EXPECT_EQ(result("2 ** 53"), "9007199254740992");
  EXPECT_EQ(result("-0"), "0");
  EXPECT_EQ(result("0.1 + 0.2"), "0.30000000000000004");
  EXPECT_TRUE(Expression::compile("2 ** 60")->evaluate(scope_)->is_number_float());
}

TEST_F(ExpressionTest, RandomNumbersRepeatWithTheirSeed) {
  scope_.random = Random(42);
  const std::string first = result("[Math.random(), Math.random()]");
  EXPECT_NE(first, result("[Math.random(), Math.random()]"));
  scope_.random = Random(42);
  EXPECT_EQ(result("[Math.random(), Math.random()]"), first);
  EXPECT_EQ(result("[1,2,3,4,5,6].every(() => Math.random() < 1 && Math.random() >= 0)"), "true");
}

TEST_F(ExpressionTest, NothingItDoesChangesTheScope) {
  const json before = context_;
  EXPECT_EQ(result("context.list.reverse().concat(context.list.sort((a, b) => b - a))"),
            "[2,1,2,1]");
  EXPECT_EQ(context_, before);
}

TEST_F(ExpressionTest, ThreadsShareOne) {
  const auto compiled = Expression::compile("context.list.map(x => x * context.count).join()");
  ASSERT_TRUE(compiled);
  std::vector<int> right(4, 0);
  {
    std::vector<std::jthread> threads;
    for (int& own_right : right) {
      threads.emplace_back([this, &compiled, &own_right] {
        const Scope own{.context = &context_};
        for (int round = 0; round < 200; ++round)
          own_right += *compiled->evaluate(own) == "4,8" ? 1 : 0;
      });
    }
  }
  EXPECT_EQ(right, std::vector<int>(4, 200));
}

}  // namespace
}  // namespace conversed::flows::expression
