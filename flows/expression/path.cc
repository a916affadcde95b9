#include "flows/expression/path.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "flows/expression/lexer.h"
#include "flows/expression/number.h"
#include "flows/expression/parser.h"
#include "flows/expression/text.h"
#include "flows/expression/value.h"

namespace conversed::flows::expression {

using model::Errc;
using model::Result;
using nlohmann::json;

namespace {

tl::unexpected<model::Error> fail_at(std::size_t byte, std::string_view problem) {
  return model::fail(Errc::invalid_argument, at_column(byte, problem));
}

bool is_mark(const Token& token, std::string_view mark) {
  return token.kind == Token::Kind::punctuator && token.text == mark;
}

// The token continues no path: `-` in `context.order-id`.
tl::unexpected<model::Error> no_step(const Token& token) {
  const auto& what = token.text;
  const std::string part = token.kind == Token::Kind::name || what.empty()
                               ? "a blank or another character"
                               : "'" + std::string(what) + "'";
  return fail_at(token.begin, part +
                                  " is no part of a name; a name has letters, digits and _. "
                                  "Write another name between [\" and \"]");
}

// An index or a quoted name, between brackets.
Result<Path::Step> bracketed(const Token& token) {
  if (token.kind == Token::Kind::string) return Path::Step{.name = scrub(token.cooked)};
  const auto index = token.kind == Token::Kind::number ? array_index(token.text) : std::nullopt;
  if (!index) return fail_at(token.begin, "expected an index or a quoted name");
  if (*index >= Path::max_array_items) {
    return fail_at(token.begin,
                   "an index can be at most " + std::to_string(Path::max_array_items - 1));
  }
  return Path::Step{.name = std::string(token.text), .index = index};
}

}  // namespace

Result<Path> Path::compile(std::string_view source) {
  if (source.size() > max_source_bytes) return model::fail(Errc::too_large, "too long a path");
  if (!is_utf8(source)) return model::fail(Errc::invalid_argument, "the path is not UTF-8");
  Path path;
  path.text_ = trim(source);
  Lexer lexer(source, 0);
  Token token = lexer.next();
  if (token.text != "context" && token.text != "profile") {
    return fail_at(token.begin, "a place to store to begins with 'context.' or 'profile.'");
  }
  path.root_ = token.text == "context" ? Root::context : Root::profile;
  for (token = lexer.next(); token.kind != Token::Kind::end; token = lexer.next()) {
    if (path.steps_.size() == max_steps) return model::fail(Errc::too_large, "too long a path");
    Step step;
    if (is_mark(token, ".")) {
      token = lexer.next();
      if (token.kind != Token::Kind::name) return fail_at(token.begin, "expected a name after '.'");
      step.name = token.text;
    } else if (is_mark(token, "[")) {
      token = lexer.next();
      auto inside = bracketed(token);
      if (!inside) return model::fail(inside.error());
      step = std::move(*inside);
      token = lexer.next();
      if (!is_mark(token, "]")) return fail_at(token.begin, "expected ']'");
    } else {
      return no_step(token);
    }
    path.steps_.push_back(std::move(step));
  }
  if (path.steps_.empty()) return fail_at(token.begin, "expected '.' and a name");
  return path;
}

// Whether assign can reach the place.
Result<void> Path::check(const json& root) const {
  const json* at = &root;
  for (const Step& step : steps_) {
    if (at->is_null()) return {};
    if (at->is_array() && !step.index) {
      return model::fail(Errc::invalid_argument,
                         text_ + ": can't set '" + step.name + "' of an array");
    }
    if (!at->is_structured()) {
      return model::fail(Errc::invalid_argument,
                         text_ + ": can't set '" + step.name + "' of a " + at->type_name());
    }
    if (at->is_array()) {
      if (*step.index >= at->size()) return {};
      at = &(*at)[*step.index];
    } else {
      const auto found = at->find(step.name);
      if (found == at->end()) return {};
      at = &*found;
    }
  }
  return {};
}

Result<void> Path::assign(json& root, json value) const {
  if (auto possible = check(root); !possible) return possible;
  json* at = &root;
  for (const Step& step : steps_) {
    if (at->is_null()) *at = step.index ? json::array() : json::object();
    at = at->is_array() ? &(*at)[*step.index] : &(*at)[step.name];
  }
  *at = std::move(value);
  return {};
}

const json* Path::find(const json& root) const {
  const json* at = &root;
  for (const Step& step : steps_) {
    if (at->is_array() && step.index && *step.index < at->size()) {
      at = &(*at)[*step.index];
    } else if (const auto found = at->find(step.name); at->is_object() && found != at->end()) {
      at = &*found;
    } else {
      return nullptr;
    }
  }
  return at;
}

bool Path::may_overlap(const Path& other) const {
  if (root_ != other.root_) return false;
  const auto both = std::min(steps_.size(), other.steps_.size());
  for (std::size_t i = 0; i < both; ++i) {
    if (steps_[i].index || other.steps_[i].index) return true;
    if (steps_[i].name != other.steps_[i].name) return false;
  }
  return true;
}

bool Path::erase(json& root) const {
  json* at = &root;
  for (std::size_t depth = 0; depth < steps_.size(); ++depth) {
    const Step& step = steps_[depth];
    const bool last = depth + 1 == steps_.size();
    if (at->is_array() && step.index && *step.index < at->size()) {
      if (last) {
        at->erase(*step.index);
        return true;
      }
      at = &(*at)[*step.index];
    } else if (at->is_object() && at->contains(step.name)) {
      if (last) return at->erase(step.name) == 1;
      at = &(*at)[step.name];
    } else {
      return false;
    }
  }
  return false;
}

}  // namespace conversed::flows::expression
