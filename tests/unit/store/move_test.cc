#include "store/shards/move.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <future>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "store/commit/partition_gate.h"
#include "store/commit/receipt_blocks.h"
#include "store/model/ids.h"
#include "store/model/session_keys.h"
#include "store/sql/postgres.h"
#include "store/sql/read.h"
#include "store/store.h"
#include "tests/support/manual_clock.h"
#include "tests/support/receipt_step.h"
#include "tests/support/store_place.h"

namespace conversed::store {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;

constexpr std::int32_t partitions = 6;
constexpr std::int32_t moved = 1;                             // the partition; in shard 1 at first
constexpr std::int64_t large_number = 9'007'199'254'740'993;  // no double has it

// Characters that JSON, SQL or the driver treat in their own ways.
const std::string odd_text =
    std::string("NUL\0 one\x01 two\x02", 14) +
    " quote' \"double\" back\\slash \n\t\x7f \xF0\x9F\x98\x80 $1 :name %s {} \xE2\x80\xA8";

model::SessionKey key_of(const std::string& user, const std::string& session = "s") {
  return {
      .project_id = "project", .endpoint_id = "endpoint", .user_id = user, .session_id = session};
}

// Rows of all tables of a server as JSON, by table.
using Dump = std::map<std::string, std::multiset<std::string>>;

class MoveTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!places_[0].in_postgres()) GTEST_SKIP() << "CONVERSED_TEST_POSTGRES names no server";
    auto settings = places_[0].store();
    settings.shards = {*places_[1].postgres(), *places_[2].postgres()};
    auto opened = Store::open(settings, clock_);
    ASSERT_TRUE(opened) << opened.error().message;
    store_ = *std::move(opened);
    const auto settled = store_->layout().settle(partitions);
    ASSERT_TRUE(settled) << settled.error().message;
  }

  // A user whose sessions are in the partition.
  static std::string user_in(std::int32_t partition, int which = 0) {
    for (int i = 0;; ++i) {
      auto user = "user" + std::to_string(i);
      if (model::partition_of(key_of(user).encode(), partitions) == partition && which-- == 0) {
        return user;
      }
    }
  }

  Outcome commit(Committer& committer, SessionCommit commit) {
    std::promise<Outcome> promise;
    auto outcome = promise.get_future();
    committer.submit(std::move(commit),
                     [&](Outcome done, const auto&) { promise.set_value(done); });
    return outcome.get();
  }

  // The commit of one event with everything that the store holds of a session.
  SessionCommit everything(const model::SessionKey& key, std::int64_t version) {
    SessionCommit commit;
    const auto event = model::new_id(clock_.now());
    const auto mark = "of " + key.user_id + " " + odd_text;
    commit.key = key;
    commit.expected_version = version;
    commit.after.key = key;
    commit.after.position = {.epoch = 1,
                             .partition = model::partition_of(key.encode(), partitions),
                             .offset = large_number + version};
    commit.after.context = {{"note", mark}, {"number", large_number}};
    commit.after.flow_state = {{"note", mark}};
    commit.after.last_output_seq = version + 1;
    commit.after.execution.emplace();
    commit.after.execution->input_id = event;
    commit.after.execution->pending_call_id = event + "timer";
    commit.profile.read_version =
        store_->of(key).sessions().load_with_profile(key)->profile.version;
    commit.profile.data = json{{"note", mark}};
    commit.outputs.push_back({.id = event + "-1",
                              .seq = version + 1,
                              .input_id = event,
                              .text = mark,
                              .data = {{"note", mark}},
                              .trace_id = model::new_trace_id(),
                              .created_at = clock_.now(),
                              .delivery = model::Delivery::pending});
    commit.claims.push_back({model::Claim::Kind::keyed_event, event});
    add_waits(commit, event, mark);
    commit.inbox.added.push_back(
        {model::new_id(), "inject", "", R"({"v":1,"at":1,"text":"waits"})"});
    commit.dead_letters.push_back(
        {model::new_id(), {model::new_id(), "inject", "", json{{"text", mark}}.dump()}, mark});
    NewReceiptRow row{.input_id = event, .first = NewReceiptRow::First{}, .body = {}};
    row.first->trace_id = "0123456789abcdef0123456789abcdef";
    row.first->key = "fedcba9876543210fedcba9876543210";
    row.first->previous = std::exchange(last_[key.encode()], event);
    row.body = tests::receipt_step({{"what", "turn"}, {"text", mark + std::string(900, 'x')}});
    commit.receipts.push_back(row);
    commit.receipts.push_back(
        {event, std::nullopt, tests::receipt_step({{"what", "call"}, {"text", mark}})});
    commit.after.last_receipt = event;
    commit.answers.kept.push_back({event, json{{"text", mark}}.dump(), clock_.now() + 24h});
    commit.answers.cuts.push_back({event, 0});
    return commit;
  }
  void add_waits(SessionCommit& commit, const std::string& event, const std::string& mark) {
    model::PendingCall timer;
    timer.id = event + "timer";
    timer.session = commit.key;
    timer.due_at = clock_.now() + 1h;
    commit.calls.started.push_back(timer);
    model::PendingCall call;
    call.id = event + "call";
    call.session = commit.key;
    call.http.emplace();
    call.http->url = "http://127.0.0.1/" + commit.key.user_id;
    call.http->body = mark;
    commit.calls.started.push_back(call);
    model::FollowUp follow_up;
    follow_up.id = event + "follow";
    follow_up.session = commit.key;
    follow_up.text = mark;
    follow_up.due_at = clock_.now() + 1h;
    commit.follow_ups.added.push_back(follow_up);
  }

  Result<std::optional<KeptAnswer>> schedule(Shard& shard, const model::SessionKey& key) {
    model::Schedule schedule;
    schedule.id = model::new_id();
    schedule.session = key;
    schedule.text = "scheduled " + odd_text;
    schedule.due_at = clock_.now() + 1h;
    schedule.created_at = clock_.now();
    schedule.created_by = "somebody";
    return shard.schedules().create(
        schedule, KeyedAnswer{{"scope", model::new_id(), "hash"}, {201, "", "made"}, key.encode()});
  }

  // Two sessions with several events of two users of the moved partition and of a user of each
  // other partition.
  void fill() {
    for (std::int32_t partition = 0; partition < partitions; ++partition) {
      const auto user = user_in(partition);
      for (const auto& key : {key_of(user), key_of(user, "t")}) fill(key);
      fill(key_of(user_in(partition, 1)));
      Shard& shard = store_->of(partition);
      ASSERT_TRUE(shard.attempts().begin({"event" + std::to_string(partition), partition, 5}, 2));
      const Attempts::Taking taking{.partition = partition, .committed = 3, .taken_below = 4};
      ASSERT_TRUE(shard.attempts().take_up("run", std::array{taking}));
      ASSERT_TRUE(shard.attempts().give_up("run", std::array{partition}));
    }
  }
  void fill(const model::SessionKey& key) {
    Shard& shard = store_->of(key);
    for (std::int64_t version = 0; version < 3; ++version) {
      clock_.advance(1s);
      auto event = everything(key, version);
      const auto output = event.outputs.front();
      ASSERT_EQ(commit(shard.committer(), std::move(event)), Outcome::committed);
      if (version == 2) continue;
      shard.outbox().delivered(
          key, output, 0, {},
          PlainDelivery{output.input_id, output.seq, clock_.now(), 1234us, 200});
    }
    const auto made = schedule(shard, key);
    ASSERT_TRUE(made) << made.error().message;
    barrier(shard);
  }
  static void barrier(Shard& shard) {
    ASSERT_TRUE(shard.committer().write_and_wait([](Writer&) {}));
  }

  static std::vector<std::string> moved_users() { return {user_in(moved), user_in(moved, 1)}; }

  // All reads of the users.
  json reads(const std::vector<std::string>& users) {
    json all;
    for (const auto& user : users) {
      Shard& shard = store_->of(key_of(user));
      UserData::Place after;
      for (bool more = true; more;) {
        const auto page = shard.user_data().read_page({"project", user}, after, 2);
        EXPECT_TRUE(page) << page.error().message;
        if (!page) return all;
        for (const auto& item : page->items) all["export"].push_back(item);
        more = page->next.has_value();
        if (more) after = *page->next;
      }
      for (const auto& session : {"s", "t"}) read_session(key_of(user, session), all);
    }
    return all;
  }
  void read_session(const model::SessionKey& key, json& all) {
    Shard& shard = store_->of(key);
    const auto loaded = shard.sessions().load(key);
    ASSERT_TRUE(loaded) << loaded.error().message;
    if (!*loaded) return;
    const auto& session = **loaded;
    all["session"].push_back({session.version, session.position.offset, session.context,
                              session.last_receipt, session.inbox_size});
    const auto outputs = shard.outbox().outputs(key, 0, 100);
    for (const auto& output : *outputs) {
      all["outputs"].push_back({output.id, output.seq, output.text, output.data});
    }
    const auto pending = shard.outbox().pending_of(key, 10);
    all["pending"].push_back((*pending)->outputs.size());
    const auto letters = shard.dead_letters().list({.project_id = "project", .session = key}, 0, 9);
    for (const auto& letter : letters->rows) all["letters"].push_back({letter.id, letter.reason});
    const auto timers = shard.timers().list({.project_id = "project", .session = key}, {}, 100);
    for (const auto& timer : timers->rows) all["timers"].push_back(timer.id);
    for (auto event = session.last_receipt; !event.empty();) {
      const auto receipt = shard.receipts().get(event);
      ASSERT_TRUE(receipt) << receipt.error().message;
      EXPECT_EQ(receipt->session, key);
      EXPECT_TRUE(*shard.answers().claimed(event));
      EXPECT_TRUE(*shard.answers().is_cut(event));
      for (const auto& row : receipt->rows) {
        all["receipts"].push_back({event, row.body, model::to_unix_ms(row.written_at)});
      }
      const auto found = shard.receipts().find("project", "none", first_key, 100);
      EXPECT_TRUE(std::ranges::find(*found, event) != found->end());
      event = receipt->previous;
    }
  }

  static Dump dump(Shard& shard) {
    auto all = read(shard.database(), [](Connection& connection) {
      Dump rows;
      for (const auto& table :
           connection.values<std::string>("SELECT CAST(tablename AS text) FROM pg_tables WHERE "
                                          "schemaname = current_schema()")) {
        const auto sql = "SELECT CAST(row_to_json(t) AS text) FROM " + table + " t";
        for (auto& row : connection.values<std::string>(sql)) rows[table].insert(std::move(row));
      }
      return rows;
    });
    EXPECT_TRUE(all) << all.error().message;
    return *std::move(all);
  }
  // Rows that name one of the users, and the tables that have some.
  static Dump rows_of(const std::vector<std::string>& users, const Dump& all) {
    Dump found;
    for (const auto& [table, rows] : all) {
      for (const auto& row : rows) {
        for (const auto& user : users) {
          if (row.find("of " + user + " ") != std::string::npos ||
              row.find("\\u001f" + user + "\\u001f") != std::string::npos ||
              row.find(':' + user + '"') != std::string::npos ||
              row.find('"' + user + '"') != std::string::npos) {
            found[table].insert(row);
          }
        }
      }
    }
    return found;
  }

  void expect_nothing_left(std::size_t shard) {
    const auto all = dump(*store_->shards()[shard]);
    EXPECT_EQ(rows_of(moved_users(), all), Dump{}) << "in shard " << shard;
    const auto left = read(store_->shards()[shard]->database(), [&](Connection& connection) {
      std::set<std::string> known;
      std::int64_t count = 0;
      for (const auto& [key, event] : last_) {
        if (model::partition_of(key, partitions) != moved) continue;
        if (find_receipt(connection, event)) ++count;
      }
      for (const std::string table : {"attempts", "log_positions", "partition_runs"}) {
        count +=
            connection.number("SELECT COUNT(*) FROM " + table + " WHERE log_partition = :p", moved);
      }
      return count;
    });
    EXPECT_EQ(*left, 0);
  }

  Result<MoveReport> move(std::size_t to, const MoveSettings& settings = {.drain = 0ms}) {
    return move_partition(store_->shards(), store_->layout(), moved, to, settings);
  }

  static MoveSettings stopping_at(MoveStep last) {
    return {.drain = 0ms, .done = [=](MoveStep step, std::int64_t) { return step != last; }};
  }

  static constexpr const char* first_key = "fedcba9876543210fedcba9876543210";
  const std::array<tests::StorePlace, 3> places_{};
  tests::ManualClock clock_;
  std::unique_ptr<Store> store_;
  std::map<std::string, std::string> last_;  // receipts, by encoded key
};

