#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "api/http/http.h"
#include "api/operation.h"
#include "store/accounts/audit.h"
#include "store/model/result.h"
#include "store/runtime/guarded.h"

namespace conversed::api {

// Whether the audit trail has an entry for each request of the operation. It has one for changes
// and for marked operations, such as reading a conversation, and none for events of conversations.
[[nodiscard]] bool is_audited(const Operation& operation);

// Stores and logs the author and the object of each audited request. Thread-safe.
class AuditTrail {
 public:
  // Receives each entry when its status is known, on the thread that answers. For a sign-in that is
  // the Committer's thread. It must not wait for the store.
  using Log = std::function<void(const store::AuditEntry&)>;
  explicit AuditTrail(store::Audit& audit, Log log = {}) : audit_(audit), log_(std::move(log)) {}

  // A page that shows a conversation reads it again and again. Reads of the same object, with the
  // same credential and from the same address, within this time are one view with one entry.
  using TimePoint = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::minutes view_time{10};
  [[nodiscard]] bool is_part_of_view(const Call& call, TimePoint now) const;
  // Call it after a successful read that has an entry. Does nothing unless the operation has views.
  void begin_view(const store::AuditEntry& entry, const Operation& operation, TimePoint now);

  // Stores the request's entry and then calls `begun` on a thread that must not block. An error is
  // `unavailable`: the caller must refuse the request.
  using Begun = std::function<void(model::Result<store::AuditEntry>)>;
  void begin(const Call& call, const std::string& trace_id, Begun begun);
  void end(store::AuditEntry entry, int status);

  // The end of a sign-in: the user, or the error. Only a verified password has an entry.
  struct SignIn {
    std::string_view actor;  // the e-mail address as it was given
    std::string_view address;
    const Operation& operation;
    std::string_view trace_id;
  };
  void sign_in(const SignIn& sign_in, const model::Result<const Principal*>& ended);

 private:
  static constexpr std::size_t max_views = 10'000;

  store::Audit& audit_;
  model::Guarded<std::map<std::string, TimePoint>> views_;  // the ends of views, by their keys
  const Log log_;
};

}  // namespace conversed::api
