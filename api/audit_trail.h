#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "api/http/http.h"
#include "api/operation.h"
#include "store/accounts/audit.h"
#include "store/model/result.h"

namespace conversed::api {

// Whether requests of the operation have an entry in the audit trail: changes, and the operations
// that are marked, such as reading a conversation. Events of conversations have none.
[[nodiscard]] bool is_audited(const Operation& operation);

// Stores and logs who asked for what. Thread-safe.
class AuditTrail {
 public:
  // Told of each entry once its status is known: on the thread that answers, or, of a sign-in, on
  // the Committer's. It must not wait for the store.
  using Log = std::function<void(const store::AuditEntry&)>;
  explicit AuditTrail(store::Audit& audit, Log log = {}) : audit_(audit), log_(std::move(log)) {}

  // Stores the entry of the request and then calls `begun` on a thread that must not block. An
  // error is `unavailable`: the request must be refused.
  using Begun = std::function<void(model::Result<store::AuditEntry>)>;
  void begin(const Call& call, const std::string& trace_id, Begun begun);
  void end(store::AuditEntry entry, int status);

  // A sign-in ended: with the user, or with the error that refused it. Only a password that was
  // verified has an entry.
  struct SignIn {
    std::string_view actor;  // the e-mail address as it was given
    std::string_view address;
    const Operation& operation;
    std::string_view trace_id;
  };
  void sign_in(const SignIn& sign_in, const model::Result<const Principal*>& ended);

 private:
  store::Audit& audit_;
  const Log log_;
};

}  // namespace conversed::api
