// After an erasure the files have no byte of finished records, and no forgotten key.
#include <atomic>
#include <functional>
#include <future>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "store/model/hex.h"
#include "tests/unit/queue/file_log_fixture.h"

namespace conversed::queue {
namespace {

using namespace std::chrono_literals;

TEST_F(FileLogTest, PurgeLeavesNothingOfFinishedRecordsInTheFiles) {
  settings_.segment_bytes = 65'536;
  open();
  const std::string finished = "the finished record says this";
  const std::string waiting = "the waiting record says that";
  for (int n = 0; n < 1'000; ++n) ASSERT_TRUE(append(std::to_string(n), finished));
  log_->set_pruning(Pruning::held);
  finish_all();
  ASSERT_TRUE(append("1000", waiting));
  ASSERT_TRUE(in_files(finished));
  EXPECT_EQ(log_->purge().error().code, Errc::conflict);
  log_->set_pruning(Pruning::on);
  ASSERT_TRUE(log_->purge());
  EXPECT_FALSE(in_files(finished));
  EXPECT_TRUE(in_files(waiting));
  EXPECT_EQ(append("1001")->position.offset, 1'001) << "an offset was used twice";
  open();
  EXPECT_EQ(range().end, 1'002);
  auto consumer = log_->subscribe(listener_);
  EXPECT_EQ((*consumer)->poll(10, 0ms).value().size(), 2U);
}

TEST_F(FileLogTest, PurgeOverwritesWhatAnEarlierUseOfAFileLeftBehindTheFrames) {
  settings_.segment_bytes = 65'536;
  open();
  const std::string finished = "the finished record says this";
  for (int n = 0; n < 3'000; ++n) {
    ASSERT_TRUE(append(std::to_string(n), finished));
    if (n % 500 == 0) finish_all();
  }
  finish_all();
  ASSERT_TRUE(append("last"));
  ASSERT_TRUE(log_->purge());
  EXPECT_FALSE(in_files(finished));
  open();
  EXPECT_EQ(range().end, 3'001);
}

TEST_F(FileLogTest, PurgeOverwritesAFileThatWasTakenForABatchThatWasNotWritten) {
  settings_.segment_bytes = 65'536;
  open_faulty();
  const auto newest = [&] { return faulty_.view()->names().value().back(); };
  const std::string finished = "the finished record says this";
  const auto in_files = [&] { return faulty_.contents().find(finished) != std::string::npos; };
  for (const bool too_small : {false, true}) {
    ASSERT_TRUE(append_keyed("id", key("k", 1)));
    for (int n = 0; n < 1'000; ++n) ASSERT_TRUE(append(std::to_string(n), finished));
    finish_all();
    // A repeat writes nothing. But it needs more room than the other appends, so that in the end it
    // takes a file that is used again.
    std::string before;
    do {
      ASSERT_TRUE(append("short", ""));
      before = newest();
      ASSERT_TRUE(append_keyed("again", key("k", 1))->repeated);
    } while (newest() == before);
    ASSERT_TRUE(in_files());
    if (too_small) ASSERT_TRUE(append("large", std::string(100'000, 'x')));
    ASSERT_TRUE(log_->purge());
    EXPECT_FALSE(in_files());
  }
}

TEST_F(FileLogTest, AppendsGoOnWhileMuchIsErased) {
  open();
  const std::string mark = "MARK OF WHAT IS FINISHED ";
  std::string much;
  while (much.size() < 200'000) much += mark;
  for (int n = 0; n < 40; ++n) ASSERT_TRUE(append(std::to_string(n), much));
  finish_all();
  ASSERT_TRUE(in_files(mark));
  // Makes each append when the one before is durable. Between two appends the purge takes at most
  // one step.
  std::atomic<bool> erased = false;
  std::atomic<int> appended = 0;
  std::promise<void> ended;
  std::function<void(Result<Appended>)> again = [&](const Result<Appended>& done) {
    EXPECT_TRUE(done);
    ++appended;
    if (erased) return ended.set_value();
    log_->append(Record{"key", "after", "inject", "", "v"}, again);
  };
  log_->append(Record{"key", "after", "inject", "", "v"}, again);
  const int before = appended;
  EXPECT_TRUE(log_->purge());
  EXPECT_GE(appended - before, 8) << "one step of the purge took too long";
  erased = true;
  ended.get_future().wait();
  EXPECT_FALSE(in_files(mark));
  EXPECT_EQ(range().end, 40 + appended);
  open();
  EXPECT_EQ(range().end, 40 + appended);
}

TEST_F(FileLogTest, ForgottenKeysAreFreeAndInNoFile) {
  open();
  const auto repeated = [&](const std::string& record_key, const std::string& name) {
    std::promise<Result<KeyedAppended>> done;
    log_->append(Record{record_key, "id", "inject", "", "v"}, key(name, 'H'),
                 [&](Result<KeyedAppended> outcome) { done.set_value(std::move(outcome)); });
    return done.get_future().get()->repeated;
  };
  EXPECT_FALSE(repeated("ann\x1fs1", "KEYOFANN-1"));
  EXPECT_FALSE(repeated("ann\x1fs2", "KEYOFANN-2"));
  const std::string hash = model::hex(key("", 'H').body_hash);
  ASSERT_TRUE(in_files("KEYOFANN"));
  ASSERT_TRUE(in_files(hash));
  ASSERT_TRUE(log_->forget_keys({"ann\x1f", "ann\x20"}));
  ASSERT_TRUE(log_->purge());
  EXPECT_FALSE(in_files("KEYOFANN"));
  EXPECT_FALSE(in_files(hash));
  EXPECT_FALSE(repeated("bob\x1fs1", "KEYOFBOB"));
  ASSERT_TRUE(log_->forget_keys({"ann\x1f", "ann\x20"}));
  EXPECT_TRUE(repeated("bob\x1fs1", "KEYOFBOB")) << "the key of another session stays";
  open();
  kept_.forget({"ann\x1f", "ann\x20"});  // as an erasure does in the store
  EXPECT_TRUE(repeated("bob\x1fs1", "KEYOFBOB"));
  EXPECT_FALSE(repeated("ann\x1fs1", "KEYOFANN-1"))
      << "under a forgotten key a repeat is a new append";
}

// Takes keys when the test says so. An erasure overtakes a call by another thread than the first
// caller's.
class OvertakenKeys final : public store::KeptKeys {
 public:
  explicit OvertakenKeys(std::function<void()> overtake) : overtake_(std::move(overtake)) {}

  void keep(std::vector<store::KeptKey> keys, std::function<void(bool)> done) override {
    bool is_overtaken = false;
    {
      const std::lock_guard lock(mutex_);
      if (first_caller_ == std::thread::id()) first_caller_ = std::this_thread::get_id();
      is_overtaken = first_caller_ != std::this_thread::get_id();
    }
    if (is_overtaken) overtake_();
    const std::lock_guard lock(mutex_);
    for (auto& key : keys) kept_.push_back(std::move(key));
    done_ = std::move(done);
  }
  model::Result<std::optional<store::KeptKey>> find_kept(const std::string&, const std::string&,
                                                         model::Timestamp) override {
    return std::nullopt;
  }

  void take() {
    std::function<void(bool)> done;
    {
      const std::lock_guard lock(mutex_);
      done = std::exchange(done_, nullptr);
    }
    if (done) done(true);
  }
  // As an erasure does.
  void clear() {
    const std::lock_guard lock(mutex_);
    kept_.clear();
  }
  [[nodiscard]] std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return kept_.size();
  }

 private:
  const std::function<void()> overtake_;
  mutable std::mutex mutex_;
  std::thread::id first_caller_;
  std::vector<store::KeptKey> kept_;
  std::function<void(bool)> done_;
};

TEST_F(FileLogTest, AForgottenKeyDoesNotReachTheStoreLater) {
  std::function<void()> erase;
  OvertakenKeys kept([&] { erase(); });
  bool is_erased = false;
  erase = [&] {
    if (std::exchange(is_erased, true)) return;
    ASSERT_TRUE(log_->forget_keys({"key", "kez"}));
    kept.clear();
  };
  auto log = FileLog::open(faulty_.view(), settings_, kept, clock_);
  ASSERT_TRUE(log.has_value());
  log_ = std::move(*log);
  for (int n = 0; n < 2'000; ++n) {
    ASSERT_TRUE(append_keyed(std::to_string(n), key(std::to_string(n), 1)));
  }
  ASSERT_GT(kept.size(), 0U);
  kept.take();
  erase();
  ASSERT_TRUE(append("plain"));  // after a batch the log hands keys over
  EXPECT_EQ(kept.size(), 0U);
  log_.reset();
}

TEST_F(FileLogTest, UnfinishedRecordsAreCountedByTheirKeys) {
  open();
  ASSERT_TRUE(append("0"));
  EXPECT_EQ(log_->unfinished({"key", "kez"}).value(), 1);
  finish_all();
  EXPECT_EQ(log_->unfinished({"key", "kez"}).value(), 0)
      << "the finished record is kept, but does not count";
  ASSERT_TRUE(append("1"));
  ASSERT_TRUE(append("2"));
  EXPECT_EQ(log_->unfinished({"key", "kez"}).value(), 2);
  EXPECT_EQ(log_->unfinished({"kez", "key"}).value(), 0);
  EXPECT_EQ(log_->unfinished({"a", "key"}).value(), 0) << "the range does not include its end";
  EXPECT_EQ(log_->unfinished({}).value(), 0);
}

}  // namespace
}  // namespace conversed::queue
