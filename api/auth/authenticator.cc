#include "api/auth/authenticator.h"

#include <algorithm>
#include <utility>

#include "api/http/client_address.h"
#include "api/live/blocking_pool.h"
#include "store/store.h"

namespace conversed::api {
namespace {

using model::Errc;
using model::Result;

Authenticator::Verified verified(store::Principal&& principal) {
  return std::make_shared<const Principal>(Principal{std::move(principal)});
}

// The store's error messages may name files. Clients do not see them.
model::Error refusal(const model::Error& error, const char* when_wrong) {
  switch (error.code) {
    case Errc::unauthenticated:
    case Errc::not_found:
    case Errc::invalid_argument:
      return {Errc::unauthenticated, when_wrong};
    case Errc::unavailable:
      return {Errc::unavailable, "credentials can't be checked now; try again later"};
    default:
      return error;
  }
}

}  // namespace

Authenticator::Authenticator(store::Store& store, const model::Clock& clock,
                             const LockoutLimits& limits, JwtVerifier contact_center,
                             LockoutObserver on_lockout)
    : store_(store),
      clock_(clock),
      contact_center_(std::move(contact_center)),
      lockout_(limits),
      on_lockout_(std::move(on_lockout)) {}

Result<Authenticator::Verified> Authenticator::client(const PresentedCredential& credential,
                                                      TimePoint now) {
  const auto kind = static_cast<char>('0' + static_cast<int>(credential.kind));
  std::string name = digest_({std::string_view(&kind, 1), credential.value});
  if (auto known = find(clients_, name, now)) return known;
  const std::uint64_t before = generation();
  auto found = look_up(credential, now);
  if (!found) return model::fail(found.error());
  auto until = now + client_lifetime;
  // Compares durations, because the sum of now and a far expiry would overflow.
  if (found->left && *found->left < client_lifetime) until = now + *found->left;
  remember(clients_, std::move(name), {found->principal, before, until}, now);
  return found->principal;
}

Result<Authenticator::Found> Authenticator::look_up(const PresentedCredential& credential,
                                                    TimePoint now) const {
  const auto refuse = [](const model::Error& error, const char* when_wrong) {
    return model::fail(refusal(error, when_wrong));
  };
  switch (credential.kind) {
    case CredentialKind::api_key: {
      auto stored = store_.accounts().verify_api_key(credential.value);
      if (!stored) return refuse(stored.error(), "the API key is not valid");
      return Found{verified(std::move(*stored)), std::nullopt};
    }
    case CredentialKind::contact_center: {
      const char* wrong = "the contact-center token is not valid";
      auto claims = contact_center_.verify(credential.value, clock_.now(), now);
      if (!claims) return refuse(claims.error(), wrong);
      auto stored = store_.accounts().principal_in(claims->organisation, claims->subject);
      if (!stored) return refuse(stored.error(), wrong);
      return Found{verified(std::move(*stored)), claims->expires_at - clock_.now()};
    }
    case CredentialKind::access_token: {
      const auto at = store_.timer_now();
      auto stored = store_.oauth().verify_access_token(credential.value, at);
      if (!stored) return refuse(stored.error(), "the access token is not valid");
      return Found{verified(std::move(stored->principal)), stored->expires_at - at};
    }
  }
  return model::fail(Errc::unauthenticated, "");
}

Authenticator::Verified Authenticator::remembered_basic(std::string_view authorization,
                                                        TimePoint now) {
  return find(basics_, digest_({authorization}), now);
}

Result<Authenticator::Verified> Authenticator::basic(std::string_view authorization,
                                                     std::string_view address, TimePoint now) {
  if (auto known = remembered_basic(authorization, now)) return known;
  const auto credentials = parse_basic(authorization);
  if (!credentials) return model::fail(Errc::unauthenticated, "HTTP Basic credentials are needed");
  if (store::Accounts::is_management_token(credentials->password)) {
    return token(authorization, *credentials, now);
  }
  const std::uint64_t before = generation();
  auto signed_in = password(credentials->name, credentials->password, address, now);
  if (!signed_in) return model::fail(signed_in.error());
  remember(basics_, digest_({authorization}), {signed_in->principal, before, now + basic_lifetime},
           now);
  return signed_in->principal;
}

// A token has 256 random bits: guesses need no lock-out.
Result<Authenticator::Verified> Authenticator::token(std::string_view authorization,
                                                     const BasicCredentials& credentials,
                                                     TimePoint now) {
  const std::uint64_t before = generation();
  const auto at = store_.timer_now();
  auto stored =
      store_.accounts().verify_management_token(credentials.name, credentials.password, at);
  if (!stored) {
    return model::fail(refusal(stored.error(), "the management token is not valid any more"));
  }
  Principal principal{std::move(stored->principal)};
  principal.keep_scopes();
  const auto left = std::min<std::chrono::milliseconds>(client_lifetime, stored->expires_at - at);
  auto found = std::make_shared<const Principal>(std::move(principal));
  remember(basics_, digest_({authorization}), {found, before, now + left}, now);
  return found;
}

bool Authenticator::knows(std::string_view email, std::string_view address) const {
  return store_.first().healthy() && store_.sign_ins().knows(email, counted_address(address));
}

Result<Authenticator::SignedIn> Authenticator::password(std::string_view email,
                                                        std::string_view password,
                                                        std::string_view peer, TimePoint now) {
  const std::string address = counted_address(peer);
  const Visitor visitor = knows(email, address) ? Visitor::known : Visitor::stranger;
  if (lockout_.locked(email, address, visitor, now)) {
    return model::fail(Errc::too_many, "too many wrong passwords; try again later");
  }
  auto stored = store_.accounts().authenticate(email, password);
  if (!stored) {
    if (stored.error().code == Errc::unauthenticated) {
      const auto locked_out = lockout_.failed(email, address, visitor, now);
      if (locked_out.account && on_lockout_) on_lockout_("account", address);
      if (locked_out.address && on_lockout_) on_lockout_("address", address);
    }
    return model::fail(refusal(stored.error(), "the e-mail address or the password is wrong"));
  }
  store_.sign_ins().note(stored->principal.user_id, address, clock_.now());
  return SignedIn{verified(std::move(stored->principal)), std::move(stored->sign_in)};
}

// Roles change with accounts and, by an import, with the assets. Tokens end with the grants of
// OAuth. Each of these generations only grows, so the sum changes whenever one of them does.
std::uint64_t Authenticator::generation() const {
  return store_.accounts().generation() + store_.assets().generation() +
         store_.oauth().generation();
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

bool post_sign_in(const Authenticator& authenticator, BlockingPool& pool, std::string_view email,
                  std::string_view peer, std::function<void()> work) {
  const auto line =
      authenticator.knows(email, peer) ? BlockingPool::Line::known : BlockingPool::Line::others;
  return pool.post(counted_address(peer), line, std::move(work));
}

}  // namespace conversed::api
