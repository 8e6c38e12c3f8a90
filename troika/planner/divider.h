// The best division of a product for each kind of cut, over all sets of devices.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "troika/planner/operator_plan.h"
#include "troika/planner/product_time.h"

namespace troika::planner {

class Divider {
 public:
  // Devices in the order of their names, so that equal divisions are chosen alike however a chip
  // lists them. Borrows `time`.
  Divider(const ProductTime& time, std::vector<size_t> devices)
      : time_(time), devices_(std::move(devices)) {}

  Division alone(size_t device) const;
  // Grid and quantum as in Strategy; a grid makes the quantum void. nullopt if there is no such
  // division.
  std::optional<Division> by_outputs(int64_t grid) const;
  std::optional<Division> by_inputs(int64_t grid, int64_t quantum) const;
  // Without a quantum, devices that need whole lengths get them; the grid is for the others.
  std::optional<Division> by_rows(int64_t grid, int64_t quantum) const;

 private:
  struct Size {
    int64_t elements = 0;
    double share = 0;
  };
  // A dimension in equal units, the last one perhaps shorter; the `ragged` part has that one.
  struct Units {
    int64_t extent = 0;
    int64_t count = 0;
    int64_t grain = 0;  // 0: units are parts of a grid
    size_t ragged = 0;

    Size size(size_t part, int64_t units) const;
  };

  template <class Solve>
  std::optional<Division> best_of_sets(const Solve& solve) const;
  std::optional<Division> cut(OperatorCut kind, const std::vector<size_t>& set, int64_t grid,
                              int64_t quantum) const;
  std::optional<Division> rows_of(const std::vector<size_t>& set, int64_t grid,
                                  int64_t quantum) const;
  Units units(OperatorCut kind, const std::vector<size_t>& set, int64_t grid,
              int64_t quantum) const;
  Division division(OperatorCut kind, const std::vector<size_t>& set,
                    const std::vector<Size>& sizes) const;
  Slice slice(OperatorCut kind, size_t device, Size size, double speed) const;

  friend class RowsSearch;

  const ProductTime& time_;
  std::vector<size_t> devices_;
};

}  // namespace troika::planner
