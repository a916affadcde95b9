#pragma once

// All settings, one struct for each area. The initializers here are the only place with the
// defaults. `keys.cc` names, bounds and explains each setting. A class takes the struct of its own
// area, never the whole `Settings`.
//
// Units: a duration has its own unit, `*_bytes` are bytes, all others are counts. The loader
// enforces the ranges, so users of a loaded struct need no checks.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace conversed::config {

using Duration = std::chrono::milliseconds;

// A value that must never be printed. It has no operator<<, and `reveal` is easy to search for.
// Immutable, hence thread-safe.
class Secret {
 public:
  Secret() = default;
  explicit Secret(std::string value) : value_(std::move(value)) {}

  [[nodiscard]] const std::string& reveal() const { return value_; }
  [[nodiscard]] bool empty() const { return value_.empty(); }
  bool operator==(const Secret&) const = default;

 private:
  std::string value_;
};

enum class QueueDriver : std::uint8_t { embedded, kafka };
enum class StoreDriver : std::uint8_t { sqlite, postgres };
enum class LogLevel : std::uint8_t { debug, info, warn, error };
enum class LogFormat : std::uint8_t { json, text };

// The work of a daemon. In a cluster a daemon may have only some roles.
enum class Role : std::uint8_t {
  api,        // answers HTTP
  worker,     // runs Turns and jobs, makes their calls, sends outputs to webhooks
  scheduler,  // appends events that fall due, does maintenance
};
inline constexpr std::string_view role_words[] = {"api", "worker", "scheduler"};
[[nodiscard]] constexpr std::string_view to_string(Role role) {
  return role_words[static_cast<std::size_t>(role)];
}

struct ListenSettings {
  std::string address = "127.0.0.1";
  std::uint16_t port = 8080;  // 0: the kernel picks one
};

// The folder of backups that an operator requests or a migration makes.
struct BackupSettings {
  std::filesystem::path dir;  // empty: `backups` in data_dir
};

// How long data is kept; 0: forever.
struct RetentionSettings {
  Duration transcripts{0};
  Duration dead_letters{0};
  Duration receipts = std::chrono::days(30);
  Duration audit = std::chrono::days(365);
};

// The address of /healthz, /readyz and /metrics.
struct AdminSettings {
  std::string address = "127.0.0.1";
  std::uint16_t port = 9464;  // 0: the kernel picks one
};

