# The precompiled headers halve the compile time of a small file. All modules and tests use them. Files still
# include each header that they use, since clang-tidy reads each file by itself.
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/precompiled.cc" CONTENT "")
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/precompiled_test.cc" CONTENT "")
set(CONVERSED_PRECOMPILED_HEADERS
  <algorithm> <array> <atomic> <chrono> <condition_variable> <cstdint> <deque> <filesystem> <fstream> <functional>
  <map> <memory> <mutex> <optional> <set> <span> <sstream> <string> <string_view> <thread> <unordered_map>
  <unordered_set> <utility> <variant> <vector> <nlohmann/json.hpp> <tl/expected.hpp>)
# Without optimization a fifth of a file's compile time is the code of the same few templates. They are compiled once.
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/common_templates.cc" CONTENT
    "#include \"cmake/common_templates.h\"\nCONVERSED_COMMON_TEMPLATES(template)\n")
  add_library(conversed_common_templates STATIC "${PROJECT_BINARY_DIR}/common_templates.cc")
  target_include_directories(conversed_common_templates PRIVATE "${PROJECT_SOURCE_DIR}")
  target_compile_options(conversed_common_templates PRIVATE $<$<CONFIG:Debug>:-O1>)  # programs run much of this code
  target_link_libraries(conversed_flags INTERFACE conversed_common_templates)
  list(APPEND CONVERSED_PRECOMPILED_HEADERS "${PROJECT_SOURCE_DIR}/cmake/common_templates.h")
endif()
add_library(conversed_precompiled STATIC "${PROJECT_BINARY_DIR}/precompiled.cc")
target_link_libraries(conversed_precompiled PRIVATE conversed_flags)
target_precompile_headers(conversed_precompiled PRIVATE ${CONVERSED_PRECOMPILED_HEADERS})
# For modules that are HOT.
if(CONVERSED_HOT_OPTIONS)
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/precompiled_hot.cc" CONTENT "")
  add_library(conversed_precompiled_hot STATIC "${PROJECT_BINARY_DIR}/precompiled_hot.cc")
  target_link_libraries(conversed_precompiled_hot PRIVATE conversed_flags)
  target_compile_options(conversed_precompiled_hot PRIVATE ${CONVERSED_HOT_OPTIONS})
  target_precompile_headers(conversed_precompiled_hot PRIVATE ${CONVERSED_PRECOMPILED_HEADERS})
