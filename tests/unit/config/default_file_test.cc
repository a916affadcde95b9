#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "config/keys.h"
#include "config/load.h"
#include "store/yaml/reader.h"
#include "tests/unit/config/equal_settings.h"

namespace conversed::config {
namespace {

constexpr const char* path = CONVERSED_DEFAULT_FILE;

// If CONVERSED_TEST_UPDATE is set, writes the file instead of comparing it.
TEST(DefaultFile, IsWhatTheTableSays) {
  if (std::getenv("CONVERSED_TEST_UPDATE") != nullptr) {
    std::ofstream(path) << default_file();
    GTEST_SKIP() << "wrote " << path;
  }
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_EQ(text.str(), default_file())
      << "the table of keys has changed: run config_test once with CONVERSED_TEST_UPDATE=1";
}

void collect(const yaml::Located& map, const std::string& prefix, std::vector<std::string>& paths) {
  for (const auto& member : map.members()) {
    if (member.value.is_object()) {
      collect(member.value, prefix + member.name + ".", paths);
    } else {
      paths.push_back(prefix + member.name);
    }
  }
}

TEST(DefaultFile, HasEveryKeyOnce) {
  const auto document = yaml::read(default_file(), yaml::Schema::texts,
                                   {.max_depth = 8, .max_memory = std::size_t{2} << 20});
  ASSERT_TRUE(document.faults.empty()) << document.faults.front().message;
  std::vector<std::string> found;
  collect(*document.root, "", found);
  std::vector<std::string> expected;
  for (const Key& key : keys()) expected.emplace_back(key.path);
  EXPECT_EQ(found, expected);
}

TEST(DefaultFile, AsItStandsMeansTheBuiltInDefaults) {
  const auto from_file = load({.file = path, .environment = {}, .root = true});
  const auto built_in = load({.file = std::nullopt, .environment = {}, .root = true});
  ASSERT_TRUE(from_file) << format_problems(from_file.error());
  ASSERT_TRUE(built_in) << format_problems(built_in.error());
  EXPECT_EQ(*from_file, *built_in);
}

TEST(DefaultFile, FitsAHundredColumns) {
  std::istringstream lines(default_file());
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100U) << line;
}

}  // namespace
}  // namespace conversed::config
