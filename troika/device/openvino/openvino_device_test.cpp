#include "troika/device/openvino/openvino_device.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "tests/repository.h"
#include "troika/device/cpu/cpu_device.h"
#include "troika/device/openvino/program_rig.h"
#include "troika/model/model.h"
#include "troika/model/random_weights.h"

namespace troika::device::openvino {
namespace {

using graph::Graph;
using graph::Op;
using graph::OpKind;
using graph::RowCount;
using graph::TensorId;
using model::TensorType;
using testing::nmse;
using testing::program_of;
using testing::Rig;
using testing::RowGap;

// FP32 on both sides, with different orders of summation.
constexpr double kBound = 1e-10;

std::unique_ptr<Device> open_cpu() { return std::move(*cpu::open({})); }

class OpenVinoDeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    OpenVinoOptions options;
    options.plugin = Plugin::kCpu;
    options.weights_as_inputs = weights_as_inputs_;
    auto opened = open(options);
    if (!opened) GTEST_SKIP() << opened.error().message;
    device_ = std::move(*opened);
  }

  // The same program on `openvino` and on `cpu`, on the same numbers.
  void expect_same(const Graph& graph, const Program& program, int64_t n_rows,
                   RowGap gap = RowGap::kToCacheLine, int64_t first_position = 0) {
    Rig got(graph, program.max_rows, n_rows, first_position, gap);
    Rig expected(graph, program.max_rows, n_rows, first_position, gap);
    const Status ran = got.run(*device_, program);
    ASSERT_TRUE(ran.has_value()) << ran.error().message;
    ASSERT_TRUE(expected.run(*cpu_, program).has_value());
    for (const TensorId output : program.outputs) {
      if (graph.tensor(output).width == 0) continue;
      EXPECT_LT(nmse(got, expected, output), kBound) << graph.tensor(output).name;
    }
    ASSERT_EQ(got.kv().size(), expected.kv().size());
    for (size_t i = 0; i < got.kv().size(); ++i) {
      ASSERT_NEAR(got.kv()[i], expected.kv()[i], 1e-3) << "kv cache at " << i;
    }
  }

  bool weights_as_inputs_ = false;
  std::unique_ptr<Device> device_;
  const std::unique_ptr<Device> cpu_ = open_cpu();
};

// A graph put together by hand.
class Sketch {
 public:
  TensorId input(int64_t width) {
    graph::Tensor tensor;
    tensor.name = std::string("x");
    tensor.width = width;
    graph_.tensors.push_back(tensor);
    return static_cast<TensorId>(graph_.tensors.size() - 1);
  }
  TensorId window(TensorId of, int64_t begin, int64_t width) {
    const TensorId id = input(width);
    graph_.tensors.back().window_of = of;
    graph_.tensors.back().window_begin = begin;
    return id;
  }
  Op& op(OpKind kind, std::vector<TensorId> inputs, int64_t width) {
    const TensorId output = input(width);
    return op_into(kind, std::move(inputs), output);
  }
  Op& op_into(OpKind kind, std::vector<TensorId> inputs, TensorId output) {
    Op op;
    op.kind = kind;
    op.inputs = std::move(inputs);
    op.output = output;
    graph_.tensors[static_cast<size_t>(output)].name = std::string(to_string(kind));
    graph_.tensors[static_cast<size_t>(output)].producer =
        static_cast<graph::OpId>(graph_.ops.size());
    graph_.ops.push_back(op);
    return graph_.ops.back();
  }
  const model::Weight* weight(TensorType type, int64_t rows, int64_t cols) {
    auto weight = std::make_unique<Stored>();
    weight->weight.name = std::string("w");
    weight->weight.type = type;
    weight->weight.rows = rows;
    weight->weight.cols = cols;
    weight->bytes.resize(static_cast<size_t>(weight->weight.bytes()));
    model::RandomWeights random(7, std::to_string(weights_.size()));
    random.fill(type, 0.05f, weight->bytes);
    weight->weight.data = weight->bytes.data();
    weights_.push_back(std::move(weight));
    return &weights_.back()->weight;
  }
  TensorId product(TensorId x, const model::Weight* weight) {
    Op& product = op(OpKind::kMatMul, {x}, weight->rows);
    product.weight = weight;
    return product.output;
  }
  const Graph& graph() const { return graph_; }
  Program program(int64_t max_rows) const {
    return program_of(graph_, 0, graph_.ops.size(), max_rows);
  }

