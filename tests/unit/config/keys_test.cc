#include "config/keys.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/unit/config/equal_settings.h"

namespace conversed::config {
namespace {

TEST(Keys, PathsAndVariablesAreUnique) {
  std::set<std::string_view> paths;
  std::set<std::string> variables;
  for (const Key& key : keys()) {
    EXPECT_TRUE(paths.insert(key.path).second) << key.path;
    EXPECT_TRUE(variables.insert(key.variable()).second) << key.variable();
  }
}

TEST(Keys, NoKeyIsAGroupToo) {
  for (const Key& key : keys()) {
    for (const Key& other : keys()) {
      EXPECT_FALSE(other.path.starts_with(std::string(key.path) + ".")) << key.path;
    }
  }
}

TEST(Keys, NoVariableIsReserved) {
  for (const Key& key : keys()) {
    for (const std::string_view reserved : reserved_variables()) {
      EXPECT_FALSE(reserved.ends_with('_') ? key.variable().starts_with(reserved)
                                           : key.variable() == reserved)
          << key.path;
    }
  }
}

TEST(Keys, EachIsExplainedInSentences) {
  for (const Key& key : keys()) {
    EXPECT_GT(key.doc.size(), 15U) << key.path;
    EXPECT_EQ(key.doc.back(), '.') << key.path;
    EXPECT_FALSE(key.expected().empty()) << key.path;
    EXPECT_LE(key.range.min, key.range.max) << key.path;
  }
}

// Fails for a row whose accessor names the wrong member, or whose default is out of its range.
TEST(Keys, TheDefaultIsOfItsOwnForm) {
  for (const Key& key : keys()) {
    const Settings defaults;
    Settings settings;
    const auto complaint = key.assign(settings, key, key.show(defaults, key));
    EXPECT_EQ(complaint, std::nullopt) << key.path << ": " << complaint.value_or("");
    EXPECT_EQ(settings, defaults) << key.path;
  }
}

// Another value of the key's form.
std::vector<std::string> another(const Key& key) {
  std::vector<std::string> candidates{"/tmp", "other",    "::1",       "postgresql://h/d",
                                      "a:1",  "name=a=b", "http://h/", "0.5"};
  candidates.emplace_back(32, 's');
  candidates.push_back(std::to_string(key.range.max) + (key.form == Form::duration ? "ms" : ""));
  for (const auto word : key.words) candidates.emplace_back(word);
  const Settings defaults;
  for (const auto& candidate : candidates) {
    Settings settings;
    if (key.assign(settings, key, {candidate})) continue;
    if (key.show(settings, key) != key.show(defaults, key)) return {candidate};
  }
  ADD_FAILURE() << key.path << " takes none of the candidates";
  return {};
}

TEST(Keys, EachSetsItsOwnMember) {
  for (const Key& key : keys()) {
    Settings settings;
    ASSERT_EQ(key.assign(settings, key, another(key)), std::nullopt) << key.path;
    for (const Key& other : keys()) {
      EXPECT_EQ(other.show(settings, other) != other.show({}, other), other.path == key.path)
          << key.path << " and " << other.path;
    }
  }
}

TEST(Keys, BoundsAreInclusiveAndEnforced) {
  for (const Key& key : keys()) {
    if (key.form != Form::count && key.form != Form::duration && key.form != Form::size) continue;
    const std::string unit = key.form == Form::duration ? "ms" : "";
    const auto complains = [&](std::uint64_t value) {
      Settings settings;
      return key.assign(settings, key, {std::to_string(value) + unit}).has_value();
    };
    EXPECT_FALSE(complains(key.range.min)) << key.path;
    EXPECT_FALSE(complains(key.range.max)) << key.path;
    EXPECT_TRUE(complains(key.range.max + 1)) << key.path;
    if (key.range.min > 0) {
      EXPECT_TRUE(complains(key.range.min - 1)) << key.path;
    }
  }
}

TEST(Keys, AReloadTakesWhatItCanAndNamesTheRest) {
  using Paths = std::vector<std::string_view>;
  Settings wanted;
  wanted.limits.burst = 7;
  wanted.workers = 9;
  wanted.egress.allow = {"10.0.0.0/8"};
  wanted.log.level = LogLevel::warn;
  Settings expected = wanted;
  expected.workers = Settings().workers;

  Settings running;
  const Reloaded first = reload(running, wanted);
  EXPECT_EQ(first.applied, Paths({"limits.burst", "egress.allow", "log.level"}));
  EXPECT_EQ(first.need_restart, Paths({"workers"}));
  EXPECT_EQ(running, expected);
  // Names the changes that wait for the restart each time, and the applied changes once.
  const Reloaded second = reload(running, wanted);
  EXPECT_EQ(second.applied, Paths());
  EXPECT_EQ(second.need_restart, Paths({"workers"}));
}

TEST(Keys, EveryKeyIsReloadedOrNamed) {
  for (const Key& key : keys()) {
    Settings wanted;
    ASSERT_EQ(key.assign(wanted, key, another(key)), std::nullopt) << key.path;
    Settings running;
    const Reloaded reloaded = reload(running, wanted);
    EXPECT_EQ(reloaded.applied.size() + reloaded.need_restart.size(), 1U) << key.path;
    EXPECT_EQ(running, key.reloads ? wanted : Settings()) << key.path;
  }
}

}  // namespace
}  // namespace conversed::config
