#include "flows/expression/template.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "flows/expression/ast.h"
#include "flows/expression/json_text.h"
#include "flows/expression/library.h"
#include "flows/expression/machine.h"
#include "flows/expression/number.h"
#include "flows/expression/parser.h"
#include "flows/expression/text.h"
#include "flows/expression/turn_budget.h"

namespace conversed::flows::expression {

using model::Errc;
using model::Result;
using nlohmann::json;

namespace {

// Literal text and the braces after it.
struct Piece {
  std::string literal;
  std::string label;                       // as written, without blanks around it
  std::shared_ptr<const Program> program;  // null if it can only be a label
};

// Words, maybe with marks that join words.
bool looks_like_label(std::string_view text) {
  constexpr std::string_view marks = " -_.:/&'";
  char32_t last = 0;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = decode(text, at);
    const bool word = (continues_name(point.code) && point.code != '$') || point.code >= 0x80;
    const bool mark =
        point.code < 0x80 && marks.find(static_cast<char>(point.code)) != std::string_view::npos;
    if (!word && (!mark || at == 0)) return false;
    last = point.code;
    at += point.bytes;
  }
  return last == '_' || last >= 0x80 || continues_name(last);
}

// Literal text is copied regardless of the limits, because its author wrote it all. The Turn pays
// for it, so that a Turn that copies it again and again ends.
void pay_for_copy(const Scope& scope, std::size_t bytes) {
  if (scope.budget != nullptr) scope.budget->read(bytes);
}

const std::string* find_token(const Scope& scope, const std::string& label) {
  if (scope.tokens == nullptr) return nullptr;
  const auto found = scope.tokens->find(label);
  return found == scope.tokens->end() ? nullptr : &found->second;
}

void append_readable(Machine& machine, Value value, std::string& out) {
  if (value.is_composite()) value = stringify(machine, value, "");
  if (machine.failed() || value.is_nullish()) return;
  if (value.is_number()) {
    if (std::isfinite(value.as_number())) out += number_text(value.as_number());
    return;
  }
  if (!value.is_string()) {
    out += machine.to_text(value);
  } else if (machine.charge(value.as_string().size())) {
    out += scrub(value.as_string());
  }
}

void show(const Piece& piece, const Scope& scope, Machine& machine, json value) {
  if (scope.observer == nullptr) return;
  Result<json> result = std::move(value);
  if (machine.failed()) result = model::fail(machine.take_error());
  scope.observer->evaluated(piece.label, result);
}

// True if it was a token.
bool render_piece(const Piece& piece, const Scope& scope, Budget& budget, std::string& out) {
  if (const std::string* token = find_token(scope, piece.label)) {
    if (budget.step(1) && budget.charge(token->size())) out += *token;
    return true;
  }
  if (piece.program == nullptr) return false;
  Machine machine(*piece.program, scope, budget);
  const std::size_t begin = out.size();
  append_readable(machine, machine.run(), out);
  show(piece, scope, machine, out.substr(begin));
  return false;
}

bool reads_values(const Program& program) {
  return std::ranges::any_of(program.nodes,
                             [](const Node& node) { return node.kind == NodeKind::root; });
}

json piece_value(const Piece& piece, const Scope& scope, Budget& budget) {
  if (piece.program == nullptr || find_token(scope, piece.label) != nullptr) {
    std::string text;
    render_piece(piece, scope, budget, text);
    return text;
  }
  Machine machine(*piece.program, scope, budget);
  json copy;
  copy_to_json(machine, machine.run(), copy);
  if (machine.failed()) copy = nullptr;
  show(piece, scope, machine, copy);
  return copy;
}

void add_single_braces(std::string_view literal, Facts& facts) {
  for (auto open = literal.find('{'); open != std::string_view::npos;
       open = literal.find('{', open + 1)) {
    const auto close = literal.find_first_of("{}", open + 1);
    if (close == std::string_view::npos || facts.single_braces.size() >= Facts::most) return;
    const auto inside = trim(literal.substr(open + 1, close - open - 1));
    if (literal[close] == '}' && looks_like_label(inside)) facts.single_braces.emplace_back(inside);
  }
}

// Reads the braces that begin at `open`. `next` becomes the byte after them.
Result<Piece> compile_piece(std::string_view source, std::size_t open, const Limits& limits,
                            const IsLabel& is_label, std::size_t& next) {
  const std::size_t from = open + 2;
  const std::size_t close = source.find("}}", from);
  if (close == std::string_view::npos) {
    return model::fail(Errc::invalid_argument, at_column(open, "'{{' without '}}'"));
  }
  Piece piece;
  const std::string plain(trim(source.substr(from, close - from)));
  const bool known = is_label && is_label(plain);
  auto parsed = parse_until_braces(source, from, limits);
  if (parsed && parsed->end - from > limits.max_source_bytes) {
    parsed = model::fail(Errc::too_large, at_column(from, "too long an expression"));
  }
  if (!parsed && !known && !looks_like_label(plain)) return model::fail(std::move(parsed.error()));
  if (parsed && !(known && parsed->end != close)) {
    piece.label = trim(source.substr(from, parsed->end - from));
    piece.program = std::move(parsed->program);
    next = parsed->end + 2;
  } else {
    piece.label = plain;
    next = close + 2;
  }
  return piece;
}

}  // namespace