 private:
  struct Stored {
    model::Weight weight;
    std::vector<std::byte> bytes;
  };
  Graph graph_;
  std::vector<std::unique_ptr<Stored>> weights_;
};

TEST_F(OpenVinoDeviceTest, ProductsOfEveryTypeAndOddSizes) {
  struct Shape {
    int64_t n, k;
  };
  for (const TensorType type : model::kTensorTypes) {
    for (Shape shape : {Shape{64, 64}, Shape{37, 96}, Shape{1, 32}, Shape{576, 1536}}) {
      shape.k = std::max<int64_t>(shape.k, model::traits(type).block_weights);
      SCOPED_TRACE(fmt::format("{} N {} K {}", model::traits(type).name, shape.n, shape.k));
      Sketch sketch;
      sketch.product(sketch.input(shape.k), sketch.weight(type, shape.n, shape.k));
      expect_same(sketch.graph(), sketch.program(1), 1);
      expect_same(sketch.graph(), sketch.program(64), 64);
      expect_same(sketch.graph(), sketch.program(32), 5);
    }
  }
}

TEST_F(OpenVinoDeviceTest, SlicesOfProducts) {
  for (const TensorType type : model::kTensorTypes) {
    SCOPED_TRACE(model::traits(type).name);
    Sketch sketch;
    const int64_t unit = std::max(32, model::traits(type).block_weights);
    const model::Weight* weight = sketch.weight(type, 96, 6 * unit);
    Op& product = sketch.op(OpKind::kMatMul, {sketch.input(2 * unit)}, 33);
    product.weight = weight;
    product.n_begin = 40;
    product.k_begin = 3 * unit;
    expect_same(sketch.graph(), sketch.program(32), 31);
  }
}

// The row operators, each alone and behind each other.
TEST_F(OpenVinoDeviceTest, RowOperators) {
  for (const int64_t width : {64, 72, 7}) {
    SCOPED_TRACE(width);
    Sketch sketch;
    const TensorId x = sketch.input(width);
    const TensorId y = sketch.input(width);
    Op& norm = sketch.op(OpKind::kRmsNorm, {x}, width);
    norm.eps = 1e-5f;
    norm.weight = sketch.weight(TensorType::kF32, 1, width);
    sketch.op(OpKind::kSiluMul, {x, y}, width);
    sketch.op(OpKind::kAdd, {x, y}, width);
    sketch.op(OpKind::kAdd, {x, y, x, y}, width);
    sketch.op(OpKind::kConcat, {x, y}, 2 * width);
    sketch.op(OpKind::kConcat, {y}, width);
    for (size_t op = 0; op < sketch.graph().ops.size(); ++op) {
      SCOPED_TRACE(to_string(sketch.graph().ops[op].kind));
      expect_same(sketch.graph(), program_of(sketch.graph(), op, op + 1, 32), 32);
    }
    expect_same(sketch.graph(), sketch.program(1), 1);
    expect_same(sketch.graph(), sketch.program(64), 33);
  }
}

TEST_F(OpenVinoDeviceTest, RopeOfEveryKindOfHead) {
  struct Shape {
    int64_t heads, head_dim, rope_dim;
  };
  for (const auto pairs : {model::RopePairs::kAdjacent, model::RopePairs::kHalves}) {
    for (const Shape shape : {Shape{9, 64, 64}, Shape{1, 96, 96}, Shape{3, 80, 40},
                              Shape{7, 20, 20}, Shape{3, 48, 32}}) {
      SCOPED_TRACE(
          fmt::format("{} heads of {}, {} turned", shape.heads, shape.head_dim, shape.rope_dim));
      Sketch sketch;
      const int64_t width = shape.heads * shape.head_dim;
      const TensorId x = sketch.input(width);
      Op& rope = sketch.op(OpKind::kRope, {x, sketch.input(shape.rope_dim)}, width);
      rope.heads.n_heads = shape.heads;
      rope.heads.head_dim = shape.head_dim;
      rope.heads.rope_dim = shape.rope_dim;
      rope.heads.rope_pairs = pairs;
      expect_same(sketch.graph(), sketch.program(1), 1);
      expect_same(sketch.graph(), sketch.program(32), 30);
    }
  }
}

