#include "config/load.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>
#include <thread>
#include <utility>

#include "config/keys.h"
#include "config/values.h"
#include "store/model/url.h"
#include "store/text/joined.h"
#include "store/text/near.h"
#include "store/text/quantity.h"
#include "store/text/terminal.h"
#include "store/text/utf8.h"
#include "store/yaml/reader.h"

namespace conversed::config {
namespace {

using yaml::Located;

// Limits for a hostile or mistaken settings file.
constexpr yaml::Limits limits{.max_depth = 8, .max_memory = std::size_t{2} << 20};

// The place of a value: a Problem without its message.
using Place = Problem;

const Key* find_key(std::string_view path) {
  const auto all = keys();
  const auto found = std::ranges::find(all, path, &Key::path);
  return found == all.end() ? nullptr : &*found;
}

bool is_group(std::string_view path) {
  const std::string prefix = std::string(path) + ".";
  const auto all = keys();
  return path.empty() || std::any_of(all.begin(), all.end(),
                                     [&](const Key& key) { return key.path.starts_with(prefix); });
}

// The nearest path of a key or group. If none is near, a key of the same name in another group.
std::string_view nearest_path(const std::string& path) {
  std::vector<std::string_view> candidates;
  std::vector<std::string_view> same_name;
  const std::string_view name = std::string_view(path).substr(path.rfind('.') + 1);
  for (const Key& key : keys()) {
    candidates.push_back(key.path);
    if (key.path.substr(key.path.rfind('.') + 1) == name) same_name.push_back(key.path);
    for (std::size_t dot = key.path.find('.'); dot != std::string_view::npos;
         dot = key.path.find('.', dot + 1)) {
      candidates.push_back(key.path.substr(0, dot));
    }
  }
  const auto best = text::nearest(path, candidates);
  return best.empty() && same_name.size() == 1 ? same_name.front() : best;
}

std::string did_you_mean(std::string_view candidate) {
  return candidate.empty() ? "" : "; did you mean " + std::string(candidate) + "?";
}

// The file's text, or why it can't be read. Only regular files are read, because a FIFO or a device
// would block or never end.
tl::expected<std::string, std::string> read_text(const std::filesystem::path& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (std::filesystem::is_directory(status)) {
    return tl::unexpected(std::string("is a folder, expected a file"));
  }
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    return tl::unexpected(std::string("is not a regular file"));
  }
  std::ifstream file(path, std::ios::binary);
  // One byte above the limit, because the size may change during the read (and is 0 in /proc).
  std::string text(max_file_bytes + 1, '\0');
  if (!file || (!file.read(text.data(), static_cast<std::streamsize>(text.size())) && file.bad())) {
    return tl::unexpected("cannot be read: " + std::string(std::strerror(errno)));
  }
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() <= max_file_bytes) return text;
  return tl::unexpected("is larger than " + text::size_text(max_file_bytes) +
                        ", which no settings file is");
}

// Collects settings and problems over all sources. One thread at a time.
class Loader {
 public:
  explicit Loader(const Inputs& inputs) : inputs_(inputs) {}

  tl::expected<Settings, std::vector<Problem>> run() {
    if (inputs_.file) read_file(*inputs_.file);
    read_credentials();
    read_environment();
    fill_data_dir();
    fill_workers();
    check_together();
    if (!problems_.empty()) return tl::unexpected(std::move(problems_));
    return std::move(settings_);
  }

 private:
  void problem(Place place, std::string message) {
    place.message = std::move(message);
    problems_.push_back(std::move(place));
  }

