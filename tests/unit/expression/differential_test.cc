// Evaluates generated expressions here and in Node.js, and compares the results.
// docs/flows/expressions.md lists the intended differences. The generator avoids them.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "flows/expression/expression.h"
#include "tests/support/expression_generator.h"
#include "tests/support/temp_folder.h"

namespace conversed::flows::expression {
namespace {

using nlohmann::json;

constexpr std::size_t expression_count = 6000;

const json input = json::parse(R"({
  "text": "Grüße, 😀 World", "empty": "", "digits": "042", "hex": "0x1F", "spaced": "  12.5\n",
  "data": {"event": "shipped", "orderId": 12345, "total": 99.95, "flags": [true, false, null]}})");
const json context = json::parse(R"({
  "big": 1e21, "cart": {"items": [{"name": "pen", "price": 1.5, "qty": 4}, {"name": "ink", "price": 12, "qty": 1}]},
  "count": 4, "list": [3, 1, 20, -7, 10], "negative": -2.5, "nothing": null, "small": 1.5e-9,
  "words": ["beta", "alpha", "Gamma", "😀", "｡"], "nested": [[1, [2]], [3], []]})");
const json profile = json::parse(R"({"name": "Ann", "age": 33, "vip": false})");

// Makes both sides return the type and the text of the value, too.
std::string wrapped(const std::string& source) {
  return "[" + source + "].map((v) => [typeof v, String(v), JSON.stringify(v)])[0]";
}

constexpr const char* script = R"(
const fs = require('fs');
const [input, context, profile, sources] = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'));
const run = (source) => {
  try {
    const f = new Function('input', 'context', 'profile', 'return (' + source + ')');
    return f(structuredClone(input), structuredClone(context), structuredClone(profile));
  } catch (error) {
    return 'error';
  }
};
const out = sources.map(run).map((result) => result === 'error' ? result
    : result.map((part) => part === undefined ? null : String(part).toWellFormed()));
fs.writeFileSync(process.argv[3], JSON.stringify(out));
)";

TEST(Differential, GeneratedExpressionsMeanWhatNodeSaysTheyMean) {
  if (std::system("command -v node >/dev/null 2>&1") != 0) {
    GTEST_SKIP() << "node is not on the PATH: expressions were compared with NOTHING";
  }
  const char* chosen = std::getenv("CONVERSED_TEST_SEED");
  const std::uint64_t seed = chosen != nullptr ? std::stoull(chosen) : 20240521;
  std::cout << "seed " << seed << " (CONVERSED_TEST_SEED sets it)\n";

  tests::ExpressionGenerator generator(seed);
  std::vector<std::string> sources;
  while (sources.size() < expression_count) {
    std::string source = generator.expression(static_cast<int>(1 + sources.size() % 4));
    if (source.size() < 2000) sources.push_back(wrapped(source));
  }
  const tests::TempFolder folder;
  std::ofstream(folder / "script.js") << script;
  std::ofstream(folder / "in.json") << json{input, context, profile, sources};
  const std::string command = "node " + (folder / "script.js").string() + " " +
                              (folder / "in.json").string() + " " + (folder / "out.json").string();
  ASSERT_EQ(std::system(command.c_str()), 0);
  const json expected = json::parse(std::ifstream(folder / "out.json"));
  ASSERT_EQ(expected.size(), sources.size());

  const Scope scope{.input = &input, .context = &context, .profile = &profile};
  std::size_t errors = 0;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    json ours = "error";
    std::string why;
    if (auto compiled = Expression::compile(sources[i]); !compiled) {
      why = compiled.error().message;
    } else if (auto value = compiled->evaluate(scope); !value) {
      why = value.error().message;
    } else {
      ours = std::move(*value);
    }
    if (expected[i] == "error") ++errors;
    EXPECT_EQ(ours, expected[i]) << sources[i] << "\n" << why;
  }
  std::cout << sources.size() << " expressions, of which Node.js refuses " << errors << "\n";
  EXPECT_LT(errors, sources.size() / 2) << "too many generated expressions are errors";
}

}  // namespace
}  // namespace conversed::flows::expression
