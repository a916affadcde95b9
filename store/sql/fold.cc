#include "store/sql/fold.h"

#include <unicode/bytestream.h>
#include <unicode/casemap.h>
#include <unicode/stringpiece.h>

#include <algorithm>

namespace conversed::store {

std::string fold_case(std::string_view text) {
  std::string folded;
  folded.reserve(text.size());
  const bool ascii = std::all_of(text.begin(), text.end(),
                                 [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  if (ascii) {
    for (const char c : text) {
      folded += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
    return folded;
  }
  icu::StringByteSink<std::string> sink(&folded);
  UErrorCode error = U_ZERO_ERROR;
  icu::CaseMap::utf8Fold(0, icu::StringPiece(text.data(), static_cast<std::int32_t>(text.size())),
                         sink, nullptr, error);
  // It fails for lack of memory alone.
  if (U_FAILURE(error)) folded.assign(text);
  return folded;
}

}  // namespace conversed::store
