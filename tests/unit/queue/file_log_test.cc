#include "queue/file/file_log.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <zlib.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <future>
#include <iostream>
#include <set>
#include <thread>

#include "tests/unit/queue/file_log_fixture.h"

namespace conversed::queue {
namespace {

using namespace std::chrono_literals;

TEST_F(FileLogTest, CallbacksComeInTheOrderOfTheAppends) {
  open();
  std::vector<std::int64_t> offsets;
  for (int n = 0; n < 5'000; ++n) {
    log_->append(Record{"key", std::to_string(n), "", "", ""},
                 [&](Result<Appended> outcome) { offsets.push_back(outcome->position.offset); });
  }
  log_->stop();
  ASSERT_EQ(offsets.size(), 5'000U);
  for (std::size_t at = 0; at < offsets.size(); ++at) {
    ASSERT_EQ(offsets[at], static_cast<std::int64_t>(at));
  }
}

TEST_F(FileLogTest, AFullBufferRefusesAtOnceAndTakesMoreLater) {
  settings_.max_waiting_records = 2;
  open();
  // The first callback holds the log's thread, so that later appends have to wait.
  std::promise<void> entered;
  std::promise<void> release;
  log_->append(Record{"key", "0", "", "", ""}, [&](const Result<Appended>&) {
    entered.set_value();
    release.get_future().wait();
  });
  entered.get_future().wait();
  std::promise<void> both;
  std::atomic<int> appended = 0;
  int refused = 0;
  for (int n = 1; n <= 5; ++n) {
    log_->append(Record{"key", std::to_string(n), "", "", ""},
                 [&](const Result<Appended>& outcome) {
                   if (!outcome) {
                     EXPECT_EQ(outcome.error().code, Errc::too_many);
                     ++refused;
                   } else if (++appended == 2) {
                     both.set_value();
                   }
                 });
  }
  EXPECT_EQ(refused, 3);
  release.set_value();
  both.get_future().wait();
  EXPECT_TRUE(append("6").has_value());
}

// All records are of one share, except for one of the key `small` and none of the key `other`.
class OneShare final : public Backlog {
 public:
  [[nodiscard]] std::size_t in_flight() const override { return records; }
  [[nodiscard]] std::size_t in_flight_of_share(const std::string& key) const override {
    if (key == "small") return 1;
    return key == "other" ? 0 : records.load();
  }
  std::atomic<std::size_t> records{0};
};

// A log whose appends wait for a day, or for `max_pause`, once the consumer has finished a record.
class FileLogPauses : public FileLogTest {
 protected:
  void SetUp() override {
    settings_.records_a_pause = 1;
    settings_.max_pause = 24h;
    settings_.finished_lately = 1h;
  }
  void begin() {
    open();
    for (const char* id : {"0", "1"}) ASSERT_TRUE(append(id));
    consumer_ = *log_->subscribe(listener_);
    consumer_->slow_down_for(backlog_);
    records_ = *consumer_->poll(2, 0ms);
    ASSERT_EQ(records_.size(), 2U);
    backlog_.records = 100'000'000;
    ASSERT_TRUE(append("2"));  // its batch finds the backlog
    ASSERT_TRUE(append("3")) << "the consumer finishes nothing";
  }
  void finish(std::size_t n) {
    const std::vector<Position> last{records_.at(n).position};
    ASSERT_TRUE(consumer_->commit(last));
  }
  std::future<std::int64_t> begin_append(std::string key = "key") {
    auto done = std::make_shared<std::promise<std::int64_t>>();
    log_->append(Record{std::move(key), "paused", "inject", "", "v"},
                 [done](const Result<Appended>& outcome) {
                   done->set_value(outcome ? outcome->position.offset : -1);
                 });
    return done->get_future();
  }
  static bool waits(const std::future<std::int64_t>& append) {
    return append.wait_for(20ms) == std::future_status::timeout;
  }

  OneShare backlog_;
  std::unique_ptr<Consumer> consumer_;
  std::vector<LogRecord> records_;
};

TEST_F(FileLogPauses, WhileTheShareHasABacklogUntilTheStop) {
  begin();
  finish(0);
  auto first = begin_append();
  EXPECT_TRUE(waits(first));
  finish(1);
  EXPECT_TRUE(waits(first)) << "a position does not end the pause";
  backlog_.records = 0;
  auto second = begin_append();
  EXPECT_TRUE(waits(second)) << "it follows the first one of its key";
  EXPECT_EQ(begin_append("next").get(), 4);
  log_->stop();
  EXPECT_EQ(first.get(), 5);
  EXPECT_EQ(second.get(), 6);
}

TEST_F(FileLogPauses, GrowWithTheBacklogAndEndByThemselves) {
  settings_.records_a_pause = 50'000'000;  // so a pause takes two milliseconds
  begin();
  finish(0);
  for (std::int64_t n = 4; n < 20; ++n) EXPECT_EQ(begin_append().get(), n);
}

TEST_F(FileLogPauses, AreShort) {
  settings_.max_pause = 2ms;
  begin();
  finish(0);
  for (std::int64_t n = 4; n < 20; ++n) EXPECT_EQ(begin_append().get(), n);
}

TEST_F(FileLogPauses, NotWhileNothingWasFinishedLately) {
  settings_.finished_lately = 0ms;
  begin();
  finish(0);
  EXPECT_EQ(begin_append().get(), 4);
}

TEST_F(FileLogPauses, NotWithoutAConsumer) {
  begin();
  finish(0);
  consumer_.reset();
  EXPECT_EQ(begin_append().get(), 4);
}

TEST_F(FileLogPauses, NotForTheRecordsOfAnotherShare) {
  begin();
  finish(0);
  auto paused = begin_append();
  EXPECT_EQ(begin_append("other").get(), 4);
  EXPECT_EQ(begin_append("small").get(), 5) << "its own pause is a millisecond";
  EXPECT_EQ(begin_append("other").get(), 6);
  EXPECT_TRUE(waits(paused));
  log_->stop();
  EXPECT_EQ(paused.get(), 7);
}

TEST_F(FileLogTest, ARecordAboveTheLimitIsRefused) {
  settings_.max_record_bytes = 1'000;
  open();
  EXPECT_EQ(append("a", std::string(1'001, 'x')).error().code, Errc::too_large);
  EXPECT_TRUE(append("b", std::string(900, 'x')).has_value());
}

TEST_F(FileLogTest, ThereIsOneConsumerAtATime) {
  open();
  {
    auto first = log_->subscribe(listener_);
    ASSERT_TRUE(first.has_value());
    EXPECT_EQ(log_->subscribe(listener_).error().code, Errc::conflict);
  }
  EXPECT_TRUE(log_->subscribe(listener_).has_value());
}

TEST_F(FileLogTest, ASlowConsumerReadsTheFileAndThenCatchesUpWithTheTail) {
  settings_.max_tail_records = 16;
  open();
  auto consumer = log_->subscribe(listener_);
  std::jthread appender([this] {
    for (int n = 0; n < 3'000; ++n) {
      log_->append(Record{"key", std::to_string(n), "", "", ""},
                   [](const Result<Appended>& outcome) { EXPECT_TRUE(outcome.has_value()); });
    }
  });
  std::int64_t expected = 0;
  while (expected < 3'000) {
    const auto some = (*consumer)->poll(7, 10s).value();
    for (const auto& each : some) {
      ASSERT_EQ(each.position.offset, expected);
      ASSERT_EQ(each.record.id, std::to_string(expected));
      ++expected;
    }
  }
}

// A child process appends one record after the other until a fault point kills it at the fifth.
class FileLogDeathTest : public FileLogTest {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    // The child runs this test from its start. It has to find its parent's folder.
    setenv("CONVERSED_TEST_LOG", path_.c_str(), 0);
  }
  void TearDown() override {
    unsetenv("CONVERSED_TEST_LOG");
    unsetenv("CONVERSED_TEST_KILL_AT");
  }
  void append_until_killed() {
    path_ = getenv("CONVERSED_TEST_LOG");
    open();
    for (int n = 0; n < 10; ++n) {
      if (append(std::to_string(n))) std::cerr << "appended " << n << "\n";
    }
    finish_all();
  }
};

TEST_F(FileLogDeathTest, KilledBeforeACommitTheRecordWasNeitherAnsweredNorKept) {
  setenv("CONVERSED_TEST_KILL_AT", "log.before_commit:5", 1);
  EXPECT_EXIT(append_until_killed(), testing::KilledBySignal(SIGKILL), "appended 3\n$");
  open();
  EXPECT_EQ(range().end, 4);
}

TEST_F(FileLogDeathTest, KilledAfterACommitTheRecordIsKeptUnanswered) {
  setenv("CONVERSED_TEST_KILL_AT", "log.after_commit:5", 1);
  EXPECT_EXIT(append_until_killed(), testing::KilledBySignal(SIGKILL), "appended 3\n$");
  open();
  EXPECT_EQ(range().end, 5);
}

TEST_F(FileLogDeathTest, KilledBeforeAPositionCommitEverythingIsDeliveredAgain) {
  setenv("CONVERSED_TEST_KILL_AT", "log.before_position_commit", 1);
  EXPECT_EXIT(append_until_killed(), testing::KilledBySignal(SIGKILL), "appended 9\n$");
  open();
  EXPECT_EQ(range().committed, 0);
  EXPECT_EQ(range().end, 10);
}

TEST_F(FileLogDeathTest, KilledAfterAPositionCommitNothingIsDeliveredAgain) {
  setenv("CONVERSED_TEST_KILL_AT", "log.after_position_commit", 1);
  EXPECT_EXIT(append_until_killed(), testing::KilledBySignal(SIGKILL), "appended 9\n$");
  open();
  EXPECT_EQ(range().committed, 10);
}

TEST_F(FileLogTest, SegmentsWithoutUnfinishedRecordsAreUsedAgain) {
  settings_.segment_bytes = 65'536;
  open();
  const std::string value(2'000, 'x');
  for (int round = 0; round < 30; ++round) {
    for (int n = 0; n < 20; ++n) ASSERT_TRUE(append(std::to_string(n), value).has_value());
    finish_all();
  }
  EXPECT_LE(files(), 5U) << "1.2 MB were written to files of 64 KiB";
  EXPECT_GT(range().first, 500);
  EXPECT_EQ(range().end, 600);
  open();
  EXPECT_EQ(range().end, 600);
  EXPECT_EQ(range().committed, 600);
}

TEST_F(FileLogTest, AnErrorNamesAFileThatIsUsedAgainByItsNewName) {
  settings_.segment_bytes = 65'536;
  open();
  for (int n = 0; n < 200; ++n) {
    ASSERT_TRUE(append(std::to_string(n), std::string(1'000, 'x')));
    if (n % 20 == 0) finish_all();
  }
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(path_)) {
    names.insert(entry.path().filename());
  }
  ASSERT_FALSE(names.contains("000000000001"));
  // A limit on the size of files makes each write fail.
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  const auto before = std::exchange(limit.rlim_cur, 1);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  const auto failed = append("refused");
  limit.rlim_cur = before;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().message.find("log/" + *names.rbegin()), std::string::npos)
      << failed.error().message;
}

TEST_F(FileLogTest, UnfinishedRecordsOutliveManySegments) {
  settings_.segment_bytes = 32'768;
  open();
  for (int n = 0; n < 300; ++n) {
    ASSERT_TRUE(append(std::to_string(n), std::string(1'000, 'x')).has_value());
  }
  EXPECT_EQ(range().first, 0);
  open();
  auto consumer = log_->subscribe(listener_);
  const auto records = (*consumer)->poll(1'000, 0ms).value();
  ASSERT_EQ(records.size(), 300U);
  for (std::size_t at = 0; at < records.size(); ++at) {
    EXPECT_EQ(records[at].record.id, std::to_string(at));
  }
}

TEST_F(FileLogTest, HeldPruningKeepsFinishedRecordsAndRewindDeliversThemAgain) {
  settings_.segment_bytes = 4'096;
  settings_.pruning = Pruning::held;
  open();
  const std::string value(10'000, 'x');
  for (int n = 0; n < 20; ++n) ASSERT_TRUE(append(std::to_string(n), value).has_value());
  finish_all();
  ASSERT_TRUE(append("20").has_value());
  EXPECT_EQ(range().first, 0);
  open();  // as a restore does: nothing goes out of use before the rewind
  EXPECT_EQ(log_->rewind({0, 0}).error().code, Errc::invalid_argument);
  ASSERT_TRUE(log_->rewind({99}).has_value());
  EXPECT_EQ(range().committed, 20) << "a rewind only goes back";
  ASSERT_TRUE(log_->rewind({7}).has_value());
  {
    auto consumer = log_->subscribe(listener_);
    EXPECT_EQ((*consumer)->poll(100, 0ms).value().size(), 14U);
    EXPECT_EQ(log_->rewind({0}).error().code, Errc::conflict);
  }
  settings_.pruning = Pruning::on;
  open();
  auto consumer = log_->subscribe(listener_);
  EXPECT_EQ((*consumer)->poll(100, 0ms).value().size(), 14U);
}

TEST_F(FileLogTest, OffsetsAreNotUsedAgainWhenEverythingWasFinishedAndErased) {
  open();
  for (int n = 0; n < 10; ++n) ASSERT_TRUE(append(std::to_string(n)).has_value());
  finish_all();
  ASSERT_TRUE(log_->purge().has_value());
  open();
  EXPECT_EQ(range().end, 10);
  EXPECT_EQ(append("10")->position.offset, 10);
}

TEST_F(FileLogTest, AFullDiskRefusesAndHealsOnceRecordsAreFinished) {
  settings_.segment_bytes = 100'000;
  faulty_.set_space(400'000);
  open_faulty();
  const std::string value(10'000, 'x');
  int appended = 0;
  Result<Appended> outcome = append("0", value);
  while (outcome) outcome = append(std::to_string(++appended), value);
  EXPECT_GE(appended, 20);
  EXPECT_EQ(outcome.error().code, Errc::unavailable);
  EXPECT_FALSE(log_->health().has_value());
  EXPECT_EQ(range().end, appended);
  // No record is finished, so the disk stays full. The records stay readable.
  EXPECT_EQ(append("again", value).error().code, Errc::unavailable);
  finish_all();
  // A commit and the log's own attempts make room. No restart is needed.
  EXPECT_TRUE(append("healed", value).has_value());
  EXPECT_TRUE(log_->health().has_value());
  open_faulty();
  EXPECT_EQ(range().end, appended + 1);
}

TEST_F(FileLogTest, AfterAFailedSyncTheLogGoesOnInAnotherSegmentWithoutTheLostRecords) {
  open_faulty();
  ASSERT_TRUE(append("0").has_value());
  faulty_.fail_syncs(true);
  EXPECT_EQ(append("lost").error().code, Errc::timed_out);
  EXPECT_FALSE(append("refused").has_value());
  EXPECT_FALSE(log_->health().has_value());
  faulty_.fail_syncs(false);
  ASSERT_TRUE(append("1").has_value());
  EXPECT_TRUE(log_->health().has_value());
  for (int round = 0; round < 2; ++round) {
    auto consumer = log_->subscribe(listener_);
    const auto records = (*consumer)->poll(10, 0ms).value();
    ASSERT_EQ(records.size(), 2U);
    EXPECT_EQ(records[0].record.id, "0");
    EXPECT_EQ(records[1].record.id, "1");
    EXPECT_EQ(records[1].position.offset, 1);
    consumer->reset();
    open_faulty();
  }
}

TEST_F(FileLogTest, ALogOfANewerFormatIsRefused) {
  open_faulty();
  log_.reset();
  // The format is the first byte of the first payload, behind its checksum.
  std::string& bytes = *faulty_.files().begin()->second;
  ASSERT_EQ(bytes[frame_head_bytes], static_cast<char>(log_format));
  bytes[frame_head_bytes] = static_cast<char>(log_format + 1);
  const auto frame = frame_in(bytes);
  ASSERT_TRUE(frame);
  const std::uint64_t seed[] = {1, frame->payload.size()};
  const auto checksum = static_cast<std::uint32_t>(
      ::crc32_z(::crc32_z(0, reinterpret_cast<const Bytef*>(seed), sizeof seed),
                reinterpret_cast<const Bytef*>(frame->payload.data()), frame->payload.size()));
  std::memcpy(bytes.data() + 12, &checksum, sizeof checksum);
  const auto log = FileLog::open(faulty_.view(), settings_, kept_, clock_);
  ASSERT_FALSE(log.has_value());
  EXPECT_EQ(log.error().code, Errc::not_supported);
}

TEST_F(FileLogTest, AFileOfUnknownSizeIsReportedAndIsNotTakenForAnEmptyOne) {
  open_faulty();
  ASSERT_TRUE(append("kept"));
  log_.reset();
  faulty_.fail_sizes(true);
  const auto refused = FileLog::open(faulty_.view(), settings_, kept_, clock_);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Errc::unavailable);
  faulty_.fail_sizes(false);
  open_faulty();
  EXPECT_EQ(range().end, 1);
}

TEST_F(FileLogTest, WrongSettingsAndAMissingFolderAreRefused) {
  settings_.partitions = 0;
  EXPECT_EQ(try_open().error().code, Errc::invalid_argument);
  settings_.partitions = 1;
  path_ = folder_ / "missing" / "log";
  EXPECT_EQ(try_open().error().code, Errc::unavailable);
}

TEST_F(FileLogTest, FilesArePrivateWhateverTheUmask) {
  const mode_t before = ::umask(0);
  open();
  ::umask(before);
  struct stat status {};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700U);
  for (const auto& entry : std::filesystem::directory_iterator(path_)) {
    ASSERT_EQ(::stat(entry.path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600U) << entry.path();
  }
}

TEST_F(FileLogTest, KeysMoveToTheStoreAndItsFailureBoundsThem) {
  settings_.max_keys = 4;
  open();
  kept_.set_failing(true);
  // Keys are looked up in the store before they are new.
  EXPECT_EQ(append_keyed("0", key("k0", 1)).error().code, Errc::unavailable);
  EXPECT_TRUE(append("plain").has_value());
  kept_.set_failing(false);
  for (int n = 0; n < 50; ++n) {
    ASSERT_TRUE(append_keyed(std::to_string(n), key("k" + std::to_string(n), 1)).has_value());
    EXPECT_TRUE(append_keyed("again", key("k0", 1))->repeated);
  }
  EXPECT_GE(kept_.size(), 40U);
}

TEST_F(FileLogTest, KeysMoveOnceTheStoreWorksAgainWhileAppendsAreRefused) {
  settings_.max_keys = 4;
  open();
  kept_.set_refusing(true);
  int taken = 0;
  while (append_keyed(std::to_string(taken), key("k" + std::to_string(taken), 1))) ++taken;
  EXPECT_GE(taken, 4);
  kept_.set_refusing(false);
  // An append that is refused makes the log hand its keys over.
  static_cast<void>(append_keyed("next", key("next", 1)));
  EXPECT_TRUE(append_keyed("later", key("later", 1)));
}

TEST_F(FileLogTest, AFullDiskHealsWhileAppendsGoOnOnceABackupIsDone) {
  settings_.segment_bytes = 100'000;
  faulty_.set_space(400'000);
  open_faulty();
  log_->set_pruning(Pruning::held);
  const std::string value(10'000, 'x');
  while (append("id", value)) {
  }
  finish_all();
  EXPECT_FALSE(append("held", value));
  log_->set_pruning(Pruning::on);
  // No record is left to finish, and no pause between the appends.
  auto outcome = append("again", value);
  for (int tries = 0; tries < 3 && !outcome; ++tries) outcome = append("again", value);
  EXPECT_TRUE(outcome) << outcome.error().message;
}

TEST_F(FileLogTest, AFullDiskLeavesNoKey) {
  settings_.segment_bytes = 100'000;
  faulty_.set_space(200'000);
  open_faulty();
  ASSERT_TRUE(append_keyed("id", key("before", 1)).has_value());
  while (append("filler", std::string(5'000, 'x')).has_value()) {
  }
  while (append("filler").has_value()) {
  }
  const auto refused = append_keyed("id1", key("k", 1));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Errc::unavailable);
  // Appends fail, but look-ups of earlier appends still work.
  EXPECT_FALSE(look_up(key("k", 1))->has_value());
  EXPECT_TRUE(look_up(key("before", 1))->has_value());
  finish_all();
  EXPECT_FALSE(append_keyed("again", key("k", 1))->repeated);
}

TEST_F(FileLogTest, ACopyBesideAppendsIsALogOfOneMoment) {
  settings_.segment_bytes = 65'536;
  open();
  log_->set_pruning(Pruning::held);
  std::atomic<bool> copied = false;
  std::jthread appender([&] {
    for (int n = 0; !copied || n < 500; ++n) {
      ASSERT_TRUE(append(std::to_string(n), std::string(500, 'x')));
    }
  });
  ASSERT_TRUE(append("before"));
  const auto done = log_->copy(folder_ / "copy", [] { return true; });
  copied = true;
  appender.join();
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(log_->copy(folder_ / "ended", [] { return false; }).error().code, Errc::unavailable);
  ASSERT_TRUE(check_log(folder_ / "copy"));
  path_ = folder_ / "copy";
  open();
  const auto end = range().end;
  EXPECT_GT(end, 0);
  EXPECT_EQ(append("next")->position.offset, end);
  auto consumer = log_->subscribe(listener_);
  EXPECT_EQ((*consumer)->poll(1'000'000, 0ms)->size(), static_cast<std::size_t>(end + 1));
}

}  // namespace
}  // namespace conversed::queue
