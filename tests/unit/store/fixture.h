#pragma once

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <vector>

#include "store/model/ids.h"
#include "store/sql/sql.h"
#include "store/store.h"
#include "tests/support/manual_clock.h"
#include "tests/support/store_place.h"
#include "tests/support/temp_folder.h"

namespace conversed::store {

using tests::ManualClock;
using tests::StorePlace;
using tests::TempFolder;

inline model::SessionKey key_of(const std::string& user, const std::string& project = "project") {
  return {.project_id = project, .endpoint_id = "endpoint", .user_id = user, .session_id = "s"};
}

// The SessionCommit of a Turn with one output. `expected` is the session's version before.
inline SessionCommit turn(const model::SessionKey& key, std::int64_t expected, std::int64_t offset,
                          model::Delivery delivery = model::Delivery::pending) {
  SessionCommit commit;
  commit.key = key;
  commit.expected_version = expected;
  commit.after.key = key;
  commit.after.position = {.epoch = 1, .partition = 3, .offset = offset};
  commit.after.context = {{"count", expected + 1}};
  commit.after.last_output_seq = expected + 1;
  commit.outputs.push_back({.id = model::new_id(),
                            .seq = expected + 1,
                            .input_id = "input" + std::to_string(offset),
                            .text = "hello",
                            .data = nullptr,
                            .trace_id = model::new_trace_id(),
                            .delivery = delivery});
  return commit;
}

inline Outcome commit_now(Committer& committer, SessionCommit commit) {
  std::promise<Outcome> promise;
  auto outcome = promise.get_future();
  committer.submit(std::move(commit), [&](Outcome done, const auto&) { promise.set_value(done); });
  return outcome.get();
}

// The database's plan for the statement and a table with many rows.
inline std::string plan_of(Store& store, std::string_view sql,
                           const std::vector<SqlValue>& values) {
  std::string plan;
  const auto read = store.committer().write_and_wait([&](Writer& writer) -> model::Result<void> {
    Connection& connection = writer.connection();
    plan.clear();
    const auto add = [&](std::vector<SqlValue>&& row) {
      plan += std::get<std::string>(row.back()) + "\n";
    };
    if (connection.dialect() == Dialect::sqlite) {
      connection.rows_once(add, "EXPLAIN QUERY PLAN " + std::string(sql), values,
                           {SqlType::integer, SqlType::integer, SqlType::integer, SqlType::text});
      return {};
    }
    connection.script(
        "SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off;"
        " SET LOCAL enable_sort = off; SET LOCAL enable_hashjoin = off;"
        " SET LOCAL enable_mergejoin = off");
    connection.rows_once(add, "EXPLAIN " + std::string(sql), values, {SqlType::text});
    return {};
  });
  EXPECT_TRUE(read) << read.error().message;
  return plan;
}

// Expects that the statement reads a range of this index, in its order and without other rows.
inline void expect_index_range(Store& store, std::string_view sql,
                               const std::vector<SqlValue>& values, const std::string& index) {
  const auto plan = plan_of(store, sql, values);
  EXPECT_NE(plan.find(index), std::string::npos) << plan;
  for (const char* const wrong : {"SCAN", "B-TREE", "Sort", "Seq Scan", "Filter: (appended"}) {
    EXPECT_EQ(plan.find(wrong), std::string::npos) << plan;
  }
  if (plan.find("Index") != std::string::npos) {  // a plan of PostgreSQL
    EXPECT_NE(plan.find("Index Cond"), std::string::npos) << plan;
  }
}

class StoreTest : public testing::Test {
 protected:
  void SetUp() override { open(); }

  void open() {
    store_.reset();
    auto opened = Store::open(place_.store(), clock_);
    ASSERT_TRUE(opened) << opened.error().message;
    store_ = *std::move(opened);
  }

  Outcome commit_now(SessionCommit commit) {
    return store::commit_now(store_->committer(), std::move(commit));
  }
  model::Session load(const model::SessionKey& key) {
    return **store_->first().sessions().load(key);
  }

  const StorePlace place_;
  const TempFolder& folder_ = place_.folder();
  ManualClock clock_;
  std::unique_ptr<Store> store_;
};

}  // namespace conversed::store
