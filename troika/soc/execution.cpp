#include "troika/soc/execution.h"

#include <algorithm>

namespace troika::soc {
namespace {

// bytes / (GB/s) in us, and operations / TFLOPS in us.
double transfer_us(double bytes, double gbps) { return bytes / gbps * 1e-3; }
double arithmetic_us(double operations, double tflops) { return operations / tflops * 1e-6; }

int64_t padded(int64_t extent, int64_t tile) { return (extent + tile - 1) / tile * tile; }

double overhead_us(const Unit& unit) {
  return unit.operator_overhead ? unit.operator_overhead->value : 0;
}

bool fits_cache(const Unit& unit, double bytes) {
  return unit.cache && bytes <= 1e6 * unit.cache->size;
}

Work moved(const Unit& unit, double bytes) {
  Work work;
  work.overhead_us = overhead_us(unit);
  if (fits_cache(unit, bytes)) {
    work.memory_us = transfer_us(bytes, unit.cache->bandwidth);
    return work;
  }
  work.bytes = bytes;
  work.memory_us = transfer_us(bytes, unit.bandwidth);
  return work;
}

// nullptr if none.
const Path* path_for(const Unit& unit, const Product& product) {
  for (const Path& path : unit.paths) {
    const bool type =
        std::find(path.types.begin(), path.types.end(), product.type) != path.types.end();
    const bool rows =
        product.m >= path.from_tokens && (path.to_tokens == 0 || product.m <= path.to_tokens);
    if (type && rows) return &path;
  }
  return nullptr;
}

// How much longer a slice of this shape takes than its operations do.
double shape_effect(const Unit& unit, const Product& padded_product, bool weight_stationary) {
  if (!unit.static_graphs) return 1;
  const StaticGraphs& graphs = *unit.static_graphs;
  const auto n = static_cast<double>(padded_product.n);
  const auto k = static_cast<double>(padded_product.k);
  double factor = 1;
  if (graphs.full_rate_inputs) factor = std::max(1.0, k / *graphs.full_rate_inputs);
  if (weight_stationary && graphs.weight_stationary) {
    factor *= std::max(1.0, *graphs.weight_stationary * n / k);
  }
  return factor;
}

// Of a path with so many rows, TFLOPS.
double rate_of(const Path& path, int64_t rows) {
  if (!path.rate_by_tokens) return path.rate;
  const std::vector<double>& tokens = path.rate_by_tokens->tokens;
  const std::vector<double>& rates = path.rate_by_tokens->values;
  const auto wanted = static_cast<double>(rows);
  const auto above = std::upper_bound(tokens.begin(), tokens.end(), wanted);
  if (above == tokens.begin()) return rates.front();
  const auto i = static_cast<size_t>(above - tokens.begin());
  if (i == tokens.size() || tokens[i - 1] == wanted) return rates[i - 1];
  const double low = tokens[i - 1] / rates[i - 1];
  const double high = tokens[i] / rates[i];
  const double part = (wanted - tokens[i - 1]) / (tokens[i] - tokens[i - 1]);
  return wanted / (low + part * (high - low));
}

// Unpacking of the weights, which fewer rows than a full tile need only in part.
double unpack_us(const Path& path, double weights, int64_t rows) {
  if (!path.unpack) return 0;
  const double part = std::min(1.0, static_cast<double>(rows) / *path.unpack_tokens);
  return weights * *path.unpack * part * 1e-3;
}

}  // namespace

Tiles tiles_of(const Unit& unit) {
  if (unit.static_graphs) {
    const auto tile = static_cast<int64_t>(unit.static_graphs->tile.value);
    return {tile, tile, tile};
  }
  if (unit.quanta) {
    return {static_cast<int64_t>(unit.quanta->tokens.value),
            static_cast<int64_t>(unit.quanta->outputs.value),
            static_cast<int64_t>(unit.quanta->inputs.value)};
  }
  return {};
}

std::optional<Work> product_work(const Unit& unit, const Product& product) {
  const Path* path = path_for(unit, product);
  if (path == nullptr) return std::nullopt;
  const Tiles tiles = tiles_of(unit);
  Product padded_product = product;
  padded_product.m =
      padded(product.m, path->row_tile ? static_cast<int64_t>(path->row_tile->value) : tiles.rows);
  padded_product.n = padded(product.n, tiles.outputs);
  padded_product.k = padded(product.k, tiles.inputs);
  const auto n = static_cast<double>(padded_product.n);
  const auto k = static_cast<double>(padded_product.k);
  const double weight_bytes = n * k * product.weight_bits / 8;
  constexpr double kActivationBytes = 2;

  Work work;
  const double arithmetic =
      arithmetic_us(padded_product.operations(), rate_of(*path, padded_product.m)) +
      unpack_us(*path, n * k, padded_product.m);
  const double stream = path->stream ? transfer_us(weight_bytes, *path->stream) : 0;
  work.compute_us =
      std::max(arithmetic, stream) * shape_effect(unit, padded_product, product.weight_stationary);
  work.takes_in = stream > arithmetic;
  const double activation_bytes = kActivationBytes * static_cast<double>(product.m) * (n + k);
  work.bytes = weight_bytes + (fits_cache(unit, activation_bytes) ? 0 : activation_bytes);
  work.memory_us = transfer_us(work.bytes, unit.bandwidth);
  work.fixed_us = path->alone;
  work.overhead_us = overhead_us(unit) + (path->overhead ? path->overhead->value : 0);
  work.path = static_cast<int32_t>(path - unit.paths.data());
  work.integer = path->integer;
  return work;
}

std::array<std::string_view, 3> types_near(double weight_bits) {
  if (weight_bits > 12) return {"w16a16", "w8a16", "w4a16"};
  if (weight_bits > 6) return {"w8a16", "w16a16", "w4a16"};
  return {"w4a16", "w8a16", "w16a16"};
}

std::optional<Work> stored_product_work(const Unit& unit, const Product& product) {
  Product typed = product;
  for (const std::string_view type : types_near(product.weight_bits)) {
    typed.type = type;
    if (auto work = product_work(unit, typed)) return work;
  }
  return std::nullopt;
}

std::optional<Work> attention_work(const Unit& unit, double macs, double bytes) {
  if (!unit.attention_rate) return std::nullopt;
  Work work = moved(unit, bytes);
  const double arithmetic = arithmetic_us(2 * macs, *unit.attention_rate);
  const double stream = unit.attention_stream ? transfer_us(bytes, *unit.attention_stream) : 0;
  work.compute_us = std::max(arithmetic, stream);
  work.takes_in = stream > arithmetic;
  return work;
}

Work elementwise_work(const Unit& unit, double bytes) {
  return moved(unit, bytes * (unit.elementwise_traffic ? unit.elementwise_traffic->value : 1));
}

double build_us(const Unit& unit, int64_t rows) {
  if (!unit.static_graphs) return 0;
  const StaticGraphs& graphs = *unit.static_graphs;
  return 1e3 * (graphs.build_base + graphs.build_per_token * static_cast<double>(rows));
}

}  // namespace troika::soc
