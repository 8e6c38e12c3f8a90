#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "troika/device/cpu/kernels/kernels_reference.h"

namespace troika::device::cpu::testing {
namespace {

// One KV head of one sequence: a pool whose blocks are shuffled and full of NaN at first.
class Sequence {
 public:
  Sequence(const KernelTable& table, KvType type, int64_t group, int64_t head_dim, int64_t tokens)
      : table_(table),
        type_(type),
        group_(group),
        head_dim_(head_dim),
        tokens_(tokens),
        q_stride_(group * head_dim + 9),
        random_(static_cast<uint32_t>(group * 1000 + head_dim)),
        q_(random_.floats(tokens * q_stride_)),
        k_(random_.floats(tokens * head_dim)),
        v_(random_.floats(tokens * head_dim)) {
    const int64_t blocks = (tokens + kKvBlockTokens - 1) / kKvBlockTokens + 2;
    for (int64_t i = 0; i < blocks; ++i) block_table_.push_back(static_cast<int32_t>(i));
    std::reverse(block_table_.begin(), block_table_.end());
    const auto bytes = static_cast<size_t>(blocks * block_elements() * kv_type_bytes(type));
    k_pool_.assign(bytes, std::byte{0xff});  // NaN in either type
    v_pool_.assign(bytes, std::byte{0xff});
  }

  void write(int64_t from, int64_t to) {
    for (int64_t t = from; t < to; ++t) {
      const int64_t block = block_table_[static_cast<size_t>(t / kKvBlockTokens)];
      const int64_t at = block * block_elements() * kv_type_bytes(type_);
      const KvWriteArgs args{.k = k_.data() + t * head_dim_,
                             .v = v_.data() + t * head_dim_,
                             .head_dim = head_dim_,
                             .k_block = k_pool_.data() + at,
                             .v_block = v_pool_.data() + at,
                             .slot = t % kKvBlockTokens,
                             .kv_type = type_};
      table_.kv_write(args);
    }
  }

  // Rows from .. from + n - 1 into out, which has the layout of q.
  void attend(int64_t from, int64_t n, std::vector<float>& out) const {
    const Scratch scratch(table_.attention_scratch_floats(group_, head_dim_));
    AttentionArgs args;
    args.q = q_.data() + from * q_stride_;
    args.q_stride = q_stride_;
    args.n_rows = n;
    args.n_group = group_;
    args.head_dim = head_dim_;
    args.first_position = from;
    args.k = k_pool_.data();
    args.v = v_pool_.data();
    args.kv_type = type_;
    args.block_table = block_table_.data();
    args.scale = scale();
    args.out = out.data() + from * q_stride_;
    args.out_stride = q_stride_;
    args.scratch = scratch.get();
    table_.attention(args);
  }

  std::vector<float> empty() const { return std::vector<float>(q_.size(), 777.0f); }

  // Written values at once, all positions; gaps between rows are as in empty().
  std::vector<double> expected() const {
    std::vector<double> out(q_.size(), 777.0);
    for (int64_t t = 0; t < tokens_; ++t) {
      for (int64_t g = 0; g < group_; ++g) expect_one(t, t * q_stride_ + g * head_dim_, out);
    }
    return out;
  }

  float value(const std::vector<float>& from, int64_t t, int64_t d) const {
    const float f = from[static_cast<size_t>(t * head_dim_ + d)];
    return type_ == KvType::kF32 ? f : static_cast<float>(rounded_to_half(f));
  }
  const std::vector<float>& v() const { return v_; }
  float scale() const { return 1.0f / std::sqrt(static_cast<float>(head_dim_)); }

 private:
  int64_t block_elements() const { return kKvBlockTokens * head_dim_; }

  static double rounded_to_half(float f) {
    int exponent = 0;
    std::frexp(f, &exponent);
    const double unit = std::ldexp(1.0, std::max(exponent, -13) - 11);
    return std::nearbyint(f / unit) * unit;
  }

