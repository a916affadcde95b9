#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "flows/keys.h"
#include "flows/problem.h"
#include "store/text/joined.h"
#include "store/text/near.h"

// Reads a Located value field by field and collects all problems. One thread at a time.
namespace conversed::flows {

using Names = std::set<std::string, std::less<>>;

// The problems of one file.
class Report {
 public:
  explicit Report(std::string file, std::size_t max_problems = 200)
      : file_(std::move(file)), max_problems_(max_problems) {}

  void add(Place place, std::string path, std::string message);
  // Includes the problems that were not kept, because there were too many.
  [[nodiscard]] std::size_t size() const { return problems_.size() + omitted_; }
  [[nodiscard]] bool is_full() const { return problems_.size() >= max_problems_; }
  // The problems in the file's order. The last line says how many are not listed.
  [[nodiscard]] Problems take();

 private:
  std::string file_;
  std::size_t max_problems_;
  Problems problems_;
  std::size_t omitted_ = 0;
};

// A value with its path. Borrows its parent, its value and the report, which must outlive it.
class View {
 public:
  View(const Located& value, Report& report) : value_(&value), report_(&report) {}

  [[nodiscard]] const Located& value() const { return *value_; }
  [[nodiscard]] Report& report() const { return *report_; }
  [[nodiscard]] View item(std::size_t index) const;
  [[nodiscard]] View member(const Located::Member& member) const;
  [[nodiscard]] std::vector<View> items() const;
  // The member of that name. Nothing if it is missing or null.
  [[nodiscard]] std::optional<View> find(std::string_view name) const;
  // The path from the root of the file, such as `flows[0].nodes[3].then[0]`.
  [[nodiscard]] std::string path() const;
  void problem(std::string message) const {
    report_->add(value_->place(), path(), std::move(message));
  }

  // False, and a problem, if the value has another type.
  [[nodiscard]] bool expect_list(std::string_view what = "a list") const;
  [[nodiscard]] bool expect_mapping() const;

  // Each returns nothing and reports a problem if the value has another type.
  [[nodiscard]] std::optional<std::string> text() const;  // may be empty
  [[nodiscard]] std::optional<bool> flag() const;
  [[nodiscard]] std::optional<std::int64_t> integer(std::int64_t least, std::int64_t most) const;
  [[nodiscard]] std::optional<std::chrono::milliseconds> duration(
      std::chrono::milliseconds least, std::chrono::milliseconds most) const;
  // A text of 1 to 200 characters without control characters or blanks at its ends.
  [[nodiscard]] std::optional<std::string> name() const;
  [[nodiscard]] std::optional<std::string> one_of(std::span<const std::string_view> choices) const;
  // A list of unique texts. `read` reads each item. Items with problems are left out.
  using Read = std::function<std::optional<std::string>(const View& item)>;
  [[nodiscard]] std::vector<std::string> unique(const Read& read) const;
  [[nodiscard]] std::vector<std::string> names() const { return unique(&View::name); }

 private:
  View(const Located& value, const View& parent, const std::string* name, std::size_t index)
      : value_(&value), report_(parent.report_), parent_(&parent), name_(name), index_(index) {}

  const Located* value_;
  Report* report_;
  const View* parent_ = nullptr;
  const std::string* name_ = nullptr;  // in the parent; null if the parent is a list
  std::size_t index_ = 0;
};

// Reports a value of another type than a mapping, and each of its keys that is not known.
void expect_keys(const View& view, std::span<const std::string_view> known);

// The fields of a mapping. A value of another type, an unknown key and a missing required one are
// reported at once.
class Fields {
 public:
  // `keys` must outlive this.
  Fields(const View& view, std::span<const Key> keys);

  [[nodiscard]] const View& view() const { return view_; }
  // Nothing if the field is missing or null.
  [[nodiscard]] std::optional<View> find(std::string_view name) const { return view_.find(name); }

  // If the field is missing, these return an empty value, or its default.
  [[nodiscard]] std::string name(std::string_view field) const;
  [[nodiscard]] std::string text(std::string_view field) const;  // not empty
  [[nodiscard]] std::string optional_text(std::string_view field) const;
  [[nodiscard]] std::string one_of(std::string_view field) const;
  [[nodiscard]] bool flag(std::string_view field) const;
  // Within the bounds of its key.
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view field) const;
  [[nodiscard]] std::optional<std::chrono::milliseconds> duration(std::string_view field) const;
  // Calls `read` for each element of the list, if any. Reports a value of another type.
  void each(std::string_view field, const std::function<void(const View&)>& read) const;
  [[nodiscard]] std::vector<std::string> names(std::string_view field) const;

 private:
  [[nodiscard]] const Key& key(std::string_view name) const;  // which must be in the table

  View view_;
  std::span<const Key> keys_;
};

// The end of `unknown key 'nodse'; did you mean 'nodes'?`. Empty if no known word is near.
template <typename Words>
[[nodiscard]] std::string did_you_mean(std::string_view word, const Words& known) {
  const auto nearest = text::nearest(word, known);
  return nearest.empty() ? std::string() : "; did you mean '" + std::string(nearest) + "'?";
}
// The same; without a near word it lists the known ones.
template <typename Words>
[[nodiscard]] std::string known_words(std::string_view word, const Words& known) {
  auto hint = did_you_mean(word, known);
  return hint.empty() ? "; known are " + text::joined(known) : hint;
}
// The end of the problem of an unknown key. `{say: Yes, that is right.}` has a key without a value.
template <typename Words>
[[nodiscard]] std::string known_keys(const Located::Member& unknown, const Words& known) {
  auto hint = did_you_mean(unknown.name, known);
  if (!hint.empty()) return hint;
  if (unknown.value.is_null()) hint = "; a text with ',' within { } stands in quotes";
  return known_words(unknown.name, known) + hint;
}
// Whether the text consists of one or more ASCII letters, ASCII digits, and characters of `others`.
[[nodiscard]] bool is_word(std::string_view text, std::string_view others);

}  // namespace conversed::flows
