# Writes a C++ source that holds the text of files, so that the program needs none of them when it
# runs:
#   cmake -DOUTPUT=out.cpp -DNAME=troika::web::kScript -DFILES=a.js,b.js -P embed.cmake
# defines `const std::string_view kScript` in namespace troika::web, the files one after the other.
string(REGEX MATCH "^(.*)::([^:]+)$" matched "${NAME}")
set(namespace "${CMAKE_MATCH_1}")
set(variable "${CMAKE_MATCH_2}")
string(REPLACE "," ";" files "${FILES}")
set(text "")
foreach(file IN LISTS files)
  file(READ "${file}" part)
  string(APPEND text "${part}")
endforeach()
file(WRITE "${OUTPUT}" "#include <string_view>

namespace ${namespace} {
extern const std::string_view ${variable};
const std::string_view ${variable} = R\"embedded(${text})embedded\";
}  // namespace ${namespace}
")