  void expect_one(int64_t t, int64_t at, std::vector<double>& out) const {
    std::vector<double> scores;
    for (int64_t s = 0; s <= t; ++s) {
      double sum = 0;
      for (int64_t d = 0; d < head_dim_; ++d) {
        sum += static_cast<double>(q_[static_cast<size_t>(at + d)]) * value(k_, s, d);
      }
      scores.push_back(sum * scale());
    }
    const double top = *std::max_element(scores.begin(), scores.end());
    double total = 0;
    for (double& s : scores) total += s = std::exp(s - top);
    for (int64_t d = 0; d < head_dim_; ++d) {
      double sum = 0;
      for (int64_t s = 0; s <= t; ++s) sum += scores[static_cast<size_t>(s)] * value(v_, s, d);
      out[static_cast<size_t>(at + d)] = sum / total;
    }
  }

  const KernelTable& table_;
  KvType type_;
  int64_t group_, head_dim_, tokens_, q_stride_;
  Random random_;
  std::vector<float> q_, k_, v_;
  std::vector<std::byte> k_pool_, v_pool_;
  std::vector<int32_t> block_table_;
};

using AttentionParam = std::tuple<const KernelTable*, KvType>;

class AttentionTest : public ::testing::TestWithParam<AttentionParam> {
 protected:
  const KernelTable& table() const { return *std::get<0>(GetParam()); }
  KvType type() const { return std::get<1>(GetParam()); }
};

TEST_P(AttentionTest, AnyChunkingGivesTheBitsOfOneRowAtATime) {
  struct Shape {
    int64_t group, head_dim, tokens;
  };
  for (const auto& [group, head_dim, tokens] :
       {Shape{1, 2, 70}, Shape{3, 64, 131}, Shape{4, 6, 33}, Shape{2, 22, 64}, Shape{7, 66, 40},
        Shape{9, 80, 97}, Shape{1, 128, 65}, Shape{50, 16, 35}, Shape{16, 96, 37}}) {
    Sequence sequence(table(), type(), group, head_dim, tokens);
    // One by one: when row t is computed, everything after it is still NaN.
    std::vector<float> alone = sequence.empty();
    for (int64_t t = 0; t < tokens; ++t) {
      sequence.write(t, t + 1);
      sequence.attend(t, 1, alone);
    }
    // Rounding of scores (about 2^-24 times their size) and of exp, relative to the output.
    ASSERT_LT(nmse(alone, sequence.expected()), 1e-12) << group << " x " << head_dim;

    for (const int64_t chunk : {tokens, int64_t{2}, int64_t{5}, int64_t{31}, int64_t{32}}) {
      std::vector<float> y = sequence.empty();
      for (int64_t t = 0; t < tokens; t += chunk) {
        sequence.attend(t, std::min(chunk, tokens - t), y);
      }
      for (size_t i = 0; i < y.size(); ++i) {
        ASSERT_EQ(y[i], alone[i]) << group << " x " << head_dim << " chunk " << chunk << " at "
                                  << i;
      }
    }
  }
}

TEST_P(AttentionTest, OneKeyGivesItsValue) {
  Sequence sequence(table(), type(), 3, 64, 1);
  sequence.write(0, 1);
  std::vector<float> y = sequence.empty();
  sequence.attend(0, 1, y);
  for (int64_t g = 0; g < 3; ++g) {
    for (int64_t d = 0; d < 64; ++d) {
      EXPECT_EQ(y[static_cast<size_t>(g * 64 + d)], sequence.value(sequence.v(), 0, d));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, AttentionTest,
                         ::testing::Combine(::testing::ValuesIn(available_kernels().begin(),
                                                                available_kernels().end()),
                                            ::testing::Values(KvType::kF32, KvType::kF16)),
                         [](const ::testing::TestParamInfo<AttentionParam>& p) {
                           return std::string(std::get<0>(p.param)->name) +
                                  (std::get<1>(p.param) == KvType::kF32 ? "_F32" : "_F16");
                         });

}  // namespace
}  // namespace troika::device::cpu::testing
