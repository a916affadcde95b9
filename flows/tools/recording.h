#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "store/model/clock.h"
#include "store/model/event.h"
#include "store/model/result.h"

namespace conversed::flows::tools {

// One output.
struct Said {
  std::string text{};
  nlohmann::json data{};  // null when there is none

  bool operator==(const Said&) const = default;
};

// The call or timer for which an execution waited after a Turn.
struct RecordedWait {
  std::string id{};
  std::string to{};       // the upstream's host; empty: a timer
  std::string request{};  // request_mark; empty: a timer

  [[nodiscard]] bool is_timer() const { return request.empty(); }
};

// A Turn as a daemon has recorded it in the receipt of its input.
struct RecordedTurn {
  std::string input_id{};  // of the execution
  model::Timestamp at{};
  model::Event event{};  // an answer too large to be recorded has no `result`
  bool begins = false;   // a conversation
  nlohmann::json state{};
  nlohmann::json profile = nlohmann::json::object();  // as its conversation finds it
  std::int64_t profile_version = 0;                   // before the Turn
  bool changes_profile = false;
  std::optional<RecordedWait> waits_for{};
  std::vector<model::Timestamp> follow_ups{};  // when planned ones are due
  std::int64_t first_output = 0;               // its number; 0: the Turn said nothing
  std::int64_t output_count = 0;
  std::vector<Said> outputs{};  // those that are still there
  bool failed = false;
  std::string failure{};
  std::string ended{};    // why nothing ran; empty: something did
  std::string missing{};  // why a replay ends before the Turn; empty: it does not

  [[nodiscard]] bool begins_execution() const {
    return event.type != model::EventType::call_result && event.type != model::EventType::timer;
  }
};

// The newest conversation of a session.
struct Recording {
  model::SessionKey key{};
  std::string endpoint{};  // its name; empty: it is gone
  std::string url_token{};
  std::string not_whole{};            // why there are no Turns; empty: there are
  std::vector<RecordedTurn> turns{};  // in the order of their times
};

// Reads an item of `GET /management/flows/{flowId}/recordings`. `invalid_argument` for another
// shape. Marks Turns before which something has happened that is not recorded. Pure.
// Kept by: Recording.KnowsWhatIsNotRecorded.
[[nodiscard]] model::Result<Recording> recording_from(const nlohmann::json& item,
                                                      const std::string& project_id);

}  // namespace conversed::flows::tools
