#include "daemon/app.h"

#include <utility>

#include "config/keys.h"
#include "config/load.h"
#include "daemon/app_parts.h"
#include "daemon/data/storage.h"
#include "daemon/ops/logging.h"
#include "store/text/joined.h"

namespace conversed::daemon {

using model::fail;
using model::Result;

namespace {

auto given_up() {
  return fail(model::Errc::unavailable, "the start was ended by a signal");
}

void log_key_file(api::KeyFileNews news, std::string_view message) {
  if (news == api::KeyFileNews::unusable) {
    log::error("keys of contact-center tokens can't be read", {{"error", message}});
  } else {
    log::info("keys of contact-center tokens have changed", {{"message", message}});
  }
}

}  // namespace

App::App(config::Settings settings, const model::Clock& clock)
    : settings_(std::move(settings)),
      clock_(clock),
      timer_clock_(clock),
      supervisor_(heartbeats_, [this] { return progress(); }) {}

App::~App() {
  stop();
}

Progress App::progress() {
  if (Parts* parts = watched_.load(); parts != nullptr) return parts->progress();
  Progress now;
  now.waits_for =
      store_away_ ? "PostgreSQL can't be reached: see the log. It is tried again until it answers"
                  : "opening the store; an older store is backed up and migrated first";
  return now;
}

Result<void> App::start() {
  // Started first: it tells the service manager that a long copy or migration of the store goes on.
  if (auto watched = supervisor_.start(); !watched) return watched;
  auto started = open_and_start();
  {
    const std::lock_guard lock(starting_);
    started_ = true;
  }
  if (!started) stop();
  return started;
}

Result<void> App::open_and_start() {
  auto folder = DataFolder::open(settings_.data_dir);
  if (!folder) return fail(folder.error());
  auto egress = Egress::create(settings_.egress.allow);
  if (!egress) return fail(egress.error());
  for (const auto& warning : config::warnings_of(settings_)) {
    log::warn("a setting is seldom meant so", {{"warning", warning}});
  }
  auto contact_center = api::JwtVerifier::open(settings_.contact_center, log_key_file);
  if (!contact_center) return fail(contact_center.error());
  if (auto started = start_exporter(); !started) return started;
  Spans* const spans = exporter_ ? &spans_ : nullptr;
  door_.emplace(settings_, clock_, heartbeats_, std::move(*folder), spans);
  auto store = wait_for_store();
  if (!store) return fail(store.error());
  auto log = open_log(settings_, **store, timer_clock_);
  if (!log) return fail(log.error());
  {
    const std::lock_guard lock(starting_);
    parts_ = std::make_unique<Parts>(
        Outside{settings_, clock_, heartbeats_, supervisor_, *door_, timer_clock_, spans},
        std::move(*egress), std::move(*contact_center), std::move(*store), std::move(*log));
  }
  watched_ = parts_.get();
  if (given_up_.stop_requested()) return given_up();
  return parts_->start();
}

Result<void> App::start_exporter() {
  const config::OtlpSettings& otlp = settings_.telemetry.otlp;
  if (otlp.url.empty()) return {};
  // The operator chose the address, which may well be a private one.
  auto anywhere = Egress::create({"0.0.0.0/0", "::/0"});
  if (!anywhere) return fail(anywhere.error());
  SpanExporterSettings settings{.url = otlp.url, .instance = member_name(settings_)};
  for (const auto& [name, value] : otlp.headers) {
    settings.headers.emplace_back(name, value.reveal());
  }
  settings.heartbeats = &heartbeats_;
  exporter_.emplace(std::move(settings), std::move(*anywhere), spans_);
  return exporter_->start();
}

// PostgreSQL may be away for a while. Until it can be reached, the daemon listens and refuses
// requests.
Result<std::unique_ptr<store::Store>> App::wait_for_store() {
  const auto waiting = given_up_.get_token();
  std::string reported;
  do {
    auto heartbeat = heartbeats_.add("start");
    const auto go_on = [&] {
      heartbeat.beat();
      return !waiting.stop_requested();
    };
    auto store =
        open_store(settings_, clock_, store::PostgresSettings::Place::shared, go_on, &timer_clock_);
    // Before anything reads the clock of timers. In a cluster all daemons follow the server's clock
    // instead.
    if (store && !in_cluster(settings_)) {
      const auto kept = (*store)->first().timers().offset();
      if (!kept) return fail(kept.error());
      timer_clock_.set_offset(*kept);
    }
    const bool waits = in_cluster(settings_) && !store && may_come_back(store.error());
    if (!waits || waiting.stop_requested()) return store;
    if (auto listening = door_->listen(); !listening) return fail(listening.error());
    store_away_ = true;
    if (reported != store.error().message) {
      reported = store.error().message;
      log::error("the store is not there; trying again until it is", {{"error", reported}});
    }
  } while (wait_a_while(waiting));
  return given_up();
}

void App::give_up_start() {
  const std::lock_guard lock(starting_);
  if (started_) return;
  given_up_.request_stop();
  // Ends all waits for a failing store.
  if (parts_) parts_->ground.store->stop_retrying();
}

void App::reload(const std::function<std::optional<config::Settings>()>& read) {
  if (!parts_) return;
  supervisor_.reloading();
  const auto wanted = read();
  if (!wanted) {
    return supervisor_.reloaded("New settings refused, see the log; the old ones stay");
  }
  const auto reloaded = config::reload(settings_, *wanted);
  parts_->take_settings();
  log::info("settings reloaded", {{"applied", text::joined(reloaded.applied)}});
  if (reloaded.need_restart.empty()) return supervisor_.reloaded("Settings reloaded");
  const std::string waiting = text::joined(reloaded.need_restart);
  log::warn("some settings need a restart", {{"keys", waiting}});
  supervisor_.reloaded("Settings reloaded; these need a restart: " + waiting);
}

void App::stop() {
  if (!parts_) {
    supervisor_.stop();
    door_.reset();
    return exporter_.reset();
  }
  log::info("stopping");
  parts_->stop(settings_.shutdown_timeout);
  watched_ = nullptr;  // the Supervisor, which reads it, has stopped
  failed_ = parts_->ground.failed.load();
  parts_.reset();
  door_.reset();
  exporter_.reset();
  log::info("stopped");
}

bool App::failed() const {
  return failed_ || (parts_ && parts_->ground.failed.load());
}

}  // namespace conversed::daemon
