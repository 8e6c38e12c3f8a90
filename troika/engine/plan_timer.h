// PlanTimer: runs passes by any bucket of a plan on an engine's devices, and tells what they take.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "troika/engine/engine.h"

namespace troika::engine {

// Borrows the engine, which must not be used otherwise meanwhile. Not shared between threads.
class PlanTimer {
 public:
  explicit PlanTimer(Engine& engine);
  ~PlanTimer();
  PlanTimer(const PlanTimer&) = delete;
  PlanTimer& operator=(const PlanTimer&) = delete;

  // From then on kCancelled: no pass is begun and nothing is compiled. What runs is waited for.
  void set_deadline(std::optional<TimePoint> deadline) { deadline_ = deadline; }
  // Called before each compilation; may be empty.
  void set_tick(std::function<void()> tick) { tick_ = std::move(tick); }
  // Frees what the buckets timed so far were compiled to.
  void forget() { candidates_.clear(); }

  // A pass of `rows` rows after `depth` tokens, us; of one row the mean of some steps. Each
  // bucket's first pass, in which its kernels are compiled and its memory is touched, is done
  // before and not counted. kContextFull if that is more than the engine's context; the executor's
  // errors; kDeviceFailed for good once the engine has put a device aside.
  Result<double> time(const plan::RowsBucket& bucket, int64_t rows, int64_t depth);

 private:
  struct Candidate {
    std::string bucket;  // as JSON
    std::unique_ptr<runtime::Executor> executor;
    bool warm = false;
  };

  Result<Candidate*> candidate_for(const plan::RowsBucket& bucket, int64_t rows);
  bool cancelled() const;
  bool is_late() const;
  Status bring_to(int64_t rows, int64_t depth);
  Result<double> run(runtime::Executor& executor, int64_t rows, int64_t depth);

  Engine::State& state_;
  runtime::SequenceId sequence_;
  std::list<Candidate> candidates_;  // the latest used first
  std::optional<TimePoint> deadline_;
  std::function<void()> tick_;
  bool compiling_ = false;
  bool device_lost_ = false;
};

}  // namespace troika::engine
