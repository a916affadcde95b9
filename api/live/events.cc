#include "api/live/events.h"

#include <string>
#include <utility>

#include "store/runtime/planted_faults.h"

namespace conversed::api {
namespace {

auto held() {
  return model::fail(model::Errc::unavailable, "the log is not ready; try again later");
}

}  // namespace

queue::Record Events::to_record(model::Event&& event) const {
  event.origin.daemon = daemon_;
  return {event.session.encode(), std::move(event.id), std::string(model::to_string(event.type)),
          std::move(event.trace_id), model::encode_value(event)};
}

void Events::append(model::Event event, Appended done) {
  if (held_.load()) return done(held());
  queue::Record record = to_record(std::move(event));
  if (model::planted("answer_before_commit")) {
    done(queue::Appended{});
    return log_.append(std::move(record), [](auto) {});
  }
  log_.append(std::move(record), [this, done = std::move(done)](auto outcome) {
    if (outcome) appended_.fetch_add(1, std::memory_order_relaxed);
    done(std::move(outcome));
  });
}

void Events::append_keyed(model::Event event, const queue::AppendKey& key, KeyedAppended done) {
  if (held_.load()) return done(held());
  keyed_.append(to_record(std::move(event)), key, [this, done = std::move(done)](auto outcome) {
    if (outcome && !outcome->repeated) appended_.fetch_add(1, std::memory_order_relaxed);
    done(std::move(outcome));
  });
}

void Events::look_up(const queue::AppendKey& key, LookedUp done) {
  if (held_.load()) return done(held());
  keyed_.look_up(key, std::move(done));
}

}  // namespace conversed::api
