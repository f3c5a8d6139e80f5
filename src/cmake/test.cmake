# SPDX-License-Identifier: MIT
#
# kvasir_test(NAME config SOURCES config_test.cpp LABELS unit [LIBS ...] [PUBLIC_ONLY] [TIMEOUT seconds])
#   in tests/model builds one GoogleTest program and the ctest test model.config. It links all of src/ (kvasir_core), or,
#   with PUBLIC_ONLY, libkvasir as an application does.
# kvasir_fuzzer(NAME gguf SOURCES gguf_fuzzer.cpp CORPUS corpus/gguf [PERCENT 20] [FOLDERS ...] [LIBS ...])
#   the sources define LLVMFuzzerTestOneInput. The test fuzz.gguf_corpus replays the corpus with any compiler; with
#   KVASIR_BUILD_FUZZERS the test fuzz.gguf also runs libFuzzer for a fixed number of inputs: that percentage of
#   KVASIR_FUZZ_RUNS. The test fuzz.gguf_long (label long) runs it for KVASIR_FUZZ_SECONDS.
#
# Targets tests_<label> build what the tests with a label need, plugins included.
find_package(GTest REQUIRED)
find_package(rapidcheck REQUIRED)

set(KVASIR_FUZZ_RUNS 20000 CACHE STRING "Inputs a libFuzzer test tries")
set(KVASIR_FUZZ_SECONDS 600 CACHE STRING "Seconds of a libFuzzer test of the long tier")

if(DEFINED ENV{KVASIR_SHARED})
  set(kvasir_shared "$ENV{KVASIR_SHARED}")
else()
  cmake_path(SET kvasir_shared NORMALIZE "${PROJECT_SOURCE_DIR}/../shared")
endif()
set(KVASIR_TEST_ENVIRONMENT
  "KVASIR_TEST_PLUGINS=${KVASIR_PLUGIN_OUTPUT_DIRECTORY}"
  "KVASIR_TEST_DATA=${PROJECT_SOURCE_DIR}/examples/demo_model"
  "KVASIR_SHARED=${kvasir_shared}")

# The first folder below tests/ names the area.
function(kvasir_test_area out)
  file(RELATIVE_PATH folder "${PROJECT_SOURCE_DIR}/tests" "${CMAKE_CURRENT_SOURCE_DIR}")
  string(REGEX REPLACE "/.*" "" area "${folder}")
  set(${out} "${area}" PARENT_SCOPE)
endfunction()

# Labels, environment and time limit of a ctest test, and its place in the tests_<label> targets (`target` may be "").
function(kvasir_describe_test test target labels timeout)
  set_tests_properties("${test}" PROPERTIES
    LABELS "${labels}" TIMEOUT "${timeout}" ENVIRONMENT "${KVASIR_TEST_ENVIRONMENT}")
  foreach(label IN LISTS labels)
    if(NOT TARGET tests_${label})
      add_custom_target(tests_${label})
      if(NOT label STREQUAL "fuzz") # fuzz targets are parts of src/, without a backend
        add_dependencies(tests_${label} kvasir_plugins)
      endif()
    endif()
    if(target)
      add_dependencies(tests_${label} ${target})
    endif()
  endforeach()
endfunction()

function(kvasir_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "PUBLIC_ONLY" "NAME;TIMEOUT" "SOURCES;LABELS;LIBS")
  kvasir_test_area(area)
  set(target "test_${area}_${arg_NAME}")
  set(library kvasir_core)
  if(arg_PUBLIC_ONLY)
    set(library kvasir)
  endif()
  set(timeout 300)
  if(arg_TIMEOUT)
    set(timeout "${arg_TIMEOUT}")
  elseif("long" IN_LIST arg_LABELS)
    set(timeout 7200)
  endif()

  add_executable(${target} ${arg_SOURCES})
  target_include_directories(${target} PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/tests")
  target_link_libraries(${target} PRIVATE ${library} kvasir_flags ${arg_LIBS} GTest::gtest_main)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>) # what is tested is optimised; tests compile faster
  add_test(NAME "${area}.${arg_NAME}" COMMAND ${target})
  kvasir_describe_test("${area}.${arg_NAME}" ${target} "${arg_LABELS}" "${timeout}")
endfunction()

function(kvasir_fuzzer)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;CORPUS;PERCENT" "SOURCES;FOLDERS;LIBS")
  cmake_path(ABSOLUTE_PATH arg_CORPUS NORMALIZE)
  if(NOT arg_PERCENT)
    set(arg_PERCENT 100)
  endif()

  set(replay "fuzz_${arg_NAME}_corpus")
  add_executable(${replay} ${arg_SOURCES} "${PROJECT_SOURCE_DIR}/tests/fuzz/replay_main.cpp")
  target_include_directories(${replay} PRIVATE "${PROJECT_SOURCE_DIR}/tests" ${arg_FOLDERS})
  target_link_libraries(${replay} PRIVATE kvasir_core kvasir_flags ${arg_LIBS})
  add_test(NAME "fuzz.${arg_NAME}_corpus" COMMAND ${replay} "${arg_CORPUS}")
  kvasir_describe_test("fuzz.${arg_NAME}_corpus" ${replay} "badinput" 300)

  if(KVASIR_BUILD_FUZZERS)
    set(target "fuzz_${arg_NAME}")
    add_executable(${target} ${arg_SOURCES})
    target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/tests" ${arg_FOLDERS})
    target_link_libraries(${target} PRIVATE kvasir_core kvasir_flags ${arg_LIBS})
    target_link_options(${target} PRIVATE -fsanitize=fuzzer)
    math(EXPR runs "${KVASIR_FUZZ_RUNS} * ${arg_PERCENT} / 100")
    math(EXPR seconds "${KVASIR_FUZZ_SECONDS} + 300")
    kvasir_libfuzzer_test("${arg_NAME}" "fuzz" 900 -runs=${runs})
    kvasir_libfuzzer_test("${arg_NAME}_long" "long" ${seconds} -max_total_time=${KVASIR_FUZZ_SECONDS})
  endif()
endfunction()

# One way to run the fuzzer of the kvasir_fuzzer call around it. What it finds stays in the build tree.
function(kvasir_libfuzzer_test name label timeout limit)
  set(scratch "${PROJECT_BINARY_DIR}/tests/fuzz/${name}")
  file(MAKE_DIRECTORY "${scratch}/found")
  add_test(NAME "fuzz.${name}" COMMAND ${target} ${limit} -timeout=20 -rss_limit_mb=2048 -malloc_limit_mb=256
    "-artifact_prefix=${scratch}/" "${scratch}/found" "${arg_CORPUS}")
  kvasir_describe_test("fuzz.${name}" ${target} "${label}" ${timeout})
endfunction()
