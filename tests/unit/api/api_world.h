// A whole api over a real store and a real log in its own folder, for tests of operations. There is
// no HTTP server: requests go to the Router, and a collecting sink takes the answers.
#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "api/audit_trail.h"
#include "api/auth/authenticator.h"
#include "api/live/assets_cache.h"
#include "api/live/blocking_pool.h"
#include "api/live/busy_sessions.h"
#include "api/live/events.h"
#include "api/live/history.h"
#include "api/live/inject_quota.h"
#include "api/live/pending_replies.h"
#include "api/live/rate_limiter.h"
#include "api/operations/all.h"
#include "api/reasons/reasons.h"
#include "api/router.h"
#include "api/services.h"
#include "queue/file/file_log.h"
#include "store/store.h"
#include "tests/support/kept_keys.h"
#include "tests/support/manual_clock.h"
#include "tests/support/store_place.h"
#include "tests/support/temp_folder.h"

namespace conversed::api::test {

struct WorldSettings {
  config::LimitSettings limits{.public_requests_per_second = 0};
  config::QuotaSettings quota;
  std::chrono::milliseconds turn_timeout{30'000};
  config::ContactCenterSettings contact_center{};
  // Puts the audit trail into its own store. Then only operations change the store of the world.
  bool audit_apart = false;
  // Above 1: the store is in PostgreSQL, and its shards have the log's partitions in turn.
  std::size_t shards = 1;
  // High limits, because most tests that send wrong passwords do not test the lock-out.
  LockoutLimits lockout{.account_failures = 1'000'000, .address_failures = 0};
};

// The value. Ends the test process on an error: no test can run without its world.
template <typename T>
T must(model::Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

// The password of every user who has signed in.
inline constexpr std::string_view password = "secret secret";

// The URLToken of the Endpoint that the digit names.
[[nodiscard]] std::string token(char digit);
[[nodiscard]] nlohmann::json message(char endpoint = 'a');

// One request. It carries its headers and its query as a client sends them.
struct Sent {
  Method method = Method::post;
  std::string path;
  HeaderList headers;
  std::string body;
  HeaderList query;
  std::string peer = "192.0.2.1";
};

[[nodiscard]] model::Event event_of(const queue::LogRecord& logged);

// Organisation "Acme" with the project "Shop" and the Endpoints `a` (plain) and `b` (activeOnly),
// the project "Side" with the Endpoint `d`; organisation "Other" with the Endpoint `c`. Users:
//   admin@acme.example   all roles of the organisation
//   ann@acme.example     conversationAdmin in Shop
//   tom@acme.example     tokenAdmin in Shop
//   out@other.example    all roles of Other
class World {
 public:
  explicit World(const WorldSettings& settings = {});
  ~World();

  // Sends the request and returns the future answer.
  std::future<Response> send(Sent sent);
  Response call(Sent sent) { return send(std::move(sent)).get(); }

  // An inject with the API key of ann, and a management request with the user's Basic credentials.
  Response inject(const nlohmann::json& body, HeaderList headers = {});
  Response manage(Method method, std::string path, const nlohmann::json& body = nullptr,
                  HeaderList query = {}, std::string_view email = "admin@acme.example");

  // The Basic header of the user. The first call sets the user's password: hashing takes time, and
  // few tests need a password.
  std::string sign_in(std::string_view email);
  void set_password(std::string_view email, const std::string& text);
  // Creates an API key of the user.
  std::string key_of(std::string_view email);
  std::string id_of(std::string_view email);

  // Waits for the next `count` records of the log.
  std::vector<queue::LogRecord> read_records(std::size_t count);
  // The same records, decoded as events.
  std::vector<model::Event> read_events(std::size_t count);
  // Commits that the records of its partition up to this one are finished.
  void finish(const queue::LogRecord& last);
  // True if the log holds no further record.
  bool log_is_empty();

  model::SessionKey session_key(char endpoint = 'a') const;
  // Creates the session at the present time.
  model::Session put_session(char endpoint = 'a');
  void commit_now(store::SessionCommit commit);

  tests::ManualClock clock{model::from_unix_ms(1'780'000'000'000)};
  tests::TempFolder folder;
  std::optional<tests::StorePlace> place;  // of a store with several shards
  std::chrono::steady_clock::time_point steady = std::chrono::steady_clock::now();
  ApiOptions options;
  std::unique_ptr<store::Store> store;
  tests::KeysInMemory kept_keys;
  std::unique_ptr<queue::FileLog> log;
  std::unique_ptr<Events> events;
  std::unique_ptr<AssetsCache> assets;
  std::unique_ptr<Authenticator> authenticator;
  std::unique_ptr<store::Store> audit_store;  // null: the trail is in `store`
  std::unique_ptr<AuditTrail> audit;
  std::unique_ptr<RateLimiter> rate_limiter;
  std::unique_ptr<RateLimiter> public_limiter;
  std::unique_ptr<InjectQuota> quota;
  std::unique_ptr<Reasons> reasons;
  BusySessions busy;
  PendingReplies pending_replies;
  KeyWatch watch;
  History history;
  BlockingPool pool{2, 64};
  BlockingPool sign_ins{1, 64};
  BlockingPool imports{1, 16};
  std::vector<model::SessionKey> touched;
  int forgotten = 0;  // how often the sessions in memory were dropped
  std::vector<model::SessionKey> delivered;
  std::vector<std::string> backups;  // the names that requests asked for
  std::unique_ptr<Services> services;
  std::unique_ptr<Router> router;

 private:
  class Everything;
  void open_store(std::size_t shards);
  void fill();
  model::Result<BackUpAnswer> back_up(const std::string& name);

  std::unique_ptr<Everything> listener_;
  std::unique_ptr<queue::Consumer> consumer_;
  std::set<std::string> with_password_;
  std::string ann_key_;
  std::string acme_;
  std::string other_;
};

// The value of the answer's header, or "" if the header is missing.
[[nodiscard]] std::string header(const Response& response, std::string_view name);
[[nodiscard]] std::string basic(std::string_view email, std::string_view secret);

}  // namespace conversed::api::test
