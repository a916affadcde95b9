#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/log/append_event.h"
#include "daemon/outbound/egress.h"
#include "store/model/ids.h"
#include "store/store.h"
#include "tests/support/manual_clock.h"
#include "tests/support/temp_folder.h"

namespace conversed::daemon {

// Waits until another thread makes the condition true. For changes without a notification.
template <typename Condition>
[[nodiscard]] bool eventually(Condition&& condition) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::yield();
  }
  return true;
}

inline Egress loopback_egress() {
  return *Egress::create({"127.0.0.0/8"});
}

// A log that keeps appended events and fails when the test says so. Thread-safe.
class EventSink {
 public:
  [[nodiscard]] AppendEvent append() {
    return [this](model::Event event, const auto& done) {
      std::optional<model::Error> error;
      {
        const std::lock_guard lock(mutex_);
        ++tries_;
        if (failures_ > 0) {
          --failures_;
          error = failure_;
        } else {
          events_.push_back(std::move(event));
        }
      }
      arrived_.notify_all();
      if (error) {
        done(model::fail(*error));
      } else {
        done(queue::Appended{});
      }
    };
  }

  void fail(int times, model::Errc code) {
    const std::lock_guard lock(mutex_);
    failures_ = times;
    failure_ = {code, "told to"};
  }
  [[nodiscard]] bool wait_for(std::size_t events) {
    std::unique_lock lock(mutex_);
    return arrived_.wait_for(lock, std::chrono::seconds(30),
                             [&] { return events_.size() >= events; });
  }
  [[nodiscard]] std::vector<model::Event> events() {
    const std::lock_guard lock(mutex_);
    return events_;
  }
  [[nodiscard]] int tries() {
    const std::lock_guard lock(mutex_);
    return tries_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<model::Event> events_;
  int tries_ = 0;
  int failures_ = 0;
  model::Error failure_;
};

// A store with one project, and commits as Turns would make them.
class World : public testing::Test {
 protected:
  static constexpr const char* signing_secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

  void SetUp() override {
    open();
    organisation_ = store_->accounts().create_organisation("Acme", {.email = "a@example.com"})->id;
  }

  void open() {
    store_.reset();
    auto opened = store::Store::open({.data_dir = folder_.path(), .committer = committer_}, clock_);
    ASSERT_TRUE(opened) << opened.error().message;
    store_ = *std::move(opened);
  }

  // Imports Endpoints by name with their webhook's URL (empty: no webhook), and Connections.
  void import(const std::vector<std::pair<std::string, std::string>>& endpoints,
              std::vector<model::BundleConnection> connections = {},
              const std::string& secret = signing_secret) {
    model::Bundle bundle;
    bundle.project_name = "Shop";
    bundle.locales = {"en"};
    bundle.flows.push_back({"Flow", {{"name", "Flow"}, {"nodes", nlohmann::json::array()}}});
    for (const auto& [name, url] : endpoints) {
      model::BundleEndpoint endpoint;
      endpoint.name = name;
      endpoint.flow = "Flow";
      if (!url.empty()) endpoint.webhook.push_back({url, secret, "${SECRET}"});
      bundle.endpoints.push_back(endpoint);
    }
    bundle.connections = std::move(connections);
    auto report = store_->assets().import_bundle(organisation_, bundle);
    ASSERT_TRUE(report) << report.error().message;
    report_ = *report;
  }

  [[nodiscard]] std::string project() const { return report_["project"]["_id"]; }
  [[nodiscard]] std::string id_of(const char* kind, const std::string& name) const {
    for (const auto& item : report_[kind]) {
      if (item["name"] == name) return item["_id"];
    }
    return {};
  }
  [[nodiscard]] model::SessionKey key(const std::string& user,
                                      const std::string& endpoint = "web") const {
    return {project(), id_of("endpoints", endpoint), user, "s"};
  }

  // The commit of a Turn of this session that outputs `texts`.
  [[nodiscard]] store::SessionCommit turn(const model::SessionKey& key,
                                          const std::vector<std::string>& texts) {
    auto& [version, seq] = sessions_[key.encode()];
    store::SessionCommit commit;
    commit.key = key;
    commit.expected_version = version++;
    commit.after.key = key;
    commit.after.started_at = commit.after.last_activity_at = clock_.now();
    for (const auto& text : texts) {
      commit.outputs.push_back({.id = model::new_id() + "-1",
                                .seq = ++seq,
                                .input_id = "input" + std::to_string(version),
                                .text = text,
                                .data = nullptr,
                                .trace_id = model::new_trace_id(),
                                .created_at = clock_.now(),
                                .delivery = model::Delivery::pending});
    }
    commit.after.last_output_seq = seq;
    return commit;
  }

  // Commits. Calls `after` with the SessionCommit on the Committer's thread, as the worker does.
  void commit_now(store::SessionCommit commit,
                  const std::function<void(const store::SessionCommit&)>& after = {}) {
    std::promise<store::Outcome> promise;
    store_->committer().submit(std::move(commit), [&](store::Outcome outcome, const auto& done) {
      if (after && outcome == store::Outcome::committed) after(done);
      promise.set_value(outcome);
    });
    ASSERT_EQ(promise.get_future().get(), store::Outcome::committed);
  }

  // Waits until all marks made so far are in the store.
  void flush() {
    ASSERT_TRUE(store_->committer().write_and_wait(
        [](store::Writer&) -> model::Result<void> { return {}; }));
  }

  tests::TempFolder folder_;
  tests::ManualClock clock_;
  store::CommitterSettings committer_;
  std::unique_ptr<store::Store> store_;
  std::string organisation_;
  nlohmann::json report_;
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> sessions_;  // version, last seq
};

}  // namespace conversed::daemon
