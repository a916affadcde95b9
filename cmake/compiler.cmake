# Language level, warnings, sanitizers and linker of all targets.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

set(CONVERSED_SANITIZE "" CACHE STRING "Sanitizers to build with: address,undefined or thread; empty for none")
option(CONVERSED_COVERAGE "Instrument for gcov" OFF)
option(CONVERSED_PLANTED_FAULTS
  "For tests: CONVERSED_TEST_PLANT makes the daemon wrong, CONVERSED_TEST_CHEAP_PASSWORDS makes hashes of passwords cheap" OFF)
if(CONVERSED_PLANTED_FAULTS)
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    message(FATAL_ERROR "CONVERSED_PLANTED_FAULTS is for tests only. Remove it from the settings of this release build.")
  endif()
  add_compile_definitions(CONVERSED_PLANTED_FAULTS)
endif()

add_library(conversed_flags INTERFACE)
target_compile_options(conversed_flags INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wnon-virtual-dtor -Woverloaded-virtual -Werror
  -fno-omit-frame-pointer)

if(CONVERSED_SANITIZE)
  add_compile_options(-fsanitize=${CONVERSED_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${CONVERSED_SANITIZE})
  if(CONVERSED_SANITIZE MATCHES "address.*undefined")
    # AddressSanitizer already reports null pointers and accesses past an object. These two checks of
    # UndefinedBehaviorSanitizer would add an eighth to compile times.
    add_compile_options(-fno-sanitize=null,object-size)
    # The checks' data have a million addresses. At a fixed place the linker resolves them, else each start of a program does,
    # in 20 to 40 ms.
    add_link_options(-no-pie)
  endif()
endif()
# AddressSanitizer's build optimizes only the modules that are HOT: optimization doubles a module's compile time.
if(CONVERSED_SANITIZE MATCHES "address")
  set(CONVERSED_HOT_OPTIONS -O1)
  # Tests themselves are not checked for undefined behavior: the checks take a tenth of their compile time.
  set(CONVERSED_TEST_OPTIONS -fno-sanitize=undefined)
endif()
# Presets with CMAKE_UNITY_BUILD compile the files of a module together, in batches: the headers are read and the templates
# compiled once a batch. A constant of one file may then have the name of a local of another.
set(CMAKE_UNITY_BUILD_BATCH_SIZE 12)
if(CMAKE_UNITY_BUILD)
  # GCC warns of anonymous namespaces in included files. In a batch all files are included.
  target_compile_options(conversed_flags INTERFACE -Wno-shadow $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endif()
# GCC 12 reports false positives inside the standard library for moved strings and with sanitizers.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(conversed_flags INTERFACE
    -Wno-maybe-uninitialized -Wno-stringop-overflow -Wno-stringop-overread -Wno-array-bounds -Wno-restrict)
  # Clang compiles the tests for `./dev test` and decides on their warnings. GCC warns of names left out in initializers and of
  # GoogleTest's macros.
  list(APPEND CONVERSED_TEST_OPTIONS -w)
endif()
# Debian's hardening=+all, and shadow stacks if the processor has them. tests/package checks the binary
# for each. Only for release: fortified functions need an optimizer, and sanitizers have their own checks.
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT CONVERSED_SANITIZE)
  set(CMAKE_POSITION_INDEPENDENT_CODE ON)
  include(CheckPIESupported)
  check_pie_supported(LANGUAGES CXX)
  add_compile_options(-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -fstack-protector-strong
    -fstack-clash-protection)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    add_compile_options(-fcf-protection)
  endif()
  add_link_options(-Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
endif()
if(CONVERSED_COVERAGE)
  add_compile_options(--coverage)
  add_link_options(--coverage)
endif()

find_program(CONVERSED_CCACHE ccache)
if(CONVERSED_CCACHE)
  # ccache hashes paths relative to this checkout. Clang's precompiled headers still name their folder.
  # The sloppiness is safe: the precompiled headers contain no macros and times that a file could change.
  set(CMAKE_CXX_COMPILER_LAUNCHER env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime "${CONVERSED_CCACHE}")
endif()
find_program(CONVERSED_LLD ld.lld)
if(CONVERSED_LLD)
  add_link_options(-fuse-ld=lld)
endif()

# Otherwise Clang stores times in a precompiled header, and other checkouts can't share it.
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  add_compile_options("SHELL:-Xclang -fno-pch-timestamp")
endif()