TEST_F(MoveTest, AMovedPartitionReadsAsBefore) {
  fill();
  const auto before = reads(moved_users());
  const auto source = rows_of(moved_users(), dump(*store_->shards()[1]));
  for (const char* table : {"sessions", "outputs", "profiles", "dead_letters", "answers",
                            "schedules", "keyed_answers", "follow_ups", "pending_calls"}) {
    EXPECT_TRUE(source.contains(table)) << table;
  }
  std::vector<std::string> others;
  for (const int partition : {0, 2, 3, 4, 5}) others.push_back(user_in(partition));
  const auto of_others = reads(others);
  std::vector<std::pair<MoveStep, std::int64_t>> steps;
  const auto report = move(2, {.drain = 0ms, .done = [&](MoveStep step, std::int64_t rows) {
                                 steps.emplace_back(step, rows);
                                 return true;
                               }});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->from, 1U);
  EXPECT_GT(report->copied, report->removed);  // with claims of other partitions
  EXPECT_GT(report->removed, 50);
  EXPECT_EQ(steps.size(), 7U);
  EXPECT_EQ(steps[1].first, MoveStep::given_up);
  EXPECT_EQ(store_->layout().shard_of(moved), 2U);
  EXPECT_FALSE(store_->layout().is_moving(moved));
  EXPECT_EQ(reads(moved_users()), before);
  EXPECT_EQ(reads(others), of_others);
  EXPECT_EQ(rows_of(moved_users(), dump(*store_->shards()[2])), source);
  expect_nothing_left(1);
  const auto left = store_->shards()[2]->attempts().left_below(moved);
  EXPECT_EQ(*left, 0);
  EXPECT_EQ(store_->shards()[2]->attempts().counted()->size(), 3U);
}

