#include "troika/device/systolic/systolic_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "troika/device/cpu/kernels/kernels_reference.h"

namespace troika::device::systolic {
namespace {

using graph::OpKind;
using ::testing::HasSubstr;

constexpr int64_t kDepth = 96;
constexpr int64_t kOutputs = 40;

// y = W x, then z = y + y.
class SystolicDeviceTest : public ::testing::Test {
 protected:
  SystolicDeviceTest() : stored_(cpu::testing::Random(1).floats(kOutputs * kDepth)) {
    weight_.name = "blk.3.w";
    weight_.rows = kOutputs;
    weight_.cols = kDepth;
    weight_.data = reinterpret_cast<const std::byte*>(stored_.data());
    add_tensor("x", kDepth, -1);
    add_tensor("y", kOutputs, 0);
    add_tensor("z", kOutputs, 1);
    graph::Op product;
    product.kind = OpKind::kMatMul;
    product.layer = 3;
    product.inputs = {0};
    product.output = 1;
    product.weight = &weight_;
    graph::Op sum;
    sum.kind = OpKind::kAdd;
    sum.layer = 3;
    sum.inputs = {1, 1};
    sum.output = 2;
    graph_.ops = {product, sum};
  }

  void add_tensor(const char* name, int64_t width, graph::OpId producer) {
    graph::Tensor tensor;
    tensor.name = name;
    tensor.width = width;
    tensor.producer = producer;
    graph_.tensors.push_back(tensor);
  }

  static std::unique_ptr<SystolicDevice> open_device() { return std::move(*open({})); }

  Program program(int64_t max_rows, bool whole = true) const {
    Program program;
    program.graph = &graph_;
    program.ops = whole ? std::vector<graph::OpId>{0, 1} : std::vector<graph::OpId>{0};
    program.tensors = {2, 0, 1};  // in any order
    program.outputs = {whole ? 2 : 1};
    program.max_rows = max_rows;
    return program;
  }

  Status run(SystolicDevice& device, const Program& program, int64_t rows) {
    ASSIGN_OR_RETURN(const auto kernel, device.compile(program));
    return run(device, *kernel, rows);
  }

  Status run(SystolicDevice& device, const Kernel& kernel, int64_t rows) {
    BatchView batch;
    batch.n_rows = rows;
    const std::array<TensorView, 3> views = {view(z_), view(x_), view(y_)};
    ASSIGN_OR_RETURN(const Fence fence, device.submit(kernel, {views, &batch}, {}, {}));
    return fence.wait();
  }

  template <size_t N>
  static TensorView view(std::vector<std::array<float, N>>& rows) {
    return {reinterpret_cast<std::byte*>(rows.data()), sizeof(rows[0])};
  }

