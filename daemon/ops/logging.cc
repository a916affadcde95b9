#include "daemon/ops/logging.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>

#include "daemon/ops/log_repeats.h"
#include "store/model/json.h"
#include "store/text/ascii.h"
#include "store/text/terminal.h"
#include "store/text/times.h"

namespace conversed::daemon::log {
namespace {

using nlohmann::ordered_json;

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

const char* level_name(Level level) {
  constexpr const char* names[] = {"debug", "info", "warn", "error"};
  return names[static_cast<std::size_t>(level)];
}

// The value as JSON. Escapes DEL and C1, which nlohmann does not escape.
std::string dumped(const ordered_json& value) {
  return text::shown(model::json_text(value), text::Lines::one);
}

// The value as JSON without its first and last byte: the quotes of a string, the braces of an
// object.
std::string inside(const ordered_json& value) {
  const auto text = dumped(value);
  return text.substr(1, text.size() - 2);
}

ordered_json value_of(const Field& field) {
  if (is_secret_key(field.key)) return "***";
  return std::visit([](const auto& value) { return ordered_json(value); }, field.value);
}

std::string text_of(const ordered_json& value) {
  if (!value.is_string()) return dumped(value);
  const auto& text = value.get_ref<const std::string&>();
  const bool is_plain = !text.empty() && text.find_first_of(" =\"\\") == std::string::npos;
  return is_plain ? inside(value) : dumped(value);
}

// The line without its time, and as JSON without its braces. Repetitions of a line have the same
// body.
std::string body_of(config::LogFormat format, Level level, std::string_view event, Fields fields) {
  if (format == config::LogFormat::json) {
    ordered_json line{{"level", level_name(level)}, {"event", event}};
    for (const auto& field : fields) line[std::string(field.key)] = value_of(field);
    return inside(line);
  }
  std::string line = std::string(level_name(level)) + ' ' + inside(event);
  for (const auto& field : fields) line += ' ' + inside(field.key) + '=' + text_of(value_of(field));
  return line;
}

bool is_json(std::string_view body) {
  return body.starts_with('"');
}

std::string line_of(std::int64_t unix_ms, const std::string& body) {
  const auto time = text::iso_time(text::Milliseconds(std::chrono::milliseconds(unix_ms)));
  return is_json(body) ? R"({"time":")" + time + R"(",)" + body + '}' : time + ' ' + body;
}

std::string body_of(const Repeats::Repeated& repeated) {
  const char* const name = is_json(repeated.line) ? R"(,"repeated":)" : " repeated=";
  return repeated.line + name + std::to_string(repeated.times);
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
  constexpr std::string_view endings[] = {"password",   "token",       "secret", "authorization",
                                          "credential", "credentials", "apikey"};
  std::string folded = text::lower_case(key);
  std::erase_if(folded, [](char c) { return c == '-' || c == '_'; });
  return folded == "key" || std::ranges::any_of(endings, [&](std::string_view ending) {
           return folded.ends_with(ending);
         });
}

std::string format(config::LogFormat format, std::int64_t unix_ms, Level level,
                   std::string_view event, Fields fields) {
  return line_of(unix_ms, body_of(format, level, event, fields));
}

void write(Level level, std::string_view event, Fields fields) {
  const auto now = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  const auto unix_ms = now.time_since_epoch().count();
  const auto steady = std::chrono::steady_clock::now();
  const auto body = body_of(state().format.load(std::memory_order_relaxed), level, event, fields);
  for (const auto& repeated : state().repeats.take_due(steady)) {
    emit(line_of(unix_ms, body_of(repeated)));
  }
  // A line with a traceId belongs to one request. It would take the place of lines that repeat.
  const bool may_repeat =
      level >= Level::warn && std::ranges::find(fields, "traceId", &Field::key) == fields.end();
  if (!may_repeat || state().repeats.is_first(body, steady)) emit(line_of(unix_ms, body));
}

void set_sink(std::function<void(std::string_view line)> sink) {
  const std::lock_guard lock(state().sink_mutex);
  state().sink = std::move(sink);
}

}  // namespace conversed::daemon::log
