#pragma once

#include <string>
#include <string_view>

#include "api/auth/jwks_file.h"
#include "api/services.h"
#include "store/model/result.h"

namespace conversed::store {
struct AuditEntry;
class KeyRotation;
}

namespace conversed::daemon {

class BackupMaker;

// What the API's parts have to tell operators, as lines of the log.

void log_key_file(api::KeyFileNews news, std::string_view message);

// For Authenticator. It is not said whose account: what was typed there may be a password.
void log_lockout(std::string_view what, std::string_view address);

// For AuditTrail.
void log_audit(const store::AuditEntry& entry);

// For Services: BackupMaker::make, with a line of how it went. Not while the master key is rotated:
// what is backed up then would need both keys. `conflict`.
[[nodiscard]] model::Result<api::BackUpAnswer> back_up(BackupMaker& backups,
                                                       store::KeyRotation& keys,
                                                       const std::string& name);

}  // namespace conversed::daemon