  std::vector<float> stored_;
  model::Weight weight_;
  graph::Graph graph_;
  // Rows lie further apart than they are wide.
  std::vector<std::array<float, kDepth + 4>> x_{64};
  std::vector<std::array<float, kOutputs + 2>> y_{64};
  std::vector<std::array<float, kOutputs>> z_{64};
};

TEST_F(SystolicDeviceTest, ComputesTheRowsOfTheBatchAndCountsThoseOfTheKernel) {
  const auto device = open_device();
  cpu::testing::Random random(2);
  for (auto& row : x_) {
    for (float& value : row) value = random.normal();
  }
  struct Case {
    int64_t max_rows, rows, m_tiles;
  };
  int64_t tiles = 0;
  for (const Case& c :
       {Case{1, 1, 1}, {32, 1, 1}, {32, 31, 1}, {64, 33, 2}, {64, 64, 2}, {1024, 33, 32}}) {
    SCOPED_TRACE(c.max_rows);
    z_.assign(64, {});
    const Status done = run(*device, program(c.max_rows), c.rows);
    ASSERT_TRUE(done.has_value()) << done.error().message;
    std::vector<float> got;
    std::vector<double> expected;
    for (size_t i = 0; i < static_cast<size_t>(c.rows); ++i) {
      for (size_t n = 0; n < kOutputs; ++n) {
        double sum = 0;
        for (size_t k = 0; k < kDepth; ++k) {
          sum += static_cast<double>(x_[i][k]) * stored_[n * kDepth + k];
        }
        expected.push_back(2 * sum);
        got.push_back(z_[i][n]);
      }
    }
    // Two inputs rounded to 11 bits: see array_test.cpp.
    EXPECT_LT(cpu::testing::nmse(got, expected), 2.0 / 3.0 / (2048.0 * 2048.0));
    tiles += c.m_tiles * 2 * 3;
    EXPECT_EQ(device->counts().tiles, tiles);
  }
}

TEST_F(SystolicDeviceTest, KeepsEitherOperandInPlace) {
  const auto device = open_device();
  ASSERT_TRUE(run(*device, program(64), 33).has_value());
  EXPECT_EQ(device->counts().loads, 2 * 3);
  Program other = program(64);
  other.input_stationary = true;
  ASSERT_TRUE(run(*device, other, 33).has_value());
  EXPECT_EQ(device->counts().loads, 2 * 3 + 2 * 3);  // N and M are cut in 2, K in 3
  other.max_rows = 1;
  ASSERT_TRUE(run(*device, other, 1).has_value());
  EXPECT_EQ(device->counts().loads, 2 * 3 + 2 * 3 + 3);
}

TEST_F(SystolicDeviceTest, HasKernelsForItsLengthsOnly) {
  const auto device = open_device();
  for (const int64_t rows : device->info().standard_rows) {
    EXPECT_TRUE(device->compile(program(rows)).has_value()) << rows;
  }
  for (const int64_t rows :
       {int64_t{-1}, int64_t{0}, int64_t{2}, int64_t{33}, int64_t{2048}, INT64_MAX}) {
    const auto kernel = device->compile(program(rows));
    ASSERT_FALSE(kernel.has_value());
    EXPECT_EQ(kernel.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(kernel.error().message, HasSubstr("1, 32, 64, 128, 256, 512, 1024"));
  }
  const Status too_many = run(*device, program(32), 33);
  ASSERT_FALSE(too_many.has_value());
  EXPECT_EQ(too_many.error().code, ErrorCode::kInvalidArgument);
}

TEST_F(SystolicDeviceTest, NamesTheProductWhoseInputIsBeyondFp16) {
  for (const bool whole : {true, false}) {  // the product's result stays inside, or is an output
    const auto device = open_device();
    x_[4][7] = 65504.0f;
    ASSERT_TRUE(run(*device, program(32, whole), 5).has_value());
    x_[4][7] = 65520.0f;
    ASSERT_TRUE(run(*device, program(32, whole), 4).has_value()) << "rows of padding are not read";
    const Status done = run(*device, program(32, whole), 5);
    ASSERT_FALSE(done.has_value());
    EXPECT_EQ(done.error().code, ErrorCode::kDeviceFailed);
    EXPECT_THAT(done.error().message, HasSubstr("mat_mul (y) of layer 3, row 4"));
    EXPECT_THAT(done.error().message, HasSubstr("device systolic"));
  }
}

TEST_F(SystolicDeviceTest, KernelsOfAllLengthsShareTheWeightsAndFreeThem) {
  const auto device = open_device();
  constexpr int64_t kTileBytes = 32 * 32 * 2 + 2 * 32 * 4;  // halves, scales and offsets
  constexpr int64_t kWeightBytes = 2 * 3 * kTileBytes;
  auto large = device->compile(program(1024));
  ASSERT_TRUE(large.has_value());
  const int64_t bytes = device->stats().own_bytes;
  EXPECT_GT(bytes, kWeightBytes);
  auto small = device->compile(program(1));
  ASSERT_TRUE(small.has_value());
  EXPECT_EQ(device->stats().own_bytes, bytes);
  large->reset();
  EXPECT_EQ(device->stats().own_bytes, bytes);
  small->reset();
  EXPECT_EQ(device->stats().own_bytes, bytes - kWeightBytes);
}

TEST(SystolicOptions, AreChecked) {
  SystolicOptions options;
  options.cores = {0, 1};
  const auto cores = open(options);
  ASSERT_FALSE(cores.has_value());
  EXPECT_EQ(cores.error().code, ErrorCode::kInvalidArgument);
  options = {};
  options.kernels = "abacus";
  const auto kernels = open(options);
  ASSERT_FALSE(kernels.has_value());
  EXPECT_THAT(kernels.error().message, HasSubstr("abacus"));
}

TEST(SystolicInfo, IsThatOfAnNpu) {
  const auto device = std::move(*open({}));
  const DeviceInfo& info = device->info();
  EXPECT_EQ(info.kind, DeviceKind::kNpu);
  EXPECT_FALSE(info.exact);
  EXPECT_TRUE(info.strided);
  EXPECT_EQ(info.n_tile, 32);
  EXPECT_EQ(info.k_tile, 32);
  EXPECT_FALSE(info.version.empty());
}

}  // namespace
}  // namespace troika::device::systolic
