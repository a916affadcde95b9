#include "store/conversation/receipts.h"

#include <algorithm>
#include <chrono>
#include <iomanip>
#include <limits>
#include <sstream>

#include "store/commit/receipt_blocks.h"
#include "store/commit/receipt_keys.h"
#include "store/commit/row_writes.h"
#include "store/commit/stored_steps.h"
#include "store/conversation/receipts_sql.h"
#include "tests/support/receipt_step.h"
#include "tests/unit/store/fixture.h"

namespace conversed::store {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;
using Ids = std::vector<std::string>;

class ReceiptsTest : public StoreTest {
 protected:
  // Commits a Turn of a new event of the session, with its receipt. Returns the event's id.
  std::string commit_event(const std::string& user, const NewReceiptRow::First& first = {}) {
    auto id = model::new_id(clock_.now());
    auto commit = turn(key_of(user), versions_[user], ++offset_);
    commit.outputs.front().input_id = id;
    commit.receipts.push_back({.input_id = id, .first = first, .body = body_of(user)});
    commit.receipts.back().first->previous = last_[user];
    commit.after.last_receipt = last_[user] = id;
    EXPECT_EQ(commit_now(std::move(commit)), Outcome::committed);
    ++versions_[user];
    return id;
  }
  std::string body_of(const std::string& user) {
    return tests::receipt_step({{"what", "turn"}, {"outputs", {versions_[user] + 1, 1}}});
  }
  void add(const std::string& id, const std::string& body) {
    ASSERT_TRUE(store_->committer().write_and_wait([&](Writer& writer) -> model::Result<void> {
      add_to_receipt(writer.connection(), id, body, clock_.now());
      return {};
    }));
  }
  Ids chain(const std::string& user) {
    return store_->committer()
        .write_and_wait([&](Writer& writer) -> model::Result<Ids> {
          const auto session = writer.connection().value<std::int64_t>(
              "SELECT id FROM sessions WHERE key = :k", key_of(user));
          return chain_of(writer.connection(), session.value_or(0));
        })
        .value();
  }
  Ids found(const std::string& text, const std::string& key = "") {
    return store_->first().receipts().find("project", text, key, 10).value();
  }
  // The steps in which operators settled outputs: "dropped by USER".
  std::vector<std::string> settled(const std::string& id) {
    std::vector<std::string> found;
    const auto receipt = store_->first().receipts().get(id);
    for (const auto& row : receipt->rows) {
      if (!row.body.contains("done")) continue;
      EXPECT_EQ(row.body.at("deadLetter").get<std::string>().size(), model::id_length);
      found.push_back(row.body.at("done").get<std::string>() + " by " + row.body.value("by", ""));
    }
    return found;
  }
  std::int64_t prune(std::chrono::milliseconds age) {
    return store_->first().receipts().prune(clock_.now() - age, 500).value();
  }

