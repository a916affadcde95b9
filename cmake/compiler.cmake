# The language level, warnings, sanitizers and the linker, for every target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

set(CONVERSED_SANITIZE "" CACHE STRING "Sanitizers to build with: address,undefined or thread; empty for none")
option(CONVERSED_COVERAGE "Instrument for gcov" OFF)
option(CONVERSED_PLANTED_FAULTS "Let CONVERSED_TEST_PLANT make the daemon wrong, for tests/fault" OFF)
if(CONVERSED_PLANTED_FAULTS)
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
    # AddressSanitizer reports null pointers and accesses past an object by itself; these two checks
    # of the undefined-behaviour sanitizer add an eighth to compile times and nothing to findings.
    add_compile_options(-fno-sanitize=null,object-size)
  endif()
endif()
# GCC 12 reports false positives inside the standard library for moved strings and with sanitizers.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(conversed_flags INTERFACE
    -Wno-maybe-uninitialized -Wno-stringop-overflow -Wno-stringop-overread -Wno-array-bounds -Wno-restrict)
endif()
# What Debian asks of its packages (hardening=+all), and shadow stacks where the processor has them;
# tests/package looks for each in the binary. In what is shipped only: fortified functions need an
# optimiser, and the sanitizers have checks of their own.
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
  # Paths are hashed as seen from this checkout, so that a second clone of the same commit, or a
  # worktree beside it, need not compile everything again.
  # What a precompiled header may hide from the cache (macros, times) is in none of ours.
  set(CMAKE_CXX_COMPILER_LAUNCHER env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime "${CONVERSED_CCACHE}")
endif()
find_program(CONVERSED_LLD ld.lld)
if(CONVERSED_LLD)
  add_link_options(-fuse-ld=lld)
endif()

# Without it Clang stores times in a precompiled header, and no second checkout could share it.
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  add_compile_options("SHELL:-Xclang -fno-pch-timestamp")
endif()
