#include "api/auth/authenticator.h"

#include <array>
#include <utility>

#include "store/store.h"

namespace conversed::api {
namespace {

using model::Errc;
using model::Result;

Roles roles_from(const std::vector<std::string>& names) {
  Roles roles;
  for (const std::string& name : names) {
    if (const auto role = role_from(name)) roles.add(*role);
  }
  return roles;
}

Authenticator::Verified principal_from(store::Principal&& stored) {
  Principal principal;
  principal.organisation_roles = roles_from(stored.organisation_roles);
  for (const auto& [project, names] : stored.project_roles) {
    principal.project_roles.emplace(project, roles_from(names));
  }
  principal.user_id = std::move(stored.user_id);
  principal.organisation_id = std::move(stored.organisation_id);
  principal.key_id = std::move(stored.key_id);
  return std::make_shared<const Principal>(std::move(principal));
}

// The store's own words are not for strangers: they may name files.
model::Error refusal(const model::Error& error, const char* when_wrong) {
  switch (error.code) {
    case Errc::unauthenticated:
    case Errc::not_found:
    case Errc::invalid_argument:
      return {Errc::unauthenticated, when_wrong};
    case Errc::unavailable:
      return {Errc::unavailable, "credentials can't be checked at present"};
    default:
      return error;
  }
}

int base64_value(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  if (c == '/') return 63;
  return -1;
}

std::optional<std::string> decode_base64(std::string_view text) {
  while (!text.empty() && text.back() == '=') text.remove_suffix(1);
  if (text.size() % 4 == 1) return std::nullopt;
  std::string bytes;
  std::uint32_t bits = 0;
  int held = 0;
  for (const char c : text) {
    const int value = base64_value(c);
    if (value < 0) return std::nullopt;
    bits = (bits << 6) | static_cast<std::uint32_t>(value);
    held += 6;
    if (held < 8) continue;
    held -= 8;
    bytes.push_back(static_cast<char>((bits >> held) & 0xFF));
  }
  return bytes;
}

bool is_scheme_basic(std::string_view scheme) {
  static constexpr std::string_view basic = "basic";
  if (scheme.size() != basic.size()) return false;
  for (std::size_t i = 0; i < basic.size(); ++i) {
    if ((scheme[i] | 0x20) != basic[i]) return false;
  }
  return true;
}

}  // namespace

Authenticator::Authenticator(store::Store& store) : store_(store) {}

Result<Authenticator::Verified> Authenticator::api_key(std::string_view key, TimePoint now) {
  std::string name = digest_({key});
  if (auto known = find(keys_, name, now)) return known;
  const std::uint64_t before = generation();
  auto stored = store_.accounts().verify_api_key(key);
  if (!stored) {
    return model::fail(refusal(stored.error(), "the API key is not valid"));
  }
  auto principal = principal_from(std::move(*stored));
  remember(keys_, std::move(name), {principal, before, now + key_lifetime}, now);
  return principal;
}

Authenticator::Verified Authenticator::remembered_basic(std::string_view authorization,
                                                        TimePoint now) {
  return find(basics_, digest_({authorization}), now);
}

Result<Authenticator::Verified> Authenticator::basic(std::string_view authorization,
                                                     TimePoint now) {
  if (auto known = remembered_basic(authorization, now)) return known;
  const auto credentials = parse_basic(authorization);
  if (!credentials) return model::fail(Errc::unauthenticated, "HTTP Basic credentials are needed");
  const std::uint64_t before = generation();
  auto stored = store_.accounts().authenticate(credentials->email, credentials->password);
  if (!stored) {
    return model::fail(refusal(stored.error(), "the e-mail address or the password is wrong"));
  }
  auto principal = principal_from(std::move(*stored));
  remember(basics_, digest_({authorization}), {principal, before, now + basic_lifetime}, now);
  return principal;
}

// Roles change with accounts and, by an import, with the assets. Both only grow, so the sum changes
// whenever one does.
std::uint64_t Authenticator::generation() const {
  return store_.accounts().generation() + store_.assets().generation();
}

Authenticator::Verified Authenticator::find(const model::Guarded<Entries>& cache,
                                            const std::string& name, TimePoint now) const {
  const std::uint64_t current = generation();
  return cache.with([&](const Entries& entries) -> Verified {
    const auto entry = entries.find(name);
    if (entry == entries.end() || entry->second.generation != current || entry->second.until <= now)
      return nullptr;
    return entry->second.principal;
  });
}

void Authenticator::remember(model::Guarded<Entries>& cache, std::string name, Entry entry,
                             TimePoint now) {
  cache.with([&](Entries& entries) {
    if (entries.size() >= max_remembered) {
      std::erase_if(entries, [&](const auto& item) {
        return item.second.until <= now || item.second.generation != entry.generation;
      });
      if (entries.size() >= max_remembered) entries.clear();
    }
    entries.insert_or_assign(std::move(name), std::move(entry));
  });
}

std::optional<BasicCredentials> parse_basic(std::string_view authorization) {
  const auto space = authorization.find(' ');
  if (space == std::string_view::npos || !is_scheme_basic(authorization.substr(0, space))) {
    return std::nullopt;
  }
  authorization.remove_prefix(authorization.find_first_not_of(' ', space) == std::string_view::npos
                                  ? authorization.size()
                                  : authorization.find_first_not_of(' ', space));
  const auto text = decode_base64(authorization);
  if (!text) return std::nullopt;
  const auto colon = text->find(':');
  if (colon == std::string::npos || colon == 0) return std::nullopt;
  return BasicCredentials{text->substr(0, colon), text->substr(colon + 1)};
}

}  // namespace conversed::api
