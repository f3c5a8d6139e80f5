# SPDX-License-Identifier: MIT
#
# kvasir_flags: how every target of this project is compiled. Never exported.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

add_library(kvasir_flags INTERFACE)
# Contraction would let the compiler choose where a product and a sum are fused, and results would depend on it.
target_compile_options(kvasir_flags INTERFACE -ffp-contract=off -Wall -Wextra -Wshadow -Wconversion)
if(KVASIR_DEVELOPER)
  target_compile_options(kvasir_flags INTERFACE -Werror)
endif()

if(KVASIR_SANITIZE)
  target_compile_options(kvasir_flags INTERFACE
    -fsanitize=${KVASIR_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g)
  target_link_options(kvasir_flags INTERFACE -fsanitize=${KVASIR_SANITIZE})
endif()
if(KVASIR_BUILD_FUZZERS)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "KVASIR_BUILD_FUZZERS needs clang (libFuzzer); the compiler is ${CMAKE_CXX_COMPILER_ID}.")
  endif()
  target_compile_options(kvasir_flags INTERFACE -fsanitize=fuzzer-no-link)
  target_link_options(kvasir_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# The headers in include/kvasir, as the plugins and the library itself see them.
add_library(kvasir_headers INTERFACE)
target_include_directories(kvasir_headers INTERFACE "${PROJECT_SOURCE_DIR}/include")
