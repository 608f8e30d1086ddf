#include "drover/ingest/consumer.h"
#include "rdkafka.h"

namespace drover::ingest {

model::Status validate_property(const std::string& name, const std::string& value) {
  char error[512];
  const Conf conf(rd_kafka_conf_new());
  if (rd_kafka_conf_set(conf.get(), name.c_str(), value.c_str(), error, sizeof error) == RD_KAFKA_CONF_OK) return {};
  return model::invalid(error);
}

}  // namespace drover::ingest