TEST_F(MoveTest, AMovedPartitionGoesOnAndComesBack) {
  fill();
  const auto before = reads(moved_users());
  ASSERT_TRUE(move(0));
  const auto key = key_of(user_in(moved));
  EXPECT_EQ(commit(store_->shards()[1]->committer(), everything(key, 3)), Outcome::conflict);
  last_[key.encode()] = store_->of(key).sessions().load(key)->value().last_receipt;
  ASSERT_TRUE(move(1));
  EXPECT_EQ(reads(moved_users()), before);
  expect_nothing_left(0);
  ASSERT_TRUE(move(2));
  ASSERT_EQ(commit(store_->of(key).committer(), everything(key, 3)), Outcome::committed);
  EXPECT_EQ(commit(store_->shards()[1]->committer(), everything(key, 4)), Outcome::conflict);
  ASSERT_TRUE(move(1));
  expect_nothing_left(2);
  EXPECT_EQ(store_->of(key).sessions().load(key)->value().version, 4);
}

TEST_F(MoveTest, AMoveGoesOnAfterEachStep) {
  fill();
  const auto before = reads(moved_users());
  std::size_t from = 1;
  std::size_t to = 2;
  for (const auto last : {MoveStep::announced, MoveStep::given_up, MoveStep::closed,
                          MoveStep::cleared, MoveStep::copied, MoveStep::switched}) {
    const auto stopped = move(to, stopping_at(last));
    ASSERT_FALSE(stopped);
    EXPECT_EQ(stopped.error().code, model::Errc::unavailable);
    EXPECT_NE(stopped.error().message.find("again"), std::string::npos);
    EXPECT_EQ(reads(moved_users()), before);
    if (last < MoveStep::switched) {
      EXPECT_TRUE(store_->layout().is_moving(moved));
      EXPECT_EQ(move(from == 0 ? 1 : 0).error().code, model::Errc::conflict);
    }
    const auto done = move(to);
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(done->from, from);
    EXPECT_GT(done->removed, 0);
    EXPECT_EQ(reads(moved_users()), before);
    expect_nothing_left(from);
    EXPECT_EQ(move(to).error().code, model::Errc::conflict);
    std::swap(from, to);
  }
}

