# Writes OUTPUT, a header that names the commit of SOURCE_DIR; touches it only when that changes.
execute_process(
  COMMAND git -C ${SOURCE_DIR} describe --always --dirty --abbrev=9 --exclude=*
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed OR commit STREQUAL "")
  set(commit unknown)
endif()
set(text "#pragma once\n#define TROIKA_COMMIT \"${commit}\"\n")
set(old "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} old)
endif()
if(NOT old STREQUAL text)
  file(WRITE ${OUTPUT} ${text})
endif()