  void read_file(const std::filesystem::path& path) {
    file_ = path.string();
    const auto text = read_text(path);
    if (!text) {
      problem({.file = file_, .path = ""}, text.error());
      return;
    }
    const auto document = yaml::read(*text, yaml::Schema::texts, limits);
    for (const auto& fault : document.faults) problem(place_of(fault.place, ""), fault.message);
    if (document.root && document.root->is_object()) {
      take_map(*document.root, "");
    } else if (document.root && !document.root->is_null()) {
      problem(place_of(document.root->place(), ""),
              "expected keys and values, such as `listen: {port: 8080}`");
    }
    // The parser's problems were added first, so all are sorted by their places.
    std::stable_sort(problems_.begin(), problems_.end(),
                     [](const Problem& a, const Problem& b) { return a.line < b.line; });
  }

  [[nodiscard]] Place place_of(const yaml::Place& place, const std::string& path) const {
    return {.file = file_,
            .line = static_cast<std::uint32_t>(place.line),
            .column = static_cast<std::uint32_t>(place.column),
            .path = path};
  }

  void take_map(const Located& map, const std::string& prefix) {
    for (const auto& member : map.members()) {
      take_member(member, prefix.empty() ? member.name : prefix + "." + member.name);
    }
  }

  void take_member(const Located::Member& member, const std::string& path) {
    const Place place = place_of(member.place, path);
    if (const Key* key = find_key(path)) {
      take_key(member.value, *key, place);
    } else if (!is_group(path)) {
      Place shown = place;
      if (path.size() > 100 || text::in_quotes(path) != "\"" + path + "\"")
        shown.path = text::in_quotes(path);
      problem(shown, "unknown key" + did_you_mean(nearest_path(path)));
    } else if (member.value.is_object()) {
      take_map(member.value, path);
    } else if (!member.value.is_null()) {  // `listen:` whose keys are all commented out
      problem(place, "expected keys and values below it");
    }
  }

  void take_key(const Located& value, const Key& key, const Place& place) {
    const auto refuse = [&](const std::string& got) {
      bad_.insert(key.path);
      problem(place, "expected " + key.expected() + ", got " + got);
    };
    if (value.is_null()) return refuse("nothing");
    if (value.is_object()) return refuse("keys and values");
    if (value.is_text()) {
      return assign(
          key, place,
          key.is_list() ? split_list(value.text()) : std::vector<std::string>{value.text()},
          text::in_quotes(value.text()));
    }
    if (!key.is_list()) return refuse("a list");
    std::vector<std::string> items;
    for (const Located& item : value.items()) {
      if (!item.is_text()) {
        return refuse("a list whose item " + std::to_string(items.size() + 1) +
                      " is not a plain text");
      }
      items.push_back(item.text());
    }
    assign(key, place, items, text::in_quotes(text::joined(items)));
  }

  // Reads a file for each secret, named like its key, and the master key's. Ignores other files.
  void read_credentials() {
    if (inputs_.credentials.empty()) return;
    std::error_code ignored;
    if (auto file = inputs_.credentials / "master.key"; std::filesystem::exists(file, ignored)) {
      settings_.master_key = std::move(file);
    }
    for (const Key& key : keys()) {
      if (!key.is_secret || key.is_list()) continue;
      const auto file = inputs_.credentials / key.path;
      if (!std::filesystem::exists(file, ignored)) continue;
      const Place place{.file = file.string(), .path = std::string(key.path)};
      auto text = read_text(file);
      if (!text) {
        bad_.insert(key.path);
        problem(place, text.error());
        continue;
      }
      if (text->ends_with('\n')) text->pop_back();
      assign(key, place, {*text}, "");
    }
  }

  void read_environment() {
    for (const auto& [name, value] : inputs_.environment) {
      if (name.starts_with("CONVERSED_")) take_variable(name, value);
    }
  }

