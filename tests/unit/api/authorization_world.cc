#include "tests/unit/api/authorization_world.h"
#include "tests/support/receipt_step.h"

#include <sqlite3.h>

#include <algorithm>
#include <stdexcept>

#include "store/model/bundle.h"
#include "store/model/ids.h"
#include "tests/unit/api/hmac_token.h"

namespace conversed::api::test {
namespace {

using nlohmann::json;

const std::string shared_secret = "a secret of at least 32 bytes, shared";
constexpr const char* job_type = "matrix";
constexpr std::string_view dead_user = "u of dead letters";

WorldSettings settings() {
  WorldSettings settings;
  settings.contact_center.secret = config::Secret(shared_secret);
  settings.contact_center.organisation_claim = "organisation";
  settings.audit_apart = true;
  return settings;
}

model::Bundle bundle_of(const std::string& project, char endpoint) {
  model::Bundle bundle;
  bundle.project_name = project;
  bundle.locales = {"en"};
  bundle.flows.push_back(
      {"Main", {{"name", "Main"}, {"nodes", json::array({{{"say", "Hello."}}})}}});
  model::BundleEndpoint web;
  web.name = std::string("endpoint ") + endpoint;
  web.flow = "Main";
  web.url_token = token(endpoint);
  bundle.endpoints = {web};
  bundle.connections = {{"crm", "httpBearer", {{"token", "t"}}, {{"token", "${T}"}}}};
  bundle.lexicons = {{"Cities", {"city"}, {{"Paris", {}, {"city"}, nullptr}}}};
  bundle.knowledge_stores = {{"Manual", {{"FAQ", {{"Returns take 14 days.", nullptr}}}}}};
  return bundle;
}

model::SessionKey key_in(const World& world, const Objects& objects, std::string_view user) {
  const auto endpoint = must(world.store->assets().endpoint_by_token(objects.ids.at("URLToken")));
  return {endpoint->project_id, endpoint->id, std::string(user), "s"};
}

std::int64_t number(sqlite3* database, const char* sql) {
  std::int64_t value = 0;
  const auto take = [](void* into, int, char** texts, char**) {
    *static_cast<std::int64_t*>(into) = std::stoll(texts[0]);
    return 0;
  };
  if (sqlite3_exec(database, sql, take, &value, nullptr) != SQLITE_OK) {
    throw std::runtime_error(sqlite3_errmsg(database));
  }
  return value;
}

}  // namespace

std::vector<Role> all_roles() {
  std::vector<Role> roles;
  for (int value = 0; value <= 255; ++value) {
    const auto role = static_cast<Role>(value);
    if (!to_string(role).empty()) roles.push_back(role);
  }
  return roles;
}

bool is_project_role(Role role) {
  return role != Role::user_admin && role != Role::platform_admin;
}

AuthorizationWorld::AuthorizationWorld() : world(settings()), reader_(nullptr, sqlite3_close) {
  sqlite3* reader = nullptr;
  const auto file = (world.folder / "store.db").string();
  const int opened = sqlite3_open_v2(file.c_str(), &reader, SQLITE_OPEN_READONLY, nullptr);
  reader_.reset(reader);
  if (opened != SQLITE_OK) throw std::runtime_error("the store's file can't be opened");
  sqlite3_db_config(reader, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  add_organisations();
  own_ = import_objects("own", acme, "Shop", 'a', "eve@acme.example");
  sibling_ = import_objects("sibling", acme, "Side", 'd', "sid@acme.example");
  foreign_ = import_objects("foreign", other, "Abroad", 'e', "far@other.example");
  missing_ = {"missing", "", "", "Nowhere", "nobody@acme.example"};
  for (const auto& [name, id] : own_.ids) {
    // Files of the console are nobody's.
    missing_.ids[name] = name.starts_with("console") ? id
                         : name == "URLToken"        ? token('f')
                                                     : std::string(model::id_length, 'z');
  }
  add_actors();
  settle();
}

// The first sign-in from an address is stored by a separate write. A rotation of the master key
// makes every address a new one.
void AuthorizationWorld::settle() {
  for (const auto& organisation : {acme, other}) {
    for (const auto& user : must(world.store->accounts().users(organisation))) {
      world.store->sign_ins().note(user.id, "192.0.2.1", world.clock.now());
    }
  }
  const auto nothing = [](store::Writer&) -> model::Result<void> { return {}; };
  if (!world.store->committer().write_and_wait(nothing)) throw std::runtime_error("no store");
}

AuthorizationWorld::~AuthorizationWorld() = default;

void AuthorizationWorld::add_organisations() {
  const auto organisations = must(world.store->accounts().organisations());
  for (const auto& each : organisations) (each.name == "Acme" ? acme : other) = each.id;
  for (const auto& organisation : {acme, other}) {
    auto made = must(world.store->oauth().create_client({.id = "",
                                                         .organisation_id = organisation,
                                                         .name = "App",
                                                         .redirect_uris = {"https://a.example/"},
                                                         .password_grant = true}));
    if (organisation == acme) client_secret = made.secret;
    clients_[organisation] = made.client.id;
  }
}

Objects AuthorizationWorld::import_objects(const std::string& label,
                                           const std::string& organisation,
                                           const std::string& project, char endpoint,
                                           const std::string& email) {
  const auto report =
      must(world.store->assets().import_bundle(organisation, bundle_of(project, endpoint)));
  Objects objects{label, organisation, report["project"]["_id"], project, email};
  objects.ids = {{"projectId", objects.project},
                 {"connectionId", report["connections"][0]["_id"]},
                 {"flowId", report["flows"][0]["_id"]},
                 {"lexiconId", report["lexicons"][0]["_id"]},
                 {"knowledgeStoreId", report["knowledgeStores"][0]["_id"]},
                 {"sourceId", report["knowledgeStores"][0]["sources"][0]["_id"]},
                 {"organisationId", organisation},
                 {"consoleFolder", "shell"},
                 {"consoleFile", "main.js"},
                 {"URLToken", token(endpoint)}};
  add_held_version(objects, endpoint);
  add_member(objects, email);
  objects.ids["userId"] = world.id_of(email);
  objects.ids["taskId"] = model::new_id();
  must(world.store->jobs().create({.id = objects.ids["taskId"],
                                   .project_id = objects.project,
                                   .type = job_type,
                                   .name = "A job",
                                   .total_steps = 1,
                                   .fail_reason = {},
                                   .data = nullptr,
                                   .created_at = world.clock.now(),
                                   .changed_at = world.clock.now()}));
  objects.ids["receiptId"] = put_session(objects);
  objects.ids["deadLetterId"] = put_dead_letter(objects);
  objects.ids["outputId"] = put_delivery(objects);
  objects.ids["id"] = objects.ids["outputId"];
  objects.ids["endpointId"] = put_paused(objects);
  objects.ids["scheduleId"] = put_schedule(objects);
  objects.ids["timerId"] = put_schedule(objects);
  auto& accounts = world.store->accounts();
  objects.ids["keyId"] =
      must(accounts.create_api_key(organisation, objects.ids["userId"], "a key")).key.id;
  objects.ids["tokenId"] = put_management_token(objects);
  objects.ids["clientId"] = clients_.at(organisation);
  return objects;
}

// Version 2 of the Flow.
void AuthorizationWorld::add_held_version(const Objects& objects, char endpoint) {
  auto bundle = bundle_of(objects.project_name, endpoint);
  bundle.flows[0].definition["nodes"].push_back({{"say", "Welcome."}});
  must(world.store->assets().import_bundle(objects.organisation, bundle, {}, {},
                                           store::NewVersions::held));
}

// A ramp runs only for the operation that stops it.
void AuthorizationWorld::put_ramp(const Objects& objects, const Operation& operation) {
  auto& assets = world.store->assets();
  const auto& flow = objects.ids.at("flowId");
  const auto present = must(assets.ramp(flow));
  const bool is_wanted = operation.id == "stopFlowRamp";
  if ((present && present->runs()) == is_wanted) return;
  must(is_wanted ? assets.set_ramp({.flow_id = flow, .version = 2, .share = 10})
                 : assets.stop_ramp(flow));
}

std::string AuthorizationWorld::put_management_token(const Objects& objects) {
  return must(world.store->accounts().create_management_token(
                  objects.organisation, {.id = "",
                                         .name = "a token",
                                         .user_id = objects.ids.at("userId"),
                                         .scopes = {"all"},
                                         .expires_at = world.clock.now() + std::chrono::hours(24)}))
      .token.id;
}

void AuthorizationWorld::add_member(const Objects& objects, const std::string& email) {
  auto& accounts = world.store->accounts();
  must(accounts.create_user(
      objects.organisation,
      {.email = email,
       .name = email,
       .membership = store::Accounts::NewMembership{.project_id = objects.project, .roles = {}}}));
}

std::string AuthorizationWorld::put_session(const Objects& objects) {
  store::SessionCommit commit;
  commit.key = key_in(world, objects, "u");
  commit.after.key = commit.key;
  commit.after.position = {1, 0, 0};
  auto event = model::new_id();
  commit.receipts = {
      {event, store::NewReceiptRow::First{}, tests::receipt_step({{"what", "turn"}})}};
  commit.after.last_receipt = event;
  world.commit_now(std::move(commit));
  return event;
}

std::string AuthorizationWorld::put_dead_letter(const Objects& objects) {
  model::Event event;
  event.id = model::new_id();
  event.type = model::EventType::inject;
  event.session = key_in(world, objects, dead_user);
  event.accepted_at = world.clock.now();
  event.text = "lost";
  const auto session = must(world.store->first().sessions().load(event.session));
  store::SessionCommit commit;
  commit.key = event.session;
  commit.expected_version = session ? session->version : 0;
  commit.after.key = commit.key;
  commit.after.position = {1, 0, commit.expected_version};
  auto id = model::new_id();
  commit.dead_letters = {
      {id, {event.id, "inject", std::string(32, '7'), model::encode_value(event)}, "a reason"}};
  world.commit_now(std::move(commit));
  return id;
}

std::string AuthorizationWorld::put_delivery(const Objects& objects) {
  store::SessionCommit commit;
  commit.key = key_in(world, objects, "u of outputs" + std::to_string(++made_));
  commit.after.key = commit.key;
  commit.after.position = {1, 0, 0};
  commit.after.last_output_seq = 1;
  auto id = model::new_id() + "-1";
  commit.outputs.push_back({.id = id,
                            .seq = 1,
                            .input_id = id.substr(0, model::id_length),
                            .text = "hello",
                            .data = nullptr,
                            .trace_id = std::string(32, '7'),
                            .delivery = model::Delivery::pending});
  world.commit_now(std::move(commit));
  return id;
}

// The Endpoint, whose webhook is paused.
std::string AuthorizationWorld::put_paused(const Objects& objects) {
  auto id = key_in(world, objects, "u").endpoint_id;
  const auto now = world.clock.now();
  world.store->first().endpoint_health().failed({.endpoint_id = id,
                                                 .failing_since = now,
                                                 .last_error = "the webhook answered 500",
                                                 .last_at = now,
                                                 .paused_since = now});
  const auto nothing = [](store::Writer&) -> model::Result<void> { return {}; };
  must(world.store->committer().write_and_wait(nothing));
  return id;
}

std::string AuthorizationWorld::put_schedule(const Objects& objects) {
  model::Schedule schedule;
  schedule.id = model::new_id();
  schedule.session = key_in(world, objects, "u");
  schedule.text = "later";
  schedule.timezone = "UTC";
  schedule.due_at = world.clock.now() + std::chrono::hours(1);
  schedule.created_by = objects.ids.at("userId");
  must(world.store->first().schedules().create(schedule, std::nullopt));
  return schedule.id;
}

void AuthorizationWorld::add_actor(const std::string& organisation, const std::string& email,
                                   const std::set<Role>& roles, const Objects* in) {
  std::vector<std::string> names;
  for (const Role role : roles) names.emplace_back(to_string(role));
  store::Accounts::NewUser user{.email = email, .name = email};
  Actor actor{.email = email, .organisation = organisation};
  if (in != nullptr) {
    user.membership = {.project_id = in->project, .roles = names};
    actor.project_roles[in->project] = roles;
  } else {
    user.roles = names;
    actor.organisation_roles = roles;
  }
  actor.id = must(world.store->accounts().create_user(organisation, user)).id;
  actors_.push_back(std::move(actor));
}

void AuthorizationWorld::add_actors() {
  for (const Role role : all_roles()) {
    const std::string name(to_string(role));
    add_actor(acme, "organisation-" + name + "@acme.example", {role});
    if (!is_project_role(role)) continue;
    add_actor(acme, "shop-" + name + "@acme.example", {role}, &own_);
  }
  add_actor(acme, "member@acme.example", {}, &own_);
  add_actor(acme, "sideways@acme.example", {Role::project_admin}, &sibling_);
  add_actor(acme, "newcomer@acme.example", {});
  const std::set<Role> all{Role::project_admin, Role::user_admin, Role::platform_admin};
  add_actor(acme, "everything@acme.example", all);
  add_actor(acme, "retired@acme.example", all);
  add_actor(other, "stranger@other.example", all);
  for (Actor& each : actors_) finish(each);
}

void AuthorizationWorld::finish(Actor& actor) {
  (void)world.sign_in(actor.email);  // gives a password
  actor.key = world.key_of(actor.email);
  actor.access_token = sign_in(actor).access;
}

const Actor& AuthorizationWorld::actor(std::string_view email) const {
  const auto found = std::find_if(actors_.begin(), actors_.end(),
                                  [&](const Actor& each) { return each.email == email; });
  if (found == actors_.end()) throw std::runtime_error("no such actor");
  return *found;
}

Objects AuthorizationWorld::account_of(const Actor& actor) const {
  Objects account = own_;
  account.organisation = actor.organisation;
  account.email = actor.email;
  account.ids["userId"] = actor.id;
  return account;
}

void AuthorizationWorld::renew(const Operation& operation, Objects& objects) {
  if (operation.method == Method::get || !objects.exist()) return;
  const std::string suffix = " " + std::to_string(++made_);
  const auto names = [&](std::string_view parameter) {
    return operation.path.find("{" + std::string(parameter) + "}") != std::string_view::npos;
  };
  if (names("connectionId")) {
    model::Bundle bundle;
    bundle.project_name = objects.project_name;
    bundle.locales = {"en"};
    bundle.connections = {{"crm" + suffix, "httpBearer", {{"token", "t"}}, {{"token", "${T}"}}}};
    const auto report = must(world.store->assets().import_bundle(objects.organisation, bundle));
    objects.ids["connectionId"] = report["connections"][0]["_id"];
  }
  put_ramp(objects, operation);
  if (names("deadLetterId")) objects.ids["deadLetterId"] = put_dead_letter(objects);
  if (names("outputId")) objects.ids["outputId"] = put_delivery(objects);
  if (names("endpointId")) objects.ids["endpointId"] = put_paused(objects);
  if (names("scheduleId")) objects.ids["scheduleId"] = put_schedule(objects);
  if (names("timerId")) objects.ids["timerId"] = put_schedule(objects);
  if (names("userId") && operation.credential == Credential::basic) {
    objects.ids["userId"] = must(world.store->accounts().create_user(
                                     objects.organisation, {.email = "x@" + model::new_id()}))
                                .id;
  }
  if (names("keyId")) {
    objects.ids["keyId"] = must(world.store->accounts().create_api_key(
                                    objects.organisation, objects.ids["userId"], "a key"))
                               .key.id;
  }
  if (names("tokenId")) objects.ids["tokenId"] = put_management_token(objects);
  if (names("clientId")) {
    objects.ids["clientId"] =
        must(world.store->oauth().create_client({.id = "",
                                                 .organisation_id = objects.organisation,
                                                 .name = "App" + suffix,
                                                 .password_grant = true}))
            .client.id;
  }
  if (objects.exist()) {  // a project has one job of a type
    store::PageRequest all{.now = world.clock.now()};
    all.limit = 100;
    const auto jobs = must(world.store->jobs().list({.project_ids = {objects.project}}, all));
    for (const auto& job : jobs.items) {
      if (!model::is_final(job.state) && job.type != job_type) {
        must(world.store->jobs().cancel(job.id));
      }
    }
  }
}

Shown AuthorizationWorld::show(Means means, const Actor& actor) {
  switch (means) {
    case Means::key_header:
      return {{{"x-api-key", actor.key}}, {}};
    case Means::key_query:
      return {{}, {{"api_key", actor.key}}};
    case Means::contact_center:
      return {{{"x-contactcenter-authorization",
                "Bearer " + contact_center_token(claims_of(actor.id))}},
              {}};
    case Means::access_token:
      return {{{"authorization", "Bearer " + actor.access_token}}, {}};
    case Means::basic:
      return {{{"authorization", world.sign_in(actor.email)}}, {}};
  }
  return {};
}

std::string AuthorizationWorld::contact_center_token(const json& claims,
                                                     const std::string& secret) const {
  return hs256(claims, secret.empty() ? shared_secret : secret);
}

json AuthorizationWorld::claims_of(std::string_view subject) const {
  const auto of = std::find_if(actors_.begin(), actors_.end(),
                               [&](const Actor& each) { return each.id == subject; });
  return {{"sub", subject},
          {"organisation", of == actors_.end() ? acme : of->organisation},
          {"exp", model::to_unix_ms(world.clock.now()) / 1000 + 600}};
}

store::IssuedTokens AuthorizationWorld::sign_in(const Actor& actor,
                                                std::chrono::milliseconds lifetime) {
  const auto checked = must(world.store->accounts().authenticate(actor.email, test::password));
  return must(world.store->oauth().grant(clients_.at(actor.organisation), checked.sign_in,
                                         {.access = lifetime, .refresh = lifetime}));
}

const std::string& AuthorizationWorld::client_of(const std::string& organisation) const {
  return clients_.at(organisation);
}

std::string AuthorizationWorld::fingerprint() {
  // SQLite counts the commits of other connections. The log only grows.
  std::string text = std::to_string(number(reader_.get(), "PRAGMA data_version"));
  for (const auto& range : must(world.log->ranges())) text += ' ' + std::to_string(range.end);
  return text;
}

}  // namespace conversed::api::test
