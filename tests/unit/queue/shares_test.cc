// The order in which workers take runs. Keys are "<share> <number>". Time passes only when a test
// says so.
#include "queue/shares.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <set>

#include "tests/unit/queue/held_runs.h"

namespace conversed::queue {
namespace {

using namespace std::chrono_literals;

// Lanes whose workers stay in a run until the test lets them out.
class BlockedRuns {
 public:
  explicit BlockedRuns(std::size_t workers) : workers_(workers) {
    LanesSettings settings;
    settings.workers = workers;
    settings.share_of = [](const std::string& key) { return key.substr(0, key.find(' ')); };
    settings.now = [this] { return std::chrono::steady_clock::time_point(time_.load()); };
    lanes_ = std::make_unique<Lanes>(std::move(settings), [this](queue::Run&& run, Finish finish) {
      beats_ += run.heartbeat != nullptr ? 1 : 0;
      {
        std::unique_lock lock(mutex_);
        begun_.push_back(run.key);
        changed_.notify_all();
        changed_.wait(lock, [&] { return all_out_ || out_.contains(run.key); });
      }
      finish(Next::idle);
    });
    lanes_->assign(from_zero());
  }
  ~BlockedRuns() {
    let_all_out();
    lanes_.reset();
  }

  void offer(std::string key) { queue::offer(*lanes_, record(offset_++, std::move(key))); }
  void let_out(const std::string& key) {
    const std::lock_guard lock(mutex_);
    out_.insert(key);
    changed_.notify_all();
  }
  void let_all_out() {
    const std::lock_guard lock(mutex_);
    all_out_ = true;
    changed_.notify_all();
  }
  // Waits until the key's run has begun. Returns the keys of all begun runs, in order.
  std::vector<std::string> begun_with(const std::string& key) {
    std::unique_lock lock(mutex_);
    const bool came = changed_.wait_for(
        lock, 1min, [&] { return std::ranges::find(begun_, key) != begun_.end(); });
    EXPECT_TRUE(came) << key;
    return begun_;
  }
  void wait_until_finished() {
    while (lanes_->in_flight() > 0) std::this_thread::yield();
  }
  // Makes each worker begin a run, so that each has reported its earlier runs.
  void see_all_workers() {
    std::vector<std::string> probes;
    for (std::size_t at = 0; at < workers_; ++at) {
      probes.push_back("probe" + std::to_string(at) + " " + std::to_string(offset_));
      offer(probes.back());
    }
    for (const auto& probe : probes) begun_with(probe);
    for (const auto& probe : probes) let_out(probe);
    wait_until_finished();
    const std::lock_guard lock(mutex_);
    std::erase_if(begun_, [](const std::string& key) { return key.starts_with("probe"); });
  }
  // Runs the key for `took`.
  void run_for(const std::string& key, std::chrono::milliseconds took) {
    offer(key);
    begun_with(key);
    pass(took);
    let_out(key);
    wait_until_finished();
    see_all_workers();
  }
  void pass(std::chrono::milliseconds time) { time_ = time_.load() + time; }
  [[nodiscard]] int beats() const { return beats_; }

 private:
  const std::size_t workers_;
  std::atomic<std::chrono::steady_clock::duration> time_{1h};
  std::atomic<int> beats_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> begun_;
  std::set<std::string> out_;
  bool all_out_ = false;
  std::int64_t offset_ = 0;
  std::unique_ptr<Lanes> lanes_;
};

using Keys = std::vector<std::string>;

TEST(Shares, OneShareNeverHasAllWorkers) {
  BlockedRuns runs(3);
  for (const char* key : {"noisy 1", "noisy 2"}) {
    runs.offer(key);
    runs.begun_with(key);
  }
  for (int n = 3; n < 20; ++n) runs.offer("noisy " + std::to_string(n));
  runs.offer("quiet 1");
  EXPECT_EQ(runs.begun_with("quiet 1").size(), 3U);
}

TEST(Shares, SlowSharesTogetherLeaveAWorkerToTheOthers) {
  BlockedRuns runs(2);
  runs.run_for("slow 1", 1s);
  runs.run_for("slower 1", 1s);
  runs.offer("slow 2");
  runs.begun_with("slow 2");
  runs.offer("slower 2");  // waits, although no run of its share is in hand
  runs.offer("quick 1");
  EXPECT_EQ(runs.begun_with("quick 1"), (Keys{"slow 1", "slower 1", "slow 2", "quick 1"}));
  runs.let_out("slow 2");
  runs.begun_with("slower 2");
}

TEST(Shares, AShareThatWasSlowIsQuickAgainAfterAWhile) {
  BlockedRuns runs(2);
  runs.run_for("once 1", 1s);
  runs.run_for("slow 1", 1s);
  runs.pass(59s);  // 60 times as long for the first share, but not yet for the second
  runs.offer("slow 2");
  runs.begun_with("slow 2");
  runs.offer("once 2");
  runs.begun_with("once 2");
}

TEST(Shares, ReadySharesTakeTurns) {
  BlockedRuns runs(1);
  runs.offer("first 1");
  runs.begun_with("first 1");
  for (int n = 1; n <= 3; ++n) runs.offer("noisy " + std::to_string(n));
  runs.offer("quiet 1");
  runs.offer("quiet 2");
  runs.let_all_out();
  EXPECT_EQ(runs.begun_with("noisy 3"),
            (Keys{"first 1", "noisy 1", "quiet 1", "noisy 2", "quiet 2", "noisy 3"}));
}

TEST(Shares, AWorkerTakesManyLanesOnlyOfAShareThatIsAlone) {
  Shares shares(1, true, std::chrono::steady_clock::now);
  std::vector<LaneNode> lanes;
  for (const char* key : {"a 1", "b 1", "a 2", "a 3"}) lanes.emplace_back(key, Lane{});
  for (auto& lane : lanes) {
    lane.second.share = &shares.join(lane.first.substr(0, 1));
    shares.push(lane);
  }
  using Taken = std::vector<LaneNode*>;
  const auto take = [&] {
    const auto hold = shares.take(Shares::max_taken);
    if (hold) shares.give_back(*hold, 0ms);
    return hold ? hold->lanes : Taken{};
  };
  EXPECT_EQ(take(), (Taken{&lanes[0]}));
  EXPECT_EQ(take(), (Taken{&lanes[1]}));
  EXPECT_EQ(take(), (Taken{&lanes[2], &lanes[3]}));
}

TEST(Shares, ARunKnowsTheHeartbeatOfItsWorker) {
  BlockedRuns runs(1);
  runs.run_for("a 1", 0ms);
  EXPECT_EQ(runs.beats(), 2);  // counts the probe, too
}

TEST(Shares, ManySharesThatComeAndGoAreForgotten) {
  Shares shares(2, true, std::chrono::steady_clock::now);
  for (int n = 0; n < 10'000; ++n) shares.leave(shares.join(std::to_string(n)));
  EXPECT_LE(shares.size(), 1'001U);
}

}  // namespace
}  // namespace conversed::queue
