// Hostile bundles: a corpus, and random changes to it. Whatever comes out, it is a Bundle or
// Problems, and what loads also compiles again.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>
#include <sstream>

#include "flows/flow.h"
#include "flows/loader.h"

namespace conversed::flows {
namespace {

struct Entry {
  std::string name;
  std::string text;
};

std::vector<Entry> corpus() {
  std::vector<Entry> entries;
  const std::filesystem::path folder = CONVERSED_SOURCE_DIR "/tests/fuzz/corpus/bundle";
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    std::ifstream stream(file.path(), std::ios::binary);
    std::stringstream text;
    text << stream.rdbuf();
    entries.push_back({file.path().filename().string(), text.str()});
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.name < b.name; });
  return entries;
}

void try_to_load(const std::string& text, const std::string& name) {
  LoadLimits limits;
  limits.max_values = 20'000;  // a bomb that goes off at the full limit takes its time
  const auto bundle = load_bundle(
      text, name, [](std::string_view) { return "value"; }, limits);
  if (!bundle) {
    ASSERT_FALSE(bundle.error().empty());
    return;
  }
  for (const auto& flow : bundle->flows) {
    const auto again = Flow::compile_text(flow.definition.dump());
    ASSERT_TRUE(again) << to_string(again.error());
  }
}

TEST(BundleFuzz, TheCorpusIsTakenOrRefused) {
  const auto entries = corpus();
  ASSERT_GE(entries.size(), 5U);
  for (const auto& entry : entries) {
    try_to_load(entry.text, entry.name);
    const bool good = entry.name.starts_with("good");
    EXPECT_EQ(load_bundle(entry.text, entry.name, [](std::string_view) { return "v"; }).has_value(),
              good)
        << entry.name;
  }
}

TEST(BundleFuzz, ChangedFilesAreTakenOrRefused) {
  const char* wanted = std::getenv("CONVERSED_FUZZ_COUNT");
  const int count = wanted != nullptr ? std::atoi(wanted) : 1500;
  const std::uint64_t seed = std::random_device{}();
  std::cout << "seed " << seed << '\n';
  std::mt19937_64 random(seed);
  const auto entries = corpus();
  const std::vector<std::string> pieces{"[",  "]",   "{",  "}",    ":",  "- ",   "\n",  "\"", "&a ",
                                        "*a", "!!",  "|",  "\t",   "#",  "{{",   "}}",  "~",  "'",
                                        "? ", "---", ", ", "\xC3", "<<", "null", "1e9", "\\u"};
  const auto draw = [&](std::size_t bound) { return static_cast<std::size_t>(random() % bound); };
  for (int round = 0; round < count; ++round) {
    const auto& entry = entries[draw(entries.size())];
    std::string text = entry.text.substr(0, 4000);
    for (std::size_t change = 1 + draw(4); change > 0 && !text.empty(); --change) {
      const std::size_t at = draw(text.size());
      switch (draw(4)) {
        case 0:
          text.erase(at, 1 + draw(20));
          break;
        case 1:
          text.insert(at, pieces[draw(pieces.size())]);
          break;
        case 2:
          text[at] = static_cast<char>(draw(256));
          break;
        default:
          text.insert(at, text.substr(draw(text.size()), draw(60)));
      }
    }
    ASSERT_NO_FATAL_FAILURE(try_to_load(text, round % 2 == 0 ? entry.name : "x.json")) << text;
  }
}

}  // namespace
}  // namespace conversed::flows
