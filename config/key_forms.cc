#include "config/key_forms.h"

#include <algorithm>
#include <limits>

#include "config/values.h"
#include "store/text/quantity.h"

namespace conversed::config {
namespace {

std::string joined(std::span<const std::string_view> parts) {
  std::string out;
  for (const std::string_view part : parts) {
    if (!out.empty()) out += ", ";
    out += part;
  }
  return out;
}

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; });
}

bool consists_of(std::string_view text, std::string_view others) {
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           others.find(c) != std::string_view::npos;
  });
}

// `/new`, `/a/b`. Clients and proxies would resolve dot segments and empty ones.
bool is_base_path(std::string_view text) {
  if (text.empty()) return true;
  if (text.front() != '/' || text.back() == '/' || text.size() > 200) return false;
  if (!consists_of(text, "/._~-") || text.find("//") != std::string_view::npos) return false;
  for (std::size_t at = 0; at != std::string_view::npos; at = text.find('/', at + 1)) {
    const std::string_view segment = text.substr(at + 1, text.find('/', at + 1) - at - 1);
    if (segment == "." || segment == "..") return false;
  }
  return true;
}

// Names of topics and group members have at most 249 characters; our endings need some.
bool is_name_for_kafka(std::string_view text) {
  return text.size() <= 200 && consists_of(text, "._-") && text != "." && text != "..";
}

bool is_line(std::string_view text) {
  return text.size() <= 4000 && !has_control(text);
}

bool is_kafka_property(std::string_view text) {
  const std::size_t equals = text.find('=');
  return is_line(text) && equals != std::string_view::npos && equals != 0 &&
         consists_of(text.substr(0, equals), "._-");
}

bool is_postgres_url(std::string_view text) {
  return text.empty() ||
         ((text.starts_with("postgresql://") || text.starts_with("postgres://")) && is_line(text));
}

}  // namespace

constinit const TextRule folder_path{is_line,
                                     "the path of a folder, or nothing for the default place"};
constinit const TextRule file_path{is_line, "the path of a file, or nothing"};
constinit const TextRule base_path{is_base_path,
                                   "a path such as /new, without a slash at its end, or nothing"};
constinit const TextRule one_line{is_line, "a line of text, or nothing"};
constinit const TextRule host{
    [](std::string_view text) { return is_ip_address(text) || is_host_name(text); },
    "an IP address or a host name"};
constinit const TextRule host_and_port{is_host_and_port,
                                       "a list of host:port, such as [kafka-1:9092, kafka-2:9092]"};
constinit const TextRule networks_and_hosts{
    [](std::string_view text) {
      return is_cidr(text) || is_ip_address(text) || is_host_name(text);
    },
    "a list of CIDR ranges, IP addresses and host names, such as [10.0.0.0/8, crm.example.com]",
    true};
constinit const TextRule networks{
    [](std::string_view text) { return is_cidr(text) || is_ip_address(text); },
    "a list of CIDR ranges and IP addresses, such as [10.0.0.0/8, 192.0.2.7]", true};
constinit const TextRule kafka_name{
    [](std::string_view text) { return !text.empty() && is_name_for_kafka(text); },
    "1 to 200 letters, digits, dots, hyphens and underscores"};
constinit const TextRule optional_kafka_name{
    is_name_for_kafka, "at most 200 letters, digits, dots, hyphens and underscores, or nothing"};
constinit const TextRule kafka_property{
    is_kafka_property,
    "a list of name=value, such as [security.protocol=sasl_ssl, sasl.mechanism=SCRAM-SHA-512]"};
constinit const TextRule postgres_url{is_postgres_url,
                                      "a URL that begins with postgresql://, or nothing"};
// As many bytes as HS256 makes of them (RFC 7518 section 3.2).
constinit const TextRule long_secret{
    [](std::string_view text) { return text.empty() || (text.size() >= 32 && is_line(text)); },
    "32 bytes or more without control characters, or nothing"};

Complaint parse_number(const Key& key, const std::string& text, std::uint64_t& value) {
  std::optional<std::uint64_t> read;
  if (key.form == Form::count) {
    read = text::parse_whole(text);
  } else if (key.form == Form::size) {
    read = text::parse_size(text);
  } else if (const auto duration = text::parse_duration(text)) {
    read = static_cast<std::uint64_t>(duration->count());
  }
  if (!read) return "";
  if (*read < key.range.min) return "too small";
  if (*read > key.range.max) return "too large";
  value = *read;
  return std::nullopt;
}

std::string number_text(const Key& key, std::uint64_t value) {
  switch (key.form) {
    case Form::duration:
      return text::duration_text(Duration(static_cast<Duration::rep>(value)));
    case Form::size:
      return text::size_text(value);
    default:
      return std::to_string(value);
  }
}

Complaint parse_word(const Key& key, std::string_view text, std::size_t& index) {
  const auto found = std::find(key.words.begin(), key.words.end(), text);
  if (found == key.words.end()) return "";
  index = static_cast<std::size_t>(found - key.words.begin());
  return std::nullopt;
}

Complaint parse_text(const Key& key, const std::string& text, std::string& value) {
  if (!key.text->accepts(text)) return "";
  value = text;
  if (!key.text->lower_case) return std::nullopt;
  std::transform(value.begin(), value.end(), value.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return std::nullopt;
}

std::string Key::variable() const {
  std::string name = "CONVERSED_";
  for (const char c : path) {
    name += c == '.' ? '_' : c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  }
  return name;
}

std::string Key::expected() const {
  const auto from = number_text(*this, range.min);
  const auto to = number_text(*this, range.max);
  const bool open_ended =
      range.max >= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  switch (form) {
    case Form::count:
      return "a whole number " + (open_ended ? from + " or above" : "from " + from + " to " + to);
    case Form::duration:
      return "a duration from " + from + " to " + to + ", such as 500ms, 10s, 5m, 2h or 3d";
    case Form::size:
      return "a size from " + from + " to " + to + ", in bytes, KiB, MiB or GiB";
    case Form::word:
      return "one of " + joined(words);
    case Form::list:
      if (text == nullptr) return "a list of " + joined(words);
      break;
    case Form::text:
      break;
  }
  return std::string(text->expected);
}

}  // namespace conversed::config
