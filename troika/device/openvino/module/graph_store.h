// Compiled graphs on disk. A file is used only if it is whole and was written for the very same
// graph by the same OpenVINO on the same processor; any other is replaced.
#pragma once

#include <optional>
#include <string>

namespace troika::device::openvino {

class GraphStore {
 public:
  // Empty: stores nothing. The folder is made when something is first stored.
  explicit GraphStore(std::string folder) : folder_(std::move(folder)) {}

  bool enabled() const { return !folder_.empty(); }
  // What was stored under `identity`, a text of any length.
  std::optional<std::string> find(const std::string& identity) const;
  // A folder that cannot be written to costs compiling again, no more.
  void keep(const std::string& identity, const std::string& graph) const;

 private:
  std::string path_of(const std::string& identity) const;

  const std::string folder_;
};

}  // namespace troika::device::openvino
