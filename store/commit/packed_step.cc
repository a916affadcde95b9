#include "store/commit/packed_step.h"

#include <openssl/evp.h>
#include <zstd.h>

#include <cstddef>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <utility>

#include "store/commit/receipt_dictionary.h"
#include "store/model/hex.h"
#include "store/text/base64.h"

namespace conversed::store {

namespace {

constexpr int level = 1;
constexpr std::size_t worth_packing = 100;
constexpr std::size_t most_bytes = 1024 * 1024;  // of a step's JSON

struct Free {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  void operator()(ZSTD_CDict* words) const { ZSTD_freeCDict(words); }
  void operator()(ZSTD_DDict* words) const { ZSTD_freeDDict(words); }
};
template <typename T>
std::unique_ptr<T, Free> made(T* object) {
  if (object == nullptr) throw std::bad_alloc();
  return std::unique_ptr<T, Free>(object);
}

// text::encode_base64 takes eight times as long: it hides secrets from measurements of its time.
std::string in_base64(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');  // EVP_EncodeBlock adds a NUL
  EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()), model::bytes_of(bytes),
                  static_cast<int>(bytes.size()));
  text.pop_back();
  return text;
}

std::optional<std::string> unpacked(const std::string& frame) {
  static const auto words =
      made(ZSTD_createDDict(receipt_dictionary.data(), receipt_dictionary.size()));
  thread_local const auto context = made(ZSTD_createDCtx());
  const auto size = ZSTD_getFrameContentSize(frame.data(), frame.size());
  if (size > most_bytes) return std::nullopt;  // an error, too
  std::string json(size, '\0');
  const auto written = ZSTD_decompress_usingDDict(context.get(), json.data(), json.size(),
                                                  frame.data(), frame.size(), words.get());
  if (written != json.size()) return std::nullopt;
  return json;
}

}  // namespace

std::string packed_step(std::string json) {
  if (json.size() < worth_packing || json.size() > most_bytes) return json;
  static const auto words =
      made(ZSTD_createCDict(receipt_dictionary.data(), receipt_dictionary.size(), level));
  thread_local const auto context = made(ZSTD_createCCtx());
  std::string frame(ZSTD_compressBound(json.size()), '\0');
  const auto size = ZSTD_compress_usingCDict(context.get(), frame.data(), frame.size(), json.data(),
                                             json.size(), words.get());
  if (ZSTD_isError(size) != 0) throw std::bad_alloc();  // the buffer is large enough
  frame.resize(size);
  auto stored = in_base64(frame);
  return stored.size() < json.size() ? stored : json;
}

std::optional<std::string> unpacked_step(std::string stored) {
  if (stored.starts_with('{')) return stored;
  const auto frame = text::decode_base64(stored, text::Base64::standard);
  return frame ? unpacked(*frame) : std::nullopt;
}

void unpack_answer(nlohmann::json& step) {
  static const nlohmann::json::json_pointer place("/recorded/result");
  if (!step.is_object() || !step.contains(place) || !step[place].is_object()) return;
  auto& result = step[place];
  const auto answer = result.find("answer");
  if (answer == result.end() || !answer->is_string()) return;
  const auto text = unpacked_step(std::move(answer->get_ref<std::string&>()));
  auto value = nlohmann::json::parse(text.value_or(""), nullptr, false);
  if (value.is_object()) {
    *answer = std::move(value);
  } else {
    result.erase(answer);
  }
}

}  // namespace conversed::store