struct Template::Body {
  std::vector<Piece> pieces;
  std::string tail;  // literal text after the last piece
  std::size_t literal_bytes = 0;
  Limits limits;

  [[nodiscard]] std::string render(const Scope& scope, Budget& budget,
                                   std::vector<Span>* values = nullptr) const {
    pay_for_copy(scope, literal_bytes);
    std::string out;
    for (const Piece& piece : pieces) {
      out += piece.literal;
      const std::size_t begin = out.size();
      const bool is_token = render_piece(piece, scope, budget, out);
      if (values != nullptr && !is_token) values->push_back({begin, out.size()});
    }
    return out += tail;
  }

  [[nodiscard]] json value(const Scope& scope, Budget& budget) const {
    const bool is_one_expression = pieces.size() == 1 && pieces[0].literal.empty() && tail.empty();
    if (is_one_expression) return piece_value(pieces[0], scope, budget);
    return render(scope, budget);
  }
};

Template::Template() : body_(std::make_shared<const Body>()) {}

Result<Template> Template::compile(std::string_view source, const Limits& limits,
                                   const IsLabel& is_label) {
  if (!is_utf8(source)) return model::fail(Errc::invalid_argument, "the text is not UTF-8");
  auto body = std::make_shared<Body>();
  body->limits = limits;
  std::size_t at = 0;
  for (std::size_t open = source.find("{{"); open != std::string_view::npos;
       open = source.find("{{", at)) {
    std::size_t next = 0;
    auto piece = compile_piece(source, open, limits, is_label, next);
    if (!piece) return model::fail(std::move(piece.error()));
    piece->literal = source.substr(at, open - at);
    body->literal_bytes += piece->literal.size();
    body->pieces.push_back(std::move(*piece));
    at = next;
  }
  body->tail = source.substr(at);
  body->literal_bytes += body->tail.size();
  return Template(std::move(body));
}

std::string Template::render(const Scope& scope) const {
  Budget budget(body_->limits, scope);
  return body_->render(scope, budget);
}

std::string Template::render(const Scope& scope, std::vector<Span>& values) const {
  Budget budget(body_->limits, scope);
  return body_->render(scope, budget, &values);
}

json Template::value(const Scope& scope) const {
  Budget budget(body_->limits, scope);
  return body_->value(scope, budget);
}

bool Template::is_constant() const {
  return body_->pieces.empty();
}