  void take_variable(const std::string& name, const std::string& value) {
    const Place place{.file = std::string(environment_source), .path = name};
    std::vector<std::string> candidates;
    for (const Key& key : keys()) {
      if (key.variable() == name) {
        if (!text::is_utf8(value)) {
          bad_.insert(key.path);
          return problem(place, "is not UTF-8 text");
        }
        return assign(key, place,
                      key.is_list() ? split_list(value) : std::vector<std::string>{value},
                      text::in_quotes(value));
      }
      candidates.push_back(key.variable());
    }
    for (const std::string_view reserved : reserved_variables()) {
      if (name == reserved || (reserved.ends_with('_') && name.starts_with(reserved))) return;
    }
    Place shown = place;
    if (!text::is_utf8(name) || text::in_quotes(name) != "\"" + name + "\"")
      shown.path = "CONVERSED_...";
    problem(shown, "is no setting" + did_you_mean(text::nearest(name, candidates)));
  }

  void assign(const Key& key, const Place& place, const std::vector<std::string>& items,
              const std::string& shown) {
    given_.emplace_back(key.path, place);
    const std::optional<std::string> complaint = key.assign(settings_, key, items);
    if (!complaint) return;
    bad_.insert(key.path);
    problem(place, "expected " + key.expected() + ", got " +
                       (key.is_secret ? "something else" : shown) +
                       (complaint->empty() ? "" : " (" + *complaint + ")"));
  }

  [[nodiscard]] const std::string* variable(std::string_view name) const {
    for (const auto& [candidate, value] : inputs_.environment) {
      if (candidate == name) return &value;
    }
    return nullptr;
  }

  // A service manager's StateDirectory= comes first. If it lists several folders, the first belongs
  // to the daemon. The XDG Base Directory Specification ignores a relative $XDG_STATE_HOME.
  void fill_data_dir() {
    if (!settings_.data_dir.empty() || bad_.contains("data_dir")) return;
    const std::string* state = variable("XDG_STATE_HOME");
    const std::string* home = variable("HOME");
    const std::string* service = variable("STATE_DIRECTORY");
    if (service != nullptr && service->starts_with('/')) {
      settings_.data_dir = service->substr(0, service->find(':'));
    } else if (inputs_.root) {
      settings_.data_dir = "/var/lib/conversed";
    } else if (state != nullptr && state->starts_with('/')) {
      settings_.data_dir = std::filesystem::path(*state) / "conversed";
    } else if (home != nullptr && home->starts_with('/')) {
      settings_.data_dir = std::filesystem::path(*home) / ".local" / "state" / "conversed";
    } else {
      require(false, "data_dir",
              "has no default, since neither $XDG_STATE_HOME nor $HOME is an absolute path; set "
              "it");
    }
  }

  // The committer, one thread, can't keep up with more than 16 workers of short Turns.
  void fill_workers() {
    if (settings_.workers != 0 || bad_.contains("workers")) return;
    settings_.workers = std::min(std::clamp(inputs_.cores, 2U, 16U), settings_.limits.in_flight);
  }

  // Reports a problem of two keys at the place of the first one.
  void require(bool holds, std::string_view path, const std::string& message) {
    if (holds || bad_.contains(path)) return;
    Place place{.file = inputs_.file ? file_ : "settings", .path = std::string(path)};
    for (const auto& [given, where] : given_) {
      if (given == path) place = where;
    }
    problem(place, message);
  }

