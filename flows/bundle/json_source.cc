// Reads JSON text into a Located value by nlohmann's SAX parser. The place of each token follows
// from the number of bytes that the parser has taken.
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "flows/bundle/loader.h"
#include "store/yaml/budget.h"
#include "store/yaml/reader.h"

namespace conversed::flows {
namespace {

using nlohmann::json;
using yaml::ReadBudget;

// Counts the bytes that the parser has taken. The parser reads at most one byte ahead.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, std::size_t* taken) : at_(at), taken_(taken) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    ++at_;
    ++*taken_;
    return *this;
  }
  CountingIterator operator++(int) {
    const CountingIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }

 private:
  const char* at_;
  std::size_t* taken_;  // shared by all copies
};

class Handler final : public json::json_sax_t {
 public:
  Handler(std::string_view text, std::string_view file, const LoadLimits& limits,
          const std::size_t& taken)
      : text_(text),
        file_(file),
        limits_(limits),
        budget_(text.size(), limits.max_memory),
        taken_(taken) {}

  bool null() override { return scalar(nullptr); }
  bool boolean(bool value) override { return scalar(value); }
  bool number_integer(number_integer_t value) override { return scalar(value); }
  bool number_unsigned(number_unsigned_t value) override { return scalar(value); }
  bool number_float(number_float_t value, const string_t&) override { return scalar(value); }
  bool string(string_t& value) override {
    const auto bytes = value.size();
    return scalar(std::move(value), bytes);
  }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(Located::object(token_place())); }
  bool start_array(std::size_t) override { return open(Located::array(token_place())); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    const Place place = token_place();
    if (!budget_.take_name(name.size())) return refuse(place, ReadBudget::refusal);
    auto& members = open_.back().value->members();
    if (!open_.back().names.insert(name).second) {
      return refuse(place, "the name \"" + name + "\" is in one object twice; remove one");
    }
    members.push_back({std::move(name), place, {}});
    return true;
  }

  bool parse_error(std::size_t, const std::string& token, const json::exception& error) override {
    const Place place = token_place();
    if (error.id == 406) return refuse(place, "the number is out of range");
    if (token.empty()) return refuse(place, "invalid JSON: the text ends too early");
    return refuse(place, "invalid JSON at or before this place");
  }

  [[nodiscard]] Problem take_problem() { return std::move(problem_); }
  [[nodiscard]] Located take() { return std::move(root_); }

 private:
  struct Open {
    Located* value;
    std::set<std::string, std::less<>> names;
  };

  // Only blanks, commas and colons stand between the last token and this one.
  Place token_place() {
    while (offset_ < text_.size() &&
           std::string_view(" \t\r\n,:").find(text_[offset_]) != std::string_view::npos) {
      step();
    }
    const Place place = place_;
    while (offset_ < taken_ && offset_ < text_.size()) step();
    return place;
  }

  void step() {
    const auto byte = static_cast<std::uint8_t>(text_[offset_++]);
    if (byte == '\n') {
      ++place_.line;
      place_.column = 1;
    } else if ((byte & 0xC0) != 0x80) {
      ++place_.column;
    }
  }

  // Puts the next value in its place: a member, the end of an array, or the root.
  Located* put(Located value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Located& parent = *open_.back().value;
    if (parent.is_array()) {
      parent.items().push_back(std::move(value));
      return &parent.items().back();
    }
    parent.members().back().value = std::move(value);
    return &parent.members().back().value;
  }

  template <typename T>
  bool scalar(T&& value, std::size_t text_bytes = 0) {
    const Place place = token_place();
    if (!budget_.take_value(text_bytes)) return refuse(place, ReadBudget::refusal);
    put(Located(json(std::forward<T>(value)), place));
    return true;
  }

  bool open(Located container) {
    const Place place = container.place();
    if (open_.size() >= limits_.max_depth) {
      return refuse(place, "nested deeper than " + std::to_string(limits_.max_depth));
    }
    if (!budget_.take_value()) return refuse(place, ReadBudget::refusal);
    open_.push_back({put(std::move(container)), {}});
    return true;
  }

  bool close() {
    token_place();
    open_.pop_back();
    return true;
  }

  bool refuse(Place place, std::string message) {
    problem_ = {std::string(file_), place, "", std::move(message)};
    return false;
  }

  const std::string_view text_;
  const std::string_view file_;
  const LoadLimits& limits_;
  ReadBudget budget_;
  const std::size_t& taken_;
  std::size_t offset_ = 0;  // the byte at `place_`
  Place place_{1, 1};
  Located root_;
  std::vector<Open> open_;  // outermost first; each is inside the one before
  Problem problem_;
};

}  // namespace

Checked<Located> read_json(std::string_view text, std::string_view file_name,
                           const LoadLimits& limits) {
  if (auto bad = yaml::bad_character(text)) {
    return tl::unexpected<Problems>(
        {{std::string(file_name), bad->place, "", std::move(bad->message)}});
  }
  std::size_t taken = 0;
  Handler handler(text, file_name, limits, taken);
  const CountingIterator first(text.data(), &taken);
  const CountingIterator last(text.data() + text.size(), &taken);
  if (!json::sax_parse(first, last, &handler)) {
    return tl::unexpected<Problems>({handler.take_problem()});
  }
  return handler.take();
}

}  // namespace conversed::flows
