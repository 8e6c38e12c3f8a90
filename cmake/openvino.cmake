# Finds OpenVINO: where OpenVINO_DIR says, else in the Python environment of scripts/bootstrap, else
# on the system. Sets OpenVINO_FOUND.
set(OpenVINO_FOUND FALSE)
if(TROIKA_SANITIZE)
  # It is not instrumented, so that every hand-over between its threads would be reported; and it
  # loads libraries in a way (RTLD_DEEPBIND) that the address sanitizer ends the program for.
  if(TROIKA_OPENVINO STREQUAL "ON")
    message(FATAL_ERROR "TROIKA_OPENVINO=ON does not go with a sanitizer")
  endif()
elseif(NOT TROIKA_OPENVINO STREQUAL "OFF")
  file(GLOB wheel LIST_DIRECTORIES TRUE
       ${PROJECT_SOURCE_DIR}/.deps/venv/lib/python3*/site-packages/openvino/cmake)
  find_package(OpenVINO QUIET COMPONENTS Runtime HINTS ${wheel})
  if(NOT OpenVINO_FOUND AND TROIKA_OPENVINO STREQUAL "ON")
    message(FATAL_ERROR "OpenVINO is not found; run scripts/bootstrap, or set OpenVINO_DIR")
  endif()
endif()
