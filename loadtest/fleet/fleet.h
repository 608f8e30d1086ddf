#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace drover::loadtest {

/// 2026-06-23T08:30:00Z: half an hour before the readings that the documentation shows, in the morning's rush.
inline constexpr std::int64_t kFleetBeginMs = 1'782'203'400'000;

struct FleetOptions {
  std::uint32_t vehicles = 1'000;  ///< V-0001, V-0002, …; the last one is V-7741 while there are fewer than that.
  std::uint32_t depots = 4;        ///< DEP-LON-1, …; V-7741 belongs to DEP-LON-3 when there are four.
  std::int64_t begin_ms = kFleetBeginMs;  ///< Fleet time of the first reading.
  std::int64_t interval_ms = 5'000;       ///< Between two readings of a vehicle.
  double hot_share = 0.1;                 ///< Of all readings, those of V-7741; 0: it is like the others.
  std::int64_t hot_interval_ms =
      1'000;                      ///< V-7741 takes a new reading this often at most, and sends the last one again
                                  ///< meanwhile; 1: every one is new (and may run ahead of the fleet's time).
  double late_share = 0.005;      ///< Readings that arrive a minute late.
  double repeated_share = 0.005;  ///< Readings that arrive a second time, unchanged.
  std::uint64_t seed = 1;
};

/// One reading, numbers in tenths: 615 is 61.5 km/h.
struct Reading {
  std::int64_t recorded_at_ms = 0;
  std::uint32_t vehicle = 0;  ///< From 0.
  std::uint16_t speed_tenths = 0;
  std::uint16_t coolant_tenths = 0;
  std::uint16_t fuel_tenths = 0;
};

/// A fleet that drives: what it sends is random but believable, and the same for the same options.
///
/// Speeds, coolant temperatures and fuel levels are random walks at the resolution of the sensors; traffic is slow and
/// engines are hot from 7 to 9 and from 16 to 18 o'clock. Some readings come late, some twice, and one vehicle, V-7741,
/// sends more than all others. Making a record takes some 50 ns: a producer is never kept waiting by it.
///
/// Threads: one at a time.
class Fleet {
 public:
  explicit Fleet(const FleetOptions& options);

  const FleetOptions& options() const { return options_; }

  /// The vehicle's id, which is also the key of its records.
  std::string_view vehicle_id(std::uint32_t vehicle) const {
    return {vehicles_[vehicle].id.data(), vehicles_[vehicle].id_size};
  }
  std::string depot_code(std::uint32_t vehicle) const;

  /// {"kind":"meta","vehicleId":"V-7741","plate":"LM23 KTR","model":"eActros 300","depotCode":"DEP-LON-3"}
  std::string meta_value(std::uint32_t vehicle) const;

  /// The next reading to arrive, in the order of arrival.
  Reading next();

  /// {"vehicleId":"V-7741","recordedAt":"2026-06-23T09:00:01.000Z","speedKph":61.5,"coolantC":88.2,"fuelPct":54.1}
  /// The text is valid until the next call.
  std::string_view value(const Reading& reading);

  /// Fleet time: when the last reading of next() arrived.
  std::int64_t now_ms() const { return now_ms_; }

 private:
  struct Vehicle {
    std::array<char, 12> id{};
    std::uint8_t id_size = 0;
    std::uint16_t speed_tenths = 0;
    std::uint16_t coolant_tenths = 0;
    std::uint16_t fuel_tenths = 0;
  };
  struct Held {
    std::uint64_t due = 0;  ///< Number of the arrival.
    Reading reading;
  };
  struct Second {
    std::int64_t second = -1;
    std::array<char, 20> text{};  ///< 2026-06-23T09:00:01.
  };

  std::uint64_t random();
  bool take_held(std::deque<Held>& held, Reading& reading);
  Reading regular();
  Reading hot();
  void drive(Vehicle& vehicle);
  Reading reading_of(std::uint32_t vehicle, std::int64_t recorded_at_ms) const;
  char* put_time(char* out, std::int64_t time_ms);

  FleetOptions options_;
  std::vector<Vehicle> vehicles_;
  std::uint64_t random_state_;
  std::uint32_t regular_vehicles_ = 0;  ///< Those that take turns.
  std::uint64_t turn_ = 0;
  std::uint32_t vehicle_on_turn_ = 0;
  std::uint64_t arrivals_ = 0;
  std::int64_t now_ms_ = 0;
  double hot_credit_ = 0;
  Reading last_hot_;
  std::uint64_t late_below_ = 0;  ///< A 16-bit random number below this: the reading is late.
  std::uint64_t repeated_below_ = 0;
  std::uint64_t late_by_ = 0;  ///< In arrivals.
  std::uint64_t repeated_after_ = 0;
  std::deque<Held> late_;
  std::deque<Held> repeated_;
  std::array<Second, 4> seconds_;
  std::array<char, 160> text_{};
};

}  // namespace drover::loadtest
