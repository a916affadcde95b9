#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/ctl/client.h"
#include "daemon/ctl/output/fields.h"
#include "daemon/ctl/output/output.h"
#include "daemon/ctl/output/table.h"
#include "store/model/reason.h"

// A command is a row of a table: its help, its options, the request that they make, and how the
// answer is printed.
namespace conversed::ctl {

// The options of a command line, by their names.
struct Values {
  // Empty if the option was not given and has no preset.
  [[nodiscard]] const std::string& text(const std::string& name) const;
  [[nodiscard]] bool flag(const std::string& name) const { return flags.at(name); }
  // Whether the option was typed. An option may also come from its variable.
  [[nodiscard]] bool is_typed(const std::string& name) const { return typed.contains(name); }

  std::map<std::string, std::string> texts;
  std::map<std::string, std::vector<std::string>> lists;
  std::map<std::string, bool> flags;
  std::set<std::string> typed;  // names of options with a variable
};

// A copy of a row with another value in one member.
template <typename Row, typename Member, typename Value>
[[nodiscard]] Row with(Row row, Member Row::*member, Value value) {
  row.*member = std::move(value);
  return row;
}

// The id of the item that a value names.
using Find = model::Result<std::string> (*)(Client& client, const Values& values,
                                            const std::string& value);

struct Option {
  enum class Kind : std::uint8_t {
    text,
    number,    // from 1 on
    flag,      // `true` or left out in a query, true or false in a body
    commas,    // a list with commas between its texts
    repeated,  // a list: the option is given for each text
    several,   // a list: all remaining arguments
  };
  // How many options of one group a command line may have.
  enum class Among : std::uint8_t { any, at_most_one, all_or_none };
  static constexpr std::int64_t no_limit = std::numeric_limits<std::int64_t>::max();

  std::string name;  // such as `--state`; without dashes it is a positional argument
  std::string help;
  Kind kind = Kind::text;
  std::string query{};
  std::string field{};
  bool required = false;
  std::string preset{};
  std::vector<std::string> choices{};
  std::int64_t most = no_limit;
  Find find = nullptr;  // turns the text into an id; null: the text is sent as it is
  Among among = Among::any;
  std::string variable{};  // of the environment, in place of the option
  bool is_file = false;    // the text is the name of a file
  // Tells why a text is wrong. Empty: it is right.
  std::string (*check)(const std::string& text) = nullptr;

  // Sends the option as a parameter of the request, or in its body. An empty text is left out.
  Option in_query(const char* parameter) const { return with(*this, &Option::query, parameter); }
  Option in_field(const char* member) const { return with(*this, &Option::field, member); }
  Option require() const { return with(*this, &Option::required, true); }
  Option with_preset(std::string text) const {
    return with(*this, &Option::preset, std::move(text));
  }
  Option one_of(std::vector<std::string> texts) const {
    return with(*this, &Option::choices, std::move(texts));
  }
  Option at_most(std::int64_t number) const { return with(*this, &Option::most, number); }
  Option found_by(Find by) const { return with(*this, &Option::find, by); }
  Option checked_by(std::string (*by)(const std::string&)) const {
    return with(*this, &Option::check, by);
  }
  Option grouped(Among by) const { return with(*this, &Option::among, by); }
  Option file() const { return with(*this, &Option::is_file, true); }
  Option from(std::string name_of_variable) const {
    return with(*this, &Option::variable, std::move(name_of_variable));
  }
};

// The check of options whose text must not be empty.
[[nodiscard]] std::string not_empty(const std::string& text);

struct Request {
  std::string method;
  std::string path;   // without its query
  std::string query;  // without its question mark
  nlohmann::json body;
};

// Completes a request with the parts that its options alone do not give.
using Prepare = std::function<model::Result<void>(const Values& values, Request& request)>;
// Tells why the options are wrong usage. Empty: they are right. Runs before any request.
using Check = std::function<std::string(const Values& values)>;
using Show = std::function<void(const Fields& answer, const Values& values)>;
using Run = std::function<int(Client& client, const Values& values)>;

struct Help {
  std::string summary;    // one sentence without its period
  std::string example{};  // arguments
  std::string next{};     // one sentence: what to do afterwards
};

// Sends a request and prints the answer, or calls `run`.
struct Command {
  std::string name;  // with the group's name before it
  Help help;
  std::vector<Option> options{};
  // `POST /management/timers/{ID}`: with the encoded values of options, or the ids found for them.
  std::string request{};
  Show show{};  // without it the answer is printed as a sheet
  Run run{};    // returns the exit code
  nlohmann::json body{};
  bool pages = false;
  std::chrono::seconds wait = Client::usual_wait;
  Prepare prepare{};
  Check check{};
  // Makes a credential, which takes the user's password.
  bool needs_password = false;
  // Takes `--watch`. Commands whose request is a GET take it in any case.
  bool is_watched = false;

