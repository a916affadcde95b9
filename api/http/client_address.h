#pragma once

#include <span>
#include <string>
#include <string_view>

#include "api/http/http.h"
#include "config/address.h"

namespace conversed::api {

// An address as text. The text of an IPv4-mapped address is that of the IPv4 address.
[[nodiscard]] std::string text_of(const config::Address& address);

// Whether `peer`, an address as text, is a trusted proxy.
[[nodiscard]] bool is_trusted(std::string_view peer, std::span<const config::AddressRange> trusted);

// The client of a request from the trusted proxy `peer`: the last address in its X-Forwarded-For
// headers that is not a trusted proxy. Addresses before it may be forged. If there is no such
// address, or an earlier hop is not an address, it is the last trusted hop.
[[nodiscard]] std::string forwarded_client(const std::string& peer, const HeaderList& headers,
                                           std::span<const config::AddressRange> trusted);

// The name that limits count a client under: an IPv4 address, or the /64 of an IPv6 address,
// because one client usually has the whole /64.
[[nodiscard]] std::string counted_address(std::string_view peer);

}  // namespace conversed::api
