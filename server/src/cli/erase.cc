#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "bucket_walk.h"
#include "client.h"
#include "commands.h"
#include "drover/server/config.h"
#include "progress.h"

namespace drover::cli {
namespace {

struct EraseOptions {
  std::string key;
  std::string table;
  std::string admin = "http://127.0.0.1:9464";
  std::string since;
  std::string until;
};

/// The one key, or that of each bucket.
model::Result<std::vector<std::string>> keys_of(const EraseOptions& options) {
  if (!BucketWalk::is_for(options.key)) {
    if (options.since.empty() && options.until.empty()) return std::vector{options.key};
    return model::invalid("--since and --until choose buckets of time: KEY needs one, such as 'VEH#V-7741#{%Y-%m}'");
  }
  if (options.since.empty()) return model::invalid("KEY has a bucket of time: say with --since how far back they go");
  auto walk = BucketWalk::make(options.key, options.since, options.until, {});
  if (!walk.ok()) return walk.status();
  std::vector<std::string> keys;
  for (; !walk->at_end(); walk->next()) keys.push_back(walk->key());
  return keys;
}

model::Status run(const EraseOptions& options) {
  const auto keys = keys_of(options);
  if (!keys.ok()) return keys.status();
  auto client = Client::connect(options.admin);
  if (!client.ok()) return client.status();
  Progress progress("erasing");
  for (const std::string& key : *keys) {
    const auto answer = client->post("/erase", {{"table", options.table}, {"key", key}});
    if (!answer.ok()) return {answer.status().code(), key + ": " + answer.status().message()};
  }
  std::cout << "erased: " << options.key << '\n';
  return {};
}

int erase(const EraseOptions& options) {
  const model::Status status = run(options);
  if (status.ok()) return 0;
  std::cerr << "drover erase: " << status.message() << '\n';
  return status.code() == model::StatusCode::kUnavailable ? server::kExitUnavailable : 1;
}

}  // namespace

void add_erase(CLI::App& app, Command& command) {
  CLI::App* erase_command = app.add_subcommand("erase", "Has a running Drover forget an item collection for good");
  auto options = std::make_shared<EraseOptions>();  // owned by the callback
  erase_command
      ->add_option("key", options->key,
                   "The partition key, such as 'VEH#V-7741'; with a bucket of time in it, as 'VEH#V-7741#{%Y-%m}', all "
                   "of them since --since")
      ->required()
      ->type_name("KEY");
  erase_command->add_option("-t,--table", options->table, "The table; not needed if there is only one")
      ->type_name("NAME");
  erase_command->add_option("--since", options->since, "The oldest bucket: 2026, 2026-01, 2026-01-31 or 2026-01-31T09")
      ->type_name("TIME");
  erase_command->add_option("--until", options->until, "The newest one; now if not given")->type_name("TIME");
  erase_command->add_option("-a,--admin", options->admin, "Drover's admin address; http://127.0.0.1:9464 if not given")
      ->type_name("URL");
  erase_command->footer(
      "All its items go, from the table and the indexes, and what Kafka got of it until now stays away, however often "
      "it\n"
      "is read again. What comes later is kept. The key itself is kept, to know what to leave out, and backups keep "
      "all.\n"
      "\n"
      "Examples:\n"
      "  drover erase 'VEH#V-7741'\n"
      "  drover erase 'VEH#V-7741#{%Y-%m}' --since 2024-01");
  erase_command->callback([options, &command] { command = [options] { return erase(*options); }; });
}

}  // namespace drover::cli
