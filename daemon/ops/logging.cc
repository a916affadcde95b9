#include "daemon/ops/logging.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <mutex>
#include <utility>

#include "daemon/ops/log_repeats.h"
#include "store/text/utf8.h"

namespace conversed::daemon::log {
namespace {

struct State {
  std::atomic<Level> level{Level::info};
  std::atomic<config::LogFormat> format{config::LogFormat::json};
  std::mutex sink_mutex;
  std::function<void(std::string_view)> sink;
  Repeats repeats;
  // Writes each line whole and at once; spdlog's own formatting is off.
  std::shared_ptr<spdlog::logger> stderr_logger = make_logger();

  static std::shared_ptr<spdlog::logger> make_logger() {
    auto logger = std::make_shared<spdlog::logger>(
        "conversed", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    logger->set_pattern("%v");
    logger->set_level(spdlog::level::trace);
    logger->flush_on(spdlog::level::trace);
    return logger;
  }
};

// Never destroyed: threads may log while the process ends.
State& state() {
  static State& instance = *new State;
  return instance;
}

constexpr std::string_view level_name(Level level) {
  switch (level) {
    case Level::debug:
      return "debug";
    case Level::info:
      return "info";
    case Level::warn:
      return "warn";
    case Level::error:
      return "error";
  }
  return "error";
}

void append_control(std::string& line, unsigned char byte) {
  constexpr std::string_view digits = "0123456789abcdef";
  line += "\\u00";
  line += digits[byte >> 4];
  line += digits[byte & 0xf];
}

// As the inside of a JSON string.
void append_escaped(std::string& line, std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const auto length = text::sequence_length(text, at);
    if (length == 0) {
      line += "\xef\xbf\xbd";
      ++at;
      continue;
    }
    const char byte = text[at];
    if (length > 1) {
      line += text.substr(at, length);
    } else if (byte == '"' || byte == '\\') {
      line += '\\';
      line += byte;
    } else if (byte == '\n') {
      line += "\\n";
    } else if (static_cast<unsigned char>(byte) < 0x20 || byte == 0x7f) {
      append_control(line, static_cast<unsigned char>(byte));
    } else {
      line += byte;
    }
    at += length;
  }
}

void append_quoted(std::string& line, std::string_view text) {
  line += '"';
  append_escaped(line, text);
  line += '"';
}

template <typename Number>
void append_number(std::string& line, Number value) {
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  line.append(buffer.data(), end.ptr);
}

void append_value(std::string& line, const Field& field, bool quote_plain_words) {
  if (is_secret_key(field.key)) {
    line += quote_plain_words ? "\"***\"" : "***";
  } else if (const auto* text = std::get_if<std::string_view>(&field.value)) {
    const bool plain = !quote_plain_words && !text->empty() &&
                       text->find_first_of(" =\"\\") == std::string_view::npos;
    plain ? append_escaped(line, *text) : append_quoted(line, *text);
  } else if (const auto* integer = std::get_if<std::int64_t>(&field.value)) {
    append_number(line, *integer);
  } else if (const auto* natural = std::get_if<std::uint64_t>(&field.value)) {
    append_number(line, *natural);
  } else if (const auto* real = std::get_if<double>(&field.value)) {
    std::isfinite(*real) ? append_number(line, *real) : void(line += "null");
  } else {
    line += std::get<bool>(field.value) ? "true" : "false";
  }
}

// 2026-11-21T04:15:12.345Z
std::string timestamp(std::int64_t unix_ms) {
  using namespace std::chrono;
  const sys_time<milliseconds> time{milliseconds(unix_ms)};
  const auto day = floor<days>(time);
  const year_month_day date(day);
  const hh_mm_ss clock(floor<milliseconds>(time - day));
  std::array<char, 40> buffer{};
  const int length = std::snprintf(
      buffer.data(), buffer.size(), "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ",
      static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
      static_cast<unsigned>(date.day()), static_cast<int>(clock.hours().count()),
      static_cast<int>(clock.minutes().count()), static_cast<int>(clock.seconds().count()),
      static_cast<int>(clock.subseconds().count()));
  return {buffer.data(), static_cast<std::size_t>(length)};
}

constexpr std::string_view json_begin = R"({"time":")";

std::string format_json(std::int64_t unix_ms, Level level, std::string_view event, Fields fields) {
  std::string line = std::string(json_begin) + timestamp(unix_ms) + R"(","level":")";
  line += level_name(level);
  line += R"(","event":)";
  append_quoted(line, event);
  for (const auto& field : fields) {
    line += ',';
    append_quoted(line, field.key);
    line += ':';
    append_value(line, field, true);
  }
  line += '}';
  return line;
}