  void check_together() {
    const Settings& s = settings_;
    const bool kafka = s.queue.driver == QueueDriver::kafka;
    const bool postgres = s.store.driver == StoreDriver::postgres;
    require(!kafka || !s.queue.kafka.bootstrap_servers.empty() ||
                bad_.contains("queue.kafka.bootstrap_servers"),
            "queue.kafka.bootstrap_servers", "is required by queue.driver kafka");
    if (kafka && inputs_.kafka_problems) {
      for (const auto& what : inputs_.kafka_problems(s.queue.kafka)) {
        require(false, "queue.kafka.properties", what);
      }
    }
    require(!postgres || !s.store.postgres.url.empty(), "store.postgres.url",
            "is required by store.driver postgres");
    require(!postgres || kafka || bad_.contains("queue.driver"), "store.driver",
            "postgres needs queue.driver kafka: the embedded log is one daemon's own, the store is "
            "not");
    require(postgres || s.roles.size() == Settings().roles.size(), "roles",
            "must name all roles: outside a cluster (store.driver postgres) one daemon has all");
    const std::string& provisioning = s.proactive.provisioning.url;
    require(provisioning.empty() || (model::url_problem(provisioning).empty() &&
                                     provisioning.find_first_of("?#") == std::string::npos),
            "proactive.provisioning.url",
            "must be an http or https URL without user information, query, '.' and '..'");
    require(s.contact_center.secret.empty() || s.contact_center.secret_file.empty(),
            "contact_center.secret_file",
            "is given besides contact_center.secret; give one of them");
    require(s.contact_center.organisation.empty() || s.contact_center.organisation_claim.empty(),
            "contact_center.organisation_claim",
            "is given besides contact_center.organisation; give one of them");
    const std::string& issuer = s.oauth.issuer;
    require(
        issuer.empty() ||
            ((issuer.starts_with("http://") || issuer.starts_with("https://")) &&
             !issuer.ends_with('/') && issuer.find_first_of("?# ") == std::string::npos),
        "oauth.issuer",
        "must begin with http:// or https:// and have neither query nor fragment, nor a slash at "
        "its end");
    require(s.listen.port == 0 || s.listen.port != s.admin.port, "admin.port",
            "is the same as listen.port (" + std::to_string(s.listen.port) +
                "); the two need a port each");
    require(s.oauth.refresh_token_lifetime >= s.oauth.access_token_lifetime,
            "oauth.refresh_token_lifetime",
            "is shorter than oauth.access_token_lifetime (" +
                text::duration_text(s.oauth.access_token_lifetime) + ")");
    require(s.limits.in_flight >= s.workers, "limits.in_flight",
            "is smaller than workers (" + std::to_string(s.workers) +
                "), so some could never have work");
  }

  const Inputs& inputs_;
  std::string file_;
  Settings settings_;
  std::vector<Problem> problems_;
  std::vector<std::pair<std::string_view, Place>> given_;  // each key's place; the last one wins
  std::set<std::string_view> bad_;                         // keys whose value was refused
};

}  // namespace

Inputs inputs_of_process(std::optional<std::filesystem::path> file, KafkaCheck kafka_problems) {
  Inputs inputs{.file = std::move(file),
                .root = ::geteuid() == 0,
                .cores = std::thread::hardware_concurrency(),
                .kafka_problems = std::move(kafka_problems)};
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    inputs.environment.emplace_back(text.substr(0, equals), text.substr(equals + 1));
    if (text.substr(0, equals) == "CREDENTIALS_DIRECTORY") {
      inputs.credentials = text.substr(equals + 1);
    }
  }
  return inputs;
}

tl::expected<Settings, std::vector<Problem>> load(const Inputs& inputs) {
  return Loader(inputs).run();
}

std::string format_problems(const std::vector<Problem>& problems) {
  std::string out;
  for (const Problem& problem : problems) {
    out += problem.file;
    if (problem.line != 0) out += ":" + std::to_string(problem.line);
    // A key's path is exact enough without the column.
    if (problem.path.empty() && problem.column != 0) out += ":" + std::to_string(problem.column);
    out += ": ";
    if (!problem.path.empty()) out += problem.path + ": ";
    out += problem.message + "\n";
  }
  return out;
}

std::vector<std::string> warnings_of(const Settings& settings) {
  std::vector<std::string> warnings;
  const ContactCenterSettings& center = settings.contact_center;
  const bool takes_tokens =
      !center.jwks_file.empty() || !center.secret.empty() || !center.secret_file.empty();
  if (takes_tokens && center.issuer.empty() && center.audience.empty()) {
    warnings.emplace_back(
        "contact-center tokens are accepted with any iss and aud, also those that the platform "
        "signs for other services; set contact_center.issuer or contact_center.audience");
  }
  return warnings;
}

}  // namespace conversed::config
