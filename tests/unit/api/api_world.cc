#include "tests/unit/api/api_world.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <stdexcept>
#include <utility>

#include "api/http/percent.h"
#include "store/model/bundle.h"
#include "store/model/ids.h"
#include "tests/unit/api/documented.h"

namespace conversed::api::test {
namespace {

constexpr std::int32_t partitions = 2;

class CollectingSink final : public ReplySink {
 public:
  CollectingSink(Method method, ExchangeContext context, const model::Clock& clock)
      : method_(method), context_(std::move(context)), clock_(clock) {}

  std::future<Response> future() { return answer_.get_future(); }
  void answer(std::uint64_t, Response response) noexcept override {
    for (const auto& problem : undocumented(method_, context_.instance, response)) {
      ADD_FAILURE() << method_name(method_) << ' ' << context_.instance << ": " << response.status
                    << ' ' << problem << '\n'
                    << response.body;
    }
    answer_.set_value(std::move(response));
  }
  void abandoned(std::uint64_t) noexcept override {
    answer_.set_value({.status = 599, .content_type = {}, .headers = {}, .body = "abandoned"});
  }
  [[nodiscard]] const ExchangeContext& context() const override { return context_; }
  [[nodiscard]] model::Timestamp now() const override { return clock_.now(); }

 private:
  const Method method_;
  const ExchangeContext context_;
  const model::Clock& clock_;
  std::promise<Response> answer_;
};

model::Bundle bundle(const std::string& project, const std::vector<char>& endpoints) {
  model::Bundle bundle;
  bundle.project_name = project;
  bundle.locales = {"en"};
  bundle.flows.push_back(
      {"Main", {{"name", "Main"}, {"nodes", nlohmann::json::array({{{"say", "Hello."}}})}}});
  for (const char name : endpoints) {
    model::BundleEndpoint endpoint;
    endpoint.name = std::string("endpoint ") + name;
    endpoint.flow = "Main";
    endpoint.url_token = token(name);
    endpoint.active_only = name == 'b';
    bundle.endpoints.push_back(endpoint);
  }
  return bundle;
}

}  // namespace

class World::Everything final : public queue::Listener {
 public:
  queue::Result<void> on_assigned(std::span<const queue::PartitionRange>) override { return {}; }
  void on_revoked(std::span<const std::int32_t>) override {}
};

std::string token(char digit) {
  std::string text(model::url_token_length, digit);
  return text;
}

nlohmann::json message(char endpoint) {
  return {{"URLToken", token(endpoint)}, {"userId", "u"}, {"sessionId", "s"}, {"text", "hello"}};
}

void World::open_store(std::size_t shards) {
  store::StoreSettings settings{.data_dir = folder.path()};
  if (shards > 1) {
    if (!place.emplace().in_postgres()) {
      throw std::runtime_error("run this test with tests/support/postgres.py");
    }
    settings = place->store_of(shards);
  }
  settings.readers = 8;
  store = must(store::Store::open(settings, clock));
  must(store->layout().settle(partitions));
}

World::World(const WorldSettings& settings) {
  open_store(settings.shards);
  log = must(queue::FileLog::open(must(queue::open_disk(folder / "log")),
                                  {.partitions = partitions}, kept_keys, clock));
  listener_ = std::make_unique<Everything>();
  consumer_ = must(log->subscribe(*listener_));

  options.limits = settings.limits;
  options.quota.set(settings.quota);
  options.api.turn_timeout = settings.turn_timeout;
  options.version = "1.2.3";
  options.started_at = clock.now();
  options.steady_now = [this] { return steady; };
  events = std::make_unique<Events>(*log, *log);
  assets = std::make_unique<AssetsCache>(store->assets());
  authenticator = std::make_unique<Authenticator>(*store, clock, settings.lockout,
                                                  must(JwtVerifier::open(settings.contact_center)));
  if (settings.audit_apart) {
    std::filesystem::create_directory(folder / "audit");
    audit_store = must(store::Store::open({.data_dir = folder / "audit"}, clock));
  }
  audit = std::make_unique<AuditTrail>((audit_store ? *audit_store : *store).audit());
  rate_limiter = std::make_unique<RateLimiter>(RateLimits{
      .requests_per_second = settings.limits.requests_per_second, .burst = settings.limits.burst});
  public_limiter = std::make_unique<RateLimiter>(
      RateLimits{.requests_per_second = settings.limits.public_requests_per_second,
                 .burst = settings.limits.burst});
  quota = std::make_unique<InjectQuota>(
      QuotaLimits{.injects_per_month = settings.quota.injects_per_month}, store->usage(), clock);
  reasons = std::make_unique<Reasons>(*store, *assets, *log, clock, settings.limits.inbox);
  services = std::make_unique<Services>(
      Services{.entry = {options, clock, *store, *authenticator, *audit, *rate_limiter,
                         *public_limiter, pool, sign_ins},
               .messages = {options, clock, *store, *events, *assets, *quota, busy, pending_replies,
                            watch, pool},
               .sessions = {clock, clock, *store, *log, *events, *assets, busy, pending_replies,
                            watch, *reasons, imports},
               .projects = {options, clock, *store, *assets, watch, imports},
               .accounts = {options, clock, *store, *authenticator, *audit, pool, sign_ins},
               .daemon = {options, clock, *store, *log, *events, pending_replies, watch, history}});
  services->sessions.touch = [this](const model::SessionKey& key) { touched.push_back(key); };
  services->sessions.forget = [this] { ++forgotten; };
  services->sessions.deliver = [this](const model::SessionKey& key) { delivered.push_back(key); };
  services->sessions.schedule = [](const model::Schedule&) {};
  services->daemon.back_up = [this](const std::string& name) { return back_up(name); };
  store->jobs().on_change([this](const std::string& id) { watch.notify(id); });
  router = std::make_unique<Router>(all_operations(), services->entry.options.api);
  router->open(*services);
  fill();
}

model::Result<BackUpAnswer> World::back_up(const std::string& name) {
  if (name == "taken") return model::fail(model::Errc::conflict, "there is a backup taken");
  backups.push_back(name);
  return BackUpAnswer{name.empty() ? "now" : name, "/backups/now", 4096, clock.now()};
}

World::~World() {
  sign_ins.stop();
  pool.stop();
  imports.stop();
  pending_replies.stop();
  watch.stop();
  consumer_.reset();
  log->stop();
  store.reset();
}

void World::fill() {
  auto& accounts = store->accounts();
  const std::vector<std::string> all{"projectAdmin", "userAdmin", "platformAdmin"};
  const auto user = [](const char* email, std::vector<std::string> roles) {
    return store::Accounts::NewUser{email, email, std::move(roles), std::nullopt};
  };
  acme_ = must(accounts.create_first_organisation("Acme", user("admin@acme.example", all))).id;
  other_ = must(accounts.create_organisation("Other", user("out@other.example", all))).id;
  const auto shop = must(store->assets().import_bundle(acme_, bundle("Shop", {'a', 'b'})));
  must(store->assets().import_bundle(acme_, bundle("Side", {'d'})));
  must(store->assets().import_bundle(other_, bundle("Shop", {'c'})));
  const std::string project = shop.at("project").at("_id");
  const auto add_member = [&](const char* email, const char* role) {
    auto member = user(email, {});
    member.membership = {.project_id = project, .roles = {role}};
    must(accounts.create_user(acme_, member));
  };
  add_member("ann@acme.example", "conversationAdmin");
  add_member("tom@acme.example", "tokenAdmin");
  ann_key_ = key_of("ann@acme.example");
}

std::string World::key_of(std::string_view email) {
  const std::string& organisation = email.ends_with("@other.example") ? other_ : acme_;
  const auto user = must(store->accounts().user_by_email(organisation, email));
  return must(store->accounts().create_api_key(organisation, user.id, "test")).secret;
}

std::string World::id_of(std::string_view email) {
  const std::string& organisation = email.ends_with("@other.example") ? other_ : acme_;
  return must(store->accounts().user_by_email(organisation, email)).id;
}

std::future<Response> World::send(Sent sent) {
  Request request;
  request.method = sent.method;
  request.target = sent.path;
  request.path = percent_decode_path(sent.path).value_or("");
  request.headers = std::move(sent.headers);
  request.query = std::move(sent.query);
  request.body = std::move(sent.body);
  request.peer = std::move(sent.peer);
  request.trace_id = std::string(32, '7');
  auto sink = std::make_shared<CollectingSink>(
      request.method, ExchangeContext{request.path, request.trace_id}, clock);
  auto answer = sink->future();
  router->handle(std::move(request), Reply(std::move(sink), 1));
  return answer;
}

Response World::inject(const nlohmann::json& body, HeaderList headers) {
  headers.emplace_back("x-api-key", ann_key_);
  return call({Method::post, "/v2.0/endpoint/inject", std::move(headers), body.dump(), {}});
}

Response World::manage(Method method, std::string path, const nlohmann::json& body,
                       HeaderList query, std::string_view email) {
  return call({method,
               std::move(path),
               {{"authorization", sign_in(email)}},
               body.is_null() ? "" : body.dump(),
               std::move(query)});
}

std::string World::sign_in(std::string_view email) {
  if (with_password_.insert(std::string(email)).second) set_password(email, std::string(password));
  return basic(email, password);
}

void World::set_password(std::string_view email, const std::string& text) {
  const std::string& organisation = email.ends_with("@other.example") ? other_ : acme_;
  must(store->accounts().set_password(organisation, id_of(email), text));
}

std::vector<queue::LogRecord> World::read_records(std::size_t count) {
  std::vector<queue::LogRecord> read;
  while (read.size() < count) {
    auto records = must(consumer_->poll(count - read.size(), std::chrono::seconds(10)));
    if (records.empty()) break;  // the expectation of `count` in the test fails
    std::ranges::move(records, std::back_inserter(read));
  }
  return read;
}

std::vector<model::Event> World::read_events(std::size_t count) {
  std::vector<model::Event> read;
  for (const auto& each : read_records(count)) read.push_back(event_of(each));
  return read;
}

model::Event event_of(const queue::LogRecord& logged) {
  const queue::Record& record = logged.record;
  return must(
      model::decode_event(record.key, record.id, record.type, record.trace_id, record.value));
}

void World::finish(const queue::LogRecord& last) {
  const std::vector finished{last.position};
  EXPECT_TRUE(consumer_->commit(finished));
}

bool World::log_is_empty() {
  return must(consumer_->poll(1, std::chrono::milliseconds(0))).empty();
}

model::SessionKey World::session_key(char endpoint) const {
  const auto found = must(store->assets().endpoint_by_token(token(endpoint)));
  return {found->project_id, found->id, "u", "s"};
}

model::Session World::put_session(char endpoint) {
  store::SessionCommit commit;
  commit.key = session_key(endpoint);
  commit.after.key = commit.key;
  commit.after.started_at = clock.now();
  commit.after.last_activity_at = clock.now();
  commit.after.position = {1, 0, 0};
  commit_now(commit);
  return *must(store->of(commit.key).sessions().load(commit.key));
}

void World::commit_now(store::SessionCommit commit) {
  std::promise<store::Outcome> outcome;
  auto& committer = store->of(commit.key).committer();
  committer.submit(std::move(commit),
                   [&](store::Outcome came, const auto&) { outcome.set_value(came); });
  if (outcome.get_future().get() != store::Outcome::committed) {
    throw std::runtime_error("the commit was not committed");
  }
}

std::string header(const Response& response, std::string_view name) {
  for (const auto& [each, value] : response.headers) {
    if (each == name) return value;
  }
  return {};
}

std::string basic(std::string_view email, std::string_view secret) {
  static constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const std::string plain = std::string(email) + ":" + std::string(secret);
  std::string text;
  std::uint32_t bits = 0;
  int held = 0;
  for (const char c : plain) {
    bits = (bits << 8) | static_cast<unsigned char>(c);
    for (held += 8; held >= 6; held -= 6) text += digits[(bits >> (held - 6)) & 0x3F];
  }
  if (held > 0) text += digits[(bits << (6 - held)) & 0x3F];
  return "Basic " + text;
}

}  // namespace conversed::api::test
