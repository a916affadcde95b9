#include "config/key_forms.h"

#include <algorithm>

#include "config/values.h"

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

// `/new`, `/a/b`: dot segments and empty ones would be resolved away by clients and proxies.
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

// Of a topic, or of a member of a group: 249 characters; our own endings need room.
bool is_name_for_kafka(std::string_view text) {
  return text.size() <= 200 && consists_of(text, "._-") && text != "." && text != "..";
}

// Of one item; the forms that are no text have parsers of their own.
bool is_of_form(const Key& key, std::string_view text) {
  switch (key.form) {
    case Form::words:
      return word_index(key, text).has_value();
    case Form::host:
      return is_ip_address(text) || is_host_name(text);
    case Form::path:
    case Form::file:
    case Form::text:
      return text.size() <= 4000 && !has_control(text);
    case Form::secret:  // as many bytes as HS256 makes of them (RFC 7518 section 3.2)
      return text.empty() || (text.size() >= 32 && text.size() <= 4000 && !has_control(text));
    case Form::base_path:
      return is_base_path(text);
    case Form::topic:
      return !text.empty() && is_name_for_kafka(text);
    case Form::name:
      return text.empty() || is_name_for_kafka(text);
    case Form::servers:
      return is_host_and_port(text);
    case Form::pairs:
      return text.size() <= 4000 && !has_control(text) &&
             text.find('=') != std::string_view::npos && text.front() != '=' &&
             consists_of(text.substr(0, text.find('=')), "._-");
    case Form::networks:
      return is_cidr(text) || is_ip_address(text) || is_host_name(text);
    case Form::ranges:
      return is_cidr(text) || is_ip_address(text);
    case Form::url:
      return text.empty() ||
             ((text.starts_with("postgresql://") || text.starts_with("postgres://")) &&
              text.size() <= 4000 && !has_control(text));
    case Form::whole:
    case Form::duration:
    case Form::size:
    case Form::flag:
    case Form::word:
      return false;
  }
  return false;
}

}  // namespace

NumberText read_number(const Key& key, const std::string& text) {
  std::optional<std::uint64_t> value;
  if (key.form == Form::whole) {
    value = parse_whole(text);
  } else if (key.form == Form::size) {
    value = parse_size(text);
  } else if (const auto duration = parse_duration(text)) {
    value = static_cast<std::uint64_t>(duration->count());
  }
  if (!value) return {.value = std::nullopt, .complaint = ""};
  if (*value < key.min) return {.value = std::nullopt, .complaint = "too small"};
  if (*value > key.max) return {.value = std::nullopt, .complaint = "too large"};
  return {.value = value, .complaint = ""};
}

std::string number_text(const Key& key, std::uint64_t value) {
  switch (key.form) {
    case Form::duration:
      return duration_text(Duration(static_cast<Duration::rep>(value)));
    case Form::size:
      return size_text(value);
    default:
      return std::to_string(value);
  }
}

std::optional<std::size_t> word_index(const Key& key, std::string_view text) {
  const auto found = std::find(key.words.begin(), key.words.end(), text);
  if (found == key.words.end()) return std::nullopt;
  return static_cast<std::size_t>(found - key.words.begin());
}

Problems check_text(const Key& key, const Items& items) {
  constexpr std::size_t max_items = 1000;
  if (items.size() > max_items) return "more than " + std::to_string(max_items) + " items";
  if (key.form == Form::words && items.empty()) return "at least one is needed";
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string which = key.is_list() ? "item " + std::to_string(i + 1) + " is wrong" : "";
    if (!is_of_form(key, items[i])) return which;
    if (key.form == Form::words &&
        std::find(items.begin(), items.begin() + static_cast<std::ptrdiff_t>(i), items[i]) !=
            items.begin() + static_cast<std::ptrdiff_t>(i)) {
      return "item " + std::to_string(i + 1) + " is given twice";
    }
  }
  return std::nullopt;
}

Items normalised(const Key& key, Items items) {
  if (key.form != Form::networks && key.form != Form::ranges) return items;
  for (std::string& item : items) {
    std::transform(item.begin(), item.end(), item.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
  }
  return items;
}

bool Key::is_list() const {
  return form == Form::words || form == Form::servers || form == Form::pairs ||
         form == Form::networks || form == Form::ranges;
}

std::string Key::variable() const {
  std::string name = "CONVERSED_";
  for (const char c : path) {
    name += c == '.' ? '_' : c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  }
  return name;
}

std::string Key::expected() const {
  const auto from = [&] { return number_text(*this, min); };
  const auto to = [&] { return number_text(*this, max); };
  const bool open_ended =
      max >= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  switch (form) {
    case Form::whole:
      return "a whole number " +
             (open_ended ? from() + " or above" : "from " + from() + " to " + to());
    case Form::duration:
      return "a duration from " + from() + " to " + to() + ", such as 500ms, 10s, 5m, 2h or 3d";
    case Form::size:
      return "a size from " + from() + " to " + to() + ", in bytes, KiB, MiB or GiB";
    case Form::flag:
      return "true or false";
    case Form::word:
      return "one of " + joined(words);
    case Form::words:
      return "a list of " + joined(words);
    case Form::host:
      return "an IP address or a host name";
    case Form::path:
      return "the path of a folder, or nothing for the default place";
    case Form::base_path:
      return "a path such as /new, without a slash at its end, or nothing";
    case Form::topic:
      return "1 to 200 letters, digits, dots, hyphens and underscores";
    case Form::name:
      return "at most 200 letters, digits, dots, hyphens and underscores, or nothing";
    case Form::servers:
      return "a list of host:port, such as [kafka-1:9092, kafka-2:9092]";
    case Form::pairs:
      return "a list of name=value, such as [security.protocol=sasl_ssl, "
             "sasl.mechanism=SCRAM-SHA-512]";
    case Form::networks:
      return "a list of CIDR ranges, IP addresses and host names, such as [10.0.0.0/8, "
             "crm.example.com]";
    case Form::ranges:
      return "a list of CIDR ranges and IP addresses, such as [10.0.0.0/8, 192.0.2.7]";
    case Form::url:
      return "a URL that begins with postgresql://, or nothing";
    case Form::file:
      return "the path of a file, or nothing";
    case Form::text:
      return "a line of text, or nothing";
    case Form::secret:
      return "32 bytes or more without control characters, or nothing";
  }
  return "";
}

}  // namespace conversed::config
