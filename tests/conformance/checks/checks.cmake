# SPDX-License-Identifier: MIT
#
# Tests with kvasir-backend-test: the bundled backends conform, the tool finds what is wrong with broken ones, and the
# table of obligations in backends/README.md is the one that the cases know. Included by ../CMakeLists.txt.
include(test)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(checks "${CMAKE_CURRENT_SOURCE_DIR}/checks")

# conformance.<name>: the cases of `groups` on one backend.
function(kvasir_conformance_test name backend labels)
  cmake_parse_arguments(PARSE_ARGV 3 arg "" "" "GROUPS;ARGS")
  list(TRANSFORM arg_GROUPS REPLACE "(.+)" "--filter;\\1" OUTPUT_VARIABLE filters)
  add_test(NAME "conformance.${name}" COMMAND kvasir_backend_test $<TARGET_FILE:kvasir_backend_${backend}>
    ${filters} ${arg_ARGS})
  kvasir_describe_test("conformance.${name}" kvasir_backend_test "${labels}" 600)
endfunction()

foreach(backend IN ITEMS ref cpu)
  string(TOUPPER "${backend}" upper)
  if(KVASIR_BACKEND_${upper})
    kvasir_conformance_test(${backend}_objects ${backend} "conformance;badinput" GROUPS load/* memory/* cache/* faults/*)
    kvasir_conformance_test(${backend}_async ${backend} "conformance;threads" GROUPS async/*)
    kvasir_conformance_test(${backend}_ops ${backend} conformance GROUPS ops/*)
    kvasir_conformance_test(${backend}_programs ${backend} conformance
      GROUPS poison/* groups/* program/* replay/* perf/*)
    kvasir_conformance_test(${backend}_core ${backend} conformance ARGS --profile core)
  endif()
endforeach()
if(KVASIR_BACKEND_CPU)
  kvasir_conformance_test(cpu_scalar cpu conformance GROUPS ops/* program/* groups/* ARGS --variant scalar)
endif()

# ---- the tool itself, with backends that break one obligation each (broken.cpp)
if(KVASIR_BACKEND_REF)
  file(GLOB ref_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/backends/ref/*.cpp")
  add_library(conformance_broken_objects OBJECT "${checks}/broken.cpp" ${ref_sources})
  target_compile_definitions(conformance_broken_objects PRIVATE KVB_STATIC)
  target_include_directories(conformance_broken_objects PRIVATE
    "${PROJECT_SOURCE_DIR}/backends" "${PROJECT_SOURCE_DIR}/backends/ref")
  target_link_libraries(conformance_broken_objects PRIVATE kvasir_headers kvasir_flags)
  # conformance_symbols has no version script, and so exports too much.
  foreach(target IN ITEMS conformance_broken conformance_symbols)
    add_library(${target} MODULE $<TARGET_OBJECTS:conformance_broken_objects>)
    target_link_libraries(${target} PRIVATE kvasir_flags ${CMAKE_DL_LIBS})
    set_target_properties(${target} PROPERTIES
      LINKER_LANGUAGE CXX LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests/conformance")
  endforeach()
  target_link_options(conformance_broken PRIVATE "-Wl,--version-script=${PROJECT_SOURCE_DIR}/backends/plugin.map")
  add_test(NAME conformance.tool COMMAND Python3::Interpreter "${checks}/check_tool.py"
    $<TARGET_FILE:kvasir_backend_test> $<TARGET_FILE:conformance_broken> $<TARGET_FILE:conformance_symbols>
    "${CMAKE_CURRENT_BINARY_DIR}/broken")
  kvasir_describe_test(conformance.tool conformance_broken conformance 600)
  add_dependencies(tests_conformance conformance_symbols)
endif()

add_test(NAME conformance.obligations COMMAND Python3::Interpreter "${checks}/check_obligations.py"
  $<TARGET_FILE:kvasir_backend_test> "${PROJECT_SOURCE_DIR}/backends/README.md")
kvasir_describe_test(conformance.obligations kvasir_backend_test "conformance;hygiene" 60)
