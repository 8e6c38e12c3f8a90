// That docs/devices.md, which scripts/describe_devices writes, tells of the devices, operators,
// types and bounds that there are.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "tests/repository.h"
#include "troika/device/conformance/bounds.h"
#include "troika/device/conformance/catalogue.h"
#include "troika/device/registry/registry.h"

namespace troika::device {
namespace {

using Cells = std::vector<std::string>;

constexpr const char* kOutdated = "docs/devices.md is outdated: run scripts/describe_devices";

Cells split(const std::string& line) {
  Cells cells;
  std::stringstream rest(line.substr(1));
  for (std::string cell; std::getline(rest, cell, '|');) {
    const size_t begin = cell.find_first_not_of(' ');
    const size_t end = cell.find_last_not_of(' ');
    cells.push_back(begin == std::string::npos ? "" : cell.substr(begin, end - begin + 1));
  }
  return cells;
}

// The rows of the first table whose first column has this title, its head first.
std::vector<Cells> table(const std::string& title) {
  std::ifstream page(repository_path("docs/devices.md"));
  std::vector<Cells> rows;
  for (std::string line; std::getline(page, line);) {
    const bool row = line.starts_with("|");
    if (!row && !rows.empty()) break;
    if (!row || line.starts_with("|---")) continue;
    if (rows.empty() && split(line).front() != title) continue;
    rows.push_back(split(line));
  }
  return rows;
}

std::vector<std::string> device_names() {
  std::vector<std::string> names;
  for (const DeviceType* const type : device_types()) {
    if (!type->wraps()) names.push_back(fmt::format("`{}`", type->name));
  }
  return names;
}

TEST(DevicesPage, HasEveryDevice) {
  const std::vector<Cells> rows = table("device");
  ASSERT_FALSE(rows.empty()) << kOutdated;
  Cells names;
  for (size_t i = 1; i < rows.size(); ++i) names.push_back(rows[i].front());
  EXPECT_EQ(names, device_names()) << kOutdated;
}

TEST(DevicesPage, HasTheBoundOfEveryOperator) {
  const std::vector<Cells> rows = table("operators");
  ASSERT_FALSE(rows.empty()) << kOutdated;
  std::set<std::string> told;
  for (size_t i = 1; i < rows.size(); ++i) {
    ASSERT_EQ(rows[i].size(), 5u);
    EXPECT_FALSE(rows[i][2].empty() || rows[i][4].empty()) << "no reason: " << rows[i][0];
    std::stringstream operators(rows[i][0]);
    for (std::string name; std::getline(operators, name, ',');) {
      name.erase(0, name.find_first_not_of(' '));
      EXPECT_TRUE(told.insert(name).second) << name << " twice";
      for (const conformance::Case& c : conformance::cases_of(name, DeviceInfo{})) {
        const auto problem = c.build();
        const graph::OpKind kind = problem->graph.op(problem->program.ops.back()).kind;
        if (to_string(kind) != name) continue;
        EXPECT_EQ(rows[i][1], fmt::format("{:.0e}", conformance::op_bound(kind, true)));
        EXPECT_EQ(rows[i][3], fmt::format("{:.0e}", conformance::op_bound(kind, false)));
        break;
      }
    }
  }
  for (const std::string& group : conformance::groups()) {
    EXPECT_TRUE(group == "stage" || told.contains(group)) << group << ": " << kOutdated;
  }
}

// Types of weights by operator, which do not depend on the device.
TEST(DevicesPage, HasEveryOperatorAndType) {
  const std::vector<Cells> rows = table("operator");
  ASSERT_FALSE(rows.empty()) << kOutdated;
  Cells head = {"operator", "type"};
  const auto names = device_names();
  head.insert(head.end(), names.begin(), names.end());
  EXPECT_EQ(rows.front(), head) << kOutdated;
  std::set<std::string> told;
  for (size_t i = 1; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].size(), head.size()) << rows[i].front();
    EXPECT_TRUE(told.insert(rows[i][0] + ", " + rows[i][1]).second) << rows[i][0] << " twice";
    // `cpu` is the reference for all others and computes everything.
    EXPECT_TRUE(rows[i][2].find_first_of("0123456789") == 0) << rows[i][0] << ": " << rows[i][2];
  }
  for (const std::string& group : conformance::groups()) {
    EXPECT_TRUE(std::any_of(told.begin(), told.end(),
                            [&](const std::string& row) { return row.starts_with(group + ", "); }))
        << group << ": " << kOutdated;
  }
  for (uint32_t id = 0; id < 256; ++id) {
    const auto type = model::traits_of(id);
    if (!type) continue;
    for (const char* reader : {"embed", "mat_mul", "stage"}) {
      const std::string row = fmt::format("{}, {}", reader, type->name);
      EXPECT_TRUE(told.contains(row)) << row << ": " << kOutdated;
    }
  }
}

}  // namespace
}  // namespace troika::device
