// Soc: a chip that need not be here, as a record of facts: its processors ("units"), their
// execution laws, what launching and synchronizing cost, one shared memory, power. Plain JSON
// (socs/*.json) in which every number has a unit, a source and a kind.
//
// Nothing in it is about a model, a length of prompt or a strategy: those meet the facts in cost/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "troika/base/result.h"
#include "troika/soc/figure.h"

namespace troika::soc {

inline constexpr int kSocVersion = 1;
inline constexpr size_t kMaxUnits = 8;
// Of a product, in each direction: keeps every cost finite and every count in an int64_t.
inline constexpr int64_t kMaxExtent = int64_t{1} << 24;

enum class UnitKind { kCpu, kGpu, kNpu };
std::string_view to_string(UnitKind kind);  // "cpu", "gpu", "npu"

// How a unit's time depends on the shape of a product y[M,N] = x[M,K] W[N,K]^T.
enum class Law {
  kLinear,  // any shape; time rises with the work
  kStatic,  // graphs of fixed shapes, tiles, one operand held in place
  kQuanta,  // precompiled kernels whose extents are multiples of a quantum
};
std::string_view to_string(Law law);  // "linear", "static", "quanta"

// Law::kStatic.
struct StaticGraphs {
  Figure tile;                  // rows, outputs and inputs are padded to multiples of it
  FigureList standard_lengths;  // tokens for which graphs are built beforehand
  Figure build_base;            // ms to build one graph: base + per_token * tokens
  Figure build_per_token;       // ms/token
  // The rate holds for slices of up to so many inputs; beyond, time grows with inputs / this.
  std::optional<Figure> full_rate_inputs;
  // With the weight held in place instead of the input, time is max(1, this * N / K) times as long.
  std::optional<Figure> weight_stationary;
};

// Law::kQuanta.
struct Quanta {
  Figure tokens;
  Figure outputs;
  Figure inputs;
};

// One way in which a unit computes products.
struct Path {
  std::vector<std::string> types;  // "w4a16": bits of weights and activations
  bool integer = false;            // activations are rounded to integers
  int64_t from_tokens = 1;
  int64_t to_tokens = 0;  // 0: no end
  // Rows are padded to multiples of it, whatever the unit's law says.
  std::optional<Figure> row_tile;
  Figure rate;  // TFLOPS, two operations for a multiply-add
  // TFLOPS with so many rows, none above `rate`. Between two of them time is linear in rows, below
  // the first and above the last the rate is theirs. None: always `rate`.
  std::optional<FigureCurve> rate_by_tokens;
  std::optional<Figure> overhead;  // us on top of each product, whatever its extents
  // GB/s at which packed weights can be taken in, where that is less than the memory gives.
  std::optional<Figure> stream;
  // ns for each weight that is unpacked, once for up to `unpack_tokens` tokens; in proportion to
  // the tokens below that.
  std::optional<Figure> unpack;
  std::optional<Figure> unpack_tokens;
  // us on top for a product that runs by itself: submission to a drained queue, notice of its end.
  Figure alone;
};

// While computing, on top of the chip's idle power.
struct ActivePower {
  Figure compute;  // W, when bound by arithmetic
  Figure memory;   // W, when bound by memory
  // W, while it has work that waits or is being launched.
  std::optional<Figure> waiting;
};

// A cache that relieves the memory: activations of an operator that fit stay there.
struct Cache {
  Figure size;       // MB
  Figure bandwidth;  // GB/s
};

struct Unit {
  std::string name;  // unique in the chip
  UnitKind kind = UnitKind::kCpu;
  std::string description;
  std::string device;          // of Troika that drives it, "openvino:NPU"; empty: not said
  bool only_products = false;  // everything else runs on other units, so that its results cross
  std::vector<Path> paths;     // empty: it controls, and computes no products
  Figure bandwidth;            // GB/s of the memory that it reaches alone
  Law law = Law::kLinear;
  std::optional<StaticGraphs> static_graphs;
  std::optional<Quanta> quanta;
  std::optional<Figure> attention_rate;  // TFLOPS
  // GB/s at which attention takes in keys and values, where that is less than the memory gives.
  std::optional<Figure> attention_stream;
  std::optional<Cache> cache;
  std::optional<Figure> elementwise_traffic;  // times the bytes that norms and sums need at least
  std::optional<Figure> operator_overhead;    // us on top of each operator
  Figure launch_queued;                       // us to submit to a queue that is not empty
  Figure launch_drained;                      // us to submit to one that is
  // The part of its work by which a task is longer whose queue had run dry: it waited for another
  // unit.
  std::optional<Figure> drained_stall;
  std::optional<Figure> queue_depth;      // tasks that are submitted ahead; none: all
  std::optional<Figure> datapath_switch;  // us between products on different paths
  std::optional<Figure> weights_switch;   // us between products of different weights on one path
  // The part of its speed in arithmetic that it keeps while another unit works: shared power.
  std::optional<Figure> speed_among_others;
  std::optional<Figure> turbo_speed;     // in arithmetic, instead of the chip's
  std::optional<Figure> session_memory;  // GB of weights in one session of its driver
  std::optional<Figure> sessions;        // that there can be; none: one
  std::optional<ActivePower> power;
};

// The device of Troika that drives a unit: as described, else by its kind; empty if none is known
// to.
std::string device_of(const Unit& unit);

// Bandwidth that units reach together.
struct Together {
  std::vector<std::string> units;
  Figure bandwidth;  // GB/s
};

struct Memory {
  Figure peak;       // GB/s
  Figure reachable;  // GB/s, by all units together
  std::vector<Together> together;
  std::optional<Figure> capacity;  // GB
};

// What it costs to join the work of two units.
struct Sync {
  Figure fast;      // us: by predicted waiting and a flag in shared memory
  Figure blocking;  // us: by the driver's blocking call
};

// Above the sustained speed until an amount of energy is spent.
struct Turbo {
  Figure speed;                 // times the sustained speed in arithmetic
  Figure budget;                // J that the whole chip draws until it ends
  std::optional<Figure> power;  // times the active power; none: as the speed
};

// What the software stores for each weight, scales included.
struct StoredWeights {
  Figure bits;
  Figure head_bits;  // of the head
};

// Of a stack: a unit of the chip as it is, or with other facts.
struct StackUnit {
  std::string name;
  std::optional<Unit> unit;
};

// Other software on the same chip: what differs, and the units that it drives.
struct Stack {
  std::string name;
  std::string description;
  std::optional<Sync> sync;
  std::optional<Figure> pass_overhead;
  std::optional<StoredWeights> stored_weights;
  std::vector<StackUnit> units;
};

struct Soc {
  std::string name;  // "snapdragon-8-gen-3"
  std::string description;
  std::string stack;  // the software whose speeds these are
  Memory memory;
  Sync sync;
  std::optional<Figure> pass_overhead;  // us before and after the work of a pass
  std::optional<StoredWeights> stored_weights;
  Figure idle_power;  // W
  std::optional<Turbo> turbo;
  std::vector<Unit> units;
  std::vector<Stack> stacks;  // others than `stack`

  // nullopt if there is none of this name.
  std::optional<size_t> unit(std::string_view unit_name) const;
};

// A description of any bytes: kInvalidData naming the path of the field, in bounded time and
// memory. kUnsupported for another version.
Result<Soc> from_json(std::string_view text);
std::string to_json(const Soc& soc);

// The chip under one of its stacks; "default" is the description's own. kNotFound listing them.
Result<Soc> with_stack(const Soc& soc, std::string_view stack);

}  // namespace troika::soc
