// Scripts in the real program conversed-code.
#include "daemon/code/sandbox.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <future>
#include <string>
#include <vector>

#include "daemon/code/code_pool.h"
#include "tests/support/temp_folder.h"

namespace conversed::daemon {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

constexpr const char* program = CONVERSED_CODE_PROGRAM;
constexpr std::size_t most_bytes = 10'000;

model::CodeCall code(std::string script, json values = json::object(), int timeout_ms = 1'000) {
  return {.script = std::move(script),
          .values = std::move(values),
          .timeout = milliseconds(timeout_ms)};
}

struct SandboxTest : testing::Test {
  json value(std::string script, json values = json::object()) {
    const auto outcome = sandbox.run(code(std::move(script), std::move(values)), most_bytes);
    EXPECT_EQ(outcome.error_code, "") << outcome.error_message;
    return outcome.value;
  }
  // The code and the message of the error.
  std::string error(std::string script, json values = json::object(), int timeout_ms = 1'000) {
    const auto outcome =
        sandbox.run(code(std::move(script), std::move(values), timeout_ms), most_bytes);
    return outcome.error_code + ": " + outcome.error_message;
  }

  const CodeProgram opened{program};
  Sandbox sandbox{opened};
};

TEST_F(SandboxTest, ValuesComeBackAsTheyWere) {
  const json all = {{"text", "ü€😀 \"\n"},
                    {"list", {1, -2.5, true, nullptr, json::array()}},
                    {"deep", {{"a", {{"b", json::object()}}}}},
                    {"zero", 0}};
  EXPECT_EQ(value("return input", {{"input", all}}), all);
  EXPECT_EQ(value("return [typeof input, typeof context, typeof profile, typeof values]"),
            (json{"undefined", "undefined", "undefined", "undefined"}));
  EXPECT_EQ(value("return 'ü€😀'"), "ü€😀");
  EXPECT_EQ(value("return undefined"), nullptr);
  EXPECT_EQ(value("return NaN"), nullptr);
}

TEST_F(SandboxTest, RunsTheJavaScriptOfToday) {
  EXPECT_EQ(value("const {items: [first, ...rest]} = context;\n"
                  "const sum = rest.reduce((a, {price}) => a + price, 0);\n"
                  "return `${first?.name ?? 'none'} ${sum} ${new Set([1, 1]).size}`;",
                  {{"context", {{"items", {{{"name", "a"}}, {{"price", 2}}, {{"price", 3}}}}}}}),
            "a 5 1");
  EXPECT_EQ(value("const f = async () => { await null; return 5; }; return f()"), 5);
  EXPECT_EQ(value("return new Date(0).toLocaleString('de-DE', {timeZone: 'Europe/Berlin'})"),
            "1.1.1970, 01:00:00");
  EXPECT_EQ(value("return new Date(0).getHours()"), 0) << "the zone is UTC";
}

TEST_F(SandboxTest, ErrorsHaveTheirLine) {
  EXPECT_EQ(error("const a = 1;\nreturn input.b.c;", {{"input", json::object()}}),
            "script_error: line 2: TypeError: input.b is undefined");
  EXPECT_EQ(error("return 1;\n)"),
            "script_error: line 2: SyntaxError: expected expression, got ')'");
  EXPECT_EQ(error("throw new Error('ü')"), "script_error: line 1: Error: ü");
  EXPECT_TRUE(error("throw 7").starts_with("script_error: line 1: ")) << error("throw 7");
  EXPECT_EQ(error("return Promise.reject(new TypeError('no'))"),
            "script_error: line 1: TypeError: no");
  EXPECT_EQ(error("return new Promise(() => {})"),
            "script_error: Error: the script returns a promise that nothing fulfills");
  EXPECT_TRUE(error("const a = []; a[0] = a; return a").starts_with("script_error: TypeError"));
  EXPECT_TRUE(error("return '\\ud800'").starts_with("script_error: the result is no JSON"));
  EXPECT_LE(error("throw new Error('x'.repeat(5000))").size(), 1'100U);
}

TEST_F(SandboxTest, GivenValuesCanNotBeChanged) {
  const json values = {{"context", {{"cart", {{"lines", {1, 2}}}}}}};
  EXPECT_TRUE(error("context.total = 3; return 1", values).starts_with("script_error: line 1"));
  EXPECT_TRUE(error("context.cart.lines.push(3); return 1", values).starts_with("script_error"));
  EXPECT_EQ(value("return [...context.cart.lines, 3]", values), (json{1, 2, 3}));
}

TEST_F(SandboxTest, AnEndlessScriptIsKilledAtItsTime) {
  EXPECT_EQ(error("for (;;);", json::object(), 100), "timeout: the script takes more than 100 ms");
  EXPECT_EQ(error("for (;;) { try { for (;;); } catch (e) {} finally { continue; } }",
                  json::object(), 100),
            "timeout: the script takes more than 100 ms");
  EXPECT_EQ(error("return /^(a+)+$/.test('a'.repeat(50) + 'b')", json::object(), 100),
            "timeout: the script takes more than 100 ms");
  EXPECT_EQ(error("return {toJSON() { for (;;); }}", json::object(), 100),
            "timeout: the script takes more than 100 ms");
}

TEST_F(SandboxTest, ARunAfterAKilledOneGetsItsOwnResult) {
  const std::string large(200'000, 'x');
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(error("for (;;);", {{"input", large}}, 20).starts_with("timeout"));
    EXPECT_EQ(value("return input", {{"input", i}}), i);
  }
}

TEST_F(SandboxTest, MemoryIsBoundedAndCanNotBeCaught) {
  EXPECT_EQ(error("const a = []; for (;;) a.push(new Uint8Array(1e6))"),
            "memory: the script needs too much memory");
  EXPECT_EQ(
      error("for (;;) try { const a = []; for (;;) a.push(new Uint8Array(1e6)); } catch (e) {}"),
      "memory: the script needs too much memory");
  EXPECT_EQ(error("return new ArrayBuffer(2 ** 31).byteLength"),
            "memory: the script needs too much memory");
  EXPECT_EQ(value("return 'it goes on'"), "it goes on");
}

TEST_F(SandboxTest, ResultsAreBounded) {
  EXPECT_EQ(value("return 'x'.repeat(9998)").get<std::string>().size(), 9'998U);
  EXPECT_EQ(error("return 'x'.repeat(9999)"),
            "result_too_large: the result of the script is too large");
  EXPECT_EQ(error("return 'ü'.repeat(6000)"),
            "result_too_large: the result of the script is too large");
  EXPECT_TRUE(error("let a = 1; for (let i = 0; i < 100; ++i) a = [a]; return a")
                  .starts_with("script_error: the result is no JSON"));
}

TEST_F(SandboxTest, ThereIsNothingButTheLanguage) {
  EXPECT_EQ(value("return ['require', 'process', 'print', 'load', 'read', 'fetch', 'quit', 'os',"
                  " 'XMLHttpRequest', 'WebAssembly', 'SharedArrayBuffer', 'Atomics', 'Worker',"
                  " 'setTimeout', 'console'].filter(name => name in globalThis)"),
            json::array());
  EXPECT_TRUE(error("return import('fs')").starts_with("script_error"));
}

// The program tries what its filter forbids, each in a process of its own.
TEST_F(SandboxTest, ItsProgramRefusesWhatAScriptDoesNotNeed) {
  EXPECT_EQ(std::system((std::string(program) + " --self-test").c_str()), 0);
}

TEST_F(SandboxTest, RunsShareNothing) {
  EXPECT_EQ(value("globalThis.left = input; Array.prototype.map = null; return 1", {{"input", 7}}),
            1);
  EXPECT_EQ(value("return [typeof left, typeof [].map]"), (json{"undefined", "function"}));
}

TEST(Sandbox, WithoutItsProgramEachRunFails) {
  for (const char* other : {"/nowhere/conversed-code", "/bin/true"}) {
    const CodeProgram wrong(other);
    EXPECT_EQ(Sandbox(wrong).run(code("return 1"), most_bytes).error_code, "sandbox_failed");
  }
}

TEST(CodeProgram, ThatIsReplacedOrRemovedRunsOn) {
  const tests::TempFolder folder;
  const auto file = folder / "conversed-code";
  std::filesystem::copy_file(program, file);
  const CodeProgram opened(file);
  // An upgrade puts another file in the place of the program.
  std::filesystem::copy_file("/bin/true", folder / "new");
  std::filesystem::rename(folder / "new", file);
  EXPECT_EQ(Sandbox(opened).run(code("return 1"), most_bytes).value, 1);
  std::filesystem::remove(file);
  EXPECT_EQ(Sandbox(opened).run(code("return 2"), most_bytes).value, 2);
}

TEST(CodePool, RunsScriptsSideBySideAndTakesNoMoreThanItHolds) {
  CodePool pool(program, 2);
  std::vector<std::promise<CodeOutcome>> ends(3);
  const auto run = [&](std::size_t i, std::string script) {
    return pool.run(code(std::move(script)), most_bytes,
                    [&ends, i](CodeOutcome outcome) { ends[i].set_value(std::move(outcome)); });
  };
  ASSERT_TRUE(run(0, "for (;;);"));
  ASSERT_TRUE(run(1, "return 1"));
  EXPECT_EQ(ends[1].get_future().get().value, 1) << "the endless script holds its own thread only";
  ASSERT_TRUE(run(2, "return 2"));
  EXPECT_EQ(ends[2].get_future().get().value, 2);
  EXPECT_EQ(ends[0].get_future().get().error_code, "timeout");
  pool.stop();
  EXPECT_FALSE(run(0, "return 1"));
}

}  // namespace
}  // namespace conversed::daemon
