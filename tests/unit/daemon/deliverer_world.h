#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/cluster/ownership.h"
#include "daemon/delivery/deliverer.h"
#include "daemon/ops/metrics.h"
#include "daemon/timers/timer_clock.h"
#include "store/shards/backlog.h"
#include "tests/support/http_receiver.h"
#include "tests/unit/daemon/world.h"

namespace conversed::daemon {

using namespace std::chrono_literals;
using nlohmann::json;
using tests::HttpReceiver;

class DelivererTest : public World {
 protected:
  void SetUp() override {
    World::SetUp();
    new_timer_clock(0ms);
    import({{"web", receiver_.url("/hook")}, {"dead", "http://127.0.0.1:9/"}, { "mute", "" }});
    start();
  }
  void TearDown() override { stop(); }

  void start(DelivererSettings settings = {}) {
    HttpClientSettings on_its_thread;
    on_its_thread.own_thread = false;
    http_ = std::make_unique<HttpClient>(std::move(on_its_thread), loopback_egress());
    ASSERT_TRUE(http_->start());
    deliverer_ = std::make_unique<Deliverer>(settings, store_->assets(), store_->first(), *http_,
                                             clock_, *timer_clock_, metrics_, alone_);
    ASSERT_TRUE(deliverer_->start());
    ASSERT_TRUE(eventually([&] { return deliverer_->idle(); }));
  }
  void stop() {
    if (deliverer_) deliverer_->stop();
    if (http_) http_->stop();
  }
  void restart(DelivererSettings settings = {}) {
    stop();
    deliverer_.reset();
    http_.reset();
    open();
    start(settings);
  }

  // Commits, and offers the outputs from the commit's callback, as the turn worker does.
  void say(const model::SessionKey& key, const std::vector<std::string>& texts) {
    auto commit = turn(key, texts);
    commit.timers_ahead = timer_clock_->offset();
    commit_now(std::move(commit), [&](const auto& done) { deliverer_->offer(done, true); });
  }
  // Commits without an offer to the Deliverer.
  void say_silently(const model::SessionKey& key, const std::vector<std::string>& texts) {
    commit_now(turn(key, texts));
  }
  void settle() {
    ASSERT_TRUE(eventually([&] { return deliverer_->idle(); }));
  }
  [[nodiscard]] std::int64_t pending() {
    flush();
    return store::read_backlog(store_->shards()).value().deliveries;
  }
  [[nodiscard]] std::map<std::string, std::vector<std::string>> received() {
    std::map<std::string, std::vector<std::string>> texts;
    for (const auto& request : receiver_.requests()) {
      const auto body = json::parse(request.body);
      texts[body["userId"]].push_back(body["output"]["text"]);
    }
    return texts;
  }
  [[nodiscard]] store::DueDelivery waiting() {
    flush();
    auto page =
        store_->first().outbox().due(key("ann").endpoint_id, model::from_unix_ms(INT64_MAX), 1, 1);
    EXPECT_EQ(page->sessions.size(), 1U);
    return page->sessions.empty() ? store::DueDelivery{} : std::move(page->sessions.front());
  }
  // Lets time pass until the next try of the only session that waits.
  void to_next_try() {
    clock_.advance(waiting().due_at - timer_clock_->now());
    deliverer_->wake();
  }
  // Sets the wall clock. No time passes.
  void set_clock(std::chrono::milliseconds by) {
    set_by_ += by.count();
    clock_.advance(by);
    deliverer_->wake();
  }
  // The clock of a restarted daemon. `offset` is the stored offset of the last run.
  void new_timer_clock(std::chrono::milliseconds offset) {
    timer_clock_ = std::make_unique<TimerClock>(clock_, [this] {
      return clock_.now().time_since_epoch() - std::chrono::milliseconds(set_by_.load());
    });
    timer_clock_->set_offset(offset);
  }

  HttpReceiver receiver_;
  Metrics metrics_;
  std::atomic<std::int64_t> set_by_{0};
  std::unique_ptr<TimerClock> timer_clock_;
  std::unique_ptr<HttpClient> http_;
  const Ownership alone_{Ownership::Of::everything};
  std::unique_ptr<Deliverer> deliverer_;
};

}  // namespace conversed::daemon
