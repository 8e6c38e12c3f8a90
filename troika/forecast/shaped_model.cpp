// Models' graphs without their weights.
#include "troika/forecast/forecast.h"
#include "troika/model/synth.h"

namespace troika::forecast {

Result<ShapedModel> shaped_model(std::string_view shape) {
  model::SynthOptions options;
  ASSIGN_OR_RETURN(options.shape, model::parse_shape(shape));
  options.mix.type = model::TensorType::kF16;  // no blocks that a width could miss
  ASSIGN_OR_RETURN(model::Model outline, model::outline_model(options));
  ShapedModel shaped;
  shaped.model = std::make_unique<model::Model>(std::move(outline));
  ASSIGN_OR_RETURN(shaped.graph, graph::build(*shaped.model));
  return shaped;
}

Result<ShapedModel> shaped_model_of_file(const std::string& path) {
  model::LoadOptions options;
  options.sizes_only = true;
  ASSIGN_OR_RETURN(model::Model loaded, model::Model::load(path, options));
  ShapedModel shaped;
  shaped.model = std::make_unique<model::Model>(std::move(loaded));
  ASSIGN_OR_RETURN(shaped.graph, graph::build(*shaped.model));
  return shaped;
}

}  // namespace troika::forecast
