#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "store/model/effects.h"

// The names in a call's row: its upstream, and its id `INPUT-cN`. Pure.
namespace conversed::store {

// The target of a call: the host and port of its URL, the Connection of a language model,
// knowledge, or the sandbox of scripts. At most 255 printable ASCII characters.
[[nodiscard]] std::string target_of(const model::PendingCall& call);

[[nodiscard]] std::string target_of_host(std::string_view host);

// The target for people, of any length: the host, `model` and the Connection's id, `knowledge` and
// the name of its store, or `a script`.
[[nodiscard]] std::string shown_target(const model::PendingCall& call);

// The input of the execution that waits for this call.
[[nodiscard]] std::string input_of_call(std::string_view call_id);

// The number of the call in its execution, from 1. An id of another form has the number 1.
[[nodiscard]] std::size_t number_of_call(std::string_view call_id);

// Names a call's upstream within a sentence. `shown`: its `shown_target`.
[[nodiscard]] std::string words_of_upstream(const std::string& shown);

// The Connection of a target that is a language model. Empty: it is another target.
[[nodiscard]] std::string connection_of_target(const std::string& target);

inline constexpr const char* knowledge_target = "knowledge";
inline constexpr const char* code_target = "script";

}  // namespace conversed::store
