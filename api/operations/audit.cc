// GET /management/audit: the entries of the audit trail, newest first.
#include <nlohmann/json.hpp>

#include "api/openapi/description.h"
#include "api/openapi/shape.h"
#include "api/operations/management.h"
#include "api/operations/operations.h"
#include "store/store.h"

namespace conversed::api {
namespace {

using model::Result;
using store::AuditEntry;
using namespace openapi;

const Shape<AuditEntry>& audit_shape() {
  static const Shape<AuditEntry> shape(
      "AuditEntry",
      {{"_id", id(), &AuditEntry::id},
       {"at", unix_time(), &AuditEntry::at},
       {"organisationId",
        described("The actor's; null after a sign-in with an unknown address.", nullable_id()),
        null_if_empty(&AuditEntry::organisation_id)},
       {"actor", described("The e-mail address of the user.", nullable(text(1))),
        null_if_empty(&AuditEntry::actor)},
       {"credential",
        described("`password`, `token`, or `key` and the key's id. `daemon`: it acted by itself.",
                  text(1)),
        &AuditEntry::credential},
       {"address", described("The client's.", text()), &AuditEntry::address},
       {"operation", described("The operationId, or `signIn`.", text(1)), &AuditEntry::operation},
       {"route", text(1), &AuditEntry::route},
       {"object", described("The names and ids in the request.", nullable(text(1))),
        null_if_empty(&AuditEntry::object)},
       {"userId",
        described("The user of conversations whose data was exported or erased.",
                  nullable(text(1))),
        null_if_empty(&AuditEntry::subject_user)},
       {"sessionId", nullable(text(1)), null_if_empty(&AuditEntry::subject_session)},
       {"status",
        described("Of the answer. Null: the daemon ended before it answered.",
                  nullable(integer(100))),
        null_if_empty(&AuditEntry::status)},
       {"traceId", text(1), &AuditEntry::trace_id}});
  return shape;
}

Result<Response> list_audit(const Call& call, AccountServices& services) {
  const Principal& principal = *call.principal;
  const bool of_all = principal.has(Role::platform_admin);
  auto page = page_query(call.request);
  if (!page) return model::fail(page.error());
  const store::AuditFilter filter{
      .organisation_id = of_all ? "" : principal.organisation_id,
      .actor = std::string(call.request.parameter("actor").value_or("")),
      .operation = std::string(call.request.parameter("operation").value_or("")),
      .about = std::string(call.request.parameter("about").value_or(""))};
  return page_response(services.store.audit().list(filter, page->after, page->limit),
                       audit_shape());
}

Description describe_list_audit() {
  return {
      .summary = "List the audit trail",
      .details =
          "Lists, newest first: sign-ins, changes, exports, erasures, replays and reads of "
          "conversations. Takes the role `userAdmin`; with `platformAdmin` besides, the entries "
          "of all organisations are listed.",
      .parameters = row_parameters(
          {query_parameter("actor", "Only entries of this e-mail address.", form_text()),
           query_parameter("operation", "Only entries of this operation, such as `signIn`.",
                           form_text()),
           query_parameter("about",
                           "Only entries with this id, trace id or API key, or whose object "
                           "contains this text, such as a project's id or name.",
                           form_text())}),
      .answers = {json_answer("A page of entries.", row_page(audit_shape().schema()))}};
}

}  // namespace

Operations audit_operations() {
  static constexpr Operation rows[] = {
      for_operators("listAudit", Method::get, "/management/audit", Role::user_admin, list_audit,
                    describe_list_audit),
  };
  return rows;
}

}  // namespace conversed::api
