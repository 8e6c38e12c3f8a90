// Starts of the search in which devices have as much to do in a whole layer, attention and all that
// is no product included: where chunks are under way together, that counts more than that the
// slices of each product end together.
#pragma once

#include <vector>

#include "troika/planner/pass_candidates.h"

namespace troika::planner {

// For chunks of so many rows: "even", all products divided by the same shares of their outputs;
// "even, paired", the same with slices of down's inputs; and "even but for" a product, which alone
// is divided while the others are whole, of these the best two. Empty where no two devices can have
// the products.
std::vector<Candidate> even_candidates(const PassSpace& space, const Strategy& strategy,
                                       int64_t rows);

// The shares of work that takes `work_us` of each device (HUGE_VAL: it cannot have it) by which
// all end together that get any, if they have had `before_us` to do.
std::vector<double> even_shares(const std::vector<double>& before_us,
                                const std::vector<double>& work_us);

}  // namespace troika::planner
