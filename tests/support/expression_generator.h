#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace conversed::tests {

// Makes expressions that JavaScript accepts, and a few that it refuses.
class ExpressionGenerator {
 public:
  explicit ExpressionGenerator(std::uint64_t seed) : random_(seed) {}

  std::string expression(int depth) {
    if (depth <= 0) return leaf();
    switch (below(13)) {
      case 0:
        return leaf();
      case 1:
        return pick({"!", "- ", "+ ", "~", "typeof ", "- - ", "!!"}) + operand(depth);
      case 2:
      case 3:
      case 4:
        return operand(depth) + " " + binary_operator() + " " + operand(depth);
      case 5:
        return operand(depth) + " ? " + expression(depth - 1) + " : " + expression(depth - 1);
      case 6:
        return "[" + list(depth, 3) + "]";
      case 7:
        return "({" + pick({"a", "\"b c\"", "3", "[1 + 1]"}) + ": " + expression(depth - 1) + ", " +
               pick({"z", "\"10\"", "2", "a"}) + ": " + expression(depth - 1) + "})";
      case 8:
        return "(" + expression(depth - 1) + ")" + accessor(depth);
      case 9:
        return "`<" + pick({"", "é", "\\n", "$"}) + "${" + expression(depth - 1) + "}>`";
      case 10:
        return string_call(depth);
      case 11:
        return array_call(depth);
      default:
        return function_call(depth);
    }
  }

