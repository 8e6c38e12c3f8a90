#include "troika/device/conformance/run_case.h"

#include <algorithm>

#include "troika/base/watched_time.h"
#include "troika/device/conformance/bounds.h"
#include "troika/device/conformance/case_memory.h"
#include "troika/device/quarantine.h"

namespace troika::device::conformance {
namespace {

// A process that stood still meanwhile has lost no more than twice this of a task's time.
constexpr Duration kLongestLook = std::chrono::milliseconds(250);

// What must outlive a task that hangs.
struct Running {
  std::shared_ptr<Problem> problem;
  std::shared_ptr<CaseMemory> memory;
  std::unique_ptr<Kernel> kernel;
  BatchView batch;
};

class CaseRun {
 public:
  CaseRun(Device& device, const Case& c, const RunOptions& options)
      : device_(device), case_(c), options_(options), running_(std::make_shared<Running>()) {
    running_->problem = c.build();
    outcome_.bound = program_bound(running_->problem->program, device.info());
    reference_kv_ = running_->problem->kv;
  }

  Result<Outcome> run() {
    outcome_.not_run = why_not();
    if (!outcome_.not_run.empty()) return outcome_;
    Problem& problem = *running_->problem;
    problem.program.max_rows = max_rows();
    ASSIGN_OR_RETURN(running_->memory,
                     CaseMemory::allocate(running_->problem, problem.program.max_rows));
    auto kernel = device_.compile(problem.program);
    if (!kernel && device_.stuck()) quarantine(running_);
    if (!kernel) return failed(kernel.error());
    running_->kernel = std::move(*kernel);
    for (size_t i = 0; i < problem.passes.size(); ++i) RETURN_IF_ERROR(run_pass(i));
    RETURN_IF_ERROR(compare_kv());
    return outcome_;
  }

 private:
  int64_t rows_needed() const {
    int64_t rows = 0;
    for (const Pass& pass : running_->problem->passes) rows = std::max(rows, pass.rows_needed());
    return rows;
  }

  int64_t max_rows() const {
    const std::vector<int64_t>& standard = device_.info().standard_rows;
    if (standard.empty()) return rows_needed();
    const auto at = std::lower_bound(standard.begin(), standard.end(), rows_needed());
    return at == standard.end() ? 0 : *at;
  }

  std::string why_not() const {
    const Problem& problem = *running_->problem;
    for (const graph::OpId op : problem.program.ops) {
      if (device_.supports(problem.graph, op)) continue;
      return fmt::format("the device does not compute {}", to_string(problem.graph.op(op).kind));
    }
    if (max_rows() == 0) return "more rows than the longest standard length";
    return {};
  }

  tl::unexpected<Error> failed(const Error& error) const {
    return make_error(error.code, "device {}, {} {}: {}", device_.info().name, case_.group,
                      case_.name, error.message);
  }

  void set_batch(const Pass& pass) {
    BatchView& batch = running_->batch;
    batch.n_rows = pass.n_rows();
    batch.tokens = pass.tokens;
    batch.positions = pass.positions;
    batch.sequences = pass.sequences;
    batch.logit_rows = pass.logit_rows;
    batch.first_logit_row = pass.first_logit_row;
    batch.kv = running_->memory->kv();
    batch.kv_layout = running_->problem->kv.layout;
  }

  Status run_pass(size_t index) {
    const Pass& pass = running_->problem->passes[index];
    set_batch(pass);
    running_->memory->fill(pass);
    const Bindings bindings{running_->memory->views(), &running_->batch};
    const auto fence = device_.submit(*running_->kernel, bindings, {});
    if (!fence) return failed(fence.error());
    const Status done = wait_for(*fence);
    if (!done) {
      device_.abandon(done.error());
      if (device_.stuck()) quarantine(running_);
      return failed(done.error());
    }
    const Status untouched = running_->memory->check_marks(pass);
    if (!untouched) return failed(untouched.error());
    compare(index);
    return {};
  }

  Status wait_for(const Fence& fence) const {
    WaitPolicy policy;
    policy.timeout = std::min(options_.task_timeout, kLongestLook);
    WatchedTime watched(2 * kLongestLook);
    while (true) {
      Status done = fence.wait(policy);
      if (done || fence.timeline->failed()) return done;
      if (watched.look() < options_.task_timeout) continue;
      return make_error(ErrorCode::kTimeout, "a device did not finish within {:.0f} ms",
                        to_ms(options_.task_timeout));
    }
  }

  void compare(size_t index) {
    const Problem& problem = *running_->problem;
    const Pass& pass = problem.passes[index];
    Values values(problem.graph, pass.rows_needed());
    for (size_t i = 0; i < problem.inputs.size(); ++i) {
      const int64_t width = problem.graph.tensor(problem.inputs[i]).width;
      const int64_t rows = static_cast<int64_t>(pass.inputs[i].size()) / width;
      for (int64_t r = 0; r < rows; ++r) {
        std::copy_n(pass.inputs[i].begin() + r * width, width, values.row(problem.inputs[i], r));
      }
    }
    for (const graph::OpId op : problem.program.ops) {
      compute(problem.graph, op, running_->batch, values, reference_kv_);
    }
    for (const graph::OpId op : problem.program.ops) {
      const graph::TensorId id = problem.graph.op(op).output;
      const auto& outputs = problem.program.outputs;
      const int64_t width = problem.graph.tensor(id).width;
      if (width == 0 || std::find(outputs.begin(), outputs.end(), id) == outputs.end()) continue;
      const RowRange rows = rows_written(problem.graph, op, running_->batch);
      std::vector<double> expected;
      for (int64_t r = rows.begin; r < rows.end; ++r) {
        expected.insert(expected.end(), values.row(id, r), values.row(id, r) + width);
      }
      note(nmse(running_->memory->read(id, rows), expected, width),
           fmt::format("{} {}, pass {}", to_string(problem.graph.op(op).kind),
                       problem.graph.tensor(id).name, index));
    }
  }

  void note(double value, std::string place) {
    if (!outcome_.place.empty() && value <= outcome_.nmse) return;
    outcome_.nmse = value;
    outcome_.place = std::move(place);
  }

  Status compare_kv() {
    const std::vector<float> got = load_cells(running_->problem->kv.layout, running_->memory->kv());
    const std::vector<float>& before = running_->problem->kv.values;
    std::vector<float> written;
    std::vector<double> expected;
    for (size_t i = 0; i < got.size(); ++i) {
      if (reference_kv_.values[i] != before[i]) {
        written.push_back(got[i]);
        expected.push_back(static_cast<double>(reference_kv_.values[i]));
      } else if (got[i] != before[i]) {
        return failed({ErrorCode::kDeviceFailed,
                       fmt::format("wrote {} over cell {} of the KV cache, which is not for it to "
                                   "write",
                                   got[i], i)});
      }
    }
    if (!written.empty()) note(nmse(written, expected, 1), "kv cache");
    return {};
  }

  Device& device_;
  const Case& case_;
  const RunOptions options_;
  std::shared_ptr<Running> running_;
  KvCells reference_kv_;
  Outcome outcome_;
};

}  // namespace

Result<Outcome> run_case(Device& device, const Case& c, const RunOptions& options) {
  return CaseRun(device, c, options).run();
}

}  // namespace troika::device::conformance
