#include "store/model/json.h"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace conversed::model {
namespace {

using nlohmann::json;

// Builds the value while it counts depth and looks for duplicate names. Depth has to be checked
// here, before the value exists: nlohmann's own destructor and parser would overflow the stack on
// deep input.
class Builder final : public json::json_sax_t {
 public:
  explicit Builder(std::size_t max_depth) : max_depth_(max_depth) {}

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(json::object()); }
  bool start_array(std::size_t) override { return open(json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    auto [place, inserted] =
        open_.back()->get_ref<json::object_t&>().emplace(std::move(name), nullptr);
    if (!inserted) {
      problem_ = "the name \"" + place->first + "\" stands twice in one object";
      return false;
    }
    member_ = &place->second;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const json::exception& error) override {
    // 406: a number beyond a double's range (nlohmann reports it as out_of_range).
    problem_ = error.id == 406 ? "a number is out of range"
                               : "no valid JSON at byte " + std::to_string(position);
    return false;
  }

  [[nodiscard]] const std::string& problem() const { return problem_; }
  [[nodiscard]] json take() { return std::move(root_); }

 private:
  // Where the next value goes: a member whose name was read, the end of an array, or the root.
  json* place(json&& value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    if (open_.back()->is_array()) {
      open_.back()->push_back(std::move(value));
      return &open_.back()->back();
    }
    *member_ = std::move(value);
    return member_;
  }

  template <typename T>
  bool add(T&& value) {
    if (open_.empty() && max_depth_ == 0) return too_deep();
    place(json(std::forward<T>(value)));
    return true;
  }

  bool open(json container) {
    if (open_.size() >= max_depth_) return too_deep();
    open_.push_back(place(std::move(container)));
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  bool too_deep() {
    problem_ = "nested deeper than " + std::to_string(max_depth_);
    return false;
  }

  const std::size_t max_depth_;
  json root_;
  std::vector<json*>
      open_;  // the containers that are being filled, outermost first; each is its parent's last
  json* member_ = nullptr;
  std::string problem_;
};

}  // namespace

Result<json> parse_json(std::string_view text, std::size_t max_depth) {
  Builder builder(max_depth);
  if (!json::sax_parse(text.begin(), text.end(), &builder)) {
    return fail(Errc::invalid_argument,
                builder.problem().empty() ? std::string("no valid JSON") : builder.problem());
  }
  return builder.take();
}

}  // namespace conversed::model