TEST_F(MoveTest, LeftoversOfAnUnfinishedMoveAreDeleted) {
  fill();
  const auto before = reads(moved_users());
  EXPECT_EQ(*remove_leftovers(store_->shards(), store_->layout()), 0);
  ASSERT_FALSE(move(2, stopping_at(MoveStep::closed)));
  EXPECT_EQ(*remove_leftovers(store_->shards(), store_->layout()), 0) << "it is not copied yet";
  EXPECT_EQ(reads(moved_users()), before);
  ASSERT_FALSE(move(2, stopping_at(MoveStep::switched)));
  EXPECT_GT(*remove_leftovers(store_->shards(), store_->layout()), 0);
  EXPECT_EQ(*remove_leftovers(store_->shards(), store_->layout()), 0);
  EXPECT_EQ(reads(moved_users()), before);
  expect_nothing_left(1);
}

TEST_F(MoveTest, AnUnfinishedMoveIsEndedAtTheOldPlace) {
  fill();
  const auto before = reads(moved_users());
  const auto key = key_of(user_in(moved));
  ASSERT_FALSE(move(2, stopping_at(MoveStep::closed)));
  EXPECT_FALSE(store_->of(key).sessions().reset(key));
  ASSERT_TRUE(move(1));
  EXPECT_FALSE(store_->layout().is_moving(moved));
  EXPECT_EQ(*remove_leftovers(store_->shards(), store_->layout()), 0);
  EXPECT_EQ(reads(moved_users()), before);
  EXPECT_TRUE(store_->of(key).sessions().reset(key));
  ASSERT_FALSE(move(2, stopping_at(MoveStep::copied)));
  EXPECT_EQ(move(1).error().code, model::Errc::conflict) << "the new server has the rows";
  EXPECT_TRUE(move(2));
}