Facts Template::facts() const {
  Facts facts;
  for (const auto& piece : body_->pieces) {
    add_single_braces(piece.literal, facts);
    if (piece.program != nullptr) {
      add_facts(*piece.program, piece.label, facts);
    } else if (facts.doubts.size() < Facts::most) {
      facts.doubts.push_back({piece.label, {piece.label}, {}});
    }
  }
  add_single_braces(body_->tail, facts);
  return facts;
}

std::vector<Template::Braces> Template::braces() const {
  std::vector<Braces> list;
  for (const Piece& piece : body_->pieces) {
    auto& braces = list.emplace_back();
    braces.before = piece.literal;
    if (piece.program == nullptr) continue;
    braces.reads_values = reads_values(*piece.program);
    const Node& root = piece.program->node(piece.program->root);
    braces.url_encoded = root.kind == NodeKind::call_function && root.function != nullptr &&
                         root.function->name == "encodeURIComponent";
  }
  return list;
}

namespace {

// The approximate bytes of a copy of the value. `Tree::make` has bounded its depth.
std::size_t memory_of(const json& value) {
  constexpr std::size_t per_value = 64;  // an allocation, or a node of a map
  if (value.is_string()) return per_value + value.get_ref<const std::string&>().size();
  std::size_t bytes = per_value;
  if (value.is_structured()) {
    for (const auto& item : value) bytes += memory_of(item);
  }
  return bytes;
}

}  // namespace

// A constant, a template, or the children of an array or object.
struct JsonTemplate::Tree {
  json constant;  // for a container, an empty one
  std::size_t constant_bytes = 0;
  std::optional<Template> text;
  std::vector<std::pair<std::string, std::shared_ptr<const Tree>>> children;

  [[nodiscard]] bool is_constant() const { return !text && children.empty(); }

  using Made = Result<std::shared_ptr<const Tree>>;

  static Made make(const json& source, const Limits& limits, const IsLabel& is_label,
                   const std::string& pointer, std::size_t depth) {
    if (depth > 64) return model::fail(Errc::too_large, pointer + ": nested too deeply");
    auto tree = std::make_shared<Tree>();
    if (source.is_string()) {
      auto compiled = Template::compile(source.get_ref<const std::string&>(), limits, is_label);
      if (!compiled) {
        const std::string place = pointer.empty() ? "" : pointer + ": ";
        return model::fail(compiled.error().code, place + compiled.error().message);
      }
      if (!compiled->is_constant()) tree->text = std::move(*compiled);
    }
    for (const auto& [key, item] : source.items()) {
      if (!source.is_structured()) break;
      Made child =
          make(item, limits, is_label, std::string(pointer).append("/").append(key), depth + 1);
      if (!child) return child;
      tree->children.emplace_back(key, std::move(*child));
    }
    const bool changes = tree->text || std::ranges::any_of(tree->children, [](const auto& child) {
                           return !child.second->is_constant();
                         });
    if (changes) {
      if (source.is_structured())
        tree->constant = source.is_array() ? json::array() : json::object();
    } else {
      tree->children.clear();
      tree->constant = source;
    }
    tree->constant_bytes = memory_of(tree->constant);
    return std::shared_ptr<const Tree>(std::move(tree));
  }

  [[nodiscard]] json value(const Scope& scope, Budget& budget) const {
    if (text) return text->body_->value(scope, budget);
    pay_for_copy(scope, constant_bytes);
    json made = constant;
    for (const auto& [key, child] : children) {
      json item = child->value(scope, budget);
      if (made.is_array()) {
        made.push_back(std::move(item));
      } else {
        made[key] = std::move(item);
      }
    }
    return made;
  }
};

Result<JsonTemplate> JsonTemplate::compile(const json& source, const Limits& limits,
                                           const IsLabel& is_label) {
  auto tree = Tree::make(source, limits, is_label, "", 1);
  if (!tree) return model::fail(std::move(tree.error()));
  return JsonTemplate(std::move(*tree), limits);
}

json JsonTemplate::value(const Scope& scope) const {
  Budget budget(limits_, scope);
  return tree_->value(scope, budget);
}

}  // namespace conversed::flows::expression
