#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "daemon/service/mailbox.h"
#include "queue/log.h"
#include "store/model/result.h"
#include "store/runtime/heartbeat.h"

namespace conversed::daemon {

// The one thread that owns all state of a Service, and the mailbox through which the others talk to
// it. `Letters` is what its Mailbox asks for, with a `bool stop`. One thread at a time: the App's.
template <typename Letters>
class ServiceThread {
 public:
  // `run` returns once it has read a letter with `stop`, and reads its letters by `take`, which is
  // where its heart beats. At most once, and not after `stop`; `name` is for the error and for
  // `heartbeats`, which is null where nobody watches.
  [[nodiscard]] model::Result<void> start(std::string_view name, model::Heartbeats* heartbeats,
                                          std::function<void()> run) {
    if (thread_.joinable() || stopped_) {
      return model::fail(model::Errc::conflict, "the " + std::string(name) + " runs already");
    }
    heartbeat_ = model::heartbeat_of(heartbeats, std::string(name));
    thread_ = std::thread([this, run = std::move(run)] {
      run();
      heartbeat_ = {};
    });
    return {};
  }

  // For the thread itself: what Mailbox::take gives, which may be nothing before `until` is there.
  [[nodiscard]] Letters take(std::chrono::steady_clock::time_point until) {
    heartbeat_.beat();
    return mailbox_->take(std::min(until, std::chrono::steady_clock::now() + model::beat_interval));
  }

  // Blocks until `run` has returned; from then on the mailbox swallows everything.
  void stop() {
    stopped_ = true;
    mailbox_->put([](Letters& letters) { letters.stop = true; });
    if (thread_.joinable()) thread_.join();
    mailbox_->close();
  }

  // Callbacks that others hold share it: they may come later than the Service's end.
  [[nodiscard]] const std::shared_ptr<Mailbox<Letters>>& mailbox() const { return mailbox_; }

 private:
  const std::shared_ptr<Mailbox<Letters>> mailbox_ = std::make_shared<Mailbox<Letters>>();
  bool stopped_ = false;
  model::Heartbeat heartbeat_;  // the thread's own while it runs
  std::thread thread_;
};

// A letter: how the append of an event ended.
struct AppendEnd {
  std::string id;  // the sender's name for it
  std::optional<model::Error> error;
};

// What to give to an append, so that its end comes back among the letters' `appends`.
template <typename Letters>
[[nodiscard]] auto letter_at_end(std::shared_ptr<Mailbox<Letters>> mailbox, std::string id) {
  return [mailbox = std::move(mailbox),
          id = std::move(id)](const model::Result<queue::Appended>& done) {
    std::optional<model::Error> error;
    if (!done) error = done.error();
    mailbox->put([&](Letters& letters) { letters.appends.push_back({id, std::move(error)}); });
  };
}

}  // namespace conversed::daemon
