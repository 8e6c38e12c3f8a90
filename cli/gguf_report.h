// A GGUF file as `inspect` shows it: JSON, or text for people.
#pragma once

#include <string>

#include "cli/json_output.h"
#include "troika/model/gguf.h"
#include "troika/model/model.h"

namespace troika::cli {

struct GgufReport {
  const std::string& path;
  const model::GgufHeader& header;
  const model::Model* model;       // nullptr: the file is sound, but cannot be run
  const std::string& unsupported;  // why not
  bool whole_lists = false;
  bool tensors = true;
};

Json report_json(const GgufReport& report);
std::string report_text(const GgufReport& report);

}  // namespace troika::cli
