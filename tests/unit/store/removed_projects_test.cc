#include "store/shards/removed_projects.h"

#include <nlohmann/json.hpp>

#include "tests/unit/store/fixture.h"

namespace conversed::store {
namespace {

using model::Result;
using nlohmann::json;

// The project "project" is deleted, "neighbor" is not.
class RemovedProjectsTest : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    run([&](Connection& connection) {
      connection.run("INSERT INTO removed_projects (id, removed_at) VALUES (:i, :t)", "project",
                     clock_.now());
      connection.run("INSERT INTO removed_endpoints (id, project_id) VALUES (:i, :p)", "endpoint",
                     "project");
    });
  }

  void run(const std::function<void(Connection&)>& work) {
    const auto done =
        store_->committer().write_and_wait([&](Writer& writer) { work(writer.connection()); });
    ASSERT_TRUE(done) << done.error().message;
  }
  std::int64_t rows_of(const std::string& table) {
    std::int64_t number = -1;
    run([&](Connection& connection) {
      number = connection.number("SELECT COUNT(*) FROM " + table);
    });
    return number;
  }

  // Stores a row of each kind that a session has.
  void everything(const model::SessionKey& key, int outputs = 1, int receipts = 2) {
    const std::string& mark = key.user_id;
    auto commit = turn(key, 0, 1);
    commit.outputs.clear();
    commit.after.last_output_seq = outputs;
    for (int seq = 1; seq <= outputs; ++seq) {
      commit.outputs.push_back({.id = model::new_id(),
                                .seq = seq,
                                .input_id = "input",
                                .text = "hello",
                                .delivery = model::Delivery::pending});
    }
    commit.profile.data = json{{"note", "likes tea"}};
    commit.calls.started.push_back(
        {.id = "timer of " + mark, .session = key, .due_at = clock_.now()});
    commit.follow_ups.added.push_back({.id = "followup of " + mark, .session = key});
    commit.inbox.added.push_back({model::new_id(), "inject", "", "{}"});
    commit.dead_letters.push_back({model::new_id(), {model::new_id(), "inject", "", "{}"}, "why"});
    for (int n = 0; n < receipts; ++n) {
      NewReceiptRow row{.input_id = model::new_id(), .first = NewReceiptRow::First{}, .body = {}};
      row.first->previous = std::exchange(commit.after.last_receipt, row.input_id);
      row.first->key = std::string(32, 'a');
      commit.receipts.push_back(row);
      commit.receipts.push_back({.input_id = row.input_id, .body = "a later step"});
    }
    commit.answers.kept.push_back(
        {"answer of " + mark, "{}", clock_.now() + std::chrono::hours(24)});
    ASSERT_EQ(commit_now(std::move(commit)), Outcome::committed);
  }

  RemovedProjects::Erased erase() {
    const auto erased =
        RemovedProjects(store_->shards())
            .erase({.stopped = [this] { return stops_after_ >= 0 && stops_after_-- == 0; },
                    .finished = [this](const model::Position&) { return finished_; },
                    .forget_keys = [this](const model::KeyRange& of) -> Result<void> {
                      freed_.push_back(of);
                      return {};
                    }},
                   clock_.now());
    EXPECT_TRUE(erased) << erased.error().message;
    return erased.value_or(RemovedProjects::Erased{});
  }

  int stops_after_ = -1;  // questions whether to stop; below 0: never
  bool finished_ = true;
  std::vector<model::KeyRange> freed_;
};

constexpr std::initializer_list<const char*> tables{
    "sessions", "outputs",       "deliveries", "receipts",     "later_steps", "receipt_numbers",
    "profiles", "pending_calls", "inbox",      "dead_letters", "answers",     "follow_ups"};

TEST_F(RemovedProjectsTest, NothingOfADeletedProjectStays) {
  everything(key_of("neighbor", "neighbor"));
  std::map<std::string, std::int64_t> of_neighbor;
  for (const std::string table : tables) of_neighbor[table] = rows_of(table);
  everything(key_of("ann"));
  everything(key_of("bob"), 1'200, 3);
  everything(key_of("cleo"), 1, 1'200);
  run([](Connection& connection) {
    for (const char* project : {"project", "neighbor"}) {
      connection.run(
          "INSERT INTO jobs (id, n, project_id, type, name, state, progress, current_step,"
          " total_steps, fail_reason, data, created_at, changed_at, fencing_token, lease_until)"
          " VALUES (:i, (SELECT COALESCE(MAX(n), 0) + 1 FROM jobs), :p, 'proactiveSetup', 'x',"
          " 'done', 100, 4, 4, '', '{}', 0, 0, 1, 0)",
          std::string("job of ") + project, std::string(project));
    }
  });
  EXPECT_EQ(erase().sessions, 3);
  for (const std::string table : tables) {
    EXPECT_GT(of_neighbor[table], 0) << table;
    EXPECT_EQ(rows_of(table), of_neighbor[table]) << table;
  }
  EXPECT_EQ(rows_of("jobs"), 1);
  ASSERT_EQ(freed_.size(), 1U) << "the log frees its keys";
  const auto has = [&](const model::SessionKey& key) {
    return key.encode() >= freed_[0].from && key.encode() < freed_[0].to;
  };
  EXPECT_TRUE(has(key_of("ann")));
  EXPECT_FALSE(has(key_of("ann", "neighbor")));
  EXPECT_FALSE(has(key_of("ann", "project2")));
  EXPECT_EQ(erase(), RemovedProjects::Erased());
}

TEST_F(RemovedProjectsTest, AnErasureThatWasStoppedGoesOnWhereItWas) {
  everything(key_of("ann"), 1'200, 1'200);
  int rounds = 0;
  for (; rows_of("sessions") > 0; ++rounds) {
    ASSERT_LT(rounds, 20);
    stops_after_ = 1;
    erase();
  }
  EXPECT_GT(rounds, 3) << "each transaction is bounded";
  stops_after_ = -1;
  erase();
  for (const std::string table : tables) EXPECT_EQ(rows_of(table), 0) << table;
}

TEST_F(RemovedProjectsTest, ATurnThatHasReadTheSessionIsBuiltAgain) {
  everything(key_of("ann"), 1, 1'200);
  stops_after_ = 1;
  erase();
  ASSERT_EQ(rows_of("sessions"), 1);
  EXPECT_EQ(commit_now(turn(key_of("ann"), 1, 2)), Outcome::conflict);
}

TEST_F(RemovedProjectsTest, AProjectIsForgottenWhenNothingOfItCanCome) {
  everything(key_of("ann"));
  finished_ = false;
  clock_.advance(RemovedProjects::lifetime);
  EXPECT_EQ(erase().sessions, 0) << "its record may come again";
  EXPECT_EQ(rows_of("removed_projects"), 1);
  finished_ = true;
  EXPECT_EQ(erase().sessions, 1);
  EXPECT_EQ(rows_of("removed_projects"), 1) << "something was left";
  EXPECT_EQ(erase(), RemovedProjects::Erased());
  EXPECT_EQ(rows_of("removed_projects"), 0);
  EXPECT_EQ(rows_of("removed_endpoints"), 0);
}

}  // namespace
}  // namespace conversed::store
