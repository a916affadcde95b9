#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "daemon/calls/caller.h"
#include "daemon/cluster/ownership.h"
#include "daemon/ops/logging.h"
#include "daemon/ops/metrics.h"
#include "store/commit/call_target.h"
#include "store/sql/sql.h"
#include "tests/support/http_receiver.h"
#include "tests/unit/daemon/world.h"

namespace conversed::daemon {

// A Caller between a store, an upstream and a log. At the end no log line may hold a secret.
class CallerTest : public World {
 protected:
  void SetUp() override {
    World::SetUp();
    log::set_sink([this](std::string_view line) {
      const std::lock_guard lock(log_mutex_);
      log_ += line;
      log_ += '\n';
    });
    log::open({.level = log::Level::debug});
    const auto source = nlohmann::json::object();
    import({{ "web",
              "" }},
           {{"basic",
             "httpBasic",
             {{"username", "ann"},
              { "password",
                "hunter2" }},
             source},
            {"bearer",
             "httpBearer",
             {{ "token",
                "hunter2" }},
             source},
            {"header",
             "httpHeader",
             {{"name", "X-Auth"},
              { "value",
                "hunter2" }},
             source},
            { "model",
              "llm",
              {{"baseUrl", receiver_.url("/v1/")},
               {"apiKey", "hunter2"},
               { "model",
                 "big" }},
              source }});
    start();
  }
  void TearDown() override {
    stop();
    log::set_sink({});
    log::open({});
    EXPECT_EQ(log_.find("hunter2"), std::string::npos) << log_;
  }

  void start(CallerSettings settings = {}) {
    http_ = std::make_unique<HttpClient>(HttpClientSettings{}, loopback_egress());
    ASSERT_TRUE(http_->start());
    caller_ = std::make_unique<Caller>(settings, *store_, store_->first(), *http_, sink_.append(),
                                       clock_, metrics_, ownership_ ? *ownership_ : alone_);
    ASSERT_TRUE(caller_->start());
  }
  void stop() {
    if (caller_) caller_->stop();
    if (http_) http_->stop();
  }

  model::PendingCall call(const std::string& id, const std::string& connection = "") {
    model::PendingCall pending;
    pending.id = id;
    pending.session = key("user-" + id);
    pending.trace_id = model::new_trace_id();
    pending.http = model::HttpCall{.method = "POST",
                                   .url = receiver_.url("/api?q=hunter2"),
                                   .headers = {{"Content-Type", "application/json"}},
                                   .body = R"({"a":1})",
                                   .connection_id = "",
                                   .idempotency_key = "idem-" + id};
    if (!connection.empty()) pending.http->connection_id = id_of("connections", connection);
    return pending;
  }
  void commit_call(const model::PendingCall& pending) {
    auto commit = turn(pending.session, {});
    commit.calls.started.push_back(pending);
    commit_now(std::move(commit));
  }
  // Commits the row first, as the end of a Turn does.
  void offer(const model::PendingCall& pending) {
    if (!store_->first().calls().waits(pending.id).value()) commit_call(pending);
    caller_->offer(pending.session.project_id, store::target_of(pending));
  }
  model::CallResult result_of(const model::PendingCall& pending) {
    const auto before = sink_.events().size();
    offer(pending);
    EXPECT_TRUE(sink_.wait_for(before + 1));
    return *sink_.events().back().result;
  }
  model::PendingCall question(const std::string& id) {
    auto pending = call(id, "model");
    pending.http->url = "/chat/completions";
    pending.http->to_model = true;
    pending.http->body = R"({"messages":[]})";
    return pending;
  }
  model::PendingCall search(const std::string& id, const std::string& text) {
    model::PendingCall pending;
    pending.id = id;
    pending.session = key("user-" + id);
    pending.trace_id = model::new_trace_id();
    pending.search =
        model::KnowledgeQuery{.store = "Manual", .sources = {}, .text = text, .limit = 5};
    return pending;
  }
  // Imports a knowledge store with these chunks.
  void import_knowledge(const std::vector<std::string>& texts) {
    model::Bundle bundle;
    bundle.project_name = "Shop";
    bundle.locales = {"en"};
    model::BundleSource source{"FAQ", {}};
    for (const auto& text : texts) source.chunks.push_back({text, {{"page", 3}}});
    bundle.knowledge_stores = {{"Manual", {std::move(source)}}};
    ASSERT_TRUE(store_->assets().import_bundle(organisation_, bundle));
  }
  void write(const std::string& sql) {
    ASSERT_TRUE(
        store_->committer().write_and_wait([&](store::Writer& writer) -> model::Result<void> {
          writer.connection().script(sql);
          return {};
        }));
  }
  void restart(const CallerSettings& settings = {}) {
    stop();
    caller_.reset();
    start(settings);
  }
  // Lets time pass until the receiver has seen `count` requests.
  void tries(std::size_t count) {
    ASSERT_TRUE(eventually([&] {
      clock_.advance(std::chrono::milliseconds(100));
      caller_->wake();
      return receiver_.count() >= count;
    }));
  }

  tests::HttpReceiver receiver_;
  Metrics metrics_;
  const Ownership alone_{Ownership::Of::everything};
  const Ownership* ownership_ = nullptr;  // set in tests of a cluster
  EventSink sink_;
  std::unique_ptr<HttpClient> http_;
  std::unique_ptr<Caller> caller_;
  std::mutex log_mutex_;
  std::string log_;
};

}  // namespace conversed::daemon
