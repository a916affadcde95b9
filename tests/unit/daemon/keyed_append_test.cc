#include "daemon/log/keyed_append.h"

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <future>
#include <map>
#include <mutex>

#include "store/model/ids.h"
#include "store/sql/sqlite.h"
#include "tests/unit/store/fixture.h"

// The state of a key after a failed append. tests/conformance/keyed_append_conformance.cc tests the
// behavior that all drivers share.
namespace conversed::daemon {
namespace {

using model::Errc;
using model::fail;
using model::Result;

// Keeps records in memory. An append fails as the test says, with or without storing the record.
class FailingLog final : public queue::Log {
 public:
  struct Failure {
    Errc code;
    bool stored;
  };
  void append(queue::Record record, queue::AppendCallback done) override {
    const std::lock_guard lock(mutex_);
    if (before) std::exchange(before, nullptr)();
    const auto failure = failures.empty() ? std::nullopt : std::optional(failures.front());
    if (failure) failures.pop_front();
    const model::Position position{1, 0, static_cast<std::int64_t>(records.size())};
    if (!failure || failure->stored) records.push_back(std::move(record));
    if (stored) stored();
    if (failure) return done(fail(failure->code, "as told"));
    done(queue::Appended{position});
  }
  Result<std::unique_ptr<queue::Consumer>> subscribe(queue::Listener& /*listener*/) override {
    return fail(Errc::unavailable, "nobody reads it");
  }
  Result<std::vector<queue::PartitionRange>> ranges() override {
    return std::vector<queue::PartitionRange>{};
  }
  Result<std::int64_t> new_epoch(std::int64_t above) override { return above + 1; }
  Result<void> health() override { return {}; }
  void stop() override {}

  std::function<void()> before;  // called once, by the next append
  std::deque<Failure> failures;
  std::function<void()> stored;  // called before the answer
  std::vector<queue::Record> records;

 private:
  std::mutex mutex_;
};

class KeyedAppendTest : public testing::Test {
 protected:
  void SetUp() override {
    store::StoreSettings settings;
    settings.data_dir = folder_.path();
    auto opened = store::Store::open(settings, clock_);
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    store_ = std::move(*opened);
    store_->committer().start();
    keyed_.emplace(log_, store_->append_keys(), clock_, rename_event);
  }
  void TearDown() override { store_->committer().stop(); }

  Result<queue::KeyedAppended> append(const model::Event& event, std::uint8_t body) {
    return begin(*keyed_, event, body).get();
  }
  static std::future<Result<queue::KeyedAppended>> begin(StoredKeyedAppend& keyed,
                                                         const model::Event& event,
                                                         std::uint8_t body) {
    queue::AppendKey key{"scope", "key", {}, ""};
    key.body_hash.fill(body);
    auto done = std::make_shared<std::promise<Result<queue::KeyedAppended>>>();
    keyed.append({event.session.encode(), event.id, "inject", "", model::encode_value(event)},
                 std::move(key), [done](auto outcome) { done->set_value(std::move(outcome)); });
    return done->get_future();
  }
  static model::Event event() {
    model::Event made;
    made.id = model::new_id();
    made.session = {"project", "endpoint", "user", "session"};
    made.text = "hello";
    made.claim = model::Claim{model::Claim::Kind::keyed_event, made.id};
    return made;
  }