// Two products write windows of one tensor, a third reads all of it, a fourth a window.
TEST_F(OpenVinoDeviceTest, WindowsOfATensorGoThroughMemory) {
  for (const int64_t rows : {int64_t{1}, int64_t{32}}) {
    Sketch sketch;
    const TensorId x = sketch.input(64);
    const TensorId whole = sketch.input(96);
    const TensorId left = sketch.window(whole, 0, 32);
    const TensorId right = sketch.window(whole, 32, 64);
    sketch.op_into(OpKind::kMatMul, {x}, left).weight = sketch.weight(TensorType::kQ4_1, 32, 64);
    sketch.op_into(OpKind::kMatMul, {x}, right).weight = sketch.weight(TensorType::kQ4_0, 64, 64);
    sketch.product(whole, sketch.weight(TensorType::kQ8_0, 48, 96));
    sketch.product(right, sketch.weight(TensorType::kF32, 40, 64));
    expect_same(sketch.graph(), sketch.program(rows), rows);
  }
}

// Every stage of whole models, and all of a layer at once.
TEST_F(OpenVinoDeviceTest, StagesOfModelsOfOddShapes) {
  size_t models = 0;
  for (const auto& file : std::filesystem::directory_iterator(repository_path("tests/models"))) {
    SCOPED_TRACE(file.path().filename());
    auto loaded = model::Model::load(file.path());
    ASSERT_TRUE(loaded.has_value());
    const auto graph = graph::build(*loaded);
    ASSERT_TRUE(graph.has_value());
    size_t first = 0;
    for (size_t op = 1; op <= graph->ops.size(); ++op) {
      const auto& ops = graph->ops;
      if (op < ops.size() && ops[op].stage == ops[first].stage) continue;
      SCOPED_TRACE(to_string(ops[first].stage));
      expect_same(*graph, program_of(*graph, first, op, 1), 1, RowGap::kToCacheLine, 70);
      expect_same(*graph, program_of(*graph, first, op, 64), 61, RowGap::kToCacheLine, 5);
      first = op;
    }
    expect_same(*graph, program_of(*graph, 0, graph->ops.size(), 32), 32);
    ++models;
  }
  EXPECT_GE(models, 11u);
}

TEST_F(OpenVinoDeviceTest, StagesOfTheDefaultModel) {
  auto loaded = model::Model::load(repository_path("models/SmolLM2-135M-Instruct.Q4_1.gguf"));
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  const auto graph = graph::build(*loaded);
  ASSERT_TRUE(graph.has_value());
  const auto& ops = graph->ops;
  const auto begin =
      std::find_if(ops.begin(), ops.end(), [](const Op& op) { return op.layer == 7; });
  const auto end = std::find_if(begin, ops.end(), [](const Op& op) { return op.layer == 8; });
  const auto first = static_cast<size_t>(begin - ops.begin());
  const auto last = static_cast<size_t>(end - ops.begin());
  for (const int64_t rows : {1, 128}) {
    const Program layer = program_of(*graph, first, last, rows);
    expect_same(*graph, layer, rows);
  }
  EXPECT_EQ(device_->stats().copies, 0);
  EXPECT_EQ(device_->stats().copy_bytes, 0);
}

class OpenVinoWeightInputsTest : public OpenVinoDeviceTest {
 protected:
  OpenVinoWeightInputsTest() { weights_as_inputs_ = true; }
};

TEST_F(OpenVinoWeightInputsTest, StagesOfModelsOfOddShapes) {
  for (const char* const file : {"f32-odd.gguf", "f16-untied.gguf", "mixed-types.gguf"}) {
    SCOPED_TRACE(file);
    auto loaded = model::Model::load(repository_path(std::string("tests/models/") + file));
    ASSERT_TRUE(loaded.has_value());
    const auto graph = graph::build(*loaded);
    ASSERT_TRUE(graph.has_value());
    for (const int64_t rows : {int64_t{1}, int64_t{64}}) {
      expect_same(*graph, program_of(*graph, 0, graph->ops.size(), rows), rows);
    }
  }
}

// Slices along N are inputs, too; those along K are not, for their rows lie apart.
TEST_F(OpenVinoWeightInputsTest, SlicesOfProducts) {
  for (const TensorType type : {TensorType::kF16, TensorType::kF32}) {
    for (const int64_t k_begin : {0, 96}) {
      SCOPED_TRACE(fmt::format("{} from input {}", model::traits(type).name, k_begin));
      Sketch sketch;
      const int64_t width = k_begin == 0 ? 192 : 64;
      Op& product = sketch.op(OpKind::kMatMul, {sketch.input(width)}, 33);
      product.weight = sketch.weight(type, 96, 192);
      product.n_begin = 40;
      product.k_begin = k_begin;
      for (const int64_t rows : {int64_t{1}, int64_t{32}}) {
        expect_same(sketch.graph(), sketch.program(rows), rows);
      }
    }
  }
}

