#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace drover::cli {

/// What the command line asks for; gives the exit code.
using Command = std::function<int()>;

/// Each adds one subcommand to `app`; when it is the one that was given, `command` is set.
void add_serve(CLI::App& app, Command& command);
void add_check(CLI::App& app, Command& command);
void add_query(CLI::App& app, Command& command);
void add_erase(CLI::App& app, Command& command);
void add_store(CLI::App& app, Command& command);

}  // namespace drover::cli
