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

# troika_folder(<name> [DEPS target...] [EXTRA source...])
# One static library `troika_<name>` from the folder's *.cpp, and one test program
# `troika_<name>_test` from its *_test.cpp. DEPS are the folders and packages it may include.
function(troika_folder name)
  cmake_parse_arguments(ARG "" "" "DEPS;EXTRA" ${ARGN})
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
  if(TROIKA_TESTS)
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
  # Sanitized builds take most of their time to compile; the tests themselves need not be fast.
  if(TROIKA_SANITIZE)
    target_compile_options(${program} PRIVATE -O0)
  endif()
  add_test(NAME ${program} COMMAND ${program} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${program} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT})
endfunction()