struct KafkaSettings {
  std::vector<std::string> bootstrap_servers;  // host:port
  std::string topic_prefix = "conversed";
  std::string instance_id;  // empty: made of the host's name and data_dir
  std::vector<std::pair<std::string, Secret>> properties;  // librdkafka's, by name
  Duration delivery_timeout{10'000};
};

struct QueueSettings {
  QueueDriver driver = QueueDriver::embedded;
  std::uint32_t partitions = 8;  // fixed when the log or its topic is created
  KafkaSettings kafka;
};

struct PostgresSettings {
  Secret url;
  std::vector<Secret> shards;  // URLs of further servers
  Duration timeout = std::chrono::seconds(10);
};

struct StoreSettings {
  StoreDriver driver = StoreDriver::sqlite;
  PostgresSettings postgres;
};

// For several daemons on one store and log.
struct ClusterSettings {
  std::string name;  // this daemon's; empty: made of the host's name and data_dir
};

struct ApiSettings {
  std::string base_path = "/new";  // "" or begins with '/' and does not end with one
  std::uint32_t threads = 2;
  Duration header_timeout = std::chrono::seconds(10);
  Duration body_timeout = std::chrono::seconds(10);
  Duration idle_timeout = std::chrono::seconds(75);
  Duration turn_timeout = std::chrono::seconds(30);
  std::uint64_t max_body_bytes = 64 * 1024;
  std::uint64_t max_header_bytes = 16 * 1024;
};

struct LimitSettings {
  std::uint32_t requests_per_second = 0;           // of one key or user; 0: unlimited
  std::uint32_t public_requests_per_second = 200;  // of one address; 0: unlimited
  std::uint32_t burst = 100;
  std::uint32_t connections = 10'000;
  std::uint32_t connections_per_address = 1000;
  std::uint64_t large_bodies_bytes = std::uint64_t{128} << 20;  // above api.max_body, all together
  std::uint32_t inbox = 1000;       // records of one session in the store
  std::uint32_t in_flight = 4096;   // records in memory
  std::uint32_t backlog = 262'144;  // further records, which wait in the embedded log
};

// Limits of one organisation; 0: unlimited.
struct QuotaSettings {
  std::uint64_t injects_per_month = 0;
  std::uint64_t jobs_per_month = 0;
  std::uint64_t tokens = 0;
  std::uint64_t model_tokens_per_month = 0;
  std::uint64_t follow_ups_per_month = 0;  // of one project
};

struct OauthSettings {
  std::string issuer;  // an address without a slash at its end; empty: the address of the request
  Duration access_token_lifetime = std::chrono::hours(1);
  Duration refresh_token_lifetime = std::chrono::days(30);
};

// Limits on wrong passwords, by HTTP Basic and by OAuth.
struct SignInSettings {
  std::uint32_t account_failures = 100;  // at least 1
  std::uint32_t address_failures = 100;  // 0: addresses are not counted
  Duration lockout = std::chrono::hours(1);
};

// Tokens that a contact-center platform signs. Without keys and secret every token is refused.
struct ContactCenterSettings {
  std::string jwks_file;  // RS256 and ES256
  Secret secret;          // HS256; at least 32 bytes
  std::string secret_file;
  std::string issuer;    // empty: not checked
  std::string audience;  // empty: not checked
  // The organisation whose users the tokens name, by id or name, or the claim with it. Both empty:
  // the only organisation of the installation.
  std::string organisation;
  std::string organisation_claim;
};

// The service that learns of each tenant. Empty URL: there is none.
struct ProvisioningSettings {
  std::string url;
  Secret token;
  Duration timeout = std::chrono::seconds(10);
  Duration retry_for = std::chrono::minutes(2);
};

struct ProactiveSettings {
  bool enabled = true;
  ProvisioningSettings provisioning;
};

struct JobSettings {
  Duration retention = std::chrono::days(30);
};

struct EgressSettings {
  // CIDR ranges, addresses and lower-case host names, each checked.
  std::vector<std::string> allow;
};

struct DeliverySettings {
  Duration retry_for = std::chrono::hours(24);
  Duration pause_after = std::chrono::hours(1);  // 0: no webhook is paused
  Duration timeout = std::chrono::seconds(10);
  std::uint32_t connections = 32;
  Duration secret_overlap = std::chrono::hours(24);  // 0: a replaced secret no longer signs
};

struct CallSettings {
  Duration timeout = std::chrono::seconds(10);
  std::uint32_t connections = 512;
  std::uint64_t max_response_bytes = 256 * 1024;
};

struct FlowSettings {
  std::uint32_t max_steps = 1000;
  std::uint32_t max_visits = 100;
  std::uint32_t max_outputs = 100;
  std::uint64_t max_context_bytes = 256 * 1024;
  std::uint64_t max_profile_bytes = 64 * 1024;
  std::uint64_t max_output_bytes = 64 * 1024;
  std::uint64_t max_call_bytes = 256 * 1024;
  std::uint32_t max_slot_hits = 200;
  std::uint64_t max_slots_bytes = 256 * 1024;
  bool code = false;
  std::uint32_t code_processes = 4;
};

// The OpenTelemetry collector. Empty URL: there is none.
struct OtlpSettings {
  std::string url;
  std::vector<std::pair<std::string, Secret>> headers;  // by name
  double sample = 1;                                    // 0 to 1
};

struct MetricsSettings {
  std::uint32_t series = 1000;  // with ids
};

struct TelemetrySettings {
  OtlpSettings otlp;
};

struct LogSettings {
  LogLevel level = LogLevel::info;
  LogFormat format = LogFormat::json;
};

struct Settings {
  // Empty: the default, which depends on the user. `load` sets it.
  std::filesystem::path data_dir;
  // Where the keys are that secrets are sealed with. Empty: data_dir/master.key, which is made with
  // the store. Not a key of the file: a service manager hands it over among the credentials.
  std::filesystem::path master_key;
  // 0: one for each core, from 2 to 16, and at most limits.in_flight. `load` sets it.
  std::uint32_t workers = 0;
  std::vector<Role> roles{Role::api, Role::worker, Role::scheduler};
  Duration shutdown_timeout = std::chrono::seconds(20);
  ListenSettings listen;
  std::vector<std::string> trusted_proxies;  // CIDR ranges and addresses, each checked
  AdminSettings admin;
  QueueSettings queue;
  StoreSettings store;
  ClusterSettings cluster;
  ApiSettings api;
  LimitSettings limits;
  QuotaSettings quota;
  OauthSettings oauth;
  SignInSettings sign_in;
  ContactCenterSettings contact_center;
  ProactiveSettings proactive;
  JobSettings jobs;
  EgressSettings egress;
  DeliverySettings delivery;
  CallSettings calls;
  FlowSettings flows;
  RetentionSettings retention;
  BackupSettings backup;
  MetricsSettings metrics;
  TelemetrySettings telemetry;
  LogSettings log;
};

}  // namespace conversed::config
