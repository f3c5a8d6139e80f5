# SPDX-License-Identifier: MIT
#
# The version is written once, in kvasir.h; this reads it.

function(kvasir_read_version header out)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${header}")
  file(STRINGS "${header}" lines REGEX "^#define KV_VERSION_(MAJOR|MINOR|PATCH) +[0-9]+")
  foreach(part MAJOR MINOR PATCH)
    if(NOT "${lines}" MATCHES "KV_VERSION_${part} +([0-9]+)")
      message(FATAL_ERROR "${header} does not define KV_VERSION_${part} as a plain number.")
    endif()
    list(APPEND numbers "${CMAKE_MATCH_1}")
  endforeach()
  list(JOIN numbers "." version)
  set(${out} "${version}" PARENT_SCOPE)
endfunction()
