#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "daemon/ctl/output/fields.h"
#include "daemon/ctl/output/screen.h"

namespace conversed::ctl {

// An object, member by member, with the control characters of texts escaped
// (store/text/terminal.h).
//
// A terminal gets a line for each member, such as `Started  2026-11-21 15:03:59 CET (3 min ago)`,
// lists of objects as tables, reasons as `why` shows them, and documents of the project, such as
// `context`, as JSON. A file or pipe gets the path of each value, a tab and the value:
// `outputs/0/text`.
[[nodiscard]] std::string sheet_of(const nlohmann::json& object, const Screen& screen);

// Lines of a reason why something waits: subject, times and remedy.
[[nodiscard]] std::string wait_of(const Fields& wait, const Screen& screen);

// Prints the object's sheet.
void print_sheet(const nlohmann::json& object);

}  // namespace conversed::ctl
