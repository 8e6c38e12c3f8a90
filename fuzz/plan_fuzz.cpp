// A plan of any bytes is either an error of one short line, or a plan that is the same when written
// and read again, and that check() accepts or refuses without harm; what it accepts is lowered for
// devices of random facts.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string_view>
#include <vector>

#include "troika/graph/graph.h"
#include "troika/model/testing/tiny_model.h"
#include "troika/plan/lower.h"
#include "troika/plan/plan.h"

namespace {

using namespace troika;

void require(bool condition) {
  if (!condition) std::abort();
}

const graph::Graph& tiny_graph() {
  static const model::Model model = [] {
    const auto bytes = model::testing::TinyModel().bytes();
    return *model::Model::load(*model::memory_source(bytes), "tiny.gguf", {});
  }();
  static const graph::Graph graph = *graph::build(model);
  return graph;
}

device::DeviceInfo random_facts(std::mt19937& random) {
  device::DeviceInfo info;
  if (random() % 2 == 0) {
    for (int64_t rows = 1; rows <= 128; rows *= 2) {
      if (random() % 2 == 0) info.standard_rows.push_back(rows);
    }
  }
  info.strided = random() % 2 == 0;
  info.n_tile = int64_t{1} << random() % 7;
  info.k_tile = int64_t{1} << random() % 7;
  return info;
}

void check_plan(plan::Plan& plan, uint32_t seed) {
  const graph::Graph& graph = tiny_graph();
  // Else nothing but the other model would ever be found wrong.
  plan.model_fingerprint = graph.model->fingerprint();
  if (const Status sound = plan::check(plan, graph); !sound) {
    require(!sound.error().message.empty() && sound.error().message.size() < 1000);
    return;
  }
  std::mt19937 random(seed);
  std::vector<device::DeviceInfo> infos;
  for (size_t i = 0; i < plan.devices.size(); ++i) infos.push_back(random_facts(random));
  for (const plan::RowsBucket& bucket : plan.buckets) {
    // Cut for as many rows as are worth the fuzzer's time, and for so few that chunks are missing.
    for (const int64_t most : {64, 9}) {
      const int64_t rows = std::min<int64_t>(bucket.max_rows, most);
      const auto list = plan::lower(plan, bucket, graph, rows, 1, infos);
      require(list.has_value() && list->memory.bytes > 0);
      for (size_t i = 0; i < list->tasks.size(); ++i) {
        const plan::Task& task = list->tasks[i];
        require(task.device >= 0 && static_cast<size_t>(task.device) < plan.devices.size());
        for (const int32_t wait : task.waits) require(wait >= 0 && static_cast<size_t>(wait) < i);
      }
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto plan = plan::from_json({reinterpret_cast<const char*>(data), size});
  if (!plan) {
    require(!plan.error().message.empty() && plan.error().message.size() < 1000);
    return 0;
  }
  const std::string text = plan::to_json(*plan);
  const auto again = plan::from_json(text);
  require(again.has_value() && plan::to_json(*again) == text);
  // The same input always meets the same devices.
  uint32_t seed = 0;
  for (const char c : text) seed = seed * 31 + static_cast<unsigned char>(c);
  check_plan(*plan, seed);
  return 0;
}