std::string format_text(std::int64_t unix_ms, Level level, std::string_view event, Fields fields) {
  std::string line = timestamp(unix_ms);
  line += ' ';
  line += level_name(level);
  line += ' ';
  append_escaped(line, event);
  for (const auto& field : fields) {
    line += ' ';
    append_escaped(line, field.key);
    line += '=';
    append_value(line, field, false);
  }
  return line;
}

// The part of the line that a repetition has, too.
std::string without_time(std::string_view line) {
  const std::size_t begin = line.starts_with('{') ? json_begin.size() : 0;
  return std::string(line.substr(begin + timestamp(0).size()));
}

std::string line_of_repeats(const std::string& time, const Repeats::Repeated& repeated) {
  const auto times = std::to_string(repeated.times);
  const std::string_view rest = repeated.line;
  if (!rest.starts_with('"')) return time + repeated.line + " repeated=" + times;
  return std::string(json_begin) + time + std::string(rest.substr(0, rest.size() - 1)) +
         R"(,"repeated":)" + times + '}';
}

void emit(const std::string& line) {
  {
    const std::lock_guard lock(state().sink_mutex);
    if (state().sink) return state().sink(line);
  }
  state().stderr_logger->log(spdlog::level::info, spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace

void open(const config::LogSettings& settings) {
  state().level.store(settings.level, std::memory_order_relaxed);
  state().format.store(settings.format, std::memory_order_relaxed);
}

bool enabled(Level level) {
  return level >= state().level.load(std::memory_order_relaxed);
}

bool is_secret_key(std::string_view key) {
  std::string folded;
  folded.reserve(key.size());
  for (const char c : key) {
    if (c == '-' || c == '_') continue;
    folded += c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  }
  if (folded == "key") return true;
  for (const std::string_view ending :
       {"password", "token", "secret", "authorization", "credential", "credentials", "apikey"}) {
    if (folded.ends_with(ending)) return true;
  }
  return false;
}

std::string format(config::LogFormat format, std::int64_t unix_ms, Level level,
                   std::string_view event, Fields fields) {
  return format == config::LogFormat::json ? format_json(unix_ms, level, event, fields)
                                           : format_text(unix_ms, level, event, fields);
}

void write(Level level, std::string_view event, Fields fields) {
  const auto now = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  const auto unix_ms = now.time_since_epoch().count();
  const auto steady = std::chrono::steady_clock::now();
  const auto line =
      format(state().format.load(std::memory_order_relaxed), unix_ms, level, event, fields);
  for (const auto& repeated : state().repeats.take_due(steady)) {
    emit(line_of_repeats(timestamp(unix_ms), repeated));
  }
  // A line with a trace is of one request: to remember it would take the place of others.
  const bool may_repeat =
      level >= Level::warn && std::ranges::find(fields, "traceId", &Field::key) == fields.end();
  if (!may_repeat || state().repeats.is_first(without_time(line), steady)) emit(line);
}

void set_sink(std::function<void(std::string_view line)> sink) {
  const std::lock_guard lock(state().sink_mutex);
  state().sink = std::move(sink);
}

}  // namespace conversed::daemon::log