TEST_F(MoveTest, AFailedCopyLeavesNothingOnTheTarget) {
  fill();
  const auto before = reads(moved_users());
  const auto untouched = dump(*store_->shards()[2]);
  const auto letter = store_->of(moved)
                          .dead_letters()
                          .list({.project_id = "project", .session = key_of(user_in(moved))}, 0, 1)
                          ->rows.front();
  const auto write_on_target = [&](const auto& work) {
    const auto written = store_->shards()[2]->committer().write_and_wait(
        [&](Writer& writer) { work(writer.connection()); });
    ASSERT_TRUE(written) << written.error().message;
  };
  write_on_target([&](Connection& connection) {
    connection.run(
        "INSERT INTO dead_letters (id, n, project_id, key, event_id, type, trace_id, value,"
        " attempts, reason, flow, flow_version, node, state, created_at)"
        " VALUES (:i, 1, '', :k, '', '', '', '', 0, '', '', 0, '', 'new', 0)",
        letter.id, key_of(user_in(2)));
  });
  const auto failed = move(2);
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().message.find("copy the rows"), std::string::npos)
      << failed.error().message;
  write_on_target([&](Connection& connection) {
    connection.run("DELETE FROM dead_letters WHERE id = :i", letter.id);
  });
  auto now = dump(*store_->shards()[2]);
  EXPECT_EQ(rows_of(moved_users(), now), Dump{});
  EXPECT_EQ(now["sessions"], untouched.at("sessions"));
  EXPECT_EQ(now["receipts"], untouched.at("receipts"));
  ASSERT_TRUE(move(2));
  EXPECT_EQ(reads(moved_users()), before);
  expect_nothing_left(1);
}

