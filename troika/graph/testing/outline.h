// For tests: the graph of a model of published sizes, without its weights' data.
#pragma once

#include <memory>
#include <string>

#include "troika/graph/graph.h"
#include "troika/model/synth.h"

namespace troika::graph::testing {

struct Outline {
  // A name of model::shape_names(), or "hidden,layers,heads,kv_heads,ffn,vocab".
  explicit Outline(const std::string& shape) {
    model::SynthOptions options;
    options.shape = *model::parse_shape(shape);
    model = std::make_unique<model::Model>(*model::outline_model(options));
    graph = *build(*model);
  }

  std::unique_ptr<model::Model> model;
  Graph graph;
};

}  // namespace troika::graph::testing
