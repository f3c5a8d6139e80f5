# SPDX-License-Identifier: MIT
#
# The table of backends that are part of the library (KVASIR_STATIC_BACKENDS), empty where they are plugins.

# Writes the source at `path`; `out_targets` gets the libraries it refers to.
function(kvasir_write_static_table path out_targets)
  get_property(names GLOBAL PROPERTY KVASIR_STATIC_BACKEND_NAMES)
  set(declarations "")
  set(rows "")
  set(targets "")
  foreach(name IN LISTS names)
    string(APPEND declarations "extern \"C\" QueryFunction kv_backend_query_v0_${name};\n")
    string(APPEND rows "    {\"${name}\", kv_backend_query_v0_${name}},\n")
    list(APPEND targets "kvasir_backend_${name}")
  endforeach()
  list(LENGTH names count)
  configure_file("${PROJECT_SOURCE_DIR}/src/cmake/static_backends.cpp.in" "${path}" @ONLY)
  set(${out_targets} "${targets}" PARENT_SCOPE)
endfunction()
