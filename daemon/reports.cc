#include "daemon/reports.h"

#include "daemon/data/backup.h"
#include "daemon/ops/logging.h"
#include "store/accounts/audit.h"
#include "store/secrets/key_rotation.h"

namespace conversed::daemon {

void log_key_file(api::KeyFileNews news, std::string_view message) {
  if (news == api::KeyFileNews::unusable) {
    log::error("keys of contact-center tokens can't be read", {{"error", message}});
  } else {
    log::info("keys of contact-center tokens have changed", {{"message", message}});
  }
}

void log_lockout(std::string_view what, std::string_view address) {
  log::warn("locked out after wrong passwords", {{"what", what}, {"clientAddress", address}});
}

void log_audit(const store::AuditEntry& entry) {
  log::info("audit", {{"actor", entry.actor},
                      {"credential", entry.credential},
                      {"clientAddress", entry.address},
                      {"operation", entry.operation},
                      {"route", entry.route},
                      {"object", entry.object},
                      {"status", entry.status},
                      {"traceId", entry.trace_id}});
}

model::Result<api::BackUpAnswer> back_up(BackupMaker& backups, store::KeyRotation& keys,
                                         const std::string& name) {
  const auto one_key = keys.hold();
  auto made =
      one_key ? backups.make(name) : model::Result<MadeBackup>(model::fail(one_key.error()));
  if (!made) {
    log::warn("no backup made", {{"error", made.error().message}});
    return model::fail(made.error());
  }
  log::info("backup made", {{"path", made->path.string()}, {"bytes", made->manifest.bytes()}});
  return api::BackUpAnswer{made->path.filename().string(), made->path.string(),
                           made->manifest.bytes(), made->manifest.created_at};
}

}  // namespace conversed::daemon
