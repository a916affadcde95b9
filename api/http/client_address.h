#pragma once

#include <span>
#include <string>
#include <string_view>

#include "api/http/http.h"
#include "config/address.h"

namespace conversed::api {

// An address as text. An IPv4 address has one text only, in its mapped form, too.
[[nodiscard]] std::string text_of(const config::Address& address);

// Whether these proxies are believed: `peer` is an address as text.
[[nodiscard]] bool is_trusted(std::string_view peer, std::span<const config::AddressRange> trusted);

// Whose a request is that came from the trusted proxy `peer`: the last address of its
// X-Forwarded-For, all such headers taken together, that is no trusted proxy itself. What stands
// before it may be anybody's invention. Where the header has none, or holds something that is no
// address before one is found, it is the last hop that can be believed.
[[nodiscard]] std::string forwarded_client(const std::string& peer, const HeaderList& headers,
                                           std::span<const config::AddressRange> trusted);

// What limits count this client under: an IPv4 address, or the /64 of an IPv6 address, since
// whoever has one address of that has all.
[[nodiscard]] std::string counted_address(std::string_view peer);

}  // namespace conversed::api