 private:
  std::size_t below(std::size_t bound) {
    return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random_);
  }
  std::string pick(const std::vector<std::string>& choices) {
    return choices[below(choices.size())];
  }

  std::string operand(int depth) {
    const std::string inner = expression(depth - 1);
    return below(3) == 0 ? inner : "(" + inner + ")";
  }

  std::string list(int depth, std::size_t limit) {
    std::string out;
    for (std::size_t count = below(limit + 1), i = 0; i < count; ++i) {
      if (i > 0) out += ", ";
      if (below(8) == 0)
        out += "..." + pick({"context.list", "context.words", "\"a😀\"", "[1, [2]]", "5"});
      else
        out += expression(depth - 1);
    }
    return out;
  }

  std::string leaf() {
    if (in_callback_ > 0 && below(2) == 0) return pick({"x", "x", "i"});
    return pick({"0",
                 "1",
                 "-1",
                 "2",
                 "3",
                 "0.1",
                 "0.5",
                 "1e3",
                 "1e21",
                 "1e-7",
                 "123456789",
                 "0xff",
                 "0b101",
                 "1_000",
                 ".5",
                 "5.",
                 "NaN",
                 "Infinity",
                 "4294967296",
                 "2147483648",
                 "9007199254740993",
                 "\"\"",
                 "\"a\"",
                 "'b'",
                 "\"10\"",
                 "\"9\"",
                 "\" 7 \"",
                 "\"abc\"",
                 "\"1e3\"",
                 "\"-0\"",
                 "\"x,y,z\"",
                 "\"\\u{1F600}\"",
                 "\"\\uD83D\"",
                 "\"\\uDE00\"",
                 "\"ﬁß\"",
                 "true",
                 "false",
                 "null",
                 "undefined",
                 "input.text",
                 "input.empty",
                 "input.digits",
                 "input.hex",
                 "input.spaced",
                 "input.data.event",
                 "input.data.orderId",
                 "input.data.total",
                 "input.data.flags",
                 "input.missing",
                 "context.big",
                 "context.count",
                 "context.list",
                 "context.negative",
                 "context.nothing",
                 "context.small",
                 "context.words",
                 "context.nested",
                 "context.cart.items",
                 "context.cart.items[1].price",
                 "context.cart?.items?.[0]?.name",
                 "context.nothing?.deep.er",
                 "profile.name",
                 "profile.age",
                 "profile.vip",
                 "profile[\"name\"].length",
                 "[]",
                 "({})"});
  }

  std::string binary_operator() {
    return pick({"+", "+",  "+",  "-",  "*",  "/", "%", "==", "!=", "===", "!==", "<", "<=",
                 ">", ">=", "&&", "||", "??", "&", "|", "^",  "<<", ">>",  ">>>", "in"});
  }

  std::string accessor(int depth) {
    return pick({".length", "[0]", "[1]", "[-1]", "?.[0]", "?.length", ".a", "?.a", "[\"1\"]",
                 ".missing", "[" + expression(depth - 1) + "]", ".toString()", "?.toString()"});
  }

  std::string text(int depth) {
    return below(2) == 0
               ? "String(" + expression(depth - 1) + ")"
               : pick({"input.text", "\"banana\"", "\"a😀b\"", "profile.name", "\"  pad \\u00a0\""});
  }

  std::string string_call(int depth) {
    const std::string small =
        pick({"0", "1", "2", "-1", "3", "-3", "100", "1.9", "NaN", "undefined", "\"1\""});
    const std::string other = pick({"0", "2", "-2", "5", "99", "undefined"});
    const std::string part =
        pick({"\"a\"", "\"an\"", "\"\"", "\"😀\"", "\"x\"", "\",\"", "1", "undefined"});
    return text(depth) +
           pick({".slice(" + small + ", " + other + ")",
                 ".substring(" + small + ", " + other + ")",
                 ".substr(" + small + ", " + other + ")",
                 ".charAt(" + small + ")",
                 ".charCodeAt(" + small + ")",
                 ".codePointAt(" + small + ")",
                 ".at(" + small + ")",
                 ".indexOf(" + part + ", " + small + ")",
                 ".lastIndexOf(" + part + ")",
                 ".lastIndexOf(" + part + ", " + small + ")",
                 ".includes(" + part + ")",
                 ".startsWith(" + part + ", " + small + ")",
                 ".endsWith(" + part + ", " + small + ")",
                 ".split(" + part + ")",
                 ".split(" + part + ", " + other + ")",
                 ".trim()",
                 ".trimStart()",
                 ".trimEnd()",
                 ".toUpperCase()",
                 ".toLowerCase()",
                 ".repeat(" + small + ")",
                 ".padStart(" + pick({"5", "20", "0"}) + ", " + part + ")",
                 ".padEnd(" + pick({"5", "20", "0"}) + ", " + part + ")",
                 ".replace(" + part + ", " + pick({"\"[$&]\"", "\"$$\"", "\"$`|$'\"", "7"}) + ")",
                 ".replaceAll(" + pick({"\"a\"", "\"an\"", "\"x\""}) + ", " +
                     pick({"\"[$&]\"", "\"\""}) + ")",
                 ".concat(" + expression(depth - 1) + ", 1)",
                 ".length",
                 "[" + small + "]"});
  }

  std::string callback(int depth) {
    ++in_callback_;
    const std::string body = expression(depth - 1);
    --in_callback_;
    return pick({"(x, i) => [i, x].length + (", "(x, i) => ("}) + body + ")";
  }

  std::string array_call(int depth) {
    const std::string array =
        pick({"context.list", "context.words", "context.nested", "context.cart.items",
              "input.data.flags", "[" + list(depth - 1, 4) + "]",
              "[3, \"20\", undefined, null, NaN, -0, 1]"});
    const std::string small = pick({"0", "1", "-1", "2", "-2", "10", "undefined", "\"1\""});
    const std::string f = callback(depth);
    return array + pick({".map(" + f + ")",
                         ".filter(" + f + ")",
                         ".find(" + f + ")",
                         ".findIndex(" + f + ")",
                         ".findLast(" + f + ")",
                         ".some(" + f + ")",
                         ".every(" + f + ")",
                         ".flatMap(" + f + ")",
                         ".reduce((x, i) => " + pick({"x + i", "[x, i]", "i", "x"}) + ")",
                         ".reduce((x, i) => x + i, " + small + ")",
                         ".reduceRight((x, i) => x + i, \"\")",
                         ".join(" + pick({"", "\"-\"", "\"\"", "1"}) + ")",
                         ".slice(" + small + ")",
                         ".slice(" + small + ", " + pick({"1", "3", "-1"}) + ")",
                         ".at(" + small + ")",
                         ".includes(" + expression(depth - 1) + ")",
                         ".indexOf(" + expression(depth - 1) + ")",
                         ".lastIndexOf(" + pick({"1", "20", "NaN"}) + ")",
                         ".concat(" + list(depth, 2) + ")",
                         ".toReversed()",
                         ".toSorted()",
                         ".map((x) => parseInt(x) || 0).toSorted((x, i) => x - i)",
                         ".flat()",
                         ".flat(9)",
                         ".length",
                         ".map(String)",
                         ".map(Number)",
                         ".filter(Boolean)",
                         ".map(parseInt)",
                         "[" + small + "]"});
  }

  std::string function_call(int depth) {
    const std::string argument = expression(depth - 1);
    return pick(
        {"Number(" + argument + ")",
         "String(" + argument + ")",
         "Boolean(" + argument + ")",
         "parseInt(" + argument + ")",
         "parseInt(" + argument + ", " + pick({"2", "16", "10"}) + ")",
         "parseFloat(" + argument + ")",
         "isNaN(" + argument + ")",
         "isFinite(" + argument + ")",
         "Number.isInteger(" + argument + ")",
         "Math.round(" + argument + ")",
         "Math.floor(" + argument + ")",
         "Math.ceil(" + argument + ")",
         "Math.trunc(" + argument + ")",
         "Math.abs(" + argument + ")",
         "Math.sign(" + argument + ")",
         "Math.max(" + list(depth, 3) + ")",
         "Math.min(" + list(depth, 3) + ")",
         "JSON.stringify(" + argument + ")",
         "JSON.stringify(" + argument + ", null, 2)",
         "JSON.parse(JSON.stringify(" + pick({"context", "input.data", "context.words"}) + "))",
         "Object.keys(" + argument + ")",
         "Object.values(" + argument + ")",
         "Object.entries(" + argument + ").map(([x, i]) => i + x)",
         "Array.isArray(" + argument + ")",
         "encodeURIComponent(" + argument + ")",
         "Number(" + argument + ").toFixed(" + pick({"0", "2", "10"}) + ")",
         "Number(" + argument + ").toPrecision(" + pick({"1", "3", "17"}) + ")",
         "Number(" + argument + ").toString(" + pick({"2", "8", "16", "36", ""}) + ")",
         "Math.pow(" + pick({"2", "10", "0", "-1", "NaN"}) + ", " + pick({"3", "0", "-1", "NaN"}) +
             ")",
         "({...(" + argument + "), q: 1})",
         "Date.parse(\"2024-02-29T12:30:15.5+02:00\") + (" + argument + ")"});
  }

  std::mt19937_64 random_;
  int in_callback_ = 0;
};

}  // namespace conversed::tests