  store::TempFolder folder_;
  store::ManualClock clock_;
  std::unique_ptr<store::Store> store_;
  FailingLog log_;
  std::optional<StoredKeyedAppend> keyed_;
};

TEST_F(KeyedAppendTest, AfterAnUnknownOutcomeTheNextUseRunsUnderTheFirstId) {
  for (const bool stored : {true, false}) {
    log_.failures.push_back({Errc::timed_out, stored});
  }
  const model::Event first = event();
  EXPECT_EQ(append(first, 1).error().code, Errc::timed_out);
  EXPECT_EQ(append(event(), 1).error().code, Errc::timed_out);
  const auto third = append(event(), 1);
  ASSERT_TRUE(third.has_value()) << third.error().message;
  EXPECT_EQ(third->id, first.id);
  ASSERT_EQ(log_.records.size(), 2U);
  for (const auto& record : log_.records) {
    EXPECT_EQ(record.id, first.id);
    const auto read = model::decode_event(record.key, record.id, record.type, "", record.value);
    ASSERT_TRUE(read.has_value());
    EXPECT_EQ(read->claim->id, first.id) << "both records have one claim";
  }
  EXPECT_TRUE(append(event(), 1)->repeated);
  EXPECT_EQ(log_.records.size(), 2U);
}

TEST_F(KeyedAppendTest, AfterAnUnknownOutcomeAnotherBodyIsAConflict) {
  log_.failures.push_back({Errc::timed_out, true});
  EXPECT_EQ(append(event(), 1).error().code, Errc::timed_out);
  EXPECT_EQ(append(event(), 2).error().code, Errc::conflict);
}

TEST_F(KeyedAppendTest, ACertainRefusalFreesItsKey) {
  for (const Errc code : {Errc::unavailable, Errc::too_many, Errc::bad_upstream}) {
    log_.failures.push_back({code, false});
    EXPECT_EQ(append(event(), 1).error().code, code);
    log_.failures.push_back({code, false});
    EXPECT_EQ(append(event(), 2).error().code, code) << "the key is free for another body";
  }
  const model::Event last = event();
  EXPECT_EQ(append(last, 3)->id, last.id);
}

TEST_F(KeyedAppendTest, ARefusalAfterAnUnknownOutcomeDoesNotFreeTheKey) {
  log_.failures.push_back({Errc::timed_out, true});
  log_.failures.push_back({Errc::unavailable, false});
  const model::Event first = event();
  EXPECT_EQ(append(first, 1).error().code, Errc::timed_out);
  EXPECT_EQ(append(event(), 1).error().code, Errc::unavailable);
  EXPECT_EQ(append(event(), 1)->id, first.id);
}

TEST_F(KeyedAppendTest, AFailingStoreIsReportedWithoutAWait) {
  auto other = store::open_sqlite(folder_ / "store.db", store::Connection::Role::writer,
                                  std::chrono::milliseconds(1));
  other->begin();
  EXPECT_EQ(append(event(), 1).error().code, Errc::unavailable);
  EXPECT_TRUE(log_.records.empty());
  other->rollback();
}

TEST_F(KeyedAppendTest, AnAppendedEventIsAnsweredEvenIfTheStoreFails) {
  auto other = store::open_sqlite(folder_ / "store.db", store::Connection::Role::writer,
                                  std::chrono::seconds(10));
  log_.stored = [&] { other->begin(); };
  const model::Event first = event();
  EXPECT_TRUE(append(first, 1));
  log_.stored = nullptr;
  other->rollback();
  auto again = append(event(), 1);
  while (!again && again.error().code == Errc::unavailable) again = append(event(), 1);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->id, first.id) << "with or without a second record";
}

// Two daemons with one store get the same key.
TEST_F(KeyedAppendTest, ARefusalDoesNotFreeAKeyThatAnotherDaemonHasUsedMeanwhile) {
  FailingLog others_log;
  StoredKeyedAppend other(others_log, store_->append_keys(), clock_, rename_event);
  // The other daemon finds the row of the first append, which then fails.
  std::future<Result<queue::KeyedAppended>> others;
  log_.before = [&] { others = begin(other, event(), 1); };
  log_.failures.push_back({Errc::unavailable, false});
  const model::Event first = event();
  EXPECT_EQ(append(first, 1).error().code, Errc::unavailable);
  const auto stored = others.get();
  ASSERT_TRUE(stored.has_value()) << stored.error().message;
  EXPECT_EQ(stored->id, first.id);
  const auto again = append(event(), 1);
  ASSERT_TRUE(again.has_value()) << again.error().message;
  EXPECT_TRUE(again->repeated);
  EXPECT_EQ(again->id, first.id);
  EXPECT_TRUE(log_.records.empty()) << "only the other log has a record";
}

}  // namespace
}  // namespace conversed::daemon
