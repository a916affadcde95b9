#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "store/model/effects.h"
#include "store/model/event.h"

namespace conversed::flows::tools {

// A stub of an upstream or a language model, with its answer.
struct Stub {
  std::string method;  // empty: any
  std::string url;     // compared by text_fits; empty: any
  int status = 200;
  nlohmann::json body;
  std::string error;      // replaces the answer: `timeout`, `refused`, ...
  bool of_model = false;  // matches only calls to language models
  std::int64_t tokens = 0;
  std::int64_t times = 0;  // how many calls of one conversation it answers; 0: all
};

// A stub of a search in knowledge, with its result.
struct SearchStub {
  std::string store;  // empty: any
  std::string query;  // compared by text_fits; empty: any
  nlohmann::json hits = nlohmann::json::array();
  std::string error;       // replaces the hits
  std::int64_t times = 0;  // as above
};

// Stubs in the order in which they are tried; the first match answers.
struct StubList {
  std::vector<Stub> calls;
  std::vector<SearchStub> searches;
};

// The stubs of one conversation. One thread.
class Stubs {
 public:
  // Those of `first` are tried before those of `then`. Both must outlive this.
  Stubs(const StubList& first, const StubList& then) : lists_{&first, &then} {}

  // The answer of the first stub that matches and has answers left. Nothing if there is none. No
  // stub matches a script.
  [[nodiscard]] std::optional<model::CallResult> answer(const model::PendingCall& call);

 private:
  std::vector<const StubList*> lists_;
  std::map<const void*, std::int64_t> used_;  // how often each stub has answered
};

// The answer that the stub gives to the call. Does not check whether the stub matches the call.
[[nodiscard]] model::CallResult answer_of(const Stub& stub, const model::PendingCall& call);
[[nodiscard]] model::CallResult answer_of(const SearchStub& stub, const model::PendingCall& call);

// The request of a call, as `expect` of a test file names its parts: `method`, `url` and `body`, or
// `store`, `sources`, `query` and `limit`; of a script `script` and `values`.
[[nodiscard]] nlohmann::json request_of(const model::PendingCall& call);
// `GET https://crm.example.com/orders`, `'returns' in Manual` or `a script`.
[[nodiscard]] std::string to_string(const model::PendingCall& call);

}  // namespace conversed::flows::tools