TEST_F(MoveTest, SessionsOfAMovingPartitionAreReadAndNotChanged) {
  fill();
  const auto key = key_of(user_in(moved));
  Shard& shard = store_->of(key);
  const auto letter =
      shard.dead_letters().list({.project_id = "project", .session = key}, 0, 1)->rows.front();
  const auto delivery = (*shard.outbox().pending_of(key, 1))->outputs.front();
  const auto timer = shard.timers().list({.project_id = "project", .session = key}, {}, 1)->rows[0];
  const auto plan = shard.schedules().list("project", 0, 100)->front().schedule;
  ASSERT_FALSE(move(2, stopping_at(MoveStep::closed)));
  // The shard of `of` is still the old one; after the move the old shard refuses all the same.
  for (const bool moved_away : {false, true}) {
    if (moved_away) {
      ASSERT_FALSE(move(2, stopping_at(MoveStep::switched)));
    }
    const auto expect_away = [](const auto& written) {
      ASSERT_FALSE(written);
      EXPECT_EQ(written.error().code, model::Errc::unavailable) << written.error().message;
    };
    expect_away(shard.sessions().reset(key));
    expect_away(schedule(shard, key));
    // The old shard keeps no timers.
    if (moved_away) {
      EXPECT_FALSE(shard.timers().cancel(timer.id));
      EXPECT_FALSE(shard.schedules().cancel("project", plan.id));
    } else {
      expect_away(shard.timers().cancel(timer.id));
      expect_away(shard.timers().reschedule(timer.id, clock_.now()));
    }
    expect_away(shard.dead_letters().discard("project", letter.id));
    const PendingDelivery pending{.output_id = delivery.id, .key = key, .seq = delivery.seq};
    expect_away(shard.deliveries().retry(pending));
    expect_away(shard.deliveries().drop(pending));
    expect_away(shard.user_data().erase({"project", key.user_id},
                                        {.finished = [](const auto&) { return true; }}));
    std::promise<Result<InputState>> cut;
    shard.answers().cut({key, delivery.input_id}, [&](auto state) { cut.set_value(state); });
    expect_away(cut.get_future().get());
    std::promise<Result<void>> begun;
    shard.outbox().begin_delivery(key, delivery, [&](auto done) { begun.set_value(done); });
    expect_away(begun.get_future().get());
    std::promise<Result<void>> given_up;
    shard.outbox().give_up(key, delivery, "no", true, [&](auto done) { given_up.set_value(done); });
    expect_away(given_up.get_future().get());
    if (plan.session.user_id == key.user_id && !moved_away) {
      expect_away(shard.schedules().cancel("project", plan.id));
    }
  }
  // The new shard takes the same changes.
  EXPECT_TRUE(store_->of(key).dead_letters().discard("project", letter.id));
  EXPECT_TRUE(store_->of(key).sessions().reset(key));
  EXPECT_TRUE(schedule(store_->of(key), key));
}

TEST_F(MoveTest, AnOwnerThatDoesNotGiveThePartitionUpIsShutOut) {
  fill();
  const Attempts::Taking taking{.partition = moved, .committed = 3, .taken_below = 4};
  ASSERT_TRUE(store_->of(moved).attempts().take_up("stuck", std::array{taking}));
  std::vector<MoveStep> steps;
  ASSERT_TRUE(move(2, {.drain = 200ms, .done = [&](MoveStep step, std::int64_t) {
                         steps.push_back(step);
                         return true;
                       }}));
  EXPECT_EQ(steps.at(1), MoveStep::not_given_up);
  // The next owner sees that the last one crashed.
  const auto taken = store_->of(moved).attempts().take_up("next", std::array{taking});
  EXPECT_TRUE(taken->crashed);
  EXPECT_EQ(taken->counted.size(), 1U);
}

TEST_F(MoveTest, NumbersOfMovedRowsAreNotGivenAgain) {
  fill();
  std::vector<std::int64_t> letters;
  std::vector<std::int64_t> plans;
  const auto count = [&] {
    letters.clear();
    plans.clear();
    for (const auto& shard : store_->shards()) {
      const auto more = read(shard->database(), [&](Connection& connection) {
        std::ranges::copy(connection.values<std::int64_t>("SELECT n FROM dead_letters"),
                          std::back_inserter(letters));
        std::ranges::copy(connection.values<std::int64_t>("SELECT n FROM schedules"),
                          std::back_inserter(plans));
      });
      ASSERT_TRUE(more);
    }
  };
  const auto add_everywhere = [&](std::int64_t version) {
    for (std::int32_t partition = 0; partition < partitions; ++partition) {
      const auto key = key_of(user_in(partition));
      ASSERT_EQ(commit(store_->of(key).committer(), everything(key, version)), Outcome::committed);
      ASSERT_TRUE(schedule(store_->of(key), key));
    }
  };
  ASSERT_TRUE(move(0));
  add_everywhere(3);
  ASSERT_TRUE(move(2));
  add_everywhere(4);
  ASSERT_TRUE(move(1));
  add_everywhere(5);
  count();
  EXPECT_EQ(letters.size(), partitions * (9U + 3U));
  EXPECT_EQ(std::set(letters.begin(), letters.end()).size(), letters.size());
  EXPECT_EQ(plans.size(), partitions * (3U + 3U));
  EXPECT_EQ(std::set(plans.begin(), plans.end()).size(), plans.size());
}

