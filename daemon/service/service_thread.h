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
#include "store/runtime/thread_name.h"

namespace conversed::daemon {

// The one thread that owns all state of a Service, and its mailbox. Other threads only put letters
// into the mailbox. `Letters` is as Mailbox requires, with a `bool stop`. For the App's thread.
template <typename Letters>
class ServiceThread {
 public:
  ServiceThread() = default;
  ~ServiceThread() { stop(); }
  ServiceThread(const ServiceThread&) = delete;
  ServiceThread& operator=(const ServiceThread&) = delete;

  // `run` reads its letters by `take`, which also beats the heartbeat. It returns once it has read
  // a letter with `stop`. Called at most once, and not after `stop`. `name` is for the error and
  // for `heartbeats`, which is null if the thread is not watched.
  [[nodiscard]] model::Result<void> start(std::string_view name, model::Heartbeats* heartbeats,
                                          std::function<void()> run) {
    if (thread_.joinable() || stopped_) {
      return model::fail(model::Errc::conflict, "the " + std::string(name) + " runs already");
    }
    heartbeat_ = model::heartbeat_of(heartbeats, std::string(name));
    thread_ = std::thread([this, name = std::string(name), run = std::move(run)] {
      model::name_this_thread(name);
      run();
      heartbeat_ = {};
    });
    return {};
  }

  // For the thread itself: Mailbox::take. May return without letters before `until`.
  [[nodiscard]] Letters take(std::chrono::steady_clock::time_point until) {
    heartbeat_.beat();
    return mailbox_->take(std::min(until, std::chrono::steady_clock::now() + model::beat_interval));
  }

  // Blocks until `run` has returned. From then on the mailbox drops all letters.
  void stop() {
    stopped_ = true;
    mailbox_->put([](Letters& letters) { letters.stop = true; });
    if (thread_.joinable()) thread_.join();
    mailbox_->close();
  }

  // Shared with callbacks, which may run after the Service's end.
  [[nodiscard]] const std::shared_ptr<Mailbox<Letters>>& mailbox() const { return mailbox_; }

 private:
  const std::shared_ptr<Mailbox<Letters>> mailbox_ = std::make_shared<Mailbox<Letters>>();
  bool stopped_ = false;
  model::Heartbeat heartbeat_;  // used by the thread alone while it runs
  std::thread thread_;
};

// Letters for a Service whose thread runs functions for other threads.
struct Errands {
  std::vector<std::function<void()>> work;
  bool stop = false;
};
using ErrandBox = std::shared_ptr<Mailbox<Errands>>;

// Makes the Service's thread run `work`. Drops it once the Service has stopped. Thread-safe.
inline void post(const ErrandBox& box, std::function<void()> work) {
  box->put([&](Errands& errands) { errands.work.push_back(std::move(work)); });
}

// A letter with the end of an event's append.
struct AppendEnd {
  std::string id;  // the sender's name for the append
  std::optional<model::Error> error;
};

// A callback for an append. It puts the end of the append into the letters' `appends`.
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
