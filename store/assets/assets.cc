// The part of Assets that conversations read. Imports are in import.cc, other functions in
// management.cc.
#include "store/assets/assets.h"

#include "store/assets/lists.h"
#include "store/commit/row_writes.h"
#include "store/secrets/sealer.h"
#include "store/sql/read.h"

namespace conversed::store {

namespace {

// `column`: the column to search.
Result<std::optional<model::Endpoint>> load_endpoint(Database& database, const std::string& column,
                                                     const std::string& value) {
  using Row = model::Endpoint;
  return read_first(
      database,
      row_of<&Row::id, &Row::project_id, &Row::organisation_id, &Row::name, &Row::flow_id,
             &Row::url_token, &Row::session_expiry, &Row::active_only, &Row::error_text,
             &Row::webhook_url, &Row::follow_up_flow_id, &Row::error_flow_id>,
      "SELECT e.id, e.project_id, p.organisation_id, e.name, e.flow_id, e.url_token,"
      " e.session_expiry_ms, e.active_only, e.error_text, e.webhook_url,"
      " COALESCE(e.follow_up_flow_id, ''), COALESCE(e.error_flow_id, '') FROM endpoints e"
      " JOIN projects p ON p.id = e.project_id"
      " WHERE " +
          column + " = :v",
      value);
}

std::optional<model::Journey> load_journey(Connection& connection, const std::string& project_id) {
  const auto row = connection.row<nlohmann::json, std::int64_t>(
      "SELECT j.definition, t.follow_ups_per_month FROM journeys j JOIN proactive_tenants t"
      " ON t.project_id = j.project_id WHERE j.project_id = :p AND j.active = 1",
      project_id);
  if (!row) return std::nullopt;
  auto journey = stored_or_throw(model::journey_from(std::get<0>(*row)));
  journey.follow_ups_per_month = std::get<1>(*row);
  return journey;
}

}  // namespace

Result<std::optional<model::Endpoint>> Assets::endpoint_by_token(
    const std::string& url_token) const {
  return load_endpoint(database_, "e.url_token", url_token);
}

Result<std::optional<model::Endpoint>> Assets::endpoint(const std::string& id) const {
  return load_endpoint(database_, "e.id", id);
}

Result<std::optional<model::FlowVersion>> Assets::flow(const std::string& flow_id,
                                                       std::int64_t version) const {
  using Row = model::FlowVersion;
  return read_first(
      database_,
      row_of<&Row::flow_id, &Row::project_id, &Row::name, &Row::version, &Row::definition>,
      "SELECT f.id, f.project_id, f.name, v.version, v.definition FROM flows f"
      " JOIN flow_versions v ON v.flow_id = f.id"
      " AND v.version = CASE WHEN :z = 0 THEN f.version ELSE :v END WHERE f.id = :i",
      version, version, flow_id);
}

Result<model::ProjectAssets> Assets::project_assets(const std::string& project_id) const {
  return read(database_, [&](Connection& connection) -> Result<model::ProjectAssets> {
    model::ProjectAssets assets;
    assets.project_id = project_id;
    assets.connection_ids = read_pairs(
        connection, "SELECT name, id FROM connections WHERE project_id = :p", project_id);
    assets.tokens = read_pairs(connection, "SELECT label, script FROM tokens WHERE project_id = :p",
                               project_id);
    assets.flow_ids =
        read_pairs(connection, "SELECT name, id FROM flows WHERE project_id = :p", project_id);
    assets.journey = load_journey(connection, project_id);
    assets.locales = connection.values<std::string>(
        "SELECT name FROM locales WHERE project_id = :p ORDER BY n", project_id);
    connection.rows(
        [&](std::string flow_id, std::string id, std::int64_t version, std::int64_t stable,
            std::int64_t share) {
          assets.ramps.emplace(std::move(flow_id),
                               model::Ramp{std::move(id), version, stable, share});
        },
        "SELECT r.flow_id, r.id, r.version, r.stable_version, r.share FROM flow_ramps r"
        " JOIN flows f ON f.id = r.flow_id WHERE f.project_id = :p AND r.ended_at IS NULL",
        project_id);
    return assets;
  });
}

Result<std::optional<LexiconVersion>> Assets::lexicon_version(const std::string& project_id,
                                                              const std::string& name) const {
  return read(database_, [&](Connection& connection) {
    return connection.first(row_of<&LexiconVersion::id, &LexiconVersion::version>,
                            "SELECT id, version FROM lexicons WHERE project_id = :p AND name = :n",
                            project_id, name);
  });
}

Result<std::optional<Lexicon>> Assets::lexicon(const std::string& project_id,
                                               const std::string& name) const {
  auto id = read(database_, [&](Connection& connection) -> Result<std::optional<std::string>> {
    return connection.value<std::string>(
        "SELECT id FROM lexicons WHERE project_id = :p AND name = :n", project_id, name);
  });
  if (!id) return fail(id.error());
  if (!*id) return std::nullopt;
  auto entries = lexicon_entries(**id);
  if (!entries) return fail(entries.error());
  return Lexicon{
      .id = **id, .project_id = project_id, .name = name, .entries = *std::move(entries)};
}

Result<ConnectionSecrets> Assets::connection_secrets(const std::string& id) const {
  return read(database_, [&](Connection& connection) -> Result<ConnectionSecrets> {
    using Row = ConnectionSecrets;
    auto secrets = connection.first(
        row_of<&Row::id, &Row::project_id, &Row::name, &Row::type, &Row::hosts, &Row::fields>,
        "SELECT id, project_id, name, type, hosts, fields FROM connections WHERE id = :i", id);
    if (!secrets) return fail(Errc::not_found, "there is no such Connection");
    auto opened = sealer_.open_sealed("connections/fields/" + id, secrets->fields);
    if (!opened) return fail(opened.error());
    secrets->fields = *std::move(opened);
    return *std::move(secrets);
  });
}

Result<WebhookSecrets> Assets::webhook_secrets(const std::string& endpoint_id) const {
  return read(database_, [&](Connection& connection) -> Result<WebhookSecrets> {
    const auto row = connection.row<std::string, std::string, model::Timestamp>(
        "SELECT webhook_secret, previous_webhook_secret, webhook_secret_changed_at FROM endpoints"
        " WHERE id = :i",
        endpoint_id);
    if (!row) return fail(Errc::not_found, "there is no such Endpoint");
    const auto open = [&](const char* column,
                          const std::string& sealed) -> Result<std::optional<std::string>> {
      if (sealed.empty()) return std::nullopt;
      return sealer_.open_sealed(std::string(column) + endpoint_id, sealed);
    };
    auto current = open("endpoints/webhook_secret/", std::get<0>(*row));
    if (!current) return fail(current.error());
    auto previous = open("endpoints/previous_webhook_secret/", std::get<1>(*row));
    if (!previous) return fail(previous.error());
    return WebhookSecrets{*std::move(current), *std::move(previous), std::get<2>(*row)};
  });
}

Result<std::int64_t> Assets::forget_previous_secrets(model::Timestamp before) {
  return write_counted(
      committer_,
      "UPDATE endpoints SET previous_webhook_secret = '' WHERE previous_webhook_secret <> ''"
      " AND webhook_secret_changed_at < :b",
      before);
}

}  // namespace conversed::store
