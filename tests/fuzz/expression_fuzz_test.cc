// Hostile expressions, templates and paths: each ends with a value or an error.
#include <nlohmann/json.hpp>

#include "flows/expression/expression.h"
#include "flows/expression/path.h"
#include "flows/expression/template.h"
#include "tests/support/expression_generator.h"
#include "tests/support/fuzzing.h"

namespace conversed::flows::expression {
namespace {

using nlohmann::json;

void run(const std::string& source) {
  static const json input =
      json::parse(R"({"text": "Grüße 😀", "data": {"list": [1, "a", null, {"b": [2]}]}})");
  json context = json::parse(
      R"({"count": 4, "items": [{"price": 1.5}, {"price": 2}], "big": 9007199254740993})");
  const Scope scope{.input = &input, .context = &context, .profile = &input, .random = Random(1)};
  if (const auto compiled = Expression::compile(source)) {
    if (const auto value = compiled->evaluate(scope)) (void)value->dump();
    (void)compiled->truthy(scope);
  }
  for (const std::string& text : {source, "{{" + source + "}} tail"}) {
    if (const auto compiled = Template::compile(text)) {
      (void)json(compiled->render(scope)).dump();  // throws unless the text is UTF-8
      (void)compiled->value(scope).dump();
    }
  }
  if (const auto path = Path::compile(source)) {
    if (path->assign(context, 1)) {
      EXPECT_TRUE(path->erase(context)) << source;
    }
  }
}

TEST(ExpressionFuzz, TheCorpusEndsWholeAndCut) {
  const auto corpus = tests::read_corpus(CONVERSED_CORPUS);
  ASSERT_GE(corpus.size(), 10U);
  for (const auto& entry : corpus) {
    SCOPED_TRACE(entry.name);
    run(entry.text);
    for (std::size_t cut = 0; cut < entry.text.size(); cut += 1 + entry.text.size() / 40) {
      run(entry.text.substr(0, cut));
    }
  }
}

TEST(ExpressionFuzz, MutationsOfTheCorpusEnd) {
  tests::Mutator mutator(
      tests::read_corpus(CONVERSED_CORPUS),
      {"(",   ")",  "[",    "]",     "{",        "}",       "?.",    "=>",
       "...", "`",  "${",   "}}",    "{{",       "\"",      "\\",    "'",
       "??",  "**", "0x",   "1e999", "typeof ",  "context", ".map(", "input.text",
       "==",  "-",  "\\u{", "//",    "\xED\xA0", "\xF0",    ",",     "x"});
  tests::ExpressionGenerator generator(mutator.below(1'000'000'007));
  const tests::LastInput last("expression");
  tests::fuzz(1000, [&] {
    std::string source = mutator.below(2) == 0 ? mutator.entry().text : generator.expression(4);
    if (mutator.below(8) != 0) source = mutator.mutate(std::move(source));
    last.keep(source);
    SCOPED_TRACE(source);
    run(source);
  });
}

}  // namespace
}  // namespace conversed::flows::expression
