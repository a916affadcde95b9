#include "queue/kafka/kafka_record.h"

#include <optional>
#include <string_view>

#include "store/model/event.h"

namespace conversed::queue {
namespace {

constexpr std::string_view format_version = "1";

std::optional<std::string> header(const rd_kafka_headers_t* headers, const char* name) {
  const void* value = nullptr;
  std::size_t size = 0;
  if (headers == nullptr ||
      rd_kafka_header_get_last(headers, name, &value, &size) != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return std::nullopt;
  }
  return value == nullptr ? std::string() : std::string(static_cast<const char*>(value), size);
}

const rd_kafka_headers_t* headers_of(const rd_kafka_message_t& message) {
  rd_kafka_headers_t* headers = nullptr;
  if (rd_kafka_message_headers(&message, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR) return nullptr;
  return headers;
}

std::string bytes(const void* data, std::size_t size) {
  return data == nullptr ? std::string() : std::string(static_cast<const char*>(data), size);
}

}  // namespace

KafkaHeaderList kafka_headers_of(const Record& record) {
  KafkaHeaderList headers{{"v", std::string(format_version)},
                          {"id", record.id},
                          {"type", record.type},
                          {"trace", record.trace_id}};
  const auto routed = routing_part(record.key).size();
  if (routed < record.key.size()) headers.emplace_back("session", record.key.substr(routed + 1));
  return headers;
}

Result<Record> read_kafka_record(const rd_kafka_message_t& message) {
  const auto unreadable = [](const char* why) { return model::fail(Errc::invalid_argument, why); };
  if (message.key == nullptr) return unreadable("It has no key.");
  const rd_kafka_headers_t* headers = headers_of(message);
  if (header(headers, "v").value_or(std::string(format_version)) != format_version) {
    return unreadable("Its header v names another format than 1.");
  }
  auto id = header(headers, "id");
  if (!id) return unreadable("It has no header id.");
  auto type = header(headers, "type");
  if (!type) return unreadable("It has no header type.");
  auto key = bytes(message.key, message.key_len);
  if (routing_part(key) != key) {
    return unreadable("Its key has more parts than the project's id and the user's.");
  }
  if (const auto session = header(headers, "session")) {
    if (key.find(model::SessionKey::separator) == std::string::npos) {
      return unreadable("It has a header session, but its key does not name the user.");
    }
    key += model::SessionKey::separator;
    key += *session;
  }
  return Record{std::move(key), std::move(*id), std::move(*type),
                header(headers, "trace").value_or(""), bytes(message.payload, message.len)};
}

KafkaHeaderList kafka_headers_of(const rd_kafka_message_t& message) {
  KafkaHeaderList all;
  const rd_kafka_headers_t* headers = headers_of(message);
  const char* name = nullptr;
  const void* value = nullptr;
  std::size_t size = 0;
  for (std::size_t at = 0;
       headers != nullptr &&
       rd_kafka_header_get_all(headers, at, &name, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR;
       ++at) {
    all.emplace_back(name, bytes(value, size));
  }
  return all;
}

}  // namespace conversed::queue
