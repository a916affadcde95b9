// The order and the failure of schema migrations, with the test's own steps.
#include "store/sql/migrations.h"

#include <gtest/gtest.h>

#include <array>
#include <regex>
#include <set>
#include <string>

#include "store/conversation/dead_letters.h"
#include "store/model/job.h"
#include "store/sql/sql.h"
#include "tests/support/store_place.h"

namespace conversed::store {
namespace {

constexpr Migration first{
    .version = 1,
    .min_reader = 1,
    .sql = "CREATE TABLE words (id BIGINT PRIMARY KEY);\nINSERT INTO words (id) VALUES (7);\n"};
constexpr Migration addition{
    .version = 2,
    .min_reader = 1,
    .sql = "ALTER TABLE words ADD COLUMN length BIGINT NOT NULL DEFAULT 3;\n"};
constexpr Migration change{
    .version = 3, .min_reader = 3, .sql = "ALTER TABLE words RENAME TO phrases;\n"};
constexpr std::array all{first, addition, change};

class MigrationTest : public testing::Test {
 protected:
  // Migrates as a program that knows the first `count` steps.
  [[nodiscard]] model::Result<void> migrate_to(std::size_t count) {
    return migrate(*connection_, std::span(all).first(count));
  }

  const tests::StorePlace place_;
  const std::unique_ptr<Connection> connection_ = place_.another_writer();
};

TEST_F(MigrationTest, StepFindsTheDataOfTheVersionBefore) {
  EXPECT_FALSE(stored_version(*connection_));
  ASSERT_TRUE(migrate_to(1));
  EXPECT_EQ(stored_version(*connection_), 1);
  ASSERT_TRUE(migrate_to(3));
  EXPECT_EQ(stored_version(*connection_), 3);
  EXPECT_EQ(connection_->value<int>("SELECT length FROM phrases WHERE id = 7"), 3);
}

TEST_F(MigrationTest, StepIsTakenOnce) {
  ASSERT_TRUE(migrate_to(2));
  ASSERT_TRUE(migrate_to(2)) << "a repeated step would fail";
  EXPECT_EQ(connection_->value<int>("SELECT COUNT(*) FROM schema_version"), 2);
}

TEST_F(MigrationTest, StepThatFailsLeavesTheVersionBefore) {
  ASSERT_TRUE(migrate_to(1));
  constexpr Migration broken{.version = 2,
                             .min_reader = 2,
                             .sql = "INSERT INTO words (id) VALUES (8);\nINSERT INTO none;\n"};
  EXPECT_THROW((void)migrate(*connection_, std::array{first, broken}), SqlError);
  EXPECT_EQ(stored_version(*connection_), 1);
  EXPECT_EQ(connection_->value<int>("SELECT COUNT(*) FROM words"), 1);
  EXPECT_TRUE(migrate_to(2));
}

TEST_F(MigrationTest, OlderProgramIsRefusedOnceMinReaderIsAboveItsVersion) {
  ASSERT_TRUE(migrate_to(2));
  EXPECT_TRUE(migrate_to(1)) << "an older program can use an expanded schema";
  EXPECT_EQ(stored_version(*connection_), 2);
  ASSERT_TRUE(migrate_to(3));
  EXPECT_EQ(migrate_to(2).error().code, model::Errc::conflict);
}

// The quoted names in the first match of `pattern`, which ends at a closing parenthesis.
std::set<std::string> names_in_schema(const std::string& pattern) {
  const std::string schema(sqlite_steps().front().sql);
  std::smatch list;
  EXPECT_TRUE(std::regex_search(schema, list, std::regex(pattern + "[^)]*"))) << pattern;
  const std::string text = list.str();
  const std::regex name("'([a-z]+)'");
  std::set<std::string> names;
  for (std::sregex_iterator each(text.begin(), text.end(), name), end; each != end; ++each) {
    names.insert((*each)[1].str());
  }
  return names;
}

TEST(Schema, NamesTheStatesOfJobsAsTheEnumDoes) {
  using model::JobState;
  std::set<std::string> states;
  std::set<std::string> unfinished;
  std::set<std::string> failed;
  for (const auto state : {JobState::queued, JobState::active, JobState::cancelling, JobState::done,
                           JobState::cancelled, JobState::error}) {
    const std::string name(to_string(state));
    EXPECT_EQ(model::job_state_from(name), state);
    states.insert(name);
    if (!is_final(state)) unfinished.insert(name);
    if (is_final(state) && state != JobState::done) failed.insert(name);
  }
  EXPECT_EQ(names_in_schema("CREATE TABLE jobs [^;]*CHECK \\(state IN \\("), states);
  EXPECT_EQ(names_in_schema("INDEX jobs_one_active [^;]*IN \\("), unfinished);
  EXPECT_EQ(names_in_schema("INDEX jobs_by_lease [^;]*IN \\("), unfinished);
  EXPECT_EQ(names_in_schema("INDEX jobs_over [^;]*IN \\("), failed);
}

TEST(Schema, NamesTheStatesOfDeadLettersAsTheEnumDoes) {
  std::set<std::string> names;
  for (const auto state :
       {DeadLetterState::fresh, DeadLetterState::replayed, DeadLetterState::discarded}) {
    names.insert(std::string(to_string(state)));
  }
  EXPECT_EQ(names_in_schema("CREATE TABLE dead_letters [^;]*CHECK \\(state IN \\("), names);
}

// A number in a CHECK is a flag: 0 or 1. States have names.
TEST(Schema, HasNoStateNumbers) {
  for (const auto steps : {sqlite_steps(), postgres_steps()}) {
    const std::string schema(steps.front().sql);
    const std::regex check("CHECK \\((\\w+) IN \\(([^)]*)\\)");
    for (std::sregex_iterator each(schema.begin(), schema.end(), check), end; each != end; ++each) {
      const std::string values = (*each)[2].str();
      EXPECT_TRUE(values == "0, 1" || values.starts_with("'")) << (*each)[0].str();
    }
  }
}

}  // namespace
}  // namespace conversed::store
