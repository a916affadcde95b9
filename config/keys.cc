#include "config/keys.h"

#include <limits>

#include "config/key_forms.h"

namespace conversed::config {
namespace {

// A row's accessor is a lambda without captures, so that one serves for reading and for writing.
#define CONVERSED_FIELD(member) ([](auto& settings) -> auto& { return settings.member; })

constexpr std::uint64_t second = 1000;
constexpr std::uint64_t minute = 60 * second;
constexpr std::uint64_t hour = 60 * minute;
constexpr std::uint64_t day = 24 * hour;
constexpr std::uint64_t kib = 1024;
constexpr std::uint64_t mib = 1024 * kib;
constexpr std::uint64_t no_limit = std::numeric_limits<std::int64_t>::max();  // what SQL can hold

constexpr Key table[] = {
    setting("data_dir", CONVERSED_FIELD(data_dir), folder_path,
            "The folder of the embedded log and store, the key file and run/ports.json. Empty: "
            "$STATE_DIRECTORY, which systemd sets, else /var/lib/conversed for root, else "
            "$XDG_STATE_HOME/conversed, else "
            "~/.local/state/conversed."),
    setting(
        "workers", CONVERSED_FIELD(workers), Range{1, 1024},
        "Threads that run Turns and jobs. With two or more of them, no organisation has them all."),
    setting(
        "roles", CONVERSED_FIELD(roles), role_words,
        "What this daemon does: api answers HTTP, worker runs Turns and jobs, makes their calls "
        "and sends outputs, scheduler appends what falls due and tidies up. Outside a cluster "
        "one daemon has to do it all."),
    setting("shutdown_timeout", CONVERSED_FIELD(shutdown_timeout), Range{second, 10 * minute},
            "How long a stop waits for what was accepted to be answered and committed."),

    setting(
        "listen.address", CONVERSED_FIELD(listen.address), host,
        "Where the API listens. Put a proxy that speaks TLS in front before opening it to others."),
    setting("listen.port", CONVERSED_FIELD(listen.port), Range{0, 65535},
            "0 lets the system pick one; data_dir/run/ports.json then says which."),

    setting("trusted_proxies", CONVERSED_FIELD(trusted_proxies), networks,
            "Proxies in front of the API. Of a request that comes from one, X-Forwarded-For says "
            "whose it is: the last address in it that is no such proxy. From anybody else that "
            "header is ignored. What limits and lock-outs count is the address found so."),

    setting("admin.address", CONVERSED_FIELD(admin.address), host,
            "Where /healthz, /readyz and /metrics are served; they ask for no credentials."),
    setting("admin.port", CONVERSED_FIELD(admin.port), Range{0, 65535},
            "0 lets the system pick one."),

    setting("queue.driver", CONVERSED_FIELD(queue.driver), queue_driver_words,
            "Which log keeps the events: sqlite is embedded, kafka is for clusters."),
    setting(
        "queue.partitions", CONVERSED_FIELD(queue.partitions), Range{1, 1024},
        "Partitions of the log, where it is made: the embedded one, or Kafka's topic of events. "
        "An existing log keeps the number it was made with."),
    setting("queue.kafka.bootstrap_servers", CONVERSED_FIELD(queue.kafka.bootstrap_servers),
            host_and_port,
            "Brokers to begin with; the others are found through them. Required by the kafka "
            "driver."),
    setting("queue.kafka.topic_prefix", CONVERSED_FIELD(queue.kafka.topic_prefix), kafka_name,
            "What the names of our topics begin with, so that several installations can share a "
            "Kafka."),
    setting(
        "queue.kafka.instance_id", CONVERSED_FIELD(queue.kafka.instance_id), one_line,
        "This daemon's name among those that share the topics (group.instance.id): each has one, "
        "and keeps it. Empty: cluster.name."),
    setting("queue.kafka.properties", CONVERSED_FIELD(queue.kafka.properties), kafka_property,
            "Properties of librdkafka, for TLS, SASL and tuning; see queue/README.md. Their values "
            "are never printed. A value that holds a comma has to stand in a YAML list."),
    setting("queue.kafka.delivery_timeout", CONVERSED_FIELD(queue.kafka.delivery_timeout),
            Range{1'000, 5 * minute},
            "How long a request waits for Kafka; then it is answered 503, or 504 if Kafka may "
            "have stored it."),

    setting(
        "store.driver", CONVERSED_FIELD(store.driver), store_driver_words,
        "Where sessions, jobs and assets are kept: sqlite is embedded, postgres is for clusters."),
    setting(
        "store.postgres.url", CONVERSED_FIELD(store.postgres.url), postgres_url,
        "Required by the postgres driver, which needs queue.driver kafka; see store/README.md. It "
        "may hold a password, so prefer the environment variable; it is never printed."),
    setting("store.postgres.timeout", CONVERSED_FIELD(store.postgres.timeout),
            Range{second, 10 * minute},
            "How long the server may take for a connection or a statement. Then it counts as "
            "away: requests that need it are answered 503, or 504 where a change may have been "
            "made."),

    setting("cluster.name", CONVERSED_FIELD(cluster.name), optional_kafka_name,
            "This daemon's name among those that share the store: each has one, and keeps it. "
            "Letters, digits, '.', '_' and '-'. Empty: made of the host's name and data_dir."),

    setting("api.base_path", CONVERSED_FIELD(api.base_path), base_path,
            "Every route is served under this path as well as without it."),
    setting("api.threads", CONVERSED_FIELD(api.threads), Range{1, 256},
            "Threads that read and parse requests."),
    setting("api.header_timeout", CONVERSED_FIELD(api.header_timeout), Range{100, 10 * minute},
            "How long a request's headers may take to arrive; then 408."),
    setting("api.body_timeout", CONVERSED_FIELD(api.body_timeout), Range{100, 10 * minute},
            "How long a request's body may take to arrive; then 408."),
    setting("api.idle_timeout", CONVERSED_FIELD(api.idle_timeout), Range{second, hour},
            "How long a connection stays open without a request."),
    setting(
        "api.turn_timeout", CONVERSED_FIELD(api.turn_timeout), Range{100, 10 * minute},
        "How long POST /{URLToken} waits for its execution; then 202 with what was said so far."),
    setting("api.max_body", CONVERSED_FIELD(api.max_body_bytes), Bytes{kib, 16 * mib},
            "The largest body that is read; a larger one is answered with 413."),
    setting("api.max_header", CONVERSED_FIELD(api.max_header_bytes), Bytes{kib, mib},
            "The most bytes of request line and headers; beyond it 431."),

    reloads(setting("limits.requests_per_second", CONVERSED_FIELD(limits.requests_per_second),
                    Range{0, 1'000'000},
                    "Requests a second of one API key or user; beyond it 429. 0: no limit.")),
    reloads(setting(
        "limits.public_requests_per_second", CONVERSED_FIELD(limits.public_requests_per_second),
        Range{0, 1'000'000},
        "Requests a second of one address without credentials, or with wrong ones; beyond it "
        "429. IPv6 addresses count by their /64. A request counts once more for each 4 KiB "
        "of its body, so that by default an address sends 800 KiB a second at most. Behind a "
        "proxy, "
        "name it in trusted_proxies, or all clients have its address. 0: no limit.")),
    reloads(setting("limits.burst", CONVERSED_FIELD(limits.burst), Range{1, 1'000'000},
                    "Requests at once before the limits above hold a key, user or address back.")),
    setting("limits.connections", CONVERSED_FIELD(limits.connections), Range{1, 1'000'000},
            "Open connections to the API; beyond it new ones are closed."),
    setting("limits.connections_per_address", CONVERSED_FIELD(limits.connections_per_address),
            Range{1, 1'000'000},
            "Open connections of one address, IPv6 by /64; beyond it new ones are closed. Those of "
            "trusted_proxies are not counted."),
    setting(
        "limits.large_bodies", CONVERSED_FIELD(limits.large_bodies_bytes),
        Bytes{64 * mib, 65'536 * mib},
        "Memory for all bodies together that are larger than api.max_body, as imports are; beyond "
        "it 503. Senders whose password was not verified yet get half of it at most."),
    setting("limits.inbox", CONVERSED_FIELD(limits.inbox), Range{1, 1'000'000},
            "Records that wait in the store for one busy session; beyond it its injects get 429."),
    setting(
        "limits.lane", CONVERSED_FIELD(limits.lane), Range{1, 100'000},
        "Records of one session that wait in memory; what comes after them spills to its inbox."),
    // No more than the Committer takes in: else whoever hands it a batch would stand still.
    setting("limits.in_flight", CONVERSED_FIELD(limits.in_flight), Range{1, 65'536},
            "Records taken from the log and not yet finished, of all sessions; beyond it reading "
            "pauses."),

    reloads(setting(
        "quota.injects_per_month", CONVERSED_FIELD(quota.injects_per_month), Range{0, no_limit},
        "Injects of one organisation in a calendar month (UTC); beyond it 402. 0: unlimited.")),
    reloads(setting(
        "quota.jobs_per_month", CONVERSED_FIELD(quota.jobs_per_month), Range{0, no_limit},
        "Jobs of one organisation in a calendar month (UTC); beyond it 402. 0: unlimited.")),
    reloads(setting("quota.tokens", CONVERSED_FIELD(quota.tokens), Range{0, no_limit},
                    "Tokens of one organisation; beyond it 402. 0: unlimited.")),
    setting(
        "quota.model_tokens_per_month", CONVERSED_FIELD(quota.model_tokens_per_month),
        Range{0, no_limit},
        "What language models may count, in their tokens, for one organisation in a calendar month "
        "(UTC); beyond it llmPrompt and aiAgent fail with quota_exhausted. 0: unlimited."),
    setting("quota.follow_ups_per_month", CONVERSED_FIELD(quota.follow_ups_per_month),
            Range{0, no_limit},
            "Follow-ups that a project set up from now on sends in a calendar month (UTC); what is "
            "due beyond it is dropped. 0: unlimited."),

    setting("oauth.issuer", CONVERSED_FIELD(oauth.issuer), one_line,
            "The address by which clients reach the service, such as https://conversed.example, "
            "without "
            "a slash at its end: the issuer of RFC 8414 and RFC 9207. If nothing, it is taken from "
            "each "
            "request's Host, and from X-Forwarded-Proto of a proxy that speaks TLS."),
    setting("oauth.access_token_lifetime", CONVERSED_FIELD(oauth.access_token_lifetime),
            Range{minute, 30 * day}, "How long an OAuth access token is good for."),
    setting("oauth.refresh_token_lifetime", CONVERSED_FIELD(oauth.refresh_token_lifetime),
            Range{minute, 3650 * day},
            "How long an OAuth refresh token is good for; not shorter than the access token."),

    setting(
        "sign_in.account_failures", CONVERSED_FIELD(sign_in.account_failures), Range{1, 1'000'000},
        "Wrong passwords for one account within sign_in.lockout, by HTTP Basic and OAuth alike, "
        "from all addresses that have never signed in to it: beyond it these are refused. An "
        "address that has signed in to it is counted by itself."),
    setting(
        "sign_in.address_failures", CONVERSED_FIELD(sign_in.address_failures), Range{0, 1'000'000},
        "Wrong passwords from one address (IPv6: one /64) within sign_in.lockout; beyond it it is "
        "refused, but for accounts that it has signed in to. 0: addresses are not counted. "
        "Behind a proxy, name it in trusted_proxies, or all clients have its address."),
    setting("sign_in.lockout", CONVERSED_FIELD(sign_in.lockout), Range{second, day},
            "How long wrong passwords count, from the first one on."),

    setting(
        "contact_center.jwks_file", CONVERSED_FIELD(contact_center.jwks_file), file_path,
        "The public keys of the contact-center platform (a JSON Web Key Set), which its RS256 and "
        "ES256 tokens in x-contactcenter-authorization are checked against. Read again when it has "
        "changed; should it then be of no use, the keys read before stay."),
    setting(
        "contact_center.secret", CONVERSED_FIELD(contact_center.secret), long_secret,
        "The secret shared with the contact-center platform, which its HS256 tokens are checked "
        "against. Prefer the environment variable or contact_center.secret_file; it is never "
        "printed."),
    setting("contact_center.secret_file", CONVERSED_FIELD(contact_center.secret_file), file_path,
            "A file that holds contact_center.secret, without the line break at its end."),
    setting("contact_center.issuer", CONVERSED_FIELD(contact_center.issuer), one_line,
            "What a contact-center token's iss has to be; if nothing, iss is not checked."),
    setting(
        "contact_center.audience", CONVERSED_FIELD(contact_center.audience), one_line,
        "What a contact-center token's aud has to be or to hold; if nothing, aud is not checked. "
        "Set it "
        "where the platform signs tokens for others, too."),
    setting(
        "contact_center.organisation", CONVERSED_FIELD(contact_center.organisation), one_line,
        "The organisation whose users contact-center tokens name, by its name or id; its own "
        "users alone. If nothing, and organisation_claim is nothing either, it is the only one of "
        "the installation; where there are several, tokens are refused."),
    setting(
        "contact_center.organisation_claim", CONVERSED_FIELD(contact_center.organisation_claim),
        one_line,
        "The claim of a contact-center token that has the name or id of the organisation, where "
        "one platform signs the tokens of several; give this or contact_center.organisation."),

    setting("proactive.enabled", CONVERSED_FIELD(proactive.enabled), flag_words,
            "Whether proactive set-up is offered; if not, it answers 501."),
    setting("proactive.provisioning.url", CONVERSED_FIELD(proactive.provisioning.url), one_line,
            "Where set-up announces each project's tenant by POST, and withdraws it by DELETE of "
            "URL/{tenant id}. Nothing: the tenant is kept here alone."),
    setting("proactive.provisioning.token", CONVERSED_FIELD(proactive.provisioning.token),
            long_secret,
            "Sent to the provisioning service as a bearer token. Prefer the environment variable; "
            "it is never printed."),
    setting("proactive.provisioning.timeout", CONVERSED_FIELD(proactive.provisioning.timeout),
            Range{100, 10 * minute}, "How long one request to the provisioning service may take."),
    setting("proactive.provisioning.retry_for", CONVERSED_FIELD(proactive.provisioning.retry_for),
            Range{0, day},
            "How long a provisioning service that fails is tried again before the set-up ends in "
            "error."),

    setting("jobs.retention", CONVERSED_FIELD(jobs.retention), Range{minute, 3650 * day},
            "How long jobs that were cancelled or failed are shown; done set-ups stay for as long "
            "as their project is set up."),

    reloads(setting(
        "egress.allow", CONVERSED_FIELD(egress.allow), networks_and_hosts,
        "Addresses that Nodes, webhooks, provisioning and LLM calls may reach besides public "
        "ones, such as those of your own network. The public addresses of this machine itself "
        "are closed, too, unless they are named here.")),

    setting("delivery.retry_for", CONVERSED_FIELD(delivery.retry_for), Range{0, 365 * day},
            "How long an output is offered to a webhook that fails; then it is a dead letter, and "
            "the session's next output follows."),
    setting("delivery.timeout", CONVERSED_FIELD(delivery.timeout), Range{100, 10 * minute},
            "How long one try to deliver may take."),
    setting(
        "delivery.connections", CONVERSED_FIELD(delivery.connections), Range{1, 10'000},
        "Open connections to webhooks. A project gets three quarters of them at most, and a part "
        "is kept for webhooks that answer quickly."),
    setting("delivery.secret_overlap", CONVERSED_FIELD(delivery.secret_overlap),
            Range{0, 365 * day},
            "How long a webhook's secret that an import has replaced signs deliveries beside the "
            "new one, so that the receiver can follow. 0: not at all, as after a leak."),

    setting("calls.timeout", CONVERSED_FIELD(calls.timeout), Range{100, hour},
            "How long a call of a Node may take, unless the Node says otherwise."),
    setting("calls.connections", CONVERSED_FIELD(calls.connections), Range{1, 10'000},
            "Calls of Nodes that run at once."),
    setting("calls.max_response", CONVERSED_FIELD(calls.max_response_bytes), Bytes{kib, 64 * mib},
            "The largest answer that a Node's call takes; a larger one fails it."),

    setting("flows.max_steps", CONVERSED_FIELD(flows.max_steps), Range{1, 1'000'000},
            "Nodes that one Turn may run; beyond it the Turn fails."),
    setting("flows.max_visits", CONVERSED_FIELD(flows.max_visits), Range{1, 1'000'000},
            "How often one Turn may run the same Node; beyond it the Turn fails."),
    setting("flows.max_outputs", CONVERSED_FIELD(flows.max_outputs), Range{1, 10'000},
            "Outputs that one Turn may make; beyond it the Turn fails."),
    setting("flows.max_context", CONVERSED_FIELD(flows.max_context_bytes), Bytes{kib, 16 * mib},
            "The largest context of a session, as JSON; beyond it the Turn fails."),
    setting("flows.max_profile", CONVERSED_FIELD(flows.max_profile_bytes), Bytes{kib, 16 * mib},
            "The largest profile of a user, as JSON; beyond it the Turn fails."),
    setting("flows.max_output", CONVERSED_FIELD(flows.max_output_bytes), Bytes{kib, 16 * mib},
            "The largest output, text and data together; beyond it the Turn fails."),
    setting("flows.max_call", CONVERSED_FIELD(flows.max_call_bytes), Bytes{kib, 16 * mib},
            "The largest request of a Node: URL, headers and body; beyond it the Turn fails."),
    setting(
        "flows.max_slot_hits", CONVERSED_FIELD(flows.max_slot_hits), Range{1, 10'000},
        "Hits of lexicons and patterns that all slots of one input may hold; what is beyond them "
        "is left out, and the log says so."),
    setting("flows.max_slots", CONVERSED_FIELD(flows.max_slots_bytes), Bytes{kib, 16 * mib},
            "The largest slots of one input, as JSON; likewise."),

    setting("retention.transcripts", CONVERSED_FIELD(retention.transcripts), Range{0, 3650 * day},
            "How long what was said is kept, and sessions in which nothing happens. What is still "
            "to be delivered stays. 0: for ever."),
    setting("retention.dead_letters", CONVERSED_FIELD(retention.dead_letters), Range{0, 3650 * day},
            "How long dead letters are kept, whatever became of them. 0: for ever."),
    setting("retention.audit", CONVERSED_FIELD(retention.audit), Range{0, 3650 * day},
            "How long entries of the audit trail are kept. 0: for ever."),

    setting("backup.dir", CONVERSED_FIELD(backup.dir), folder_path,
            "The folder of backups: those that `conversectl backup` asks for, and the one that is "
            "made before a new version changes the store. Empty: backups in data_dir; another disk "
            "is better."),

    reloads(setting("log.level", CONVERSED_FIELD(log.level), log_level_words,
                    "The least important line that is logged.")),
    reloads(setting("log.format", CONVERSED_FIELD(log.format), log_format_words,
                    "json: one object a line, for machines. text: for people.")),
};

#undef CONVERSED_FIELD

constexpr std::string_view reserved[] = {
    "CONVERSED_CONFIG",   // the path of the settings file, for start scripts
    "CONVERSED_NIGHTLY",  // long test campaigns
    "CONVERSED_TEST_",    // the tests' own
    "CONVERSED_FAULT_",   // fault injection
};

}  // namespace

std::span<const Key> keys() {
  return table;
}

std::span<const std::string_view> reserved_variables() {
  return reserved;
}

std::vector<std::string_view> changed_keys(const Settings& before, const Settings& after) {
  std::vector<std::string_view> paths;
  for (const Key& key : table) {
    if (key.show(before, key) != key.show(after, key)) paths.push_back(key.path);
  }
  return paths;
}

Reloaded reload(Settings& running, const Settings& wanted) {
  Reloaded result;
  for (const Key& key : table) {
    const auto value = key.show(wanted, key);
    if (key.show(running, key) == value) continue;
    if (key.reloads) (void)key.assign(running, key, value);  // of its form, since it was loaded
    (key.reloads ? result.applied : result.need_restart).push_back(key.path);
  }
  return result;
}

}  // namespace conversed::config