  const std::string step = tests::receipt_step({{"what", "turn"}});
  std::map<std::string, std::int64_t> versions_;
  std::map<std::string, std::string> last_;
  std::int64_t offset_ = 0;
};

TEST_F(ReceiptsTest, OutputsThatOperatorsSettleAreNamedWithThem) {
  const auto id = commit_event("ann");
  const auto output = store_->first().outbox().outputs(key_of("ann"), 0, 1)->front();
  const PendingDelivery delivery{.output_id = output.id, .key = key_of("ann"), .seq = 1};
  store_->first().outbox().give_up(
      key_of("ann"), output, "gone", true, [](const auto&) {},
      ReceiptMark{id, tests::receipt_step({{"what", "delivery"}}), {}});
  ASSERT_TRUE(store_->committer().write_and_wait([](Writer&) {}));
  const auto letter =
      store_->first().dead_letters().list({.project_id = "project"}, 0, 1)->rows.front();
  EXPECT_EQ(store_->first().receipts().get(id)->rows.back().body.at("deadLetter"), letter.id);
  ASSERT_TRUE(store_->first().dead_letters().replay_output("project", letter.id, {}, "user 1"));
  EXPECT_EQ(settled(id), Ids{"replayed by user 1"});
  ASSERT_TRUE(store_->first().deliveries().drop(delivery, "user 2"));
  EXPECT_EQ(settled(id), (Ids{"replayed by user 1", "dropped by user 2"}));
}

TEST_F(ReceiptsTest, HasItsStepsInTheOrderOfTheirTimesAndItsOutputs) {
  const auto id = commit_event("ann", {.trace_id = "trace"});
  const auto begun = clock_.now();
  clock_.advance(2s);
  add(id, tests::receipt_step({{"what", "delivery"}, {"seq", 1}}));
  const auto receipt = store_->first().receipts().get(id);
  ASSERT_TRUE(receipt) << receipt.error().message;
  EXPECT_EQ(receipt->session, key_of("ann"));
  EXPECT_EQ(receipt->trace_id, "trace");
  ASSERT_EQ(receipt->rows.size(), 2U);
  EXPECT_EQ(receipt->rows[0].body["what"], "turn");
  EXPECT_EQ(receipt->rows[0].written_at, begun);
  EXPECT_EQ(receipt->rows[1].body["what"], "delivery");
  EXPECT_EQ(receipt->rows[1].written_at, begun + 2s);
  ASSERT_EQ(receipt->outputs.size(), 1U);
  EXPECT_EQ(receipt->outputs[0].seq, 1);
  EXPECT_TRUE(receipt->outputs[0].pending);
  EXPECT_EQ(store_->first().receipts().get(model::new_id()).error().code, model::Errc::not_found);
}

TEST_F(ReceiptsTest, ServicesAddTheirTriesWithTheirMarks) {
  const auto id = commit_event("ann");
  const auto output = store_->first().outbox().outputs(key_of("ann"), 0, 1)->front();
  store_->first().outbox().reschedule(
      key_of("ann"), output, clock_.now(), 1, {},
      ReceiptMark{id, tests::receipt_step({{"what", "delivery"}, {"try", 1}}), clock_.now()});
  store_->first().calls().put_off(
      "c", clock_.now(), 1, {},
      ReceiptMark{id, tests::receipt_step({{"what", "call"}, {"try", 1}}), clock_.now()});
  store_->first().calls().appended(
      "c", {}, ReceiptMark{id, tests::receipt_step({{"what", "call"}, {"try", 2}}), clock_.now()});
  store_->first().outbox().delivered(
      key_of("ann"), output, 1, {},
      ReceiptMark{id, tests::receipt_step({{"what", "delivery"}, {"try", 2}}), clock_.now()});
  add(model::new_id(), step);  // after the marks
  const auto receipt = store_->first().receipts().get(id);
  ASSERT_TRUE(receipt);
  json seen = json::array();
  for (const auto& row : receipt->rows) {
    if (row.n > 1) seen.push_back({row.body["what"], row.body["try"]});
  }
  EXPECT_EQ(seen, json::parse(R"([["delivery",1],["call",1],["call",2],["delivery",2]])"));
  EXPECT_FALSE(receipt->outputs.front().pending);
}

TEST_F(ReceiptsTest, LaterRowNeedsAReceipt) {
  const auto unknown = model::new_id();
  add(unknown, step);
  EXPECT_FALSE(store_->first().receipts().get(unknown));
}

TEST_F(ReceiptsTest, FullReceiptBeginsAnewWithTheNewestStep) {
  const auto id = commit_event("ann");
  constexpr std::int64_t many = most_later_characters / 10;
  ASSERT_TRUE(store_->committer().write_and_wait([&](Writer& writer) {
    for (std::int64_t i = 1; i <= many; ++i) {
      add_to_receipt(writer.connection(), id, tests::receipt_step({{"what", "turn"}, {"seq", i}}),
                     clock_.now());
    }
  }));
  const auto receipt = store_->first().receipts().get(id);
  ASSERT_TRUE(receipt);
  EXPECT_LT(receipt->rows.size(), static_cast<std::size_t>(most_later_characters / 20));
  ASSERT_GT(receipt->rows.size(), 1U);
  EXPECT_EQ(receipt->rows.front().body["what"], "turn");
  EXPECT_EQ(receipt->rows.back().body["seq"], many);
  const auto later = static_cast<std::int64_t>(receipt->rows.size()) - 1;
  EXPECT_EQ(receipt->rows[1].body["seq"], many - later + 1) << "no step between is missing";
}

TEST_F(ReceiptsTest, DamagedStepsStopNoMark) {
  const auto id = commit_event("ann");
  const auto output = store_->first().outbox().outputs(key_of("ann"), 0, 1)->front();
  const std::string body = tests::receipt_step({{"what", "delivery"}, {"seq", 1}, {"status", 503}});
  const auto fail_with = [&](const std::string& damaged) {
    ASSERT_TRUE(store_->committer().write_and_wait([&](Writer& writer) {
      writer.connection().run(
          "INSERT INTO later_steps (steps, event_id) VALUES (:y, :i)"
          " ON CONFLICT (event_id) DO UPDATE SET steps = excluded.steps",
          damaged, id);
    }));
    store_->first().outbox().reschedule(key_of("ann"), output, clock_.now(), 1, {},
                                        ReceiptMark{id, body, clock_.now()});
    add(model::new_id(), step);  // after the mark
  };
  for (const std::string damaged : {"no step", "\x1e\x7f", "\x1e!\"delivery", "\x1e"}) {
    fail_with(damaged);
    EXPECT_EQ(store_->first().receipts().get(id).error().code, model::Errc::internal) << damaged;
  }
  const auto odd = later_step(tests::receipt_step({{"what", "delivery"},
                                                   {"seq", 1},
                                                   {"status", 503},
                                                   {"tries", "x"},
                                                   {"since", json::array()}}),
                              clock_.now());
  std::string eight;
  for (int n = 0; n < 8; ++n) eight += odd;
  fail_with(eight);
  const auto receipt = store_->first().receipts().get(id);
  ASSERT_TRUE(receipt);
  ASSERT_EQ(receipt->rows.size(), 9U);
  EXPECT_EQ(receipt->rows.back().body["tries"], 2);
}

TEST_F(ReceiptsTest, ManyEqualTriesInARowShareTheLastStep) {
  const auto id = commit_event("ann");
  const auto output = store_->first().outbox().outputs(key_of("ann"), 0, 1)->front();
  const auto fail = [&](int attempt, int status) {
    const json body{{"what", "delivery"},
                    {"seq", 1},
                    {"try", attempt},
                    {"at", attempt * 100},
                    {"status", status}};
    store_->first().outbox().reschedule(key_of("ann"), output, clock_.now(), attempt, {},
                                        ReceiptMark{id, tests::receipt_step(body), clock_.now()});
  };
  int attempt = 0;
  while (attempt < 10) fail(++attempt, 503);
  fail(++attempt, 500);
  add(model::new_id(), step);  // after the marks
  const auto receipt = store_->first().receipts().get(id);
  ASSERT_EQ(receipt->rows.size(), 10U);
  EXPECT_EQ(receipt->rows[7].body["try"], 7);
  EXPECT_EQ(receipt->rows[8].body, (json{{"what", "delivery"},
                                         {"seq", 1},
                                         {"try", 10},
                                         {"tries", 3},
                                         {"since", 800},
                                         {"at", 1000},
                                         {"status", 503}}));
  EXPECT_EQ(receipt->rows[9].body["try"], 11);
}

TEST_F(ReceiptsTest, OutputKnowsWhatIsDeliveredBeforeIt) {
  const auto first = commit_event("ann");
  clock_.advance(1s);
  const auto second = commit_event("ann");
  EXPECT_FALSE(store_->first().receipts().get(first)->outputs.at(0).is_behind);
  EXPECT_TRUE(store_->first().receipts().get(second)->outputs.at(0).is_behind);
  EXPECT_EQ(store_->first().receipts().get(second)->delivered_before, model::Timestamp());
  const auto output = store_->first().outbox().outputs(key_of("ann"), 0, 1)->front();
  store_->first().outbox().delivered(
      key_of("ann"), output, 0, {},
      ReceiptMark{first, tests::receipt_step({{"what", "delivery"}, {"seq", 1}}), clock_.now()});
  add(model::new_id(), step);  // after the mark
  EXPECT_FALSE(store_->first().receipts().get(second)->outputs.at(0).is_behind);
  EXPECT_EQ(store_->first().receipts().get(second)->delivered_before, clock_.now());
}

TEST_F(ReceiptsTest, NoSessionGetsTheIdOfARemovedOne) {
  commit_event("ann");
  const auto newest = [&] {
    return store_->committer()
        .write_and_wait([&](Writer& writer) {
          return writer.connection()
              .value<std::int64_t>("SELECT MAX(id) FROM sessions")
              .value_or(0);
        })
        .value();
  };
  const auto before = newest();
  ASSERT_TRUE(store_->committer().write_and_wait([](Writer& writer) {
    writer.connection().script(
        "DELETE FROM deliveries; DELETE FROM outputs; DELETE FROM sessions;");
  }));
  commit_event("bob");
  EXPECT_GT(newest(), before);
}

TEST_F(ReceiptsTest, IsFoundByEventOutputTraceAndKey) {
  const std::string trace = "4bf92f3577b34da6a3ce929d0e0e4736";
  const std::string like_it = "4bf92f3577b34da6a3ce929d0e0e4737";  // has the same number
  const std::string key = "00f067aa0ba902b700f067aa0ba902b7";
  const auto first = commit_event("ann", {.trace_id = trace, .key = key});
  clock_.advance(1s);
  const auto second = commit_event("bob", {.trace_id = trace});
  const auto third = commit_event("cid", {.trace_id = like_it});
  EXPECT_EQ(found(first), Ids{first});
  EXPECT_EQ(found(first + "-1"), Ids{first}) << "an output";
  EXPECT_EQ(found(first + "-c2"), Ids{first}) << "a call";
  EXPECT_EQ(found(trace), (Ids{first, second}));
  EXPECT_EQ(found(like_it), Ids{third});
  EXPECT_EQ(found("the client's own key", key), Ids{first});
  EXPECT_EQ(found(model::new_id()), Ids{});
  EXPECT_EQ(found(first + "x"), Ids{});
  EXPECT_EQ(store_->first().receipts().find("another project", first, key, 10).value(), Ids{});
}

// A daemon's own trace has rows in `receipt_numbers` only for its later events.
TEST_F(ReceiptsTest, TraceOfTheDaemonIsFoundInItsFirstSecondAndLater) {
  // As model::new_trace_id makes them.
  std::ostringstream began;
  began << std::hex << std::setw(12) << std::setfill('0') << model::to_unix_ms(clock_.now());
  const std::string own = began.str() + "00000000000000000001";
  const std::string next = began.str() + "00000000000000000002";
  const auto first = commit_event("ann", {.trace_id = own});
  clock_.advance(999ms);
  const auto second = commit_event("ann", {.trace_id = own});
  const auto other = commit_event("bob", {.trace_id = next});
  clock_.advance(1ms);
  const auto third = commit_event("ann", {.trace_id = own});
  EXPECT_EQ(found(own), (Ids{first, second, third}));
  EXPECT_EQ(found(next), Ids{other});
  clock_.advance(-5ms);
  auto commit = turn(key_of("cem"), 0, ++offset_);
  const auto fourth = model::new_id(clock_.now());
  clock_.advance(10ms);
  const auto fifth = model::new_id(clock_.now());
  for (const auto& id : {fourth, fifth}) {
    commit.receipts.push_back(
        {.input_id = id, .first = NewReceiptRow::First{.trace_id = own}, .body = step});
  }
  ASSERT_EQ(commit_now(std::move(commit)), Outcome::committed);
  EXPECT_EQ(found(own), (Ids{first, fourth, second, third, fifth}))
      << "a block lies on both sides of the second's end";
  EXPECT_EQ(store_->first().receipts().find("project", own, "", 2).value(), (Ids{first, fourth}));
  EXPECT_EQ(trace_number(own, second), std::nullopt);
  EXPECT_EQ(trace_number(own, third), key_number(own));
  const std::string late(32, 'f');  // no year has this time
  EXPECT_EQ(trace_number(late, third), key_number(late));
}

TEST(StoredSteps, LongTextsArePacked) {
  const auto long_text = tests::receipt_step({{"what", "turn"}, {"text", std::string(900, 'x')}});
  const auto stored = packed(long_text);
  EXPECT_LT(stored.size(), long_text.size() / 2) << stored;
  EXPECT_EQ(unpacked(stored), long_text);
  EXPECT_EQ(read_step(long_text), json({{"what", "turn"}, {"text", std::string(900, 'x')}}));
  EXPECT_EQ(packed("short"), "short");
  EXPECT_EQ(packed(std::string(400, 'x')), std::string(400, 'x'));
  EXPECT_LT(packed(std::string(400, 'x'), 300).size(), 100U);
  EXPECT_EQ(unpacked("short"), "short");
  for (const auto& damaged : {std::string("~?"), std::string("~KLUv"), stored.substr(0, 20)}) {
    EXPECT_EQ(unpacked(damaged), std::nullopt) << damaged;
    EXPECT_EQ(read_step(damaged), std::nullopt) << damaged;
  }
  std::string random;
  for (int i = 0; i < 40; ++i) random += model::random_hex(100);
  EXPECT_EQ(unpacked(packed(random)), random);
}

TEST(StoredSteps, StepWithoutABeginBeganBeforeItWasWritten) {
  const auto stored =
      later_step(tests::receipt_step({{"what", "call"}, {"us", 2'500}}), model::from_unix_ms(9)) +
      later_step(tests::receipt_step({{"what", "turn"}, {"at", 3}}), model::from_unix_ms(9));
  EXPECT_EQ(read_later_steps(stored),
            json::array({{{"what", "call"}, {"w", 9}, {"us", 2'500}, {"at", 7}},
                         {{"what", "turn"}, {"w", 9}, {"at", 3}}}));
  for (const json& odd :
       {json{{"us", std::numeric_limits<std::int64_t>::min()}}, json{{"us", "x"}}}) {
    auto step = odd;
    step["what"] = "call";
    const auto read =
        read_later_steps(later_step(tests::receipt_step(step), model::from_unix_ms(9)));
    EXPECT_EQ(read->front()["at"], 9);
  }
  EXPECT_EQ(read_later_steps(later_step(tests::receipt_step({{"us", 1}}), model::from_unix_ms(9))),
            std::nullopt)
      << "it does not say what it is";
  EXPECT_EQ(read_later_steps(stored.substr(begin_of_last_step(stored)))->size(), 1U);
  EXPECT_EQ(read_later_steps(""), json::array());
}

TEST(StoredSteps, AnswersOfCallsAreUnpacked) {
  const nlohmann::json answer{{"status", 200}, {"body", std::string(900, 'x')}};
  nlohmann::json step{{"recorded", {{"result", {{"id", "c"}, {"answer", packed(answer.dump())}}}}}};
  EXPECT_LT(step.dump().size(), 200U);
  unpack_answer(step);
  EXPECT_EQ(step["recorded"]["result"], (nlohmann::json{{"id", "c"}, {"answer", answer}}));
  step["recorded"]["result"]["answer"] = "damaged";
  unpack_answer(step);
  EXPECT_EQ(step["recorded"]["result"], (nlohmann::json{{"id", "c"}}));
  for (nlohmann::json other :
       {nlohmann::json(), nlohmann::json("text"), nlohmann::json{{"what", "turn"}}}) {
    const auto before = other;
    unpack_answer(other);
    EXPECT_EQ(other, before);
  }
}

TEST_F(ReceiptsTest, ReadOfTheNewestIsBoundedByItsSize) {
  const std::string long_step = tests::receipt_step({{"what", std::string(60'000, 'x')}});
  constexpr int users = 40;
  std::string newest;
  for (int i = 0; i < users; ++i) {
    newest = commit_event("user" + std::to_string(i));
    add(newest, long_step);
  }
  const auto rows = store_->first().receipts().newest("project", 500, 2'000);
  ASSERT_TRUE(rows) << rows.error().message;
  EXPECT_EQ(rows->front().input_id, newest);
  EXPECT_GT(rows->size(), 2U * 30);
  EXPECT_LT(rows->size(), 2U * users);
  EXPECT_EQ(store_->first().receipts().newest("project", 3, 2'000)->size(), 6U);
  EXPECT_EQ(store_->first().receipts().newest("project", 500, 5)->size(), 4U);
}

TEST_F(ReceiptsTest, RetentionCutsChainsOffAtTheirEnd) {
  Ids ids;
  for (int i = 0; i < 4; ++i) {
    ids.insert(ids.begin(), commit_event("ann"));
    add(ids.front(), step);
    clock_.advance(1h);
  }
  EXPECT_EQ(chain("ann"), ids);
  EXPECT_EQ(prune(3h), 1) << "the oldest event, however young its later steps are";
  ids.pop_back();
  EXPECT_EQ(chain("ann"), ids);
  EXPECT_EQ(store_->first().receipts().prune(clock_.now(), 2).value(), 2) << "in bounded steps";
  const auto steps_left = [&] {
    return store_->committer()
        .write_and_wait([](Writer& writer) {
          return writer.connection().number("SELECT COUNT(*) FROM later_steps");
        })
        .value();
  };
  EXPECT_EQ(steps_left(), 1) << "later steps go with their receipt";
  EXPECT_EQ(prune(0ms), 1);
  EXPECT_EQ(prune(0ms), 0);
  EXPECT_EQ(steps_left(), 0);
}

// The id of a request's repeat is that of the first request, which may be a day older.
TEST_F(ReceiptsTest, ReceiptThatLinksToAYoungerOneStaysAsLong) {
  const auto of_repeat = model::new_id(clock_.now());
  clock_.advance(2h);
  const auto younger = commit_event("ann");
  auto commit = turn(key_of("ann"), versions_["ann"]++, ++offset_);
  commit.receipts.push_back({.input_id = of_repeat, .first = NewReceiptRow::First{}, .body = step});
  commit.receipts.back().first->previous = younger;
  commit.after.last_receipt = of_repeat;
  ASSERT_EQ(commit_now(std::move(commit)), Outcome::committed);
  EXPECT_EQ(prune(1h), 0) << "an erasure would not find the younger receipt";
  EXPECT_EQ(chain("ann"), (Ids{of_repeat, younger}));
  clock_.advance(2h);
  EXPECT_EQ(prune(1h), 2);
}

// Each delivery that joins a block rewrites it.
TEST_F(ReceiptsTest, OnlyTheFirstDeliveriesOfAnEventStandInBlocks) {
  const auto id = commit_event("ann");
  auto output = store_->first().outbox().outputs(key_of("ann"), 0, 1)->front();
  const auto began = model::to_unix_ms(clock_.now());
  for (int n = 1; n <= 30; ++n) {
    output.id = id + '-' + std::to_string(n);
    store_->first().outbox().delivered(
        key_of("ann"), output, 0, {},
        PlainDelivery{.input_id = id, .seq = n, .at = clock_.now(), .took = 1ms, .status = 200});
    clock_.advance(1ms);
  }
  ASSERT_TRUE(store_->committer().write_and_wait(
      [&](Writer& writer) { EXPECT_EQ(plain_deliveries(writer.connection(), id).size(), 20U); }));
  const auto receipt = store_->first().receipts().get(id);
  ASSERT_EQ(receipt->rows.size(), 31U);
  for (std::size_t n = 1; n <= 30; ++n) {
    EXPECT_EQ(receipt->rows[n].body, json({{"what", "delivery"},
                                           {"seq", n},
                                           {"try", 1},
                                           {"us", 1'000},
                                           {"status", 200},
                                           {"at", began + static_cast<std::int64_t>(n) - 2}}));
  }
}

// Else the chain of the other session would end before it, and an erasure would not find it.
TEST_F(ReceiptsTest, OnlyTheReceiptThatLinksToAYoungerOneStaysInItsBlock) {
  const auto of_repeat = model::new_id(clock_.now());
  const auto of_other = model::new_id(clock_.now());
  clock_.advance(2h);
  const auto younger = commit_event("ann");
  auto commit = turn(key_of("ann"), versions_["ann"]++, ++offset_);
  commit.receipts.push_back({.input_id = of_repeat, .first = NewReceiptRow::First{}, .body = step});
  commit.receipts.back().first->previous = younger;
  commit.receipts.push_back({.input_id = of_other, .first = NewReceiptRow::First{}, .body = step});
  ASSERT_EQ(commit_now(std::move(commit)), Outcome::committed);
  EXPECT_EQ(prune(1h), 1);
  EXPECT_TRUE(store_->first().receipts().get(of_repeat));
  EXPECT_FALSE(store_->first().receipts().get(of_other));
}

TEST_F(ReceiptsTest, SessionStaysWhileItHasReceipts) {
  commit_event("ann");
  const auto output = store_->first().outbox().outputs(key_of("ann"), 0, 1)->front();
  store_->first().outbox().delivered(key_of("ann"), output, 0);
  clock_.advance(24h);
  ASSERT_EQ(store_->first().outbox().prune(clock_.now(), 0, 10)->removed, 1);
  const auto prune_sessions = [&](std::chrono::milliseconds receipts_age) {
    const auto finished = [](const model::Position&) { return true; };
    const auto receipts_before = clock_.now() - receipts_age;
    return store_->first()
        .sessions()
        .prune(clock_.now(), finished, receipts_before, 0, 10)
        ->removed;
  };
  for (const auto age : {1h, 48h}) {
    EXPECT_EQ(prune_sessions(age), 0) << "erasure finds the receipts through the session";
  }
  prune(1h);
  EXPECT_EQ(prune_sessions(1h), 1);
}

// The cost does not depend on the number of receipts, other than those that are shown.
TEST_F(ReceiptsTest, ReadsARangeOfAnIndex) {
  const bool postgres = place_.in_postgres();
  const std::int64_t number = 5;
  const std::string blocks = postgres ? "receipts_pkey" : "(rowid>? AND rowid<?)";
  expect_index_range(*store_, sql_of_blocks, {number, number}, blocks);
  expect_index_range(*store_, sql_of_traced_blocks, {number, number, "% trace %"}, blocks);
  expect_index_range(*store_, sql_of_next_old_block, {number, number}, blocks);
  for (const auto& sql : {sql_of_an_old_block, sql_to_delete_old_deliveries}) {
    const auto plan = plan_of(*store_, sql, {number, number});
    for (const char* const wrong : {"SCAN receipts", "SCAN plain_deliveries", "Seq Scan on"}) {
      EXPECT_EQ(plan.find(wrong), std::string::npos) << plan;
    }
  }
  expect_index_range(*store_, sql_of_plain_deliveries, {number, number},
                     postgres ? "plain_deliveries_pkey" : "(rowid>? AND rowid<?)");
  expect_index_range(*store_, sql_of_later_steps, {"id"},
                     postgres ? "later_steps_pkey" : "(event_id=?)");
  expect_index_range(*store_, sql_of_numbered_events, {number},
                     postgres ? "receipt_numbers_pkey" : "(number=?)");
  expect_index_range(*store_, sql_of_receipt_outputs, {number, number, number, "id", number},
                     "outputs_by_session");
}

}  // namespace
}  // namespace conversed::store
