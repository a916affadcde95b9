#pragma once

#include <string>
#include <string_view>

#include "api/auth/jwks_file.h"
#include "api/services.h"
#include "store/model/result.h"

namespace conversed::store {
struct AuditEntry;
class KeyRotation;
}  // namespace conversed::store

namespace conversed::daemon {

class BackupMaker;

// Log lines of what the API's parts report to operators.

void log_key_file(api::KeyFileNews news, std::string_view message);

// For Authenticator. The line names no account, since a user may have typed the password there.
void log_lockout(std::string_view what, std::string_view address);

// For AuditTrail.
void log_audit(const store::AuditEntry& entry);

// For Services: BackupMaker::make, with a log line of its outcome. `conflict` while the master key
// is rotated, since the backup would need both keys.
[[nodiscard]] model::Result<api::BackUpAnswer> back_up(BackupMaker& backups,
                                                       store::KeyRotation& keys,
                                                       const std::string& name);

}  // namespace conversed::daemon
