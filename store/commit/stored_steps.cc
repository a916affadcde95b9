#include "store/commit/stored_steps.h"

#include <openssl/evp.h>
#include <zstd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "store/model/receipt_text.h"
#include "store/text/base64.h"

namespace conversed::store {
namespace {

constexpr int level = 1;
constexpr std::size_t most_bytes = 1024 * 1024;  // of a text
constexpr char begin_of_later_step = '\x1e';     // no step has it

// One for each thread: a new one would allocate its tables again. Its frames have a checksum. Null:
// there is no memory for it.
ZSTD_CCtx* compressor() {
  struct Free {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  };
  thread_local const std::unique_ptr<ZSTD_CCtx, Free> own([] {
    ZSTD_CCtx* const made = ZSTD_createCCtx();
    if (made != nullptr) {
      (void)ZSTD_CCtx_setParameter(made, ZSTD_c_compressionLevel, level);
      (void)ZSTD_CCtx_setParameter(made, ZSTD_c_checksumFlag, 1);
    }
    return made;
  }());
  return own.get();
}

// Returns the frame as base64 behind `packed_mark`. libsodium's encoder runs in constant time,
// which takes five times as long. These bytes are not secret.
std::string in_base64(const std::string& frame) {
  std::string stored(1 + (frame.size() + 2) / 3 * 4 + 1, packed_mark);
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(stored.data() + 1),
                                   reinterpret_cast<const unsigned char*>(frame.data()),
                                   static_cast<int>(frame.size()));
  stored.resize(1 + static_cast<std::size_t>(size));  // without the NUL
  return stored;
}

std::optional<std::string> decompressed(const std::string& frame) {
  const auto size = ZSTD_getFrameContentSize(frame.data(), frame.size());
  if (size > most_bytes) return std::nullopt;  // an error, too
  std::string text(size, '\0');
  const auto written = ZSTD_decompress(text.data(), text.size(), frame.data(), frame.size());
  if (written != text.size()) return std::nullopt;
  return text;
}

// A time or duration of the step. A number that no step can have counts as 0.
std::int64_t time_of(const nlohmann::json& step, const char* name) {
  constexpr std::int64_t most = std::int64_t{1} << 53;
  const auto found = step.find(name);
  if (found == step.end() || !found->is_number_integer()) return 0;
  const auto value = found->get<std::int64_t>();
  return value >= 0 && value < most ? value : 0;
}

}  // namespace

std::string packed(std::string text, std::size_t most_plain) {
  if (text.size() <= most_plain || text.size() > most_bytes) return text;
  ZSTD_CCtx* const context = compressor();
  if (context == nullptr) return text;
  std::string frame(ZSTD_compressBound(text.size()), '\0');
  const auto size = ZSTD_compress2(context, frame.data(), frame.size(), text.data(), text.size());
  if (ZSTD_isError(size) != 0) return text;  // no memory: the buffer is large enough
  frame.resize(size);
  auto stored = in_base64(frame);
  return stored.size() < text.size() ? stored : text;
}

std::optional<std::string> unpacked(std::string stored) {
  if (!is_packed(stored)) return stored;
  const auto frame = text::decode_base64(stored.substr(1), text::Base64::standard);
  return frame ? decompressed(*frame) : std::nullopt;
}

std::optional<nlohmann::json> read_step(std::string_view text) {
  auto step = model::read_receipt_text(text);
  const bool is_step = step.is_object() && step.contains("what") && step["what"].is_string();
  return is_step ? std::optional(std::move(step)) : std::nullopt;
}

std::string later_step(std::string_view step, model::Timestamp written_at) {
  model::ReceiptText time;
  time.add("w", model::to_unix_ms(written_at));
  return begin_of_later_step + std::move(time).finished().append(step);
}

std::optional<nlohmann::json> read_later_steps(std::string_view stored) {
  auto steps = nlohmann::json::array();
  while (!stored.empty()) {
    if (stored.front() != begin_of_later_step) return std::nullopt;
    stored.remove_prefix(1);
    const auto text = stored.substr(0, stored.find(begin_of_later_step));
    auto step = read_step(text);
    if (!step) return std::nullopt;
    if (!step->contains("at")) (*step)["at"] = time_of(*step, "w") - time_of(*step, "us") / 1'000;
    steps.push_back(*std::move(step));
    stored.remove_prefix(text.size());
  }
  return steps;
}

std::optional<nlohmann::json> read_later_steps(std::string_view stored, nlohmann::json plain) {
  auto steps = read_later_steps(stored);
  if (!steps || plain.empty()) return steps;
  for (auto& step : plain) steps->push_back(std::move(step));
  std::stable_sort(steps->begin(), steps->end(),
                   [](const auto& a, const auto& b) { return time_of(a, "w") < time_of(b, "w"); });
  return steps;
}

std::size_t begin_of_last_step(std::string_view stored) {
  const auto begin = stored.rfind(begin_of_later_step);
  return begin == std::string_view::npos ? 0 : begin;
}

void unpack_answer(nlohmann::json& step) {
  static const nlohmann::json::json_pointer place("/recorded/result");
  if (!step.is_object() || !step.contains(place) || !step[place].is_object()) return;
  auto& result = step[place];
  const auto answer = result.find("answer");
  if (answer == result.end() || !answer->is_string()) return;
  const auto text = unpacked(std::move(answer->get_ref<std::string&>()));
  auto value = nlohmann::json::parse(text.value_or(""), nullptr, false);
  if (value.is_object()) {
    *answer = std::move(value);
  } else {
    result.erase(answer);
  }
}

}  // namespace conversed::store
