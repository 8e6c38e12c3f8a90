// Reading the header of a file by name.
#include <string>
#include <utility>

#include "troika/model/gguf.h"

namespace troika::model {
namespace {

// "x.gguf.part1of2", "x.gguf-part-a", "x.gguf-split-a": raw pieces of one file, to be joined.
bool is_named_as_part(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  const size_t at = name.find(".gguf");
  if (at == std::string::npos) return false;
  return name.find("part", at) != std::string::npos || name.find("split", at) != std::string::npos;
}

}  // namespace

tl::unexpected<Error> in_file(const std::string& path, Error error) {
  if (error.message.compare(0, path.size(), path) != 0) {
    error.message = path + ": " + error.message;
  }
  if (error.code == ErrorCode::kInvalidData && is_named_as_part(path)) {
    error.message +=
        ". By its name it is one part of a file cut in pieces: join them all first, "
        "as in: cat part1 part2 > whole.gguf";
  }
  return tl::unexpected<Error>(std::move(error));
}

Result<GgufHeader> read_gguf_file(const std::string& path) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ByteSource> source, open_file_source(path));
  auto header = read_gguf_header(*source);
  if (!header) return in_file(path, std::move(header).error());
  return header;
}

}  // namespace troika::model
