#include "loadtest/fleet/fleet.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "drover/model/time.h"

namespace drover::loadtest {
namespace {

constexpr std::uint32_t kHotVehicleNumber = 7'741;
constexpr std::int64_t kJitterMs = 512;  // a power of two, and well below the interval
constexpr std::uint16_t kTenthsMax = 1'299;
constexpr std::uint16_t kFuelLowTenths = 80;
constexpr std::uint16_t kFuelFullTenths = 980;

constexpr std::array<std::uint16_t, 24> kSpeedTenthsByHour = {820, 840, 850, 840, 780, 640, 430, 240,
                                                              230, 420, 520, 540, 510, 530, 520, 430,
                                                              250, 220, 380, 560, 650, 720, 780, 800};
constexpr std::array<std::string_view, 6> kModels = {"eActros 300", "eSprinter 320", "Transit 350",
                                                     "FL Electric", "Daily 50C",     "XD Electric"};

// "0.0" to "129.9", each in a fixed field: copying eight bytes and stepping by the length is all it takes to write one.
struct TenthsText {
  std::array<char, 7> text{};
  std::uint8_t size = 0;
};
using TenthsTexts = std::array<TenthsText, kTenthsMax + 1>;

TenthsTexts make_tenths_texts() {
  TenthsTexts texts;
  for (std::size_t tenths = 0; tenths < texts.size(); ++tenths) {
    TenthsText& text = texts[tenths];
    text.size = static_cast<std::uint8_t>(
        std::snprintf(text.text.data(), text.text.size(), "%zu.%zu", tenths / 10, tenths % 10));
  }
  return texts;
}
const TenthsTexts kTenthsTexts = make_tenths_texts();

char* put_tenths(char* out, std::uint16_t tenths) {
  const TenthsText& text = kTenthsTexts[tenths];
  std::memcpy(out, text.text.data(), text.text.size());
  return out + text.size;
}

template <std::size_t N>
char* put_literal(char* out, const char (&text)[N]) {
  std::memcpy(out, text, N - 1);
  return out + N - 1;
}

std::uint64_t below(double share) {
  return static_cast<std::uint64_t>(std::llround(share * 65'536));
}

std::uint32_t vehicle_number(const FleetOptions& options, std::uint32_t vehicle) {
  const bool last_of_few = options.vehicles < kHotVehicleNumber && vehicle + 1 == options.vehicles;
  return last_of_few ? kHotVehicleNumber : vehicle + 1;
}

}  // namespace

Fleet::Fleet(const FleetOptions& options)
    : options_(options),
      vehicles_(options.vehicles),
      random_state_(options.seed * 0x9e3779b97f4a7c15u + 1),
      now_ms_(options.begin_ms),
      late_below_(below(options.late_share)),
      repeated_below_(below(options.repeated_share)) {
  for (std::uint32_t i = 0; i < options.vehicles; ++i) {
    Vehicle& vehicle = vehicles_[i];
    vehicle.id_size = static_cast<std::uint8_t>(
        std::snprintf(vehicle.id.data(), vehicle.id.size(), "V-%04u", vehicle_number(options, i)));
    vehicle.speed_tenths = static_cast<std::uint16_t>(random() % 900);
    vehicle.coolant_tenths = static_cast<std::uint16_t>(800 + random() % 120);
    vehicle.fuel_tenths = static_cast<std::uint16_t>(100 + random() % 880);
  }
  // The hot vehicle is put last, so that the others take turns by counting.
  const std::uint32_t hot_vehicle = std::min(options.vehicles, kHotVehicleNumber) - 1;
  std::swap(vehicles_[hot_vehicle], vehicles_.back());
  const bool has_hot = options.hot_share > 0;
  regular_vehicles_ = has_hot ? options.vehicles - 1 : options.vehicles;
  last_hot_ = reading_of(options.vehicles - 1, 0);
  const double arrivals_per_interval = regular_vehicles_ / (1 - options.hot_share);
  late_by_ = static_cast<std::uint64_t>(arrivals_per_interval * 60'000 / static_cast<double>(options.interval_ms));
  repeated_after_ = static_cast<std::uint64_t>(arrivals_per_interval);
}

// xorshift64*: Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled".
std::uint64_t Fleet::random() {
  random_state_ ^= random_state_ >> 12;
  random_state_ ^= random_state_ << 25;
  random_state_ ^= random_state_ >> 27;
  return random_state_ * 0x2545f4914f6cdd1du;
}

std::string Fleet::depot_code(std::uint32_t vehicle) const {
  const std::string_view id = vehicle_id(vehicle);
  const auto number = static_cast<std::uint32_t>(std::stoul(std::string(id.substr(2))));
  return "DEP-LON-" + std::to_string((number + 1) % options_.depots + 1);
}

std::string Fleet::meta_value(std::uint32_t vehicle) const {
  const std::string id(vehicle_id(vehicle));
  const auto number = static_cast<std::uint32_t>(std::stoul(id.substr(2)));
  const auto letter = [](std::uint32_t n) { return static_cast<char>('A' + n % 26); };
  std::string plate = "L" + std::string{letter(number / 17'576), '2', static_cast<char>('0' + number % 6), ' '};
  plate += {letter(number / 676), letter(number / 26), letter(number)};
  return R"({"kind":"meta","vehicleId":")" + id + R"(","plate":")" + plate + R"(","model":")" +
         std::string(kModels[number % kModels.size()]) + R"(","depotCode":")" + depot_code(vehicle) + "\"}";
}

Reading Fleet::next() {
  ++arrivals_;
  Reading reading;
  if (take_held(late_, reading) || take_held(repeated_, reading)) return reading;
  hot_credit_ += options_.hot_share;
  if (hot_credit_ >= 1) {
    hot_credit_ -= 1;
    return hot();
  }
  return regular();
}

bool Fleet::take_held(std::deque<Held>& held, Reading& reading) {
  if (held.empty() || held.front().due > arrivals_) return false;
  reading = held.front().reading;
  held.pop_front();
  return true;
}

Reading Fleet::regular() {
  for (;;) {
    const auto interval_ms = static_cast<std::uint64_t>(options_.interval_ms);
    now_ms_ = options_.begin_ms + static_cast<std::int64_t>(turn_ * interval_ms / regular_vehicles_);
    const std::uint32_t vehicle = vehicle_on_turn_;
    ++turn_;
    if (++vehicle_on_turn_ == regular_vehicles_) vehicle_on_turn_ = 0;

    drive(vehicles_[vehicle]);
    const std::uint64_t dice = random();
    const Reading reading = reading_of(vehicle, now_ms_ + static_cast<std::int64_t>(dice % kJitterMs));
    const std::uint64_t fate = dice >> 48;
    if (fate < late_below_) {
      late_.push_back({arrivals_ + late_by_, reading});
      continue;
    }
    if (fate < late_below_ + repeated_below_) repeated_.push_back({arrivals_ + repeated_after_, reading});
    return reading;
  }
}

Reading Fleet::hot() {
  const std::int64_t interval_ms = options_.hot_interval_ms;
  const std::int64_t present = now_ms_ / interval_ms * interval_ms;
  const std::int64_t recorded_at_ms = interval_ms == 1 ? std::max(present, last_hot_.recorded_at_ms + 1) : present;
  if (recorded_at_ms > last_hot_.recorded_at_ms) {
    const std::uint32_t vehicle = options_.vehicles - 1;
    drive(vehicles_[vehicle]);
    last_hot_ = reading_of(vehicle, recorded_at_ms);
  }
  return last_hot_;
}

// Each value is drawn towards what the hour asks for and pushed about at random.
void Fleet::drive(Vehicle& vehicle) {
  const std::uint64_t dice = random();
  const int speed_goal = kSpeedTenthsByHour[static_cast<std::size_t>(now_ms_ / 3'600'000 % 24)];
  const int coolant_goal = 930 - speed_goal / 8;  // slow traffic, hot engine
  const int speed = vehicle.speed_tenths + (speed_goal - vehicle.speed_tenths) / 32 + static_cast<int>(dice % 64) - 31;
  const int coolant =
      vehicle.coolant_tenths + (coolant_goal - vehicle.coolant_tenths) / 16 + static_cast<int>(dice >> 8 & 7) - 3;
  vehicle.speed_tenths = static_cast<std::uint16_t>(std::clamp(speed, 0, static_cast<int>(kTenthsMax)));
  vehicle.coolant_tenths = static_cast<std::uint16_t>(std::clamp(coolant, 0, static_cast<int>(kTenthsMax)));
  if ((dice >> 16 & 15) == 0) --vehicle.fuel_tenths;
  if (vehicle.fuel_tenths < kFuelLowTenths) vehicle.fuel_tenths = kFuelFullTenths;
}

Reading Fleet::reading_of(std::uint32_t vehicle, std::int64_t recorded_at_ms) const {
  const Vehicle& from = vehicles_[vehicle];
  return {recorded_at_ms, vehicle, from.speed_tenths, from.coolant_tenths, from.fuel_tenths};
}

// Readings come in the order of time but for the jitter and the late ones, so the texts of a few seconds serve nearly
// all.
char* Fleet::put_time(char* out, std::int64_t time_ms) {
  const std::int64_t second = time_ms / 1'000;
  Second& cached = seconds_[static_cast<std::size_t>(second) % seconds_.size()];
  if (cached.second != second) {
    char text[model::kCanonicalTimeSizeBytesMax];
    model::format_time(text, model::TimeNs{second * 1'000'000'000}, model::TimePrecision::kMillis);
    std::memcpy(cached.text.data(), text, cached.text.size());
    cached.second = second;
  }
  std::memcpy(out, cached.text.data(), cached.text.size());
  out += cached.text.size();
  const auto millis = static_cast<std::uint32_t>(time_ms % 1'000);
  *out++ = static_cast<char>('0' + millis / 100);
  *out++ = static_cast<char>('0' + millis / 10 % 10);
  *out++ = static_cast<char>('0' + millis % 10);
  *out++ = 'Z';
  return out;
}

std::string_view Fleet::value(const Reading& reading) {
  const Vehicle& vehicle = vehicles_[reading.vehicle];
  char* out = put_literal(text_.data(), R"({"vehicleId":")");
  std::memcpy(out, vehicle.id.data(), vehicle.id.size());
  out = put_literal(out + vehicle.id_size, R"(","recordedAt":")");
  out = put_time(out, reading.recorded_at_ms);
  out = put_literal(out, R"(","speedKph":)");
  out = put_tenths(out, reading.speed_tenths);
  out = put_literal(out, R"(,"coolantC":)");
  out = put_tenths(out, reading.coolant_tenths);
  out = put_literal(out, R"(,"fuelPct":)");
  out = put_tenths(out, reading.fuel_tenths);
  *out++ = '}';
  return {text_.data(), static_cast<std::size_t>(out - text_.data())};
}

}  // namespace drover::loadtest