endif()
if(BUILD_TESTING)
  add_library(conversed_precompiled_test STATIC "${PROJECT_BINARY_DIR}/precompiled_test.cc")
  target_link_libraries(conversed_precompiled_test PRIVATE conversed_flags GTest::gtest)
  target_compile_options(conversed_precompiled_test PRIVATE ${CONVERSED_TEST_OPTIONS})
  if(CMAKE_POSITION_INDEPENDENT_CODE)  # tests are executables, which can't use a header compiled for libraries
    set_target_properties(conversed_precompiled_test PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(conversed_precompiled_test PRIVATE -fPIE)
  endif()
  target_precompile_headers(conversed_precompiled_test PRIVATE ${CONVERSED_PRECOMPILED_HEADERS} <gtest/gtest.h>)
endif()

# conversed_precompile(TARGET [HOT]): gives the target a precompiled header.
function(conversed_precompile target)
  if("HOT" IN_LIST ARGN AND CONVERSED_HOT_OPTIONS)
    target_compile_options(${target} PRIVATE ${CONVERSED_HOT_OPTIONS})
    target_precompile_headers(${target} REUSE_FROM conversed_precompiled_hot)
  else()
    target_precompile_headers(${target} REUSE_FROM conversed_precompiled)
  endif()
endfunction()

# conversed_module(queue SOURCES log.cc ... USES model store PRIVATE_LIBS PkgConfig::sqlite [HOT])
#
# Defines the target conversed_<name> from the sources in the current folder, links the modules that it
# uses, and records them in the include table. tests/tidy checks each #include against that table.
# HOT marks a module whose code takes much of the tests' time.
function(conversed_module name)
  cmake_parse_arguments(arg "HOT" "" "SOURCES;USES;LIBS;PRIVATE_LIBS" ${ARGN})
  set(target conversed_${name})
  add_library(${target} STATIC ${arg_SOURCES})
  target_include_directories(${target} PUBLIC "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${target} PRIVATE conversed_flags ${arg_PRIVATE_LIBS})
  target_link_libraries(${target} PUBLIC ${arg_LIBS})
  if(arg_HOT)
    conversed_precompile(${target} HOT)
  else()
    conversed_precompile(${target})
  endif()
  foreach(used IN LISTS arg_USES)
    target_link_libraries(${target} PUBLIC conversed_${used})
  endforeach()
  file(RELATIVE_PATH folder "${PROJECT_SOURCE_DIR}" "${CMAKE_CURRENT_SOURCE_DIR}")
  string(REGEX REPLACE "/.*" "" top "${folder}")
  set_property(GLOBAL APPEND PROPERTY CONVERSED_ROOMS_${top} ${target})
  list(JOIN arg_USES " " uses)
  set_property(GLOBAL APPEND PROPERTY CONVERSED_INCLUDE_TABLE "${folder} ${name}: ${uses}")
endfunction()

function(conversed_write_include_table path)
  get_property(rows GLOBAL PROPERTY CONVERSED_INCLUDE_TABLE)
  list(JOIN rows "\n" text)
  file(GENERATE OUTPUT "${path}" CONTENT "${text}\n")
endfunction()

# The tests with the flag TSAN. `./dev test tsan` builds and runs them under ThreadSanitizer.
add_custom_target(tsan_tests)

# Starts a Kafka broker and runs a command with it.
set(CONVERSED_KAFKA_LAUNCHER python3 -B "${PROJECT_SOURCE_DIR}/tests/support/kafka.py")
# Starts a PostgreSQL server and runs a command with it.
set(CONVERSED_POSTGRES_LAUNCHER python3 -B "${PROJECT_SOURCE_DIR}/tests/support/postgres.py")

# conversed_test(NAME lanes_test LABEL unit SOURCES a.cc b.cc USES queue [LIBS x] [TIMEOUT seconds] [TSAN]
#                [LAUNCHER command...])
#
# Defines a GoogleTest executable and a CTest test. LABEL is the folder under tests/. USES names modules, or
# top-level folders for all of their rooms. TSAN marks tests of threaded code: they also get the label `tsan`
# and belong to the target tsan_tests. LAUNCHER gets the test's command as its arguments, and exits with 77 if
# it can't run it.
function(conversed_test)
  cmake_parse_arguments(arg "TSAN" "NAME;LABEL;TIMEOUT" "SOURCES;USES;LIBS;LAUNCHER" ${ARGN})
  add_executable(${arg_NAME} ${arg_SOURCES})
  target_link_libraries(${arg_NAME} PRIVATE conversed_flags ${arg_LIBS} GTest::gtest GTest::gtest_main)
  foreach(used IN LISTS arg_USES)
    get_property(rooms GLOBAL PROPERTY CONVERSED_ROOMS_${used})
    if(rooms)
      target_link_libraries(${arg_NAME} PRIVATE ${rooms})
    else()
      target_link_libraries(${arg_NAME} PRIVATE conversed_${used})
    endif()
  endforeach()
  target_include_directories(${arg_NAME} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_precompile_headers(${arg_NAME} REUSE_FROM conversed_precompiled_test)
  add_test(NAME ${arg_NAME} COMMAND ${arg_LAUNCHER} $<TARGET_FILE:${arg_NAME}>)
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  set(labels ${arg_LABEL})
  if(arg_TSAN)
    list(APPEND labels tsan)
    add_dependencies(tsan_tests ${arg_NAME})
  endif()
  set_tests_properties(${arg_NAME} PROPERTIES LABELS "${labels}" TIMEOUT ${arg_TIMEOUT} SKIP_RETURN_CODE 77)
endfunction()
