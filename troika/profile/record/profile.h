// Profile: what was measured of a machine's devices on a model's shapes, as plain JSON that a
// person can read and diff. Planner and cost model learn from it what work costs here.
//
// Times are medians in microseconds on the device's own clock; GB = 1e9 bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "troika/base/result.h"

namespace troika::profile {

inline constexpr int kProfileVersion = 1;
inline constexpr size_t kMaxProfileBytes = size_t{16} << 20;
inline constexpr size_t kMaxProfiledDevices = 8;
// Of a product, in each direction.
inline constexpr int64_t kMaxExtent = int64_t{1} << 24;

// Up to so many rows take as long as reading weights, keys and values from the memory.
inline constexpr int64_t kFewRows = 8;

// One measured time.
struct Sample {
  double median_us = 0;
  double deviation_us = 0;  // the median of the distances from the median
  int64_t repeats = 0;
};

// Which operand of a product stays in place, on devices that can choose.
enum class Order { kWeightInPlace, kInputInPlace };
std::string_view to_string(Order order);  // "weight", "input"

// y[rows,n] = x[rows,k] W[n,k]^T within a task: without what the task costs by itself.
struct ProductPoint {
  int64_t rows = 1;
  int64_t n = 1;
  int64_t k = 1;
  std::string type;        // as stored: "Q4_1"
  double weight_bits = 4;  // stored for each weight, scales included
  Order order = Order::kWeightInPlace;
  Sample time;
};

// `rows` rows of one sequence that see `depth` tokens before them.
struct AttentionPoint {
  int64_t rows = 1;
  int64_t depth = 0;
  int64_t n_heads = 1;
  int64_t n_kv_heads = 1;
  int64_t head_dim = 1;
  std::string kv_type = "f32";
  Sample time;

  double keys() const;  // that a row sees, in the mean
  double macs() const;
  double bytes() const;  // inputs and outputs in FP32, keys and values once in 16 bits
};

struct ElementwisePoint {
  std::string op;  // of the graph: "rms_norm"
  int64_t rows = 1;
  int64_t width = 1;
  double bytes = 0;  // read and written
  Sample time;
};

// All operators of one layer in one task, in the mean over some layers.
struct LayerPoint {
  int64_t rows = 1;
  int64_t depth = 0;
  Sample time;
};

// Compiling a product alone, once.
struct BuildPoint {
  int64_t rows = 1;
  int64_t n = 1;
  int64_t k = 1;
  double build_us = 0;
  int64_t kept_bytes = 0;  // that the device holds for it
};

struct LaunchCosts {
  double submit_us = 0;   // of the calling thread
  double drained_us = 0;  // from submission to the start, by a device that had nothing to do
  double queued_us = 0;   // from the end of a task to the start of the next one
  double task_us = 0;     // of every task, on top of its operators
  double notice_us = 0;   // from the end of a task until a blocked caller runs on
};

// A point that no law was made from.
struct CheckPoint {
  int64_t rows = 1;
  int64_t n = 1;
  int64_t k = 1;
  Order order = Order::kWeightInPlace;
  double measured_us = 0;
  double predicted_us = 0;

  double error() const;  // |predicted - measured| / measured
};

struct DeviceProfile {
  std::string name;  // as named by the user: "cpu@0"
  std::string kind;  // "cpu", "gpu", "npu"
  std::string description;
  std::string version;
  std::vector<std::pair<std::string, std::string>> facts;
  std::vector<int64_t> cores;
  int64_t threads = 0;
  std::vector<int64_t> standard_rows;  // ascending; empty: any
  int64_t n_cut = 1;                   // outputs and inputs are to be cut on multiples of these
  int64_t k_cut = 1;
  bool exact = true;
  bool unified_memory = true;
  bool int8_inputs = false;
  // Found by measuring: rows, outputs and inputs cost as much as the next multiple of these.
  int64_t row_tile = 1;
  int64_t n_tile = 1;
  int64_t k_tile = 1;
  // The order of operands makes a difference: products were measured in both.
  bool chooses_order = false;
  double read_gbps = 0;  // of stored weights with one row, alone
  double copy_gbps = 0;  // of rows that are copied, read and written bytes together

  LaunchCosts launch;
  std::vector<ProductPoint> products;
  std::vector<AttentionPoint> attention;
  std::vector<ElementwisePoint> elementwise;
  std::vector<LayerPoint> layers;
  std::vector<BuildPoint> builds;
  std::vector<CheckPoint> checks;

  // The largest error of the checks; 0 without any.
  double stated_error() const;
};

// Two devices at work at once.
struct PairProfile {
  std::string first;
  std::string second;
  // Speed that each keeps of its own while both read stored weights, at most 1.
  double first_keeps = 1;
  double second_keeps = 1;
  double together_gbps = 0;
  // From the end of a task to the start of one of the other device that waits for it: in the queue,
  // and by a caller that blocks.
  double join_us = 0;
  double blocking_join_us = 0;
};

// A meter of power that the machine has: what it showed while profiling.
struct PowerMeter {
  std::string name;  // "package-0"
  std::string kind;  // "powercap", "hwmon", "battery"
  double mean_w = 0;
};

struct Machine {
  std::string cpu;
  int64_t cores = 0;
  std::string governor = "unknown";       // of the clocks
  std::string power_profile = "unknown";  // of the platform
  std::string power_source = "unknown";   // "ac", "battery"
  double clock_mhz = 0;                   // of the first core, 0: not told
  std::vector<PowerMeter> meters;         // empty: the machine has none

  // What a profile must be measured anew for when it changes.
  std::string power_mode() const;
};

// What of a model decides what is measured.
struct ProfiledModel {
  std::string name;
  std::string type;  // of most weights
  int64_t n_layers = 0;
  int64_t hidden = 0;
  int64_t n_heads = 0;
  int64_t n_kv_heads = 0;
  int64_t head_dim = 0;
  int64_t ffn = 0;
  int64_t n_vocab = 0;
  std::string kv_type = "f32";
};

struct Profile {
  std::string build;      // of the program that measured
  int64_t time = 0;       // when it began, in seconds since 1970
  bool complete = false;  // false: it was interrupted, and can be taken up again
  double took_s = 0;
  Machine machine;
  ProfiledModel model;
  std::vector<DeviceProfile> devices;
  std::vector<PairProfile> pairs;

  const DeviceProfile* device(std::string_view name) const;  // nullptr if there is none
};

// A profile of any bytes: kInvalidData naming the path of the field, in bounded time and memory.
// kUnsupported for another version.
Result<Profile> from_json(std::string_view text);
std::string to_json(const Profile& profile);
// The JSON schema of what from_json() takes.
std::string json_schema();

}  // namespace troika::profile
