#include "api/representation/media_type.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "api/http/http_syntax.h"

namespace conversed::api {
namespace {

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

constexpr int full_quality = 1000;

// One media range of the header.
struct Range {
  std::string main;
  std::string sub;
  int quality = full_quality;  // in thousandths

  // 0: does not match; else the higher, the more exact.
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

// "0.85" as 850. Nothing for what is no weight.
std::optional<int> parse_quality(std::string_view text) {
  if (text.empty() || text.size() > 5 || (text[0] != '0' && text[0] != '1')) return std::nullopt;
  int quality = text[0] == '1' ? full_quality : 0;
  if (text.size() == 1) return quality;
  if (text[1] != '.') return std::nullopt;
  int place = full_quality / 10;
  for (const char digit : text.substr(2)) {
    if (digit < '0' || digit > '9') return std::nullopt;
    quality += (digit - '0') * place;
    place /= 10;
  }
  return quality <= full_quality ? std::optional(quality) : std::nullopt;
}

std::optional<Range> parse_range(std::string_view text) {
  const auto parts = split(text, ';');
  const auto slash = parts.front().find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  Range range{lower_case(trim(parts.front().substr(0, slash))),
              lower_case(trim(parts.front().substr(slash + 1)))};
  // Parameters before the weight would narrow the range; we offer each type in one form only.
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

std::vector<Range> parse_ranges(std::string_view accept) {
  std::vector<Range> ranges;
  for (const auto part : split(accept, ',')) {
    if (auto range = parse_range(part)) ranges.push_back(std::move(*range));
  }
  return ranges;
}

// Quality, exactness and, negated, the place of the range that speaks for a type; all 0: none does.
using Rank = std::tuple<int, int, int>;

Rank rank_of(const std::vector<Range>& ranges, std::string_view main, std::string_view sub) {
  Rank rank{0, 0, 0};
  int exactness = 0;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    // The most exact range decides, be its weight higher or lower than that of others.
    const int matched = ranges[i].exactness(main, sub);
    if (matched <= exactness) continue;
    exactness = matched;
    rank = {ranges[i].quality, matched, -static_cast<int>(i)};
  }
  return rank;
}

// All Accept headers as one.
std::string accept_of(const Request& request) {
  std::string accept;
  for (const auto& [name, value] : request.headers) {
    if (name != "accept") continue;
    if (!accept.empty()) accept += ',';
    accept += value;
  }
  return accept;
}

}  // namespace

std::string_view content_type(MediaType type) {
  const auto offer = std::find_if(offers.begin(), offers.end(),
                                  [type](const Offer& each) { return each.type == type; });
  return offer->content_type;
}

MediaType negotiate(std::string_view accept) {
  const auto ranges = parse_ranges(accept);
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

MediaType negotiate(const Request& request) {
  return negotiate(accept_of(request));
}

bool prefers_html(const Request& request) {
  const auto ranges = parse_ranges(accept_of(request));
  const Rank html = rank_of(ranges, "text", "html");
  return std::get<0>(html) > 0 && html > rank_of(ranges, "application", "json");
}

}  // namespace conversed::api
