#include "daemon/ctl/command.h"

#include <utility>

#include "daemon/ctl/lookup.h"

namespace conversed::ctl {
namespace {

using Kind = Option::Kind;
using model::fail;
using model::Result;
using nlohmann::json;

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

json body_field(const Option& option, const Values& values) {
  switch (option.kind) {
    case Kind::flag:
      return values.flag(option.name);
    case Kind::number:
      return std::stoll(values.text(option.name));
    case Kind::text:
      return values.text(option.name);
    case Kind::commas:
    case Kind::repeated:
    case Kind::several:
      break;
  }
  auto list = values.lists.at(option.name);
  std::erase(list, "");  // an empty text stands for no entry
  return list;
}

Result<Request> request_of(Client& client, const Command& command, const Values& values) {
  const auto blank = command.request.find(' ');
  Request request{command.request.substr(0, blank), {}, {}, command.body};
  std::map<std::string, std::string> ids;
  std::vector<std::pair<const char*, std::string>> query;
  for (const Option& option : command.options) {
    std::string text =
        option.kind == Kind::flag && values.flag(option.name) ? "true" : values.text(option.name);
    if (option.find != nullptr && !text.empty()) {
      auto id = option.find(client, values, text);
      if (!id) return fail(id.error());
      text = std::move(*id);
    }
    ids[option.name] = text;
    const bool of_pages = command.pages && option.name == "--limit";
    if (!option.query.empty() && !of_pages) query.emplace_back(option.query.c_str(), text);
    if (option.field.empty()) continue;
    if (request.body.is_null()) request.body = json::object();
    if (option.kind >= Kind::flag || !text.empty()) {
      request.body[option.field] = body_field(option, values);
    }
  }
  request.path = replaced(std::string_view(command.request).substr(blank + 1),
                          [&](const std::string& name) { return encode(ids[name]); });
  request.query = parameters(query);
  if (command.prepare) {
    if (auto ready = command.prepare(values, request); !ready) return fail(ready.error());
  }
  return request;
}

Result<json> answer_of(Client& client, const Command& command, const Values& values) {
  auto request = request_of(client, command, values);
  if (!request) return fail(request.error());
  const std::string path = request->path + (request->query.empty() ? "" : "?" + request->query);
  if (!command.pages) return client.manage(request->method, path, request->body, command.wait);
  return fetch_pages(client, path, std::stoul(values.text("--limit")), values.text("--after"));
}

}  // namespace

const std::string& Values::text(const std::string& name) const {
  static const std::string none;
  const auto found = texts.find(name);
  return found == texts.end() ? none : found->second;
}

int run(Client& client, const Command& command, const Values& values) {
  if (command.run) return command.run(client, values);
  const auto answer = answer_of(client, command, values);
  if (!command.show) return print(client, answer, {});
  return print(client, answer, [&](const Fields& fields) { command.show(fields, values); });
}

Option scope_option() {
  return {"--project", "Name or id of the project; not needed if there is only one"};
}

Option project_option() {
  return scope_option().in_query("projectId").found_by(find_project);
}

Option limit_option(int preset, std::int64_t most) {
  return Option{"--limit", "Number of entries to list", Kind::number}
      .in_query("limit")
      .with_preset(std::to_string(preset))
      .at_most(most);
}

Option after_option() {
  return {"--after", "Begin behind this one, the `next` of the page before"};
}

Option preview_option() {
  return Option{"--preview", "Only show the next ten times", Kind::flag}.in_query("dryRun");
}

std::vector<Option> with_times(std::vector<Option> options) {
  constexpr auto one = Option::Among::at_most_one;
  options.push_back(
      Option{"--at", "At a time, such as 2027-03-28T14:30, by --timezone"}.in_field("at").grouped(
          one));
  options.push_back(Option{"--in", "After a while, such as 20m"}.in_field("in").grouped(one));
  options.push_back(
      Option{"--cron", "Repeatedly, such as \"0 9 * * mon-fri\""}.in_field("cron").grouped(one));
  options.push_back(
      Option{"--timezone", "Time zone of --at and --cron, such as Europe/Berlin; default: UTC"}
          .in_field("timezone"));
  return options;
}

Table table_of(const std::vector<Column>& columns, const std::vector<Fields>& items) {
  std::vector<std::string> headers;
  for (const Column& column : columns) headers.emplace_back(column.header);
  Table table(std::move(headers));
  for (const Fields& item : items) {
    std::vector<Cell> row;
    for (const Column& column : columns) row.push_back(column.cell(item, column.field));
    table.add(std::move(row));
  }
  return table;
}

Show rows(std::vector<Column> columns, std::string if_empty) {
  return [columns = std::move(columns), if_empty = std::move(if_empty)](const Fields& page,
                                                                        const Values& values) {
    table_of(columns, page.items()).print(if_empty);
    if (values.texts.contains("--after") && page.has("next")) {
      say("more with --after " + page.text("next"));
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

}  // namespace conversed::ctl
