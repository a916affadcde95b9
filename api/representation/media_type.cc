#include "api/representation/media_type.h"

#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "api/http/http_syntax.h"

namespace conversed::api {
namespace {

// In the order of MediaType.
struct Offer {
  MediaType type;
  std::string_view main;
  std::string_view sub;
  std::string_view content_type;
};

constexpr std::array offers{
    Offer{MediaType::json, "application", "json", "application/json; charset=utf-8"},
    Offer{MediaType::hal, "application", "hal+json", "application/hal+json"},
    Offer{MediaType::xml, "application", "xml", "application/xml; charset=utf-8"},
    Offer{MediaType::text_xml, "text", "xml", "text/xml; charset=utf-8"},
    Offer{MediaType::csv, "text", "csv", "text/csv; charset=utf-8; header=present"},
};

struct Range {
  std::string main;
  std::string sub;
  double quality = 1;

  // 0: no match. A higher number is a more exact match.
  [[nodiscard]] int exactness(std::string_view offered_main, std::string_view offered_sub) const {
    if (main == "*") return sub == "*" ? 1 : 0;
    if (main != offered_main) return 0;
    if (sub == "*") return 2;
    return sub == offered_sub ? 3 : 0;
  }
};

// Cuts at `separator`, but not inside quoted strings.
std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  bool quoted = false;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (quoted && text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      quoted = !quoted;
    } else if (text[i] == separator && !quoted) {
      parts.push_back(trim(text.substr(begin, i - begin)));
      begin = i + 1;
    }
  }
  parts.push_back(trim(text.substr(begin)));
  return parts;
}

// A weight such as "0.85". Nothing for any other text.
std::optional<double> parse_quality(std::string_view text) {
  if (text.empty() || text.size() > 5 || (text[0] != '0' && text[0] != '1')) return std::nullopt;
  if (text.size() > 1 && text[1] != '.') return std::nullopt;
  double quality = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, quality, std::chars_format::fixed);
  if (error != std::errc{} || stop != end || quality > 1) return std::nullopt;
  return quality;
}

std::optional<Range> parse_range(std::string_view text) {
  const auto parts = split(text, ';');
  const auto slash = parts.front().find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  Range range{lower_case(trim(parts.front().substr(0, slash))),
              lower_case(trim(parts.front().substr(slash + 1)))};
  // Parameters before the weight would narrow the range, but each type has one form only.
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const auto equals = parts[i].find('=');
    if (lower_case(trim(parts[i].substr(0, equals))) != "q") continue;
    const auto quality = equals == std::string_view::npos
                             ? std::nullopt
                             : parse_quality(trim(parts[i].substr(equals + 1)));
    if (!quality) return std::nullopt;
    range.quality = *quality;
    break;
  }
  return range;
}

// Quality, exactness and, negated, the place of the range that decides about a type. All are 0 if
// no range matches.
using Rank = std::tuple<double, int, int>;

Rank rank_of(const std::vector<Range>& ranges, std::string_view main, std::string_view sub) {
  Rank rank{0, 0, 0};
  int exactness = 0;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    // The most exact range decides, even if its weight is lower.
    const int matched = ranges[i].exactness(main, sub);
    if (matched <= exactness) continue;
    exactness = matched;
    rank = {ranges[i].quality, matched, -static_cast<int>(i)};
  }
  return rank;
}

std::vector<Range> accepted_by(const Request& request) {
  std::vector<Range> ranges;
  for (const auto& [name, value] : request.headers) {
    if (name != "accept") continue;
    for (const auto part : split(value, ',')) {
      if (auto range = parse_range(part)) ranges.push_back(std::move(*range));
    }
  }
  return ranges;
}

}  // namespace

std::string_view content_type(MediaType type) {
  return offers[static_cast<std::size_t>(type)].content_type;
}

MediaType negotiate(const Request& request) {
  const auto ranges = accepted_by(request);
  MediaType best = MediaType::json;
  Rank best_rank{0, 0, 0};
  for (const Offer& offer : offers) {
    const Rank rank = rank_of(ranges, offer.main, offer.sub);
    if (std::get<0>(rank) > 0 && rank > best_rank) {
      best_rank = rank;
      best = offer.type;
    }
  }
  return best;
}

bool prefers_html(const Request& request) {
  const auto ranges = accepted_by(request);
  const Rank html = rank_of(ranges, "text", "html");
  return std::get<0>(html) > 0 && html > rank_of(ranges, "application", "json");
}

}  // namespace conversed::api
