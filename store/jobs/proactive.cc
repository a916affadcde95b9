#include "store/jobs/proactive.h"

#include "store/model/ids.h"
#include "store/model/job.h"
#include "store/secrets/sealer.h"
#include "store/sql/read.h"

namespace conversed::store {

namespace {

constexpr std::size_t secret_bytes = 32;

std::string secret_place(const std::string& tenant_id) {
  return "proactive_tenants/secret/" + tenant_id;
}

// Retention never deletes a job that is `done`, so its row shows the set-up.
FollowUpSwitch switch_of(Connection& connection, const std::string& project_id) {
  const auto active = connection.value<std::int64_t>(
      "SELECT j.active FROM journeys j WHERE j.project_id = :p AND EXISTS (SELECT 1 FROM jobs b"
      " WHERE b.project_id = j.project_id AND b.type = :t AND b.state = 'done')",
      project_id, model::proactive_setup);
  if (!active) return FollowUpSwitch::not_set_up;
  return *active != 0 ? FollowUpSwitch::on : FollowUpSwitch::off;
}

// Deletes the journey's follow-ups of the project's sessions. Returns their number.
std::int64_t withdraw_follow_ups(Connection& connection, const std::string& project_id) {
  return connection.run_counted(
      "DELETE FROM follow_ups WHERE of_journey = 1"
      " AND session IN (SELECT id FROM sessions WHERE project_id = :p)",
      project_id);
}

}  // namespace

Result<std::string> Proactive::tenant_secret(const std::string& tenant_id) const {
  return read(database_, [&](Connection& connection) -> Result<std::string> {
    const auto sealed = connection.value<std::string>(
        "SELECT secret FROM proactive_tenants WHERE id = :i", tenant_id);
    if (!sealed) return fail(Errc::not_found, "there is no such tenant");
    return sealer_.open_sealed(secret_place(tenant_id), *sealed);
  });
}

Result<nlohmann::json> Proactive::journey(const std::string& project_id) const {
  return read(database_, [&](Connection& connection) {
    return connection
        .value<nlohmann::json>("SELECT definition FROM journeys WHERE project_id = :p", project_id)
        .value_or(nullptr);
  });
}

Result<void> Proactive::add_tenant(Writer& writer, const Tenant& tenant) const {
  const auto added = writer.connection().run_counted(
      "INSERT INTO proactive_tenants (id, project_id, secret, follow_ups_per_month, external_id,"
      " created_at) VALUES (:i, :p, :s, :q, :e, :c) ON CONFLICT (project_id) DO NOTHING",
      tenant.id, tenant.project_id,
      sealer_.seal(secret_place(tenant.id), model::random_hex(secret_bytes)),
      tenant.follow_ups_per_month, tenant.external_id, writer.now());
  return added == 1 ? Result<void>() : fail(Errc::conflict, "the project has a tenant already");
}

void Proactive::set_external_id(Writer& writer, const std::string& tenant_id,
                                const std::string& external_id) {
  writer.connection().run("UPDATE proactive_tenants SET external_id = :e WHERE id = :i",
                          external_id, tenant_id);
}

void Proactive::remove_tenant(Writer& writer, const std::string& tenant_id) {
  writer.connection().run("DELETE FROM proactive_tenants WHERE id = :i", tenant_id);
}

Result<void> Proactive::add_journey(Writer& writer, const std::string& project_id,
                                    const std::string& journey_id,
                                    const nlohmann::json& definition) {
  const auto added = writer.connection().run_counted(
      "INSERT INTO journeys (id, project_id, definition, active, created_at)"
      " VALUES (:i, :p, :d, 0, :c) ON CONFLICT (project_id) DO NOTHING",
      journey_id, project_id, definition.dump(), writer.now());
  return added == 1 ? Result<void>() : fail(Errc::conflict, "the project has a journey already");
}

void Proactive::remove_journey(Writer& writer, const std::string& journey_id) {
  writer.connection().run("DELETE FROM journeys WHERE id = :i", journey_id);
}

void Proactive::activate(Writer& writer, const std::string& journey_id) {
  writer.connection().run("UPDATE journeys SET active = 1 WHERE id = :i", journey_id);
}

Result<FollowUpSwitch> Proactive::follow_up_switch(const std::string& project_id) const {
  return read(database_, [&](Connection& connection) { return switch_of(connection, project_id); });
}

Result<std::int64_t> Proactive::switch_off(Writer& writer, const std::string& project_id) {
  Connection& connection = writer.connection();
  if (switch_of(connection, project_id) == FollowUpSwitch::not_set_up) {
    const bool is_being_set_up = connection.exists(
        "SELECT 1 FROM jobs WHERE project_id = :p AND type = :t"
        " AND state IN ('queued', 'active', 'cancelling')",
        project_id, model::proactive_setup);
    if (!is_being_set_up) return 0;
    return fail(Errc::conflict, "proactive follow-up is being set up; cancel that job instead");
  }
  connection.run("UPDATE journeys SET active = 0 WHERE project_id = :p", project_id);
  return withdraw_follow_ups(connection, project_id);
}

std::int64_t Proactive::withdraw_elsewhere(const std::string& project_id) {
  std::int64_t withdrawn = 0;
  for (std::size_t at = 1; at < shards_.size(); ++at) {
    withdrawn += shards_[at]
                     ->committer()
                     .write_and_wait([&](Writer& writer) {
                       return withdraw_follow_ups(writer.connection(), project_id);
                     })
                     .value_or(0);
  }
  return withdrawn;
}

Result<void> Proactive::switch_on(Writer& writer, const std::string& project_id) {
  Connection& connection = writer.connection();
  if (switch_of(connection, project_id) == FollowUpSwitch::not_set_up) {
    return fail(Errc::conflict,
                "proactive follow-up is not set up in the project; set it up first");
  }
  connection.run("UPDATE journeys SET active = 1 WHERE project_id = :p", project_id);
  return {};
}

Result<void> Proactive::attach(Writer& writer, const std::string& project_id,
                               const std::string& flow_id, const std::string& endpoint_name) {
  Connection& connection = writer.connection();
  const auto attached = connection.run_counted(
      "UPDATE endpoints SET follow_up_flow_id = :f WHERE project_id = :p AND (:n = '' OR name = "
      ":m)",
      flow_id, project_id, endpoint_name, endpoint_name);
  return attached > 0 || endpoint_name.empty()
             ? Result<void>()
             : fail(Errc::not_found, "the project has no Endpoint '" + endpoint_name + "'");
}

void Proactive::detach(Writer& writer, const std::string& project_id) {
  writer.connection().run("UPDATE endpoints SET follow_up_flow_id = NULL WHERE project_id = :p",
                          project_id);
}

std::string Proactive::free_flow_name(Writer& writer, const std::string& project_id,
                                      const std::string& wanted) {
  std::string name = wanted;
  for (int n = 2; flow_named(writer, project_id, name); ++n) {
    name = wanted + ' ' + std::to_string(n);
  }
  return name;
}

Result<std::string> Proactive::flow_named(Writer& writer, const std::string& project_id,
                                          const std::string& name) {
  auto id = writer.connection().value<std::string>(
      "SELECT id FROM flows WHERE project_id = :p AND name = :n", project_id, name);
  if (!id) return fail(Errc::not_found, "the project has no Flow '" + name + "'");
  return *std::move(id);
}

void Proactive::remove_generated_flow(Writer& writer, const std::string& flow_id) {
  Connection& connection = writer.connection();
  const bool taken_over =
      connection.exists("SELECT 1 FROM flow_versions WHERE flow_id = :i AND version > 1",
                        flow_id) ||
      connection.exists("SELECT 1 FROM endpoints WHERE flow_id = :i", flow_id);
  if (taken_over) return;
  connection.run("DELETE FROM flow_versions WHERE flow_id = :i", flow_id);
  connection.run("DELETE FROM flows WHERE id = :i", flow_id);
}

Result<void> Proactive::replace_journey(Writer& writer, const std::string& project_id,
                                        const nlohmann::json& definition) {
  const auto replaced = writer.connection().run_counted(
      "UPDATE journeys SET definition = :d WHERE project_id = :p AND (active = 1 OR EXISTS"
      " (SELECT 1 FROM jobs WHERE project_id = :q AND type = :t AND state = 'done'))",
      definition.dump(), project_id, project_id, model::proactive_setup);
  if (replaced == 0 || !definition.contains("flow")) return {};
  auto flow = flow_named(writer, project_id, definition.at("flow").get<std::string>());
  if (!flow) return fail(flow.error());
  detach(writer, project_id);
  return attach(writer, project_id, *flow, definition.value("endpoint", std::string()));
}

}  // namespace conversed::store
