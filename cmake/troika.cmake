# Shared build settings and the two functions that every folder's CMakeLists.txt uses.

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

find_program(TROIKA_CCACHE ccache)
if(TROIKA_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${TROIKA_CCACHE})
endif()

# No value-changing optimisation: an output row must have the same bits in every code path.
add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual
                    -ffp-contract=off)
if(TROIKA_WERROR)
  add_compile_options(-Werror)
endif()
if(TROIKA_SANITIZE)
  add_compile_options(-fsanitize=${TROIKA_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${TROIKA_SANITIZE})
endif()

# TROIKA_TOGETHER: the sources of a target are compiled several at a time (a CMake unity build), which
# takes a third of the time where all is built anew. Two of them may then not define the same name,
# not even each in its unnamed namespace: one that does is named in troika_folder(... ALONE).
set(CMAKE_UNITY_BUILD ${TROIKA_TOGETHER})
set(CMAKE_UNITY_BUILD_BATCH_SIZE 10)

# troika_folder(<name> [ONE_THREAD] [DEPS target...] [EXTRA source...] [ALONE source...])
# One static library `troika_<name>` from the folder's *.cpp, and one test program
# `troika_<name>_test` from its *_test.cpp. DEPS are the folders and packages it may include.
# ONE_THREAD: it starts no thread, so that the thread sanitizer has nothing to find in its tests.
# ALONE: sources that are compiled by themselves even where TROIKA_TOGETHER.
function(troika_folder name)
  cmake_parse_arguments(ARG "ONE_THREAD" "" "DEPS;EXTRA;ALONE" ${ARGN})
  set_source_files_properties(${ARG_ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  list(APPEND sources ${ARG_EXTRA})
  if(sources)
    add_library(troika_${name} STATIC ${sources})
    target_include_directories(troika_${name} PUBLIC ${PROJECT_SOURCE_DIR})
    target_link_libraries(troika_${name} PUBLIC ${ARG_DEPS})
  else()
    add_library(troika_${name} INTERFACE)
    target_include_directories(troika_${name} INTERFACE ${PROJECT_SOURCE_DIR})
    target_link_libraries(troika_${name} INTERFACE ${ARG_DEPS})
  endif()
  if(TROIKA_TESTS AND NOT (ARG_ONE_THREAD AND TROIKA_SANITIZE MATCHES "thread"))
    file(GLOB tests CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*_test.cpp)
    if(tests)
      troika_test(troika_${name}_test SOURCES ${tests} DEPS troika_${name} LABELS unit)
    endif()
  endif()
endfunction()

# troika_test(<program> SOURCES file... DEPS target... LABELS label... [TIMEOUT seconds])
# A GoogleTest program, registered as one CTest test per program.
function(troika_test program)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;DEPS;LABELS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  add_executable(${program} ${ARG_SOURCES})
  target_link_libraries(${program} PRIVATE
    ${ARG_DEPS} troika_test_repository GTest::gtest_main GTest::gmock)
  add_test(NAME ${program} COMMAND ${program} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${program} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT})
endfunction()

# troika_embed_json(<variable> FOLDER <folder> FUNCTION <namespace::name> HEADER <header>)
# Sets <variable> to sources that define `const std::vector<EmbeddedJson>& name()`, which <header>
# declares: the folder's *.json in order of their names, without schema.json.
function(troika_embed_json variable)
  cmake_parse_arguments(ARG "" "FOLDER;FUNCTION;HEADER" "" ${ARGN})
  string(REGEX MATCH "^(.*)::([^:]+)$" matched "${ARG_FUNCTION}")
  set(namespace "${CMAKE_MATCH_1}")
  set(function "${CMAKE_MATCH_2}")
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${ARG_FOLDER}/*.json)
  list(FILTER files EXCLUDE REGEX "/schema\\.json$")
  set(sources "")
  set(declarations "")
  set(entries "")
  foreach(file ${files})
    cmake_path(GET file STEM LAST_ONLY name)
    string(MAKE_C_IDENTIFIER "${ARG_FOLDER}_${name}" identifier)
    set(source ${CMAKE_CURRENT_BINARY_DIR}/${identifier}.cpp)
    add_custom_command(OUTPUT ${source}
      COMMAND ${CMAKE_COMMAND} -DOUTPUT=${source} -DNAME=${namespace}::embedded::${identifier}
              -DFILES=${file} -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
      DEPENDS ${file} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake VERBATIM)
    list(APPEND sources ${source})
    string(APPEND declarations "extern const std::string_view ${identifier};\n")
    string(APPEND entries "      {\"${name}\", &embedded::${identifier}},\n")
  endforeach()
  set(list ${CMAKE_CURRENT_BINARY_DIR}/${function}.cpp)
  file(CONFIGURE OUTPUT ${list} CONTENT
"#include \"${ARG_HEADER}\"

namespace ${namespace} {
namespace embedded {
${declarations}}  // namespace embedded

const std::vector<troika::EmbeddedJson>& ${function}() {
  static const std::vector<troika::EmbeddedJson> all = {
${entries}  };
  return all;
}

}  // namespace ${namespace}
")
  set(${variable} ${sources} ${list} PARENT_SCOPE)
endfunction()
