// Replays tests/fuzz/corpus/expression, whole and cut and mangled: each input, as an expression, a
// template and a path, ends with a value or an error.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "flows/expression/expression.h"
#include "flows/expression/path.h"
#include "flows/expression/template.h"

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
      (void)json(compiled->render(scope)).dump();  // throws unless it is UTF-8
      (void)compiled->value(scope).dump();
    }
  }
  if (const auto path = Path::compile(source)) {
    if (path->assign(context, 1)) {
      EXPECT_TRUE(path->erase(context)) << source;
    }
  }
}

TEST(Corpus, EveryInputEndsWhateverIsDoneToIt) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(CONVERSED_EXPRESSION_CORPUS)) {
    files.push_back(entry.path());
  }
  std::ranges::sort(files);
  ASSERT_GE(files.size(), 10u);
  constexpr std::uint64_t seed = 7;
  std::cout << "seed " << seed << "\n";
  std::mt19937_64 random(seed);
  const std::string marks = "()[]{}?.:,`$\"'\\+-*/%!~<>=&|^01e \xF0\xED\xA0\x80";
  for (const auto& file : files) {
    std::ifstream stream(file, std::ios::binary);
    const std::string source((std::istreambuf_iterator<char>(stream)),
                             std::istreambuf_iterator<char>());
    SCOPED_TRACE(file.filename().string());
    run(source);
    for (int round = 0; round < 60 && !source.empty(); ++round) {
      std::string mangled = source;
      for (std::size_t changes = 1 + random() % 3; changes > 0; --changes) {
        const std::size_t at = random() % mangled.size();
        const char mark = marks[random() % marks.size()];
        if (random() % 3 == 0)
          mangled.insert(at, 1, mark);
        else if (random() % 2 == 0)
          mangled[at] = mark;
        else
          mangled.erase(at, 1 + random() % 4);
        if (mangled.empty()) mangled = "x";
      }
      run(mangled);
      run(source.substr(0, random() % source.size()));
    }
  }
}

}  // namespace
}  // namespace conversed::flows::expression
