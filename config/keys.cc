#include "config/keys.h"

#include <limits>

#include "config/key_forms.h"
#include "config/values.h"
#include "store/model/url.h"
#include "store/text/ascii.h"

namespace conversed::config {
namespace {

// A path such as `/new` or `/a/b`. Clients and proxies would resolve dot segments and empty ones.
bool is_base_path(std::string_view text) {
  if (text.empty()) return true;
  if (text.front() != '/' || text.back() == '/' || text.size() > 200) return false;
  if (!text::consists_of(text, "/._~-") || text.find("//") != std::string_view::npos) return false;
  for (std::size_t at = 0; at != std::string_view::npos; at = text.find('/', at + 1)) {
    const std::string_view segment = text.substr(at + 1, text.find('/', at + 1) - at - 1);
    if (segment == "." || segment == "..") return false;
  }
  return true;
}

// Kafka's names have at most 249 characters. The daemon's suffixes need some.
bool is_name_for_kafka(std::string_view text) {
  return text.size() <= 200 && text::consists_of(text, "._-") && text != "." && text != "..";
}

bool is_line(std::string_view text) {
  return text.size() <= 4000 && !text::has_control(text);
}

bool is_named_value(std::string_view text) {
  const std::size_t equals = text.find('=');
  return is_line(text) && equals != std::string_view::npos && equals != 0 &&
         text::consists_of(text.substr(0, equals), "._-");
}

bool is_share(std::string_view text) {
  const auto share = parse_share(text);
  return share && *share >= 0 && *share <= 1;
}

bool is_postgres_url(std::string_view text) {
  return text.empty() ||
         ((text.starts_with("postgresql://") || text.starts_with("postgres://")) && is_line(text));
}

// The rules of texts and of items of lists.
constexpr TextRule folder_path{is_line, "the path of a folder, or nothing for the default place"};
constexpr TextRule file_path{is_line, "the path of a file, or nothing"};
constexpr TextRule base_path{is_base_path,
                             "a path such as /new, without a slash at its end, or nothing"};
constexpr TextRule one_line{is_line, "a line of text, or nothing"};
constexpr TextRule host{
    [](std::string_view text) { return is_ip_address(text) || is_host_name(text); },
    "an IP address or a host name"};
constexpr TextRule host_and_port{is_host_and_port,
                                 "a list of host:port, such as [kafka-1:9092, kafka-2:9092]"};
constexpr TextRule networks_and_hosts{
    [](std::string_view text) {
      return is_cidr(text) || is_ip_address(text) || is_host_name(text);
    },
    "a list of CIDR ranges, IP addresses and host names, such as [10.0.0.0/8, crm.example.com]",
    true};
constexpr TextRule networks{
    [](std::string_view text) { return is_cidr(text) || is_ip_address(text); },
    "a list of CIDR ranges and IP addresses, such as [10.0.0.0/8, 192.0.2.7]", true};
constexpr TextRule kafka_name{
    [](std::string_view text) { return !text.empty() && is_name_for_kafka(text); },
    "1 to 200 letters, digits, dots, hyphens and underscores"};
constexpr TextRule optional_kafka_name{
    is_name_for_kafka, "at most 200 letters, digits, dots, hyphens and underscores, or nothing"};
constexpr TextRule kafka_property{
    is_named_value,
    "a list of name=value, such as [security.protocol=sasl_ssl, sasl.mechanism=SCRAM-SHA-512]"};
constexpr TextRule header_value{is_named_value,
                                "a list of name=value, such as [Authorization=Bearer abc]"};
constexpr TextRule optional_url{
    [](std::string_view text) { return text.empty() || model::is_http_url(text); },
    "a URL that begins with http:// or https://, or nothing"};
constexpr TextRule postgres_urls{
    [](std::string_view text) { return !text.empty() && is_postgres_url(text); },
    "a list of URLs that begin with postgresql://"};
constexpr TextRule share{is_share, "a number from 0 to 1, such as 0.05"};
constexpr TextRule postgres_url{is_postgres_url,
                                "a URL that begins with postgresql://, or nothing"};
// HS256 makes 32 bytes, and RFC 7518 section 3.2 asks for a key of at least that size.
constexpr TextRule long_secret{
    [](std::string_view text) { return text.empty() || (text.size() >= 32 && is_line(text)); },
    "32 bytes or more without control characters, or nothing"};

// The path of a member of Settings, and an accessor without captures for reading and writing.
#define CONVERSED_FIELD(member) #member, ([](auto& settings) -> auto& { return settings.member; })

constexpr std::uint64_t second = 1000;
constexpr std::uint64_t minute = 60 * second;
constexpr std::uint64_t hour = 60 * minute;
constexpr std::uint64_t day = 24 * hour;
constexpr std::uint64_t kib = 1024;
constexpr std::uint64_t mib = 1024 * kib;
constexpr std::uint64_t no_limit = std::numeric_limits<std::int64_t>::max();  // in SQL

constexpr Key table[] = {
    setting(
        CONVERSED_FIELD(data_dir), folder_path,
        "The folder of the embedded log and store, of the key file and of run/ports.json. Empty: "
        "$STATE_DIRECTORY, which systemd sets, else /var/lib/conversed for root, else "
        "$XDG_STATE_HOME/conversed, else ~/.local/state/conversed. Set it to use another disk."),
    setting(CONVERSED_FIELD(workers), Range{0, 1024},
            "Threads that run Turns and jobs. With two or more, one organisation never has them "
            "all, even if there is no other. More threads than cores make each Turn more "
            "expensive. 0: one for each core, from 2 to 16. Set it if a quota limits the CPU."),
    setting(CONVERSED_FIELD(roles), role_words,
            "The work of this daemon. api answers HTTP. worker runs Turns and jobs, makes their "
            "calls and sends outputs. scheduler appends events that fall due, and does "
            "maintenance. Outside a cluster one daemon must have all roles."),
    setting(CONVERSED_FIELD(shutdown_timeout), Range{second, 10 * minute},
            "How long a stop waits until accepted events are answered and committed. After it, the "
            "next start continues with the rest."),

    setting(CONVERSED_FIELD(listen.address), host,
            "The address of the API. Put a proxy that speaks TLS in front before you open it to "
            "others."),
    setting(CONVERSED_FIELD(listen.port), Range{0, 65535},
            "The port of the API. 0: the system picks one, and data_dir/run/ports.json names it."),

    setting(CONVERSED_FIELD(trusted_proxies), networks,
            "The proxies in front of the API. For a request from one of them, the client's address "
            "is the last address in X-Forwarded-For that is no such proxy. From other addresses "
            "that header is ignored. Limits and lock-outs count by the client's address."),

    setting(CONVERSED_FIELD(admin.address), host,
            "The address of /healthz, /readyz and /metrics, which need no credentials. Keep it "
            "private."),
    setting(CONVERSED_FIELD(admin.port), Range{0, 65535},
            "The port of /healthz, /readyz and /metrics. 0: the system picks one."),

    setting(CONVERSED_FIELD(queue.driver), queue_driver_words,
            "The log of events. embedded needs no other program; kafka is for clusters."),
    setting(CONVERSED_FIELD(queue.partitions), Range{1, 1024},
            "Partitions of a new log, embedded or Kafka's topic of events. An existing log keeps "
            "its number. All sessions of a user are in one partition."),
    setting(
        CONVERSED_FIELD(queue.kafka.bootstrap_servers), host_and_port,
        "Brokers for the first connection, which name all others. Required by the kafka driver."),
    setting(CONVERSED_FIELD(queue.kafka.topic_prefix), kafka_name,
            "The prefix of the topics' names. Change it if several installations share a Kafka."),
    setting(CONVERSED_FIELD(queue.kafka.instance_id), one_line,
            "This daemon's group.instance.id, different from the other daemons' and the same after "
            "each restart. Empty: cluster.name."),
    setting(CONVERSED_FIELD(queue.kafka.properties), kafka_property,
            "Properties of librdkafka for TLS, SASL and tuning; see queue/README.md. Their values "
            "are never printed. Write a value with a comma as an item of a YAML list."),
    setting(CONVERSED_FIELD(queue.kafka.delivery_timeout), Range{second, 5 * minute},
            "How long a request waits for Kafka. Then it is answered 503, or 504 if Kafka may have "
            "stored the event."),

    setting(
        CONVERSED_FIELD(store.driver), store_driver_words,
        "The store of sessions, jobs and assets. sqlite is embedded; postgres is for clusters."),
    setting(CONVERSED_FIELD(store.postgres.url), postgres_url,
            "The database. Required by the postgres driver, which needs queue.driver kafka; see "
            "store/README.md. If it has a password, set it by the environment variable or as a "
            "credential. It is never printed."),
    setting(CONVERSED_FIELD(store.postgres.shards), postgres_urls,
            "Further servers, which share the sessions with the first by the partitions of the "
            "log; see store/README.md. All daemons need the same list. Add servers at its end, and "
            "never change the order. A new store spreads its partitions over all servers; an "
            "existing one keeps them. The URLs are never printed."),
    setting(CONVERSED_FIELD(store.postgres.timeout), Range{second, 10 * minute},
            "How long the server may take for a connection or a statement. After it, the database "
            "counts as away: requests that need it are answered 503, or 504 if a change may have "
            "been made."),

    setting(CONVERSED_FIELD(cluster.name), optional_kafka_name,
            "This daemon's name, different from the other daemons' of the store and the same after "
            "each restart. Letters, digits, '.', '_' and '-'. Empty: made of the host's name and "
            "data_dir."),

    setting(CONVERSED_FIELD(api.base_path), base_path,
            "Every route is served under this path as well as without it."),
    setting(CONVERSED_FIELD(api.threads), Range{1, 256},
            "Threads that read and parse requests. Raise it if they use their cores fully."),
    setting(
        CONVERSED_FIELD(api.header_timeout), Range{100, 10 * minute},
        "How long a request's headers may take to arrive. After it, the request is answered 408."),
    setting(CONVERSED_FIELD(api.body_timeout), Range{100, 10 * minute},
            "How long a request's body may take to arrive. After it, the request is answered 408."),
    setting(CONVERSED_FIELD(api.idle_timeout), Range{second, hour},
            "How long a connection stays open without a request. Make it longer than that of a "
            "proxy in front."),
    setting(CONVERSED_FIELD(api.turn_timeout), Range{100, 10 * minute},
            "How long POST /{URLToken} waits for its execution. After it, the request is answered "
            "202 with the outputs so far, and the webhook gets the others."),
    setting(CONVERSED_FIELD(api.max_body_bytes), Bytes{kib, 16 * mib},
            "The largest body of a request. A larger one is answered 413."),
    setting(CONVERSED_FIELD(api.max_header_bytes), Bytes{kib, mib},
            "The largest request line with its headers. Larger ones are answered 431."),

    reloads(setting(
        CONVERSED_FIELD(limits.requests_per_second), Range{0, 1'000'000},
        "Requests a second of one API key or user. Further ones are answered 429. 0: no limit.")),
    reloads(setting(
        CONVERSED_FIELD(limits.public_requests_per_second), Range{0, 1'000'000},
        "Requests a second of one address without credentials or with wrong ones. Further ones are "
        "answered 429. IPv6 addresses count by their /64. A request counts once more for each 4 "
        "KiB of its body, so the default allows 800 KiB a second. Behind a proxy, set "
        "trusted_proxies; otherwise all clients have its address. 0: no limit.")),
    reloads(setting(CONVERSED_FIELD(limits.burst), Range{1, 1'000'000},
                    "Requests at once before the limits above apply to a key, user or address.")),
    setting(CONVERSED_FIELD(limits.connections), Range{1, 1'000'000},
            "Open connections to the API. Further ones are answered 503 and closed."),
    setting(CONVERSED_FIELD(limits.connections_per_address), Range{1, 1'000'000},
            "Open connections of one address, IPv6 by its /64. Further ones are answered 429 and "
            "closed. trusted_proxies are not counted."),
    setting(CONVERSED_FIELD(limits.large_bodies_bytes), Bytes{64 * mib, 65'536 * mib},
            "Memory for all bodies that are larger than api.max_body, such as imports. Requests "
            "without room are answered 503. Clients whose password is not verified yet get half of "
            "it."),
    setting(CONVERSED_FIELD(limits.inbox), Range{1, 1'000'000},
            "Events that wait in the store for one busy session. Further ones are answered 429."),
    // Half of the Committer's capacity, so that parked events find room beside them.
    setting(CONVERSED_FIELD(limits.in_flight), Range{1, 32'768},
            "Events of all sessions in memory. With the embedded log up to 512 more for each "
            "worker wait for their commit."),
    setting(CONVERSED_FIELD(limits.backlog), Range{0, 10'000'000},
            "Further events of all sessions that wait in the embedded log, so that the backlog of "
            "one organisation does not delay others. The daemon keeps their positions in memory: "
            "about 80 bytes an event, and up to 500 for each session with such events. Reading "
            "pauses at this number. With Kafka reading pauses at limits.in_flight."),

    reloads(setting(CONVERSED_FIELD(quota.injects_per_month), Range{0, no_limit},
                    "Injects of one organisation in a calendar month (UTC). Further ones are "
                    "answered 402. 0: unlimited.")),
    reloads(setting(CONVERSED_FIELD(quota.jobs_per_month), Range{0, no_limit},
                    "Jobs of one organisation in a calendar month (UTC). Further ones are answered "
                    "402. 0: unlimited.")),
    reloads(setting(CONVERSED_FIELD(quota.tokens), Range{0, no_limit},
                    "Tokens of one organisation. Making more is answered 402. 0: unlimited.")),
    setting(CONVERSED_FIELD(quota.model_tokens_per_month), Range{0, no_limit},
            "Tokens that language models count for one organisation in a calendar month (UTC). "
            "Beyond it, llmPrompt and aiAgent fail with quota_exhausted. 0: unlimited."),
    setting(CONVERSED_FIELD(quota.follow_ups_per_month), Range{0, no_limit},
            "Follow-ups of one project in a calendar month (UTC), for projects that are set up "
            "from now on. Further ones are dropped. 0: unlimited."),

    setting(CONVERSED_FIELD(oauth.issuer), one_line,
            "The address of the service for clients, such as https://conversed.example, without a "
            "slash at its end: the issuer of RFC 8414 and RFC 9207. Empty: each request's Host, "
            "and X-Forwarded-Proto of a proxy."),
    setting(CONVERSED_FIELD(oauth.access_token_lifetime), Range{minute, 30 * day},
            "How long an OAuth access token is valid."),
    setting(CONVERSED_FIELD(oauth.refresh_token_lifetime), Range{minute, 3650 * day},
            "How long an OAuth refresh token is valid. Not shorter than the access token."),

    setting(CONVERSED_FIELD(sign_in.account_failures), Range{1, 1'000'000},
            "Wrong passwords for one account within sign_in.lockout, by HTTP Basic and OAuth, from "
            "all addresses that have never signed in to it. At this number those addresses are "
            "refused. An address that has signed in before is counted by itself."),
    setting(
        CONVERSED_FIELD(sign_in.address_failures), Range{0, 1'000'000},
        "Wrong passwords from one address (IPv6: one /64) within sign_in.lockout. At this number "
        "the address is refused, except for accounts that it has signed in to. Behind a proxy, set "
        "trusted_proxies; otherwise all clients have its address. 0: addresses are not counted."),
    setting(CONVERSED_FIELD(sign_in.lockout), Range{second, day},
            "How long wrong passwords count, beginning with the first."),

    setting(CONVERSED_FIELD(contact_center.jwks_file), file_path,
            "The public keys of the contact-center platform (a JSON Web Key Set), for its RS256 "
            "and ES256 tokens in x-contactcenter-authorization. The file is read again when it "
            "changes. If the new file is invalid, the old keys stay."),
    setting(CONVERSED_FIELD(contact_center.secret), long_secret,
            "The secret shared with the contact-center platform, for its HS256 tokens. Set it by "
            "the environment variable or by contact_center.secret_file. It is never printed."),
    setting(CONVERSED_FIELD(contact_center.secret_file), file_path,
            "A file with contact_center.secret. A line break at its end is removed."),
    setting(CONVERSED_FIELD(contact_center.issuer), one_line,
            "The required iss of a contact-center token. Empty: iss is not checked."),
    setting(CONVERSED_FIELD(contact_center.audience), one_line,
            "The required aud of a contact-center token. Empty: aud is not checked. Set it if the "
            "platform signs tokens for other services, too."),
    setting(CONVERSED_FIELD(contact_center.organisation), one_line,
            "The name or id of the organisation whose users the tokens name. Empty, without "
            "organisation_claim: the only organisation of the installation; with several, tokens "
            "are refused."),
    setting(CONVERSED_FIELD(contact_center.organisation_claim), one_line,
            "The claim with the name or id of the organisation, if one platform signs the tokens "
            "of several. Give this or contact_center.organisation."),

    setting(CONVERSED_FIELD(proactive.enabled), flag_words,
            "Whether proactive set-up is offered. If not, it is answered 501."),
    setting(CONVERSED_FIELD(proactive.provisioning.url), one_line,
            "The service to which set-up announces each project's tenant by POST. Withdrawing is "
            "DELETE of URL/{tenant id}. Empty: tenants are kept in the store only."),
    setting(CONVERSED_FIELD(proactive.provisioning.token), long_secret,
            "The bearer token for the provisioning service. Set it by the environment variable. It "
            "is never printed."),
    setting(CONVERSED_FIELD(proactive.provisioning.timeout), Range{100, 10 * minute},
            "How long one request to the provisioning service may take."),
    setting(CONVERSED_FIELD(proactive.provisioning.retry_for), Range{0, day},
            "How long failed requests to the provisioning service are repeated. After it, the "
            "set-up ends with an error."),

    setting(CONVERSED_FIELD(jobs.retention), Range{minute, 3650 * day},
            "How long cancelled and failed jobs are shown. Finished set-ups stay as long as their "
            "project is set up."),

    reloads(setting(CONVERSED_FIELD(egress.allow), networks_and_hosts,
                    "Addresses that Nodes, webhooks, provisioning and language models may reach "
                    "besides public ones, such as those of your own network. The public addresses "
                    "of this machine are closed unless you list them here.")),

    setting(CONVERSED_FIELD(delivery.retry_for), Range{0, 365 * day},
            "How long an output is sent again to a webhook that fails. After it, the output is a "
            "dead letter, and the session's next output follows."),
    setting(CONVERSED_FIELD(delivery.pause_after), Range{0, 365 * day},
            "How long a webhook may fail before it is paused: it then gets one try a minute until "
            "one succeeds. The time of a pause does not count as time of delivery.retry_for. 0: no "
            "webhook is paused."),
    setting(CONVERSED_FIELD(delivery.timeout), Range{100, 10 * minute},
            "How long one try to deliver may take."),
    setting(CONVERSED_FIELD(delivery.connections), Range{1, 10'000},
            "Open connections to webhooks. One project gets at most three quarters of them, and "
            "some are reserved for webhooks that answer quickly."),
    setting(CONVERSED_FIELD(delivery.secret_overlap), Range{0, 365 * day},
            "How long an old webhook secret still signs deliveries beside its replacement, so that "
            "the receiver can change over. 0: not at all, as after a leak."),

    setting(CONVERSED_FIELD(calls.timeout), Range{100, hour},
            "How long a call of a Node may take. A Node can set its own time."),
    setting(CONVERSED_FIELD(calls.connections), Range{1, 10'000},
            "Calls of Nodes at once. Further ones wait. One organisation gets at most three "
            "quarters of them."),
    setting(CONVERSED_FIELD(calls.max_response_bytes), Bytes{kib, 64 * mib},
            "The largest answer to a call of a Node. A larger one fails the call."),

    setting(CONVERSED_FIELD(flows.max_steps), Range{1, 1'000'000},
            "Nodes that one Turn may run. Beyond it, the Turn fails."),
    setting(CONVERSED_FIELD(flows.max_visits), Range{1, 1'000'000},
            "How often one Turn may run the same Node. Beyond it, the Turn fails."),
    setting(CONVERSED_FIELD(flows.max_outputs), Range{1, 10'000},
            "Outputs of one Turn. Beyond it, the Turn fails."),
    setting(CONVERSED_FIELD(flows.max_context_bytes), Bytes{kib, 16 * mib},
            "The largest context of a session, as JSON. Beyond it, the Turn fails."),
    setting(CONVERSED_FIELD(flows.max_profile_bytes), Bytes{kib, 16 * mib},
            "The largest profile of a user, as JSON. Beyond it, the Turn fails."),
    setting(CONVERSED_FIELD(flows.max_output_bytes), Bytes{kib, 16 * mib},
            "The largest output, text and data together. Beyond it, the Turn fails."),
    setting(CONVERSED_FIELD(flows.max_call_bytes), Bytes{kib, 16 * mib},
            "The largest request of a Node: URL, headers and body. Beyond it, the Turn fails."),
    setting(CONVERSED_FIELD(flows.max_slot_hits), Range{1, 10'000},
            "Hits of lexicons and patterns in all slots of one input. Further ones are left out, "
            "and the log says so."),
    setting(
        CONVERSED_FIELD(flows.max_slots_bytes), Bytes{kib, 16 * mib},
        "The largest slots of one input, as JSON. Further hits are left out, and the log says so."),
    setting(
        CONVERSED_FIELD(flows.code), flag_words,
        "Run the scripts of code Nodes, each in a locked process of its own. If it is off, such "
        "a Node fails with code_off. Authors of Flows then run JavaScript on this machine: see "
        "SECURITY.md."),
    setting(CONVERSED_FIELD(flows.code_processes), Range{1, 64},
            "Scripts that run at once. An organisation has half of them at most. Each one takes up "
            "to 64MiB of memory and a core for a second."),

    setting(CONVERSED_FIELD(retention.transcripts), Range{0, 3650 * day},
            "How long outputs and idle sessions are kept. Pending deliveries stay. 0: forever."),
    setting(CONVERSED_FIELD(retention.dead_letters), Range{0, 3650 * day},
            "How long dead letters are kept, replayed and discarded ones, too. 0: forever."),
    setting(
        CONVERSED_FIELD(retention.receipts), Range{0, 3650 * day},
        "How long the receipts of events are kept, from the acceptance of the event. 0: none are "
        "written, and all that are there are removed."),
    setting(CONVERSED_FIELD(retention.audit), Range{0, 3650 * day},
            "How long entries of the audit trail are kept. 0: forever."),

    setting(CONVERSED_FIELD(backup.dir), folder_path,
            "The folder of backups: those of `conversectl backup`, and the one before a new "
            "version changes the store. Empty: backups in data_dir. Another disk is safer."),

    setting(CONVERSED_FIELD(metrics.series), Range{0, 1'000'000},
            "Series of /metrics with the id of an Endpoint (7 each), a Flow or an organisation (2 "
            "each). The counts of further ones are added to the id `other`."),

    setting(CONVERSED_FIELD(telemetry.otlp.url), optional_url,
            "The address to which spans of requests, Turns, calls and deliveries are sent "
            "(OTLP/HTTP with JSON), such as http://127.0.0.1:4318/v1/traces. Empty: no spans are "
            "made."),
    setting(CONVERSED_FIELD(telemetry.otlp.headers), header_value,
            "Headers for the collector, such as a key. Set them by the environment variable or as "
            "a credential. Their values are never printed."),
    setting(CONVERSED_FIELD(telemetry.otlp.sample), share,
            "The share of traces that is sampled, of those that begin here. For a request with "
            "traceparent, the header decides."),

    reloads(setting(CONVERSED_FIELD(log.level), log_level_words,
                    "The least severe line that is logged.")),
    reloads(setting(CONVERSED_FIELD(log.format), log_format_words,
                    "json: one object a line, for machines. text: for people.")),
};

#undef CONVERSED_FIELD

constexpr std::string_view reserved[] = {
    "CONVERSED_CONFIG",   // the path of the settings file, for start scripts
    "CONVERSED_NIGHTLY",  // long test campaigns
    "CONVERSED_TEST_",    // variables of the tests
    "CONVERSED_FAULT_",   // fault injection
};

}  // namespace

std::span<const Key> keys() {
  return table;
}

std::span<const std::string_view> reserved_variables() {
  return reserved;
}

Reloaded reload(Settings& running, const Settings& wanted) {
  Reloaded result;
  for (const Key& key : table) {
    const auto value = key.show(wanted, key);
    if (key.show(running, key) == value) continue;
    if (key.reloads) (void)key.assign(running, key, value);  // load() has checked its form
    (key.reloads ? result.applied : result.need_restart).push_back(key.path);
  }
  return result;
}

}  // namespace conversed::config
