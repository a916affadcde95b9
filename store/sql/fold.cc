#include "store/sql/fold.h"

#include <unicode/bytestream.h>
#include <unicode/casemap.h>
#include <unicode/stringpiece.h>

namespace conversed::store {

std::string fold_case(std::string_view text) {
  std::string folded;
  icu::StringByteSink<std::string> sink(&folded);
  UErrorCode error = U_ZERO_ERROR;
  icu::CaseMap::utf8Fold(0, icu::StringPiece(text.data(), static_cast<std::int32_t>(text.size())),
                         sink, nullptr, error);
  // It fails for lack of memory alone.
  if (U_FAILURE(error)) folded.assign(text);
  return folded;
}

}  // namespace conversed::store
