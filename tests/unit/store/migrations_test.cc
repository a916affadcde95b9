// How steps of the schema are taken, with steps of the test's own.
#include "store/sql/migrations.h"

#include <gtest/gtest.h>

#include <array>

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
  // As a program does that knows the first `count` steps.
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
  ASSERT_TRUE(migrate_to(2)) << "a table or column would be there twice";
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
  EXPECT_TRUE(migrate_to(1)) << "an addition concerns no older program";
  EXPECT_EQ(stored_version(*connection_), 2);
  ASSERT_TRUE(migrate_to(3));
  EXPECT_EQ(migrate_to(2).error().code, model::Errc::conflict);
}

}  // namespace
}  // namespace conversed::store
