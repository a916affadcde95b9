#include "store/model/trace.h"

#include <algorithm>

#include "store/model/ids.h"

namespace conversed::model {

bool is_trace_id(std::string_view text) {
  const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return text.size() == 32 && std::all_of(text.begin(), text.end(), is_hex) &&
         text.find_first_not_of('0') != std::string_view::npos;
}

std::string trace_id_of(std::string_view text) {
  return is_trace_id(text) ? std::string(text) : new_trace_id();
}

}  // namespace conversed::model
