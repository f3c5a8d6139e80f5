# SPDX-License-Identifier: MIT
#
# kvasir_add_backend(NAME cpu SOURCES a.cpp ... [LIBS ...]) builds one backend: a plugin
# libkvasir_backend_<name>.v0.so, or, with KVASIR_STATIC_BACKENDS, a static library that goes into libkvasir
# (its entry symbol then is kv_backend_query_v0_<name>). The target is kvasir_backend_<name>.

add_custom_target(kvasir_plugins)

function(kvasir_add_backend)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME" "SOURCES;LIBS")
  set(target "kvasir_backend_${arg_NAME}")
  if(KVASIR_STATIC_BACKENDS)
    add_library(${target} STATIC ${arg_SOURCES})
    target_compile_definitions(${target} PRIVATE KVB_STATIC)
    set_property(GLOBAL APPEND PROPERTY KVASIR_STATIC_BACKEND_NAMES "${arg_NAME}")
  else()
    add_library(${target} MODULE ${arg_SOURCES})
    kvasir_configure_plugin(${target} "${arg_NAME}")
    set_property(GLOBAL APPEND PROPERTY KVASIR_PLUGIN_TARGETS ${target})
  endif()
  target_include_directories(${target} PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/backends")
  target_link_libraries(${target} PRIVATE kvasir_flags kvasir_headers ${arg_LIBS})
  add_dependencies(kvasir_plugins ${target})
endfunction()

# Name, place, and a link that exports the entry symbol alone and leaves nothing undefined.
function(kvasir_configure_plugin target name)
  set(map "${PROJECT_SOURCE_DIR}/backends/plugin.map")
  set_target_properties(${target} PROPERTIES
    PREFIX "lib"
    OUTPUT_NAME "kvasir_backend_${name}.v0"
    SUFFIX ".so"
    INSTALL_RPATH ""
    LIBRARY_OUTPUT_DIRECTORY "${KVASIR_PLUGIN_OUTPUT_DIRECTORY}"
    LINK_DEPENDS "${map}")
  target_link_options(${target} PRIVATE "-Wl,--version-script=${map}" -Wl,-Bsymbolic)
  if(NOT KVASIR_SANITIZE) # sanitizer runtimes are resolved in the executable
    target_link_options(${target} PRIVATE -Wl,-z,defs)
  endif()
  install(TARGETS ${target} LIBRARY DESTINATION "${KVASIR_PLUGIN_INSTALL_DIRECTORY}")
endfunction()
