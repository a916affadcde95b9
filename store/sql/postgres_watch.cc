#include "store/sql/postgres_watch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <system_error>
#include <utility>

#include "store/runtime/thread_name.h"
#include "store/sql/postgres.h"
#include "store/sql/postgres_session.h"

namespace conversed::store {
namespace {

constexpr int retry_ms = 250;
constexpr int between_questions_ms = 5'000;
constexpr int between_questions_to_silent_ms = 1'000;

struct FreeNotification {
  void operator()(PGnotify* notification) const { PQfreemem(notification); }
};

}  // namespace

PostgresWatch::PostgresWatch(PostgresSettings settings, Changed changed, PostgresPulse& pulse)
    : settings_(std::move(settings)), changed_(std::move(changed)), pulse_(pulse) {}

PostgresWatch::~PostgresWatch() {
  stop();
  if (stop_event_ >= 0) ::close(stop_event_);
}

model::Result<void> PostgresWatch::start() {
  if (stop_event_ >= 0) return {};
  stop_event_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (stop_event_ < 0) return model::fail(model::Errc::unavailable, "no descriptor is left");
  try {
    thread_ = std::thread([this] { loop(); });
  } catch (const std::system_error&) {
    return model::fail(model::Errc::unavailable, "no thread can be started");
  }
  return {};
}

void PostgresWatch::stop() {
  if (!thread_.joinable()) return;
  ::eventfd_write(stop_event_, 1);
  thread_.join();
}

bool PostgresWatch::stopped_within(int timeout_ms) const {
  pollfd stopped{.fd = stop_event_, .events = POLLIN, .revents = 0};
  return ::poll(&stopped, 1, timeout_ms) > 0;
}

void PostgresWatch::loop() {
  model::name_this_thread("postgres watch");
  while (!stopped_within(0)) {
    try {
      listen();
      return;
    } catch (const SqlError& error) {
      // The loop tries again. Writers and readers report a failing store. An error is an answer.
      error.silent() ? pulse_.lost() : pulse_.found();
    }
    if (stopped_within(retry_ms)) return;
  }
}

// Until the stop.
void PostgresWatch::listen() {
  PostgresSession session(settings_, Connection::Role::reader);
  const std::function<bool()> go_on = [this] { return !stopped_within(0); };
  session.ask_meanwhile(&go_on);
  session.script("LISTEN conversed", session.deadline());
  changed_({});  // changes may have been missed
  for (;;) {
    pulse_.found();
    while (const std::unique_ptr<PGnotify, FreeNotification> heard{PQnotifies(session.handle())}) {
      changed_(unescaped(heard->extra));
    }
    std::array<pollfd, 2> wanted{
        pollfd{.fd = PQsocket(session.handle()), .events = POLLIN, .revents = 0},
        pollfd{.fd = stop_event_, .events = POLLIN, .revents = 0}};
    int ready = 0;
    for (int waited_ms = 0; ready == 0 && waited_ms < between_questions_ms;
         waited_ms += between_questions_to_silent_ms) {
      ready = ::poll(wanted.data(), wanted.size(), between_questions_to_silent_ms);
      if (!pulse_.answers()) break;  // another connection found the server silent
    }
    if (ready < 0) continue;
    if (wanted[1].revents != 0) return;
    if (ready == 0) {
      session.script("SELECT 1", session.deadline());
    } else if (PQconsumeInput(session.handle()) == 0) {
      throw connection_lost();
    }
  }
}

}  // namespace conversed::store
