#pragma once

#include <cstdlib>
#include <optional>
#include <string>

#include "store/model/ids.h"
#include "store/sql/database.h"
#include "store/sql/postgres.h"
#include "store/sql/sqlite.h"
#include "store/store.h"
#include "tests/support/temp_folder.h"

namespace conversed::tests {

// The place of a test's store: its own folder and, if CONVERSED_TEST_POSTGRES names a server
// (tests/support/postgres.py starts one), its own schema there. So one test covers both databases,
// in two runs.
class StorePlace {
 public:
  // Throws store::SqlError if the server can't be used.
  StorePlace() {
    if (server_ != nullptr) postgres_ = make_schema();
  }

  [[nodiscard]] bool in_postgres() const { return postgres_.has_value(); }
  [[nodiscard]] const TempFolder& folder() const { return folder_; }
  [[nodiscard]] const std::optional<store::PostgresSettings>& postgres() const { return postgres_; }

  [[nodiscard]] store::StoreSettings store() const {
    return {.data_dir = folder_.path(), .postgres = postgres_};
  }
  // A store of several shards: the place's own schema, and new ones. Only in PostgreSQL. An empty
  // store needs Layout::settle before its first session. Throws store::SqlError.
  [[nodiscard]] store::StoreSettings store_of(std::size_t shards) const {
    auto settings = store();
    while (settings.shards.size() + 1 < shards) settings.shards.push_back(make_schema());
    return settings;
  }
  [[nodiscard]] store::DatabaseSettings database() const {
    return {.file = folder_ / "store.db", .postgres = postgres_};
  }
  // Settings whose statements wait only a moment for another writer.
  [[nodiscard]] store::DatabaseSettings hasty_database() const {
    auto hasty = database();
    hasty.busy_timeout = std::chrono::milliseconds(1);
    if (hasty.postgres) hasty.postgres->turn_timeout = std::chrono::milliseconds(20);
    return hasty;
  }
  // A writer that is independent of the store's own.
  [[nodiscard]] std::unique_ptr<store::Connection> another_writer() const {
    return postgres_ ? store::open_postgres(*postgres_, store::Connection::Role::writer,
                                            std::make_shared<store::PostgresPulse>())
                     : store::open_sqlite(folder_ / "store.db", store::Connection::Role::writer,
                                          std::chrono::milliseconds(1));
  }

 private:
  // A new schema on the server.
  [[nodiscard]] store::PostgresSettings make_schema() const {
    const std::string schema = "test_" + model::new_id();
    store::open_postgres({.url = server_}, store::Connection::Role::writer,
                         std::make_shared<store::PostgresPulse>())
        ->script("CREATE SCHEMA " + schema);
    return {.url = std::string(server_) + "&options=-csearch_path%3D" + schema};
  }

  const char* const server_ = std::getenv("CONVERSED_TEST_POSTGRES");
  TempFolder folder_;
  std::optional<store::PostgresSettings> postgres_;
};

}  // namespace conversed::tests
