#pragma once

#include <string>
#include <string_view>
#include <vector>

// URLs that the daemon calls: of Nodes, webhooks, language models and the provisioning service.
namespace conversed::model {

// An absolute http or https URL with a host, in ASCII, without user information, blanks and control
// characters.
[[nodiscard]] bool is_http_url(std::string_view text);

// Whether a segment of the path is `.` or `..` to any server that the request may pass. A segment
// may be percent-encoded, also more than once. It ends at a slash or backslash, encoded or not, and
// at a `;`.
[[nodiscard]] bool has_dot_segment(std::string_view url);

// The reason why the daemon does not send requests to this URL; empty: it does.
[[nodiscard]] std::string_view url_problem(std::string_view url);

// The part of a URL that names the server: "host:port" as written, in lower case.
[[nodiscard]] std::string authority_of(std::string_view url);

// Whether the URL names one of the hosts, each "host" (then the port is that of the URL's scheme)
// or "host:port", in lower case. No hosts at all mean any.
[[nodiscard]] bool goes_to(std::string_view url, const std::vector<std::string>& hosts);

// Whether the text is a host as `goes_to` takes it.
[[nodiscard]] bool is_host(std::string_view text);

}  // namespace conversed::model
