// Writes inputs for trace_fuzz to begin with: a trace with every field set, an empty one, and one
// of another program.
//   trace_seeds FOLDER
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "troika/base/trace.h"

namespace {

troika::Trace full_trace() {
  using namespace troika;
  Trace trace;
  trace.simulated = true;
  trace.stretch = 2;
  trace.title = "a model";
  trace.description = "a plan";
  trace.devices = {{"cpu@0", "core 0"}};
  for (const char* device : {"cpu@0", "npu"}) {
    TraceEvent event;
    event.name = "G1 layer 3";
    event.stage = std::string("G1");
    event.device = device;
    event.pass = 1;
    event.layer = 3;
    event.chunk = 0;
    event.sequences = 1;
    event.row_begin = 32;
    event.rows = 32;
    event.bytes = 1 << 20;
    event.copy_bytes = 4096;
    event.macs = 1 << 30;
    event.queued = Duration(1000);
    event.start = Duration(5500);
    event.end = Duration(9001);
    event.wait = Duration(2000);
    event.delay = Duration(500);
    event.predicted_us = 3.25;
    trace.events.push_back(event);
  }
  return trace;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: trace_seeds FOLDER\n", stderr);
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder);
  const std::string texts[] = {
      troika::to_chrome_json(full_trace()), troika::to_chrome_json({}),
      R"([{"ph":"B","ts":1},{"ph":"M","name":"thread_name","pid":5,"tid":9,"args":{"name":"t"}},)"
      R"({"name":"work","ph":"X","ts":17000000000.5,"dur":2,"pid":5,"tid":9,"args":{"x":[[1]]}}])"};
  int number = 0;
  for (const std::string& text : texts) {
    std::ofstream out(folder / ("trace-" + std::to_string(++number) + ".json"), std::ios::binary);
    out << text;
    if (!out.flush()) {
      std::fputs("a trace cannot be written\n", stderr);
      return 1;
    }
  }
  return 0;
}
