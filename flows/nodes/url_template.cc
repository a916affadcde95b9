#include "flows/nodes/url_template.h"

#include "store/model/url.h"

namespace conversed::flows {
namespace {

using model::Errc;
using model::fail;

// Percent-encodes what a URL can't hold, so that a value can't break the request's first line.
std::string encode_rest(std::string_view url) {
  static constexpr std::string_view digits = "0123456789ABCDEF";
  static constexpr std::string_view forbidden = "\"<>\\^`{|}";
  std::string encoded;
  encoded.reserve(url.size());
  for (const char c : url) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > 0x20 && byte < 0x7F && forbidden.find(c) == std::string_view::npos) {
      encoded += c;
      continue;
    }
    encoded += '%';
    encoded += digits[byte >> 4];
    encoded += digits[byte & 0xF];
  }
  return encoded;
}

// Where in a URL something stands.
enum class Part : std::uint8_t { scheme, host, path, query, parameter };

// The part that the next character belongs to.
Part part_behind(std::string_view url) {
  const auto scheme = url.find("://");
  if (scheme == std::string_view::npos) return Part::scheme;
  const auto path = url.find_first_of("/?#", scheme + 3);
  if (path == std::string_view::npos) return Part::host;
  const auto query = url.find_first_of("?#", path);
  if (query == std::string_view::npos) return Part::path;
  return url[url.find_last_of("?&=#")] == '=' ? Part::parameter : Part::query;
}

// The characters that end the part: a value with one would continue in the next part.
std::string_view ends_of(Part part) {
  switch (part) {
    case Part::scheme:
      return {};
    case Part::host:
    case Part::path:
      return "?#";
    case Part::query:
      return "#";
    case Part::parameter:
      return "&#";
  }
  return {};
}

std::string_view name_of(Part part) {
  return part == Part::path ? "path" : part == Part::host ? "host" : "query";
}

void warn_of_values(NodeConfig& config, std::string_view field, const expression::Template& url) {
  std::string before;
  for (const auto& braces : url.braces()) {
    before += braces.before;
    const Part part = part_behind(before);
    const bool names_host = part == Part::scheme || part == Part::host;
    before += part == Part::scheme ? "http://x" : "x";
    if (!braces.reads_values) continue;
    if (names_host) {
      config.warn(field,
                  "a value decides which host is asked; write the host into the URL, or give the "
                  "Connection its `hosts`");
    } else if (!braces.url_encoded) {
      config.warn(field, "a value stands bare in the URL's " + std::string(name_of(part)) +
                             "; write {{encodeURIComponent(...)}}, else it can change what is "
                             "asked for");
    }
  }
}

}  // namespace

UrlTemplate::UrlTemplate(NodeConfig& config, std::string_view field)
    : text_(config.text_template(field)) {
  warn_of_values(config, field, text_);
  // A URL without values is checked now.
  const auto found = config.find(field);
  if (!found || !found->value().is_text()) return;
  const std::string& text = found->value().text();
  if (text.find("{{") != std::string::npos) return;
  const auto problem = model::url_problem(encode_rest(text));
  if (!problem.empty()) found->problem(std::string(problem));
}

Result<std::string> UrlTemplate::render(const expression::Scope& scope) const {
  std::vector<expression::Template::Span> values;
  const std::string text = text_.render(scope, values);
  const std::string_view url = text;
  for (const auto& [begin, end] : values) {
    const Part part = part_behind(url.substr(0, begin));
    const auto at = url.substr(begin, end - begin).find_first_of(ends_of(part));
    if (at == std::string_view::npos) continue;
    return fail(Errc::invalid_argument, "a value in the URL's " + std::string(name_of(part)) +
                                            " has '" + url[begin + at] +
                                            "'; write {{encodeURIComponent(...)}}");
  }
  std::string encoded = encode_rest(text);
  if (const auto problem = model::url_problem(encoded); !problem.empty()) {
    return fail(Errc::invalid_argument, std::string(problem));
  }
  return encoded;
}

}  // namespace conversed::flows