  // The body, to which the options add their fields.
  Command sends(nlohmann::json first) const {
    return with(*this, &Command::body, std::move(first));
  }
  // Reads as many pages as `--limit` takes, behind `--after`.
  Command in_pages() const { return with(*this, &Command::pages, true); }
  Command waits(std::chrono::seconds most) const { return with(*this, &Command::wait, most); }
  Command prepared_by(Prepare by) const { return with(*this, &Command::prepare, std::move(by)); }
  Command checked_by(Check by) const { return with(*this, &Command::check, std::move(by)); }
  Command runs(Run by) const { return with(*this, &Command::run, std::move(by)); }
  Command with_password() const { return with(*this, &Command::needs_password, true); }
  Command watched() const { return with(*this, &Command::is_watched, true); }
  [[nodiscard]] bool takes_watch() const { return is_watched || request.starts_with("GET "); }
};

// Commands that share their first word. Without a name: commands of the program itself.
struct Group {
  std::string name;
  std::string summary;
  std::vector<Command> commands;
};

inline constexpr const char* watch_option = "--watch";  // its value: seconds

// Runs a command, again and again with `--watch`. Returns its exit code.
int run(Client& client, const Command& command, const Values& values);

using ForPeople = std::function<void(const Fields&)>;

// Prints an answer or the error, and returns the exit code. With --json it prints the answer as it
// is (without a body: `{}`), else by `for_people`. If that is empty, it prints a sheet.
int print(const Client& client, const model::Result<nlohmann::json>& answer,
          const ForPeople& for_people);

// `--project`: the project in which names are looked up. It can also be sent as `projectId`.
[[nodiscard]] Option scope_option();
[[nodiscard]] Option project_option();
[[nodiscard]] Option limit_option(int preset, std::int64_t most = 100);
[[nodiscard]] Option after_option();         // for `pages`
[[nodiscard]] Option number_after_option();  // of lists whose `next` is a number
// `--preview`, sent as `dryRun=true`.
[[nodiscard]] Option preview_option();

// The checks of `--at`, `--in`, `--cron` and `--timezone`. `check_new_time`: one of them is needed.
[[nodiscard]] std::string check_times(const Values& values);
[[nodiscard]] std::string check_new_time(const Values& values);
[[nodiscard]] bool has_time(const Values& values);
// The check of an option that takes a duration.
[[nodiscard]] std::string check_duration(const std::string& text);

// `--idempotency-key`, which is sent as a header. Without it the command sends a random key.
[[nodiscard]] Option key_option();

// Adds `--at`, `--in`, `--cron` and `--timezone`, for the body.
[[nodiscard]] std::vector<Option> with_times(std::vector<Option> options);

// The field by `cell_of`. A missing field is a BadAnswer.
inline Cell usual_cell(const Fields& item, const char* field) {
  return cell_of(field, item.any(field));
}
// The same for a field that has to be a time or null.
inline Cell time_cell(const Fields& item, const char* field) {
  return Cell::at(item.time(field));
}

// The first of the reasons in `waits`, and the time that it tells.
[[nodiscard]] Cell reason_cell(const Fields& item, const char* field);
[[nodiscard]] Cell expected_cell(const Fields& item, const char* field);
// `--reason`, which lists filter by.
[[nodiscard]] Option reason_option(model::Listed list);

// A column of a table of the answer's `items`.
struct Column {
  const char* header;
  const char* field;
  Cell (*cell)(const Fields& item, const char* field);
};
inline Column column(const char* header, const char* field,
                     decltype(Column::cell) cell = usual_cell) {
  return {header, field, cell};
}

[[nodiscard]] Table table_of(const std::vector<Column>& columns, const std::vector<Fields>& items);
// Prints the answer's `items`, or `if_empty` if there are none. Notes how to read the next page.
[[nodiscard]] Show rows(std::vector<Column> columns, std::string if_empty);

// Replaces `{ID}` by an option's value, and `{name}` by a text or number of the answer.
[[nodiscard]] std::string filled(std::string_view text, const Fields& answer, const Values& values);
// Prints the lines, filled.
[[nodiscard]] Show says(std::vector<std::string> lines);

// Up to `limit` items of the list at `path`, behind `after` (empty: from the beginning), as
// `{"items", "next"}`. Reads several pages if necessary, since a page may be short.
[[nodiscard]] model::Result<nlohmann::json> fetch_pages(Client& client, const std::string& path,
                                                        std::size_t limit,
                                                        const std::string& after = {});

}  // namespace conversed::ctl
