#include "bench/operator_speed.h"

#include <algorithm>
#include <functional>

#include "troika/device/conformance/case_list.h"
#include "troika/device/conformance/case_memory.h"
#include "troika/device/quarantine.h"

namespace troika::bench {
namespace {

using device::KvType;
using device::conformance::BatchPlan;
using device::conformance::Case;
using device::conformance::CaseMemory;
using device::conformance::head_shape;
using device::conformance::Problem;
using device::conformance::ProblemBuilder;
using device::conformance::Spread;
using model::TensorType;

constexpr int64_t kHidden = 576;
constexpr int64_t kFfn = 1536;
constexpr int64_t kHeads = 9;
constexpr int64_t kKvHeads = 3;
constexpr int64_t kHeadDim = 64;
constexpr int64_t kVocabulary = 4096;  // more only takes longer to make up

constexpr int kTries = 3;
constexpr Duration kTryTime = std::chrono::milliseconds(8);
constexpr int kQueued = 4;  // tasks, so that none waits to be queued
constexpr Duration kPatience = std::chrono::seconds(10);

using Body = std::function<void(ProblemBuilder&)>;

void add(std::vector<TimedOperator>& all, const std::string& op, const std::string& type,
         const Body& body) {
  const auto make = [&](int64_t history, int64_t rows, std::string name) {
    BatchPlan batch;
    batch.sequences = {{history, {rows}}};
    batch.keys_written = op == "attention";
    Case c;
    c.group = op;
    c.name = std::move(name);
    c.build = [=] {
      ProblemBuilder builder(op + " " + type);
      body(builder);
      return builder.finish(batch);
    };
    return c;
  };
  all.push_back({op, type, make(0, kTimedRows, "prompt"), make(kTimedRows, 1, "token")});
}

void add_weighted(std::vector<TimedOperator>& all) {
  const auto for_types = [&](const std::string& op, const auto& body) {
    for (uint32_t id = 0; id < 256; ++id) {
      const auto traits = model::traits_of(id);
      // A row is whole blocks.
      if (!traits || (kFfn % traits->block_weights) != 0) continue;
      const TensorType type = traits->type;
      add(all, op, std::string(traits->name), [=](ProblemBuilder& b) { body(b, type); });
    }
  };
  for_types("embed",
            [](ProblemBuilder& b, TensorType type) { b.output(b.embed(type, kVocabulary, kFfn)); });
  for_types("mat_mul", [](ProblemBuilder& b, TensorType type) {
    b.output(b.mat_mul(b.input(kFfn), type, kHidden, kFfn));
  });
}

void add_cached(std::vector<TimedOperator>& all) {
  struct Named {
    KvType type;
    const char* name;
  };
  constexpr Named kTypes[] = {{KvType::kF32, "KV F32"}, {KvType::kF16, "KV F16"}};
  for (const auto& [type, name] : kTypes) {
    add(all, "kv_write", name, [type = type](ProblemBuilder& b) {
      b.kv_cache(type, 1, kKvHeads, kHeadDim);
      const graph::TensorId k = b.input(kKvHeads * kHeadDim);
      b.output(b.kv_write(k, b.input(kKvHeads * kHeadDim), head_shape(kKvHeads, 1, kHeadDim)));
    });
  }
  for (const auto& [type, name] : kTypes) {
    add(all, "attention", name, [type = type](ProblemBuilder& b) {
      b.kv_cache(type, 1, kKvHeads, kHeadDim);
      const graph::TensorId q = b.input(kHeads * kHeadDim);
      b.output(b.attention(q, -1, head_shape(kHeads, kHeads / kKvHeads, kHeadDim)));
    });
  }
}

void add_unweighted(std::vector<TimedOperator>& all) {
  const auto plain = [&](const std::string& op, const Body& body) {
    add(all, op, "no weights", body);
  };
  plain("rope_table", [](ProblemBuilder& b) { b.output(b.rope_table(kHeadDim)); });
  plain("rms_norm", [](ProblemBuilder& b) { b.output(b.rms_norm(b.input(kHidden))); });
  plain("rope", [](ProblemBuilder& b) {
    const graph::TensorId table = b.rope_table_input(kHeadDim);
    b.output(b.rope(b.input(kHeads * kHeadDim), table, head_shape(kHeads, 1, kHeadDim)));
  });
  plain("silu_mul", [](ProblemBuilder& b) {
    const graph::TensorId gate = b.input(kFfn);
    b.output(b.silu_mul(gate, b.input(kFfn)));
  });
  plain("add", [](ProblemBuilder& b) {
    const graph::TensorId x = b.input(kHidden);
    b.output(b.add({x, b.input(kHidden)}));
  });
  plain("concat", [](ProblemBuilder& b) {
    const graph::TensorId x = b.input(kHidden / 2);
    b.output(b.concat({x, b.input(kHidden / 2)}));
  });
}

// What must outlive a task that hangs.
struct Running {
  std::shared_ptr<Problem> problem;
  std::shared_ptr<CaseMemory> memory;
  std::unique_ptr<device::Kernel> kernel;
  device::BatchView batch;
};

Status run_tasks(device::Device& device, const std::shared_ptr<Running>& running, int count) {
  device::Fence last;
  for (int i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(
        last, device.submit(*running->kernel, {running->memory->views(), &running->batch}, {}));
  }
  device::WaitPolicy policy;
  policy.timeout = kPatience;
  const Status done = last.wait(policy);
  if (!done) {
    device.abandon(done.error());
    if (device.stuck()) device::quarantine(running);
  }
  return done;
}

Result<std::shared_ptr<Running>> prepare(device::Device& device, const Case& c) {
  auto running = std::make_shared<Running>();
  running->problem = c.build();
  Problem& problem = *running->problem;
  for (const graph::OpId op : problem.program.ops) {
    if (!device.supports(problem.graph, op)) {
      return make_error(ErrorCode::kUnsupported, "device {} does not compute {}",
                        device.info().name, c.group);
    }
  }
  const device::conformance::Pass& pass = problem.passes.front();
  const std::vector<int64_t>& standard = device.info().standard_rows;
  problem.program.max_rows = pass.n_rows();
  if (!standard.empty()) {
    const auto at = std::lower_bound(standard.begin(), standard.end(), pass.n_rows());
    if (at == standard.end()) {
      return make_error(ErrorCode::kUnsupported, "device {} takes no {} rows", device.info().name,
                        pass.n_rows());
    }
    problem.program.max_rows = *at;
  }
  ASSIGN_OR_RETURN(running->memory,
                   CaseMemory::allocate(running->problem, problem.program.max_rows));
  running->memory->fill(pass);
  device::BatchView& batch = running->batch;
  batch.n_rows = pass.n_rows();
  batch.tokens = pass.tokens;
  batch.positions = pass.positions;
  batch.sequences = pass.sequences;
  batch.logit_rows = pass.logit_rows;
  batch.kv = running->memory->kv();
  batch.kv_layout = problem.kv.layout;
  auto kernel = device.compile(problem.program);
  if (!kernel && device.stuck()) device::quarantine(running);
  if (!kernel) return tl::unexpected<Error>(std::move(kernel.error()));
  running->kernel = std::move(*kernel);
  return running;
}

}  // namespace

std::vector<TimedOperator> timed_operators() {
  std::vector<TimedOperator> all;
  add_weighted(all);
  add_cached(all);
  add_unweighted(all);
  return all;
}

Result<double> rows_per_second(device::Device& device, const Case& c) {
  ASSIGN_OR_RETURN(const auto running, prepare(device, c));
  RETURN_IF_ERROR(run_tasks(device, running, kQueued));  // warms up
  double best = 0;
  for (int i = 0; i < kTries; ++i) {
    const TimePoint start = system_clock().now();
    int64_t tasks = 0;
    Duration elapsed{};
    while (elapsed < kTryTime) {
      RETURN_IF_ERROR(run_tasks(device, running, kQueued));
      tasks += kQueued;
      elapsed = system_clock().now() - start;
    }
    best = std::max(best, static_cast<double>(tasks * running->batch.n_rows) / to_seconds(elapsed));
  }
  return best;
}

}  // namespace troika::bench
