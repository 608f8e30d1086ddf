#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "drover/model/bytes.h"
#include "drover/model/status.h"

namespace drover::store {

/// What is kept apart on disk. What the keys and values are stands in disk_format.h.
enum class Family : std::uint8_t {
  kMeta,    ///< The format, the cut, tables, attribute names, sources.
  kBlocks,  ///< Blocks of histories, written once.
  kTails,   ///< The tails of one segment's collections, written anew with each cut that finds one of them changed.
  kLog,     ///< API writes since the cut.
};
inline constexpr std::size_t kFamilies = 4;

class Disk;

/// Changes that take effect together or not at all, in their order. Of one disk, which outlives it.
class DiskBatch {
 public:
  explicit DiskBatch(const Disk& disk);
  ~DiskBatch();
  DiskBatch(DiskBatch&&) noexcept;
  DiskBatch& operator=(DiskBatch&&) = delete;

  void put(Family family, std::string_view key, std::string_view value);
  void remove(Family family, std::string_view key);
  /// Keys of [begin, end).
  void remove_range(Family family, std::string_view begin, std::string_view end);
  std::size_t size_bytes() const;
  bool empty() const;

 private:
  friend class Disk;
  struct Operations;  // keeps RocksDB out of this header
  const Disk* disk_;
  std::unique_ptr<Operations> operations_;
};

/// The durable tier: RocksDB in one directory, which one process has open at a time.
///
/// Threads: all members from any thread.
class Disk {
 public:
  /// Makes the directory if it is missing. kUnavailable: another process has it open, or it can't be read or written;
  /// the message says what to do.
  static model::Result<std::unique_ptr<Disk>> open(const std::string& directory);
  ~Disk();
  Disk(const Disk&) = delete;
  Disk& operator=(const Disk&) = delete;

  /// Returns when the batch is on the device. After a failure nothing of it is there; the next call tries again
  /// whatever it is that failed.
  model::Status write(DiskBatch& batch);

  /// Calls `use(key, value)` for the keys of [begin, end) in order until it returns false; an empty `end` is none.
  /// Damage that RocksDB's checksums find ends it with kInvalid.
  using Use = std::function<bool(std::string_view key, std::string_view value)>;
  model::Status visit(Family family, std::string_view begin, std::string_view end, const Use& use) const;

  /// Reads one value. kNotFound: there is none; kInvalid: it is damaged.
  model::Status read(Family family, std::string_view key, model::Bytes& value) const;

  /// A consistent copy in a new directory on the same file system, by hard links where that is possible.
  model::Status copy_to(const std::string& directory);

  /// What is left on the device, in bytes, and its size.
  struct Room {
    std::uint64_t free_bytes = 0;
    std::uint64_t total_bytes = 0;
  };
  Room room() const;
  const std::string& directory() const { return directory_; }

 private:
  friend class DiskBatch;
  struct Database;
  Disk(std::string directory, std::unique_ptr<Database> database);

  const std::string directory_;
  const std::unique_ptr<Database> database_;
};

}  // namespace drover::store