TEST_F(MoveTest, RetentionFindsOldRowsAmongTheNumbersOfEachShard) {
  fill();
  ASSERT_TRUE(move(0));  // higher numbers than those of shard 0
  ASSERT_TRUE(store_->shards()[0]->committer().write_and_wait([&](Writer& writer) {
    const auto old = clock_.now() - 100h;
    Connection& connection = writer.connection();
    const auto foreign = std::int64_t{1} << 40;
    connection.run("UPDATE outputs SET created_at = :t WHERE id > :f", old, foreign);
    connection.run("UPDATE dead_letters SET created_at = :t WHERE n > :f", old, foreign);
    connection.run("DELETE FROM deliveries");
  }));
  Shard& shard = *store_->shards()[0];
  std::int64_t removed = 0;
  for (std::optional<std::int64_t> after = 0; after;) {
    const auto pruned = shard.outbox().prune(clock_.now() - 10h, *after, 2);
    ASSERT_TRUE(pruned);
    removed += pruned->removed;
    after = pruned->last_row;
  }
  EXPECT_EQ(removed, 9);
  EXPECT_EQ(shard.dead_letters().prune(clock_.now() - 10h, 100), 9);
}

TEST_F(MoveTest, CommitsOfTheTargetDoNotWaitForTheCopy) {
  const auto aside = open_postgres(*places_[2].postgres(), Connection::Role::writer,
                                   std::make_shared<PostgresPulse>());
  aside->begin_aside();
  aside->run("INSERT INTO claims (id, created_at) VALUES ('aside', 1)");
  open_partition(*aside, moved);
  aside->settle();
  const auto key = key_of(user_in(2));
  ASSERT_EQ(commit(store_->of(key).committer(), everything(key, 0)), Outcome::committed);
  Shard& target = *store_->shards()[2];
  EXPECT_FALSE(*target.answers().claimed("aside"));
  const auto coming = key_of(user_in(moved));
  EXPECT_EQ(commit(target.committer(), everything(coming, 0)), Outcome::conflict);
  aside->commit();
  EXPECT_TRUE(*target.answers().claimed("aside"));
  EXPECT_EQ(commit(target.committer(), everything(coming, 0)), Outcome::committed);
}

TEST_F(MoveTest, NonsenseIsRefused) {
  const auto refused = [&](std::int32_t partition, std::size_t to) {
    const auto done = move_partition(store_->shards(), store_->layout(), partition, to);
    EXPECT_FALSE(done);
    return done ? model::Errc::internal : done.error().code;
  };
  EXPECT_EQ(refused(partitions, 0), model::Errc::invalid_argument);
  EXPECT_EQ(refused(-1, 0), model::Errc::invalid_argument);
  EXPECT_EQ(refused(0, 3), model::Errc::invalid_argument);
  EXPECT_EQ(refused(moved, 1), model::Errc::conflict);
  EXPECT_FALSE(store_->layout().is_moving(moved));
  // One move at a time.
  const auto other = open_postgres(*places_[0].postgres(), Connection::Role::reader,
                                   std::make_shared<PostgresPulse>());
  ASSERT_EQ(other->number("SELECT CASE WHEN pg_try_advisory_lock(hashtext('conversed move'),"
                          " hashtext(current_schema())) THEN 1 ELSE 0 END"),
            1);
  EXPECT_EQ(refused(moved, 2), model::Errc::conflict);
}

TEST(MoveOfOneServer, IsRefused) {
  const tests::StorePlace place;
  const tests::ManualClock clock;
  const auto store = Store::open(place.store(), clock);
  ASSERT_TRUE(store) << store.error().message;
  const auto done = move_partition((*store)->shards(), (*store)->layout(), 0, 1);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, model::Errc::conflict);
  EXPECT_NE(done.error().message.find("store.postgres.shards"), std::string::npos);
}

}  // namespace
}  // namespace conversed::store
