#include "troika/cost/describe_profile.h"

#include <gtest/gtest.h>

#include "troika/cost/described_cost.h"
#include "troika/cost/profiled_cost.h"

namespace troika::cost {
namespace {

using profile::DeviceProfile;
using profile::Profile;

struct Extents {
  int64_t n;
  int64_t k;
};

// Of a layer: q and o; k and v; gate and up; down. And of the head.
constexpr Extents kShapes[] = {{64, 64}, {32, 64}, {256, 64}, {64, 256}};
constexpr Extents kHead = {4096, 64};

// A device with a slow way for one row, blocks of 16 rows, and 2 us for each product.
double product_us(int64_t rows, const Extents& e) {
  const int64_t blocks = rows == 1 ? 1 : (rows + 15) / 16 * 2;
  return 2 + static_cast<double>(blocks) * static_cast<double>(e.n * e.k) * 1e-3;
}

Profile measured() {
  Profile profile;
  profile.build = "test";
  profile.model = {"tiny", "Q4_1", 2, 64, 4, 2, 16, 256, 4096, "f32"};
  DeviceProfile device;
  device.name = "cpu@0";
  device.kind = "cpu";
  device.description = "a processor";
  device.read_gbps = 50;
  for (const Extents& e : kShapes) {
    for (const int64_t rows : {1, 2, 16, 17, 32, 64}) {
      device.products.push_back({rows, e.n, e.k, "Q4_1", 5, {}, {product_us(rows, e), 0, 3}});
    }
  }
  for (const int64_t quarters : {1, 2, 4}) {
    const Extents e{kHead.n * quarters / 4, kHead.k};
    device.products.push_back({1, e.n, e.k, "Q8_0", 8.5, {}, {3 * product_us(1, e), 0, 3}});
  }
  for (const int64_t depth : {0, 128, 1024}) {
    for (const int64_t rows : {1, 256}) {
      profile::AttentionPoint point{rows, depth, 4, 2, 16, "f32", {}};
      point.time.median_us = std::max(point.bytes() * 1e-4, point.macs() * 1e-5);
      device.attention.push_back(point);
    }
  }
  device.elementwise.push_back({"add", 32, 64, 1e5, {4, 0, 3}});
  device.elementwise.push_back({"add", 256, 64, 8e5, {32, 0, 3}});
  profile.devices.push_back(device);
  return profile;
}

soc::Soc described(const Profile& profile) {
  const auto soc = describe_profile(profile, "mine");
  EXPECT_TRUE(soc.has_value()) << (soc ? "" : soc.error().message);
  const auto again = soc::from_json(soc::to_json(*soc));
  EXPECT_TRUE(again.has_value()) << (again ? "" : again.error().message);
  return *again;
}

TEST(DescribeProfile, AUnitTakesForOneAndForFewRowsWhatWasMeasured) {
  const soc::Soc soc = described(measured());
  const DescribedCost cost(soc);
  const auto of = [&](int64_t rows, const Extents& e, std::string_view type, double bits) {
    return cost.product(0, {rows, e.n, e.k, type, bits, false})->work_us();
  };
  for (const int64_t rows : {1, 2, 16, 17, 32, 64}) {
    double simulated = 0;
    double taken = 0;
    for (const Extents& e : kShapes) {
      simulated += of(rows, e, "w4a16", 5);
      taken += product_us(rows, e);
    }
    EXPECT_NEAR(simulated, taken, 0.05 * taken) << rows;
  }
  EXPECT_NEAR(of(1, kHead, "w8a16", 8.5), 3 * product_us(1, kHead), 1);
  EXPECT_NEAR(of(1, kHead, "w16a16", 16), 3 * product_us(1, kHead), 1);  // as the nearest
}

TEST(DescribeProfile, AttentionOfOneRowIsReadingAndOfManyIsArithmetic) {
  const Profile profile = measured();
  const DescribedCost cost(described(profile));
  const auto profiled = ProfiledCost::create(profile);
  ASSERT_TRUE(profiled.has_value());
  for (const profile::AttentionPoint& p : profile.devices[0].attention) {
    if (p.depth == 0) continue;
    const double us = p.time.median_us;
    EXPECT_NEAR(cost.attention(0, p.macs(), p.bytes())->work_us(), us, 0.01 * us) << p.rows;
    EXPECT_NEAR(profiled->attention(0, p.macs(), p.bytes())->work_us(), us, 0.01 * us) << p.rows;
  }
  EXPECT_NEAR(cost.elementwise(0, 1e5).work_us(), 4, 0.01);
}

TEST(DescribeProfile, HoldsNoMoreRowsThanADescriptionMay) {
  Profile profile = measured();
  for (int64_t rows = 65; rows < 300; ++rows) {
    profile.devices[0].products.push_back(
        {rows, 64, 64, "Q4_1", 5, {}, {product_us(rows, {64, 64}), 0, 3}});
  }
  EXPECT_LE(described(profile).units[0].paths[0].rate_by_tokens->tokens.size(), 64u);
}

TEST(DescribeProfile, TimesThatCannotBeMakeADescriptionThatCan) {
  for (const double us : {1e-300, 1e-9, 1e10}) {
    Profile profile = measured();
    for (auto& point : profile.devices[0].products) point.time.median_us = us;
    for (auto& point : profile.devices[0].attention) point.time.median_us = us;
    for (auto& point : profile.devices[0].elementwise) point.time.median_us = us;
    described(profile);
  }
}

}  // namespace
}  // namespace troika::cost
