#include "flows/fields.h"

#include <algorithm>
#include <utility>

#include "store/text/ascii.h"
#include "store/text/joined.h"
#include "store/text/quantity.h"
#include "store/text/utf8.h"

namespace conversed::flows {

std::string to_string(const Problem& problem) {
  std::string line = problem.file;
  if (problem.place.line != 0) {
    if (!line.empty()) line += ':';
    line += std::to_string(problem.place.line) + ':' + std::to_string(problem.place.column);
  }
  if (!line.empty()) line += ": ";
  if (!problem.path.empty()) line += problem.path + ": ";
  return line + problem.message;
}

std::string to_string(const Problems& problems) {
  std::string lines;
  for (const auto& problem : problems) {
    if (!lines.empty()) lines += '\n';
    lines += to_string(problem);
  }
  return lines;
}

void Report::add(Place place, std::string path, std::string message) {
  if (problems_.size() >= max_problems_) {
    ++omitted_;
    return;
  }
  problems_.push_back({file_, place, std::move(path), std::move(message)});
}

Problems Report::take() {
  // References are checked last, but people read a file from its top.
  std::stable_sort(problems_.begin(), problems_.end(), [](const Problem& a, const Problem& b) {
    return std::pair(a.place.line, a.place.column) < std::pair(b.place.line, b.place.column);
  });
  if (omitted_ > 0) {
    problems_.push_back({file_, {}, "", "and " + std::to_string(omitted_) + " more problems"});
    omitted_ = 0;
  }
  return std::move(problems_);
}

View View::item(std::size_t index) const {
  return {value_->items()[index], *this, nullptr, index};
}

View View::member(const Located::Member& member) const {
  return {member.value, *this, &member.name, 0};
}

std::vector<View> View::items() const {
  std::vector<View> views;
  for (std::size_t i = 0; i < value_->items().size(); ++i) views.push_back(item(i));
  return views;
}

std::optional<View> View::find(std::string_view name) const {
  for (const auto& each : value_->members()) {
    if (each.name == name && !each.value.is_null()) return member(each);
  }
  return std::nullopt;
}

bool View::expect_list(std::string_view what) const {
  if (value_->is_array()) return true;
  problem("expected " + std::string(what) + ", not " + std::string(value_->kind_name()));
  return false;
}

bool View::expect_mapping() const {
  if (value_->is_object()) return true;
  problem("expected a mapping, not " + std::string(value_->kind_name()));
  return false;
}

std::string View::path() const {
  if (parent_ == nullptr) return {};
  std::string path = parent_->path();
  if (name_ == nullptr) return path + '[' + std::to_string(index_) + ']';
  if (!is_word(*name_, "_-$")) return path + "[\"" + *name_ + "\"]";
  if (!path.empty()) path += '.';
  return path + *name_;
}

std::optional<std::string> View::text() const {
  if (value_->is_text()) return value_->text();
  std::string hint;
  if (value_->is_scalar() && !value_->is_null()) hint = "; put it in quotes";
  problem("expected a text, not " + std::string(value_->kind_name()) + hint);
  return std::nullopt;
}

std::optional<bool> View::flag() const {
  if (value_->scalar().is_boolean()) return value_->scalar().get<bool>();
  problem("expected true or false, not " + std::string(value_->kind_name()));
  return std::nullopt;
}

std::optional<std::int64_t> View::integer(std::int64_t least, std::int64_t most) const {
  const auto& scalar = value_->scalar();
  if (scalar.is_number_integer()) {
    const bool huge = scalar.is_number_unsigned() &&
                      scalar.get<std::uint64_t>() > static_cast<std::uint64_t>(most);
    const auto number = huge ? most : scalar.get<std::int64_t>();
    if (!huge && number >= least && number <= most) return number;
  }
  problem("expected a whole number from " + std::to_string(least) + " to " + std::to_string(most));
  return std::nullopt;
}

std::optional<std::chrono::milliseconds> View::duration(std::chrono::milliseconds least,
                                                        std::chrono::milliseconds most) const {
  const auto parsed = value_->is_text() ? text::parse_duration(value_->text()) : std::nullopt;
  if (!parsed) {
    problem("expected a duration such as 500ms, 10s, 5m, 2h or 3d");
    return std::nullopt;
  }
  if (*parsed < least) {
    problem("the duration is too short; at least " + std::to_string(least.count()) + "ms");
    return std::nullopt;
  }
  if (*parsed > most) {
    problem("the duration is too long; at most " + std::to_string(most.count() / 1000) + "s");
    return std::nullopt;
  }
  return parsed;
}

std::optional<std::string> View::name() const {
  auto read = text();
  if (!read) return std::nullopt;
  if (read->empty()) {
    problem("the name is empty; write one");
  } else if (text::count_characters(*read) > max_name_characters) {
    problem("a name has at most " + std::to_string(max_name_characters) + " characters");
  } else if (text::has_control(*read) || read->front() == ' ' || read->back() == ' ') {
    problem("a name has no control characters, and no blanks at its ends; remove them");
  } else {
    return read;
  }
  return std::nullopt;
}

std::optional<std::string> View::one_of(std::span<const std::string_view> choices) const {
  auto read = text();
  if (!read) return std::nullopt;
  if (std::find(choices.begin(), choices.end(), *read) != choices.end()) return read;
  problem("unknown value '" + *read + "'" + did_you_mean(*read, choices) + "; known are " +
          text::joined(choices));
  return std::nullopt;
}

std::vector<std::string> View::unique(const Read& read) const {
  std::vector<std::string> list;
  if (!expect_list()) return list;
  Names seen;
  for (const View& item : items()) {
    auto text = read(item);
    if (!text) continue;
    if (seen.insert(*text).second) {
      list.push_back(std::move(*text));
    } else {
      item.problem("'" + *text + "' is in the list twice; remove one");
    }
  }
  return list;
}

void expect_keys(const View& view, std::span<const std::string_view> known) {
  if (!view.expect_mapping()) return;
  for (const auto& member : view.value().members()) {
    if (std::find(known.begin(), known.end(), member.name) != known.end()) continue;
    view.report().add(member.place, view.member(member).path(),
                      "unknown key '" + member.name + "'" + known_keys(member, known));
  }
}

Fields::Fields(const View& view, std::span<const Key> keys) : view_(view), keys_(keys) {
  std::vector<std::string_view> known;
  for (const Key& each : keys) known.push_back(each.name);
  expect_keys(view, known);
  if (!view.value().is_object()) return;
  for (const Key& each : keys) {
    if (each.is_required && !find(each.name)) {
      view.problem("'" + std::string(each.name) + "' is missing");
    }
  }
}

const Key& Fields::key(std::string_view name) const {
  return *std::ranges::find(keys_, name, &Key::name);
}

std::string Fields::name(std::string_view field) const {
  const auto found = find(field);
  return found ? found->name().value_or("") : "";
}

std::string Fields::text(std::string_view field) const {
  const auto found = find(field);
  if (!found) return {};
  auto read = found->text();
  if (read && read->empty()) found->problem("the text is empty; write one");
  return read.value_or("");
}

std::string Fields::optional_text(std::string_view field) const {
  const auto found = find(field);
  return found ? found->text().value_or("") : "";
}

std::string Fields::one_of(std::string_view field) const {
  const auto found = find(field);
  if (!found) return std::string(key(field).default_word);
  return found->one_of(key(field).choices).value_or("");
}

std::optional<std::int64_t> Fields::integer(std::string_view field) const {
  const auto found = find(field);
  return found ? found->integer(key(field).least, key(field).most) : key(field).default_number;
}

std::optional<std::chrono::milliseconds> Fields::duration(std::string_view field) const {
  using std::chrono::milliseconds;
  const auto found = find(field);
  const Key& facts = key(field);
  if (found) return found->duration(milliseconds(facts.least), milliseconds(facts.most));
  return facts.default_number ? std::optional(milliseconds(*facts.default_number)) : std::nullopt;
}

bool Fields::flag(std::string_view field) const {
  const bool otherwise = key(field).default_number.value_or(0) != 0;
  const auto found = find(field);
  return found ? found->flag().value_or(otherwise) : otherwise;
}

void Fields::each(std::string_view field, const std::function<void(const View&)>& read) const {
  const auto found = find(field);
  if (!found || !found->expect_list()) return;
  for (const View& item : found->items()) read(item);
}

std::vector<std::string> Fields::names(std::string_view field) const {
  const auto found = find(field);
  return found ? found->names() : std::vector<std::string>();
}

bool is_word(std::string_view text, std::string_view others) {
  return !text.empty() && text::consists_of(text, others);
}

}  // namespace conversed::flows