// No copy of a weight, and one graph for all layers of a shape.
TEST_F(OpenVinoWeightInputsTest, HoldsNoWeights) {
  Sketch sketch;
  const TensorId x = sketch.input(512);
  for (int i = 0; i < 3; ++i) sketch.product(x, sketch.weight(TensorType::kF32, 1024, 512));
  constexpr int64_t kWeightBytes = 1024 * 512 * 4;
  std::vector<std::unique_ptr<Kernel>> kernels;
  for (size_t i = 0; i < 3; ++i) {
    auto kernel = device_->compile(program_of(sketch.graph(), i, i + 1, 32));
    ASSERT_TRUE(kernel.has_value()) << kernel.error().message;
    kernels.push_back(*std::move(kernel));
  }
  EXPECT_EQ(device_->stats().own_bytes, 32 * 1024 * 4);  // one graph's output
  EXPECT_LT(device_->stats().own_bytes, kWeightBytes / 8);
}

// Rows that are no multiple of a cache line, or further apart than they need be, are copied, and
// the copies are counted.
TEST_F(OpenVinoDeviceTest, CopiesRowsWithGapsAndCountsThem) {
  Sketch sketch;
  const TensorId x = sketch.input(72);
  sketch.op(OpKind::kAdd, {x, x}, 72);
  expect_same(sketch.graph(), sketch.program(128), 100);
  EXPECT_EQ(device_->stats().copies, 2);
  EXPECT_EQ(device_->stats().copy_bytes, 2 * 100 * 72 * 4);
  EXPECT_EQ(device_->stats().own_bytes, 0);  // the kernel is gone
  expect_same(sketch.graph(), sketch.program(1), 1);
  EXPECT_EQ(device_->stats().copies, 2);
  Sketch aligned;
  aligned.op(OpKind::kAdd, {aligned.input(64), aligned.input(64)}, 64);
  expect_same(aligned.graph(), aligned.program(128), 100);
  EXPECT_EQ(device_->stats().copies, 2);
  expect_same(aligned.graph(), aligned.program(128), 100, RowGap::kMore);
  EXPECT_EQ(device_->stats().copies, 5);
}

// A task's results may lie where its inputs do, in memory of the same kernel's other tasks, or
// wherever else.
TEST_F(OpenVinoDeviceTest, AnyMemoryWillDo) {
  Sketch sketch;
  const TensorId x = sketch.input(64);
  const TensorId normed = sketch.product(x, sketch.weight(TensorType::kF32, 64, 64));
  sketch.op(OpKind::kAdd, {normed, x}, 64);
  const Program program = sketch.program(128);
  const auto kernel = device_->compile(program);
  ASSERT_TRUE(kernel.has_value());
  std::vector<std::unique_ptr<Rig>> rigs;
  for (uint32_t i = 0; i < 20; ++i) {
    rigs.push_back(std::make_unique<Rig>(sketch.graph(), 128, 128, 0, RowGap::kToCacheLine, i));
  }
  for (int round = 0; round < 2; ++round) {
    for (uint32_t i = 0; i < 20; ++i) {
      Rig& got = *rigs[i];
      Rig expected(sketch.graph(), 128, 128, 0, RowGap::kToCacheLine, i);
      ASSERT_TRUE(got.run(*device_, **kernel, program).has_value());
      ASSERT_TRUE(expected.run(*cpu_, program).has_value());
      EXPECT_LT(nmse(got, expected, program.outputs[0]), kBound);
    }
  }
  EXPECT_EQ(device_->stats().copies, 0);

  // The sum over the input, as no plan asks for it.
  Rig expected(sketch.graph(), 128, 128);
  Rig got(sketch.graph(), 128, 128);
  ASSERT_TRUE(expected.run(*cpu_, program).has_value());
  std::vector<TensorView> views;
  for (const TensorId id : program.tensors) views.push_back(got.view(id));
  views[2] = views[0];
  const auto fence = device_->submit(**kernel, {views, &got.batch()}, {});
  ASSERT_TRUE(fence && fence->wait());
  for (int64_t r = 0; r < 128; ++r) {
    for (size_t i = 0; i < 64; ++i) {
      ASSERT_NEAR(got.row(x, r)[i], expected.row(program.outputs[0], r)[i], 1e-4);
    }
  }
  EXPECT_EQ(device_->stats().copies, 1);
}

