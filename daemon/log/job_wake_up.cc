#include "daemon/log/job_wake_up.h"

#include <utility>

#include "store/model/event.h"
#include "store/model/ids.h"

namespace conversed::daemon {
namespace {

// Ids of projects and Endpoints have 24 characters.
constexpr const char* nobody = "jobs";

model::SessionKey key_of(const std::string& job_id) {
  return {nobody, nobody, nobody, job_id};
}

}  // namespace

void append_wake_up(queue::Log& log, const std::string& job_id, model::Timestamp now,
                    std::function<void(const model::Error&)> failed) {
  model::Event event;
  event.accepted_at = now;
  queue::Record record{.key = key_of(job_id).encode(),
                       .id = model::new_id(),
                       .type = std::string(model::to_string(model::EventType::job)),
                       .trace_id = model::new_trace_id(),
                       .value = model::encode_value(event)};
  log.append(std::move(record),
             [failed = std::move(failed)](const model::Result<queue::Appended>& appended) {
               if (!appended) failed(appended.error());
             });
}

std::optional<std::string> woken_job(const queue::Record& record) {
  if (record.type != model::to_string(model::EventType::job)) return std::nullopt;
  const auto key = model::SessionKey::decode(record.key);
  if (!key || *key != key_of(key->session_id)) return std::nullopt;
  return key->session_id;
}

}  // namespace conversed::daemon
