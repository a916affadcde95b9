#include "api/events.h"

#include <string>
#include <utility>

#include "store/model/planted_faults.h"

namespace conversed::api {
namespace {

queue::Record to_record(const model::Event& event) {
  return {event.session.encode(), event.id, std::string(model::to_string(event.type)),
          event.trace_id, model::encode_value(event)};
}

}  // namespace

void Events::append(const model::Event& event, Appended done) {
  if (model::planted("answer_before_commit")) {
    done(queue::Appended{});
    return log_.append(to_record(event), [](auto) {});
  }
  log_.append(to_record(event), [this, done = std::move(done)](auto outcome) {
    if (outcome) appended_.fetch_add(1, std::memory_order_relaxed);
    done(std::move(outcome));
  });
}

void Events::append_keyed(const model::Event& event, const queue::AppendKey& key,
                          KeyedAppended done) {
  keyed_.append(to_record(event), key, [this, done = std::move(done)](auto outcome) {
    if (outcome && !outcome->repeated) appended_.fetch_add(1, std::memory_order_relaxed);
    done(std::move(outcome));
  });
}

}  // namespace conversed::api
