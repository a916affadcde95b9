#include "daemon/ctl/command.h"

#include <algorithm>
#include <utility>

#include "daemon/ctl/names.h"
#include "daemon/ctl/output/sheet.h"
#include "daemon/ctl/output/watch.h"
#include "store/model/ids.h"
#include "store/model/reason.h"
#include "store/text/quantity.h"

namespace conversed::ctl {
namespace {

using Kind = Option::Kind;
using model::fail;
using model::Result;
using nlohmann::json;

constexpr std::string_view key_name = "--idempotency-key";

// Replaces each `{name}`.
template <typename ValueOf>
std::string replaced(std::string_view text, ValueOf value_of) {
  std::string out;
  for (auto open = text.find('{'); open != std::string_view::npos; open = text.find('{')) {
    const auto close = text.find('}', open);
    out += text.substr(0, open);
    out += value_of(std::string(text.substr(open + 1, close - open - 1)));
    text.remove_prefix(close + 1);
  }
  return out += text;
}

// `text`: of the option, or the id that was found for it.
json body_field(const Option& option, const std::string& text, const Values& values) {
  if (option.kind == Kind::flag) return values.flag(option.name);
  if (option.kind == Kind::number) return std::stoll(text);
  if (option.kind == Kind::text) return text;
  auto list = values.lists.at(option.name);
  std::erase(list, "");  // an empty text stands for no entry
  return list;
}

// Adds an option to the query and the body of a request.
void add_option(const Command& command, const Option& option, const std::string& text,
                const Values& values, Request& request) {
  const bool of_pages = command.pages && option.name == "--limit";
  if (!option.query.empty() && !of_pages && !text.empty()) {
    request.query += (request.query.empty() ? "" : "&") + option.query + '=' + encode(text);
  }
  if (option.field.empty()) return;
  if (request.body.is_null()) request.body = json::object();
  if (option.kind >= Kind::flag || !text.empty()) {
    request.body[option.field] = body_field(option, text, values);
  }
}

Result<Request> request_of(Client& client, const Command& command, const Values& values) {
  const auto blank = command.request.find(' ');
  Request request{command.request.substr(0, blank), {}, {}, command.body};
  std::map<std::string, std::string> ids;
  for (const Option& option : command.options) {
    std::string text =
        option.kind == Kind::flag && values.flag(option.name) ? "true" : values.text(option.name);
    const bool is_sent = !option.query.empty() || !option.field.empty() ||
                         command.request.find("{" + option.name + "}") != std::string::npos;
    if (option.find != nullptr && is_sent && !text.empty()) {
      auto id = option.find(client, values, text);
      if (!id) return fail(id.error());
      text = std::move(*id);
    }
    add_option(command, option, text, values, request);
    ids[option.name] = std::move(text);
  }
  request.path = replaced(std::string_view(command.request).substr(blank + 1),
                          [&](const std::string& name) { return encode(ids[name]); });
  if (command.prepare) {
    if (auto ready = command.prepare(values, request); !ready) return fail(ready.error());
  }
  return request;
}

// The Idempotency-Key. Empty: the command sends none.
std::string key_of(const Command& command, const Values& values) {
  if (std::ranges::find(command.options, key_name, &Option::name) == command.options.end()) {
    return {};
  }
  const auto& given = values.text(std::string(key_name));
  return given.empty() ? model::new_id() : given;
}

Result<json> answer_of(Client& client, const Command& command, const Values& values) {
  auto request = request_of(client, command, values);
  if (!request) return fail(request.error());
  const std::string path = request->path + (request->query.empty() ? "" : "?" + request->query);
  if (!command.pages) {
    const auto key = key_of(command, values);
    auto answer = client.manage(request->method, path, request->body, command.wait, key);
    if (answer || !client.is_outcome_unknown()) return answer;
    // The daemon, or a proxy in front of it, may have failed after the change was made.
    return fail(answer.error().code,
                answer.error().message +
                    (key.empty() ? ". Look whether it was done before you repeat the command"
                                 : ". Repeat the command with --idempotency-key " + key +
                                       ": it has its effect once"));
  }
  return fetch_pages(client, path, std::stoul(values.text("--limit")), values.text("--after"));
}

}  // namespace

const std::string& Values::text(const std::string& name) const {
  static const std::string none;
  const auto found = texts.find(name);
  return found == texts.end() ? none : found->second;
}

std::string not_empty(const std::string& text) {
  return text.empty() ? "the text is empty" : "";
}

namespace {

int run_once(Client& client, const Command& command, const Values& values) {
  if (command.needs_password) client.need_password();
  if (command.run) return command.run(client, values);
  const auto answer = answer_of(client, command, values);
  if (!command.show) return print(client, answer, {});
  const int code =
      print(client, answer, [&](const Fields& fields) { command.show(fields, values); });
  // A dry run that finds usages: the real run would be refused.
  const bool is_refused = code == 0 && answer->contains("usages") && !answer->at("usages").empty();
  return is_refused ? 1 : code;
}

}  // namespace

int run(Client& client, const Command& command, const Values& values) {
  const auto& pause = values.text(watch_option);
  if (pause.empty()) return run_once(client, command, values);
  return watch(std::chrono::seconds(std::stoul(pause)), client.options().json ? "" : "\n",
               [&] { return run_once(client, command, values); });
}

int print(const Client& client, const Result<json>& answer, const ForPeople& for_people) {
  if (!answer) return failed(answer.error());
  const json& body = answer->is_null() ? json::object() : *answer;
  if (client.options().json) return say_json(body);
  const Fields fields(body);
  if (for_people) {
    for_people(fields);
  } else {
    print_sheet(body);
  }
  return 0;
}

Option scope_option() {
  return Option{"--project", "Name or id of the project; not needed if there is only one"}
      .found_by(find_project)
      .from("CONVERSECTL_PROJECT");
}

Option project_option() {
  return scope_option().in_query("projectId");
}

Cell reason_cell(const Fields& item, const char* field) {
  if (item.any(field).is_null() || item.objects(field).empty()) return cell_of(field, nullptr);
  return item.objects(field).front().text("reason");
}

Cell expected_cell(const Fields& item, const char* field) {
  if (item.any(field).is_null() || item.objects(field).empty()) return cell_of(field, nullptr);
  return time_cell(item.objects(field).front(), "expectedAt");
}

Option reason_option(model::Listed list) {
  std::vector<std::string> names;
  for (const auto reason : model::reasons_of(list)) names.emplace_back(model::info_of(reason).name);
  return Option{"--reason", "Only those that wait for this reason"}.in_query("reason").one_of(
      std::move(names));
}

Option limit_option(int preset, std::int64_t most) {
  return Option{"--limit", "Number of entries to list", Kind::number}
      .in_query("limit")
      .with_preset(std::to_string(preset))
      .at_most(most);
}

Option after_option() {
  return {"--after", "Begin after this entry: the `next` of the previous page"};
}

Option number_after_option() {
  return with(after_option(), &Option::kind, Kind::number);
}

Option preview_option() {
  return Option{"--preview", "Only show the next ten times", Kind::flag}.in_query("dryRun");
}

bool has_time(const Values& values) {
  return !values.text("--at").empty() || !values.text("--in").empty() ||
         !values.text("--cron").empty();
}

std::string check_times(const Values& values) {
  const bool has_zone_of = !values.text("--at").empty() || !values.text("--cron").empty();
  if (!values.text("--timezone").empty() && !has_zone_of) return "--timezone needs --at or --cron";
  return {};
}

std::string check_new_time(const Values& values) {
  return has_time(values) ? check_times(values) : "name the time by --at, --in or --cron";
}

std::string check_duration(const std::string& text) {
  return text::parse_duration(text) ? "" : "write a duration such as 20m, 2h or 3d";
}

Option key_option() {
  const auto check = [](const std::string& text) -> std::string {
    constexpr std::size_t longest = 255;
    const bool is_printable =
        std::ranges::all_of(text, [](char c) { return c >= 0x20 && c <= 0x7E; });
    const bool is_key = is_printable && !text.empty() && text.size() <= longest;
    return is_key ? "" : "give 1 to 255 printable characters of ASCII";
  };
  return Option{std::string(key_name),
                "A repeat with the same key and options has no further effect, for 24 hours; "
                "default: a random key"}
      .checked_by(check);
}

std::vector<Option> with_times(std::vector<Option> options) {
  const auto add = [&](const char* field, const char* help, Option::Among among) {
    options.push_back(
        Option{std::string("--") + field, help}.in_field(field).grouped(among).checked_by(
            not_empty));
  };
  constexpr auto one = Option::Among::at_most_one;
  add("at", "At this time, such as 2027-03-28T14:30, in --timezone", one);
  add("in", "After this time, such as 20m", one);
  options.back().check = check_duration;
  add("cron", "Repeatedly, such as \"0 9 * * mon-fri\"", one);
  add("timezone", "Time zone of --at and --cron, such as Europe/Berlin; default: UTC", {});
  return options;
}

Table table_of(const std::vector<Column>& columns, const std::vector<Fields>& items) {
  std::vector<std::string> headers;
  headers.reserve(columns.size());
  for (const Column& column : columns) headers.emplace_back(column.header);
  Table table(headers);
  for (const Fields& item : items) {
    std::vector<Cell> row;
    row.reserve(columns.size());
    for (const Column& column : columns) row.push_back(column.cell(item, column.field));
    table.add(std::move(row));
  }
  return table;
}

Show rows(std::vector<Column> columns, std::string if_empty) {
  return [columns = std::move(columns), if_empty = std::move(if_empty)](const Fields& page,
                                                                        const Values& values) {
    table_of(columns, page.items()).print(if_empty);
    for (const char* cursor : {"next", "nextCursor"}) {
      if (page.has(cursor))
        note(filled("more with --after {" + std::string(cursor) + '}', page, values));
    }
  };
}

std::string filled(std::string_view text, const Fields& answer, const Values& values) {
  return replaced(text, [&](const std::string& name) {
    if (values.texts.contains(name)) return values.text(name);
    const json& field = answer.any(name.c_str());
    return field.is_number() ? std::to_string(answer.number(name.c_str()))
                             : answer.text(name.c_str());
  });
}

Show says(std::vector<std::string> lines) {
  return [lines = std::move(lines)](const Fields& answer, const Values& values) {
    for (const std::string& line : lines) say(filled(line, answer, values));
  };
}

Result<nlohmann::json> fetch_pages(Client& client, const std::string& path, std::size_t limit,
                                   const std::string& after) {
  constexpr std::size_t most_a_page = 100;
  auto items = nlohmann::json::array();
  nlohmann::json next = after;
  const char* const first = path.find('?') == std::string::npos ? "?" : "&";
  do {
    std::string query = "limit=" + std::to_string(std::min(limit - items.size(), most_a_page));
    const auto from = next.is_string() ? next.get<std::string>() : next.dump();
    if (!from.empty()) query += "&after=" + encode(from);
    auto page = client.manage("GET", path + first + query);
    if (!page) return fail(page.error());
    const Fields fields(*page);
    for (const auto& item : fields.any("items")) items.push_back(item);
    next = fields.has("next") ? fields.any("next") : nlohmann::json();
  } while (items.size() < limit && !next.is_null());
  return nlohmann::json{{"items", std::move(items)}, {"next", std::move(next)}};
}

}  // namespace conversed::ctl
