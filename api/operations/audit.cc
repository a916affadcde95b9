// GET /management/audit: who did what, newest first.
#include <nlohmann/json.hpp>
#include <utility>

#include "api/openapi/lists.h"
#include "api/operations/management.h"
#include "api/operations/operations.h"
#include "api/replies.h"
#include "store/store.h"

namespace conversed::api {

namespace {

using model::Errc;
using nlohmann::json;

json text_or_null(const std::string& text) {
  return text.empty() ? json(nullptr) : json(text);
}

json audit_item(const store::AuditEntry& entry) {
  return {{"_id", entry.id},
          {"at", unix_seconds(entry.at)},
          {"organisationId", text_or_null(entry.organisation_id)},
          {"actor", text_or_null(entry.actor)},
          {"credential", entry.credential},
          {"address", entry.address},
          {"operation", entry.operation},
          {"route", entry.route},
          {"object", text_or_null(entry.object)},
          {"userId", text_or_null(entry.subject_user)},
          {"sessionId", text_or_null(entry.subject_session)},
          {"status", entry.status == 0 ? json(nullptr) : json(entry.status)},
          {"traceId", entry.trace_id}};
}

Result<Response> list_audit(const Call& call, AccountServices& services) {
  const Principal& principal = *call.principal;
  const bool of_all = principal.has(Role::platform_admin);
  auto page = page_query(call.request);
  if (!page) return model::fail(page.error());
  const store::AuditFilter filter{
      .organisation_id = of_all ? "" : principal.organisation_id,
      .actor = std::string(call.request.parameter("actor").value_or("")),
      .operation = std::string(call.request.parameter("operation").value_or(""))};
  auto entries = services.store.audit().list(filter, page->after, page->limit);
  if (!entries) return model::fail(store_error(entries.error()));
  return rows_response(*entries, *page, &store::AuditEntry::row, audit_item);
}

openapi::Description describe_list_audit() {
  using namespace openapi;
  const auto entry = object(
      {{"_id", id()},
       {"at", unix_time()},
       {"organisationId",
        described("The actor's; null after a sign-in with an unknown address.", nullable(id()))},
       {"actor", described("The e-mail address of the user.", nullable(text(1)))},
       {"credential", described("`password`, `token`, or `key` and the key's id.", text(1))},
       {"address", described("The client's.", text())},
       {"operation", described("The operationId, or `signIn`.", text(1))},
       {"route", text(1)},
       {"object", described("The names and ids in the request.", nullable(text(1)))},
       {"userId",
        described("The user of conversations whose data was asked for.", nullable(text(1)))},
       {"sessionId", nullable(text(1))},
       {"status", described("Of the answer. Null: the daemon ended before it answered.",
                            nullable(integer(100)))},
       {"traceId", text(1)}});
  auto parameters = row_parameters();
  parameters.push_back(query_parameter("actor", "Only entries of this e-mail address.", text()));
  parameters.push_back(
      query_parameter("operation", "Only entries of this operation, such as `signIn`.", text()));
  return {
      .summary = "List the audit trail",
      .details =
          "Newest first: sign-ins, changes, exports, erasures, replays and reads of "
          "conversations. Takes the role `userAdmin`; with `platformAdmin` besides, the entries "
          "of all organisations are listed.",
      .parameters = std::move(parameters),
      .answers = {{.description = "A page of them.",
                   .content = json_content(row_page(named("AuditEntry", entry)))}}};
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