TEST_F(OpenVinoDeviceTest, EqualGraphsAreCompiledOnce) {
  Sketch sketch;
  sketch.product(sketch.input(64), sketch.weight(TensorType::kQ4_1, 64, 64));
  const auto first = device_->compile(sketch.program(64));
  ASSERT_TRUE(first.has_value());
  const int64_t once = device_->stats().own_bytes;
  EXPECT_GT(once, 2 * 64 * 64 * 6 / 8);
  const auto again = device_->compile(sketch.program(64));
  const auto longer = device_->compile(sketch.program(512));
  ASSERT_TRUE(again && longer);
  EXPECT_EQ(device_->stats().own_bytes, once);
  const auto shorter = device_->compile(sketch.program(1));
  ASSERT_TRUE(shorter.has_value());
  EXPECT_GT(device_->stats().own_bytes, once);
}

TEST_F(OpenVinoDeviceTest, RefusesWhatItCannotDo) {
  Sketch sketch;
  const model::Weight* weight = sketch.weight(TensorType::kQ4_0, 32, 64);
  sketch.product(sketch.input(64), weight);
  const auto odd = device_->compile(sketch.program(100));
  ASSERT_FALSE(odd.has_value());
  EXPECT_EQ(odd.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(odd.error().message.find("100 rows"), std::string::npos) << odd.error().message;

  Sketch cut;
  Op& product = cut.op(OpKind::kMatMul, {cut.input(48)}, 32);
  product.weight = weight;
  const auto refused = device_->compile(cut.program(1));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);

  // OpenVINO finds that shapes contradict each other.
  Sketch wrong;
  wrong.op(OpKind::kAdd, {wrong.input(48), wrong.input(64)}, 64);
  const auto failed = device_->compile(wrong.program(64));
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().code, ErrorCode::kDeviceFailed);
  EXPECT_EQ(failed.error().message.find('\n'), std::string::npos);
  EXPECT_FALSE(device_->lost());
}

TEST_F(OpenVinoDeviceTest, NotANumberLosesTheDevice) {
  Sketch sketch;
  const TensorId x = sketch.input(64);
  sketch.op(OpKind::kAdd, {x, x}, 64);
  Rig rig(sketch.graph(), 64, 10);
  rig.row(x, 30)[0] = std::nanf("");  // in the padding
  ASSERT_TRUE(rig.run(*device_, sketch.program(64)).has_value());
  rig.row(x, 9)[5] = std::nanf("");
  const Status status = rig.run(*device_, sketch.program(64));
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, ErrorCode::kDeviceFailed);
  EXPECT_NE(status.error().message.find("row 9"), std::string::npos) << status.error().message;
  EXPECT_TRUE(device_->lost());
}

TEST_F(OpenVinoDeviceTest, KernelsMayGoAfterTheDevice) {
  Sketch sketch;
  sketch.product(sketch.input(72), sketch.weight(TensorType::kF32, 64, 72));
  const Program program = sketch.program(64);
  const auto kernel = device_->compile(program);
  ASSERT_TRUE(kernel.has_value());
  Rig rig(sketch.graph(), 64, 64);
  ASSERT_TRUE(rig.run(*device_, **kernel, program).has_value());
  device_.reset();
}

// What is in the cache is used only if it is right; whatever is there, the results are.
TEST_F(OpenVinoDeviceTest, ADamagedCacheIsCompiledAgain) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / fmt::format("openvino-cache-{}", getpid());
  OpenVinoOptions options;
  options.plugin = Plugin::kCpu;
  options.cache_dir = folder.string();
  Sketch sketch;
  sketch.product(sketch.input(64), sketch.weight(TensorType::kQ4_1, 96, 64));
  const auto run = [&] {
    auto opened = open(options);
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    device_ = std::move(*opened);
    expect_same(sketch.graph(), sketch.program(32), 32);
  };
  run();
  fs::path file;
  for (const auto& entry : fs::directory_iterator(folder)) file = entry.path();
  ASSERT_FALSE(file.empty());
  const auto size = fs::file_size(file);
  // A file that is written again is another file; one that is used is marked as used.
  const auto identity = [&] {
    struct stat status {};
    EXPECT_EQ(stat(file.c_str(), &status), 0);
    return status.st_ino;
  };
  const auto written = identity();
  run();  // from the cache
  EXPECT_EQ(identity(), written);
  for (const uintmax_t length : {uintmax_t{0}, uintmax_t{40}, size / 2, size - 1}) {
    fs::resize_file(file, length);
    run();
    EXPECT_NE(fs::file_size(file), length);
  }
  std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).seekp(300) << "garbage";
  run();
  fs::remove_all(folder);
}

}  // namespace
}  // namespace troika::device::openvino
