#!/usr/bin/python3
"""Kills `drover serve` again and again while Kafka feeds it and clients write, and counts what is lost or doubled.

Records come over four Kafka partitions, one vehicle's over two of them; some of them come twice, some again with other
content. Clients put, overwrite and delete items of their own. Half of the kills are at named crash points, half at
random instants. At the end every record and every acknowledged write must be there once, newest version, in the table
and in its index. The last line is `N kills, 0 lost, 0 doubled`, or the first violation with the seed.
"""

import argparse
import json
import os
import pathlib
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
import zlib

import boto3
import botocore.config
import botocore.exceptions

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PARTITIONS = 4
VEHICLES = 40
SHARED = "V-SHARED"  # its records come over two Kafka partitions
DEPOTS = 3
CATCH_UP_SECONDS_MAX = 120
POINT_SECONDS_MAX = 6

# Where a life can be cut short: the first ones while the table is made, the others in turn.
TABLE_POINTS = ["table.write", "table.written"]
CRASH_POINTS = ["cut.marked", "cut.write", "cut.written", "cut.commit", "log.write", "log.written", "recovery.restored",
                "recovery.applied"]

CONFIG = """
kafka:
  brokers: {brokers}
  group: crash
  librdkafka: {{session.timeout.ms: 1000, heartbeat.interval.ms: 200}}  # a dead member is given up soon
topics:
  - name: fleet
    table: telemetry
    vehicle_id: vehicleId
    time: recordedAt
    partition_key: "VEH#{{vehicleId}}"
    sort_key: "TS#{{recordedAt}}"
    meta: {{when: {{path: kind, equals: meta}}, sort_key: META}}
tables:
  - name: telemetry
    keys:
      partition_key: {{name: vehicleId, type: S}}
      sort_key: {{name: recordedAt, type: S}}
    time_sort_key: {{prefix: "TS#", precision: millis}}
    inherit: [depotCode]
    indexes:
      - name: depot
        partition_key: {{name: depotCode, type: S}}
        sort_key: {{name: recordedAt, type: S}}
store:
  directory: {directory}
  checkpoint_interval: 100ms
  memory_budget: 1MiB  # most of it is on disk only
api: {{host: 127.0.0.1, port: {api}}}
admin: {{host: 127.0.0.1, port: {admin}}}
log: {{level: warn}}
"""


class Violation(Exception):
    """What was promised and not held."""


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def partition_of(vehicle):
    return zlib.crc32(vehicle.encode()) % PARTITIONS


def time_text(number):
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(1_750_000_000 + number // 1000)) + f".{number % 1000:03d}Z"


class Feeder(threading.Thread):
    """Produces known records until it is told to stop; `expected` is what the table must hold in the end."""

    def __init__(self, brokers, seed, rate):
        super().__init__(name="feeder")
        self.random = random.Random(seed)
        self.rate = rate
        self.expected = {}
        self.stopping = threading.Event()
        self.error = None
        self.records = 0
        self.producers = [
            subprocess.Popen(["kcat", "-P", "-b", brokers, "-t", "fleet", "-p", str(partition), "-X", "acks=all",
                              "-X", "linger.ms=5"], stdin=subprocess.PIPE, text=True)
            for partition in range(PARTITIONS)
        ]
        self.times = {}
        self.sent = []

    def send(self, partition, vehicle, record):
        self.producers[partition].stdin.write(json.dumps(record) + "\n")
        self.records += 1
        item = {name: value for name, value in record.items() if name not in ("vehicleId", "recordedAt", "kind")}
        key = "META" if "kind" in record else "TS#" + record["recordedAt"]
        if "kind" in record:
            item["kind"] = "meta"
        self.expected[("VEH#" + vehicle, key)] = item

    def reading(self, vehicle, number):
        return {"vehicleId": vehicle, "recordedAt": time_text(number), "n": number,
                "speedKph": self.random.randrange(1200) / 10}

    def one(self):
        chance = self.random.random()
        if chance < 0.05 and self.sent:
            # Again: the same, or with other content; over the same Kafka partition, so that the later one is newer.
            partition, vehicle, record = self.random.choice(self.sent[-500:])
            if self.expected[("VEH#" + vehicle, "TS#" + record["recordedAt"])]["n"] == record["n"]:
                if chance < 0.02:
                    record = {**record, "n": record["n"] + 1_000_000_000 + self.records}
                    record["n"] = int(record["n"])
                self.send(partition, vehicle, record)
            return
        vehicle = SHARED if chance < 0.15 else f"V-{self.random.randrange(VEHICLES)}"
        partition = self.random.randrange(2) if vehicle == SHARED else partition_of(vehicle)
        number = self.times.get(vehicle, 0) + self.random.randrange(1, 9)
        self.times[vehicle] = number
        record = self.reading(vehicle, number)
        self.sent.append((partition, vehicle, record))
        self.send(partition, vehicle, record)

    def run(self):
        try:
            for number in range(VEHICLES):
                vehicle = f"V-{number}"
                self.send(partition_of(vehicle), vehicle,
                          {"vehicleId": vehicle, "kind": "meta", "depotCode": f"DEP-{number % DEPOTS}"})
            self.send(0, SHARED, {"vehicleId": SHARED, "kind": "meta", "depotCode": "DEP-0"})
            while not self.stopping.is_set():
                for _ in range(self.rate // 20):
                    self.one()
                for producer in self.producers:
                    producer.stdin.flush()
                time.sleep(0.05)
        except (OSError, ValueError) as error:
            self.error = error
        for producer in self.producers:
            producer.stdin.close()
            if producer.wait(60) != 0:
                self.error = self.error or RuntimeError("kcat failed")


class Writer(threading.Thread):
    """Writes items of its own through the API; knows of each what must be there, or what may be."""

    def __init__(self, number, endpoint, seed):
        super().__init__(name=f"writer-{number}")
        self.vehicle = f"VEH#API-{number}"
        self.random = random.Random(seed)
        self.client = dynamodb(endpoint)
        self.possible = {}  # by sort key: the values that may be there, None for no item
        self.acknowledged = 0
        self.stopping = threading.Event()
        self.error = None
        self.number = 0

    def run(self):
        while not self.stopping.is_set():
            self.number += 1
            key = "TS#" + time_text(self.random.randrange(200))
            remove = self.random.random() < 0.2
            value = None if remove else self.number
            before = self.possible.get(key, {None})
            self.possible[key] = before | {value}
            try:
                if remove:
                    self.client.delete_item(TableName="telemetry",
                                            Key={"vehicleId": {"S": self.vehicle}, "recordedAt": {"S": key}})
                else:
                    self.client.put_item(TableName="telemetry", Item={
                        "vehicleId": {"S": self.vehicle}, "recordedAt": {"S": key}, "n": {"N": str(value)},
                        "depotCode": {"S": "DEP-API"}})
                self.possible[key] = {value}
                self.acknowledged += 1
            except botocore.exceptions.ClientError as error:
                if error.response["Error"]["Code"] not in ("ResourceNotFoundException", "InternalServerError"):
                    self.error = error
                    return
                time.sleep(0.02)  # the table is not there yet; or it is not known whether the write is
            except botocore.exceptions.BotoCoreError:
                time.sleep(0.02)  # killed meanwhile: it may be there or not


def dynamodb(endpoint):
    config = botocore.config.Config(retries={"max_attempts": 0}, connect_timeout=2, read_timeout=30)
    return boto3.client("dynamodb", endpoint_url=endpoint, region_name="eu-west-2", aws_access_key_id="any",
                        aws_secret_access_key="any", config=config)


def scan(client, index=None):
    """Every item, in the order in which pages bring them."""
    items, start = [], {}
    while True:
        page = client.scan(TableName="telemetry", **({"IndexName": index} if index else {}), **start)
        items += page["Items"]
        if "LastEvaluatedKey" not in page:
            return items
        start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}


def value_of(attribute):
    (kind, value), = attribute.items()
    return float(value) if kind == "N" else value


class Drover:
    def __init__(self, program, folder, brokers):
        self.program = program
        self.api, self.admin = free_ports(2)
        self.config = folder / "drover.yaml"
        self.config.write_text(CONFIG.format(brokers=brokers, directory=folder / "store", api=self.api,
                                             admin=self.admin), encoding="utf-8")
        self.log = (folder / "drover.log").open("a", encoding="utf-8")
        self.process = None

    def start(self, crash_at=None):
        environment = {**os.environ, **({"DROVER_CRASH_AT": crash_at} if crash_at else {})}
        self.process = subprocess.Popen([self.program, "serve", "--config", self.config], env=environment,
                                        stdout=self.log, stderr=self.log)

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def wait_until_ready(self, seconds):
        """Whether it got ready; not if it ended first."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/readyz", timeout=5) as answer:
                    state = json.load(answer)
                if state["partitions"] == PARTITIONS and state["lag_records"] == 0:
                    return True
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                pass
            time.sleep(0.02)
        return False


def check(feeder, writers, client):
    table = scan(client)
    found = {}
    for item in table:
        key = (item["vehicleId"]["S"], item["recordedAt"]["S"])
        if key in found:
            raise Violation(f"doubled: {key}")
        found[key] = {name: value_of(value) for name, value in item.items() if name not in ("vehicleId", "recordedAt")}
    depots = {f"VEH#V-{number}": f"DEP-{number % DEPOTS}" for number in range(VEHICLES)}
    for key, expected in feeder.expected.items():
        present = found.pop(key, None)
        if present is None:
            raise Violation(f"lost: {key}: {expected}")
        depot = present.pop("depotCode", None)
        own = {name: value for name, value in expected.items() if name != "depotCode"}
        if present != own:
            raise Violation(f"another version: {key}: {present}, expected {own}")
        # A vehicle of two Kafka partitions may have readings in front of its META.
        if depot != depots.get(key[0], "DEP-0") and not (key[0] == "VEH#" + SHARED and depot is None):
            raise Violation(f"another stamp: {key}: {depot}")
    for writer in writers:
        for key, possible in writer.possible.items():
            present = found.pop((writer.vehicle, key), {}).get("n")
            if present not in possible:
                raise Violation(f"API write: {writer.vehicle} {key}: {present}, expected one of {possible}")
    if found:
        raise Violation(f"nobody wrote {next(iter(found.items()))}")
    in_index = sorted((item["vehicleId"]["S"], item["recordedAt"]["S"], json.dumps(item, sort_keys=True))
                      for item in scan(client, "depot"))
    in_table = sorted((item["vehicleId"]["S"], item["recordedAt"]["S"], json.dumps(item, sort_keys=True))
                      for item in table if "depotCode" in item)
    if in_index != in_table:
        difference = sorted(set(in_index) ^ set(in_table))[:3] or "entries that stand twice"
        raise Violation(f"the index differs from the table: {difference}")
    return len(table)


def kill_once(drover, chance, point):
    """One life and its end, at a random instant or at a named point; whether it was at the point."""
    if point is not None:
        drover.start(point)
        try:
            drover.process.wait(timeout=POINT_SECONDS_MAX)
            return True
        except subprocess.TimeoutExpired:
            pass  # not reached in time: an instant as any other
    else:
        drover.start()
        time.sleep(chance.uniform(0.02, 4))
    drover.kill()
    return False


def run(options, folder):
    chance = random.Random(options.seed)
    port, controller_port = free_ports(2)
    broker = str(ROOT / "tests/support/kafka-broker")
    environment = {**os.environ, "KAFKA_PROPERTIES":
                   f"auto.create.topics.enable=true num.partitions={PARTITIONS} group.initial.rebalance.delay.ms=0 "
                   "group.min.session.timeout.ms=1000"}
    subprocess.run([broker, "start", str(folder / "kafka"), str(port), str(controller_port)], env=environment,
                   check=True)
    brokers = f"127.0.0.1:{port}"
    writers = []
    drover = Drover(options.program, folder, brokers)
    try:
        subprocess.run(["kcat", "-L", "-b", brokers, "-t", "fleet"], check=True, stdout=subprocess.DEVNULL)
        time.sleep(1)  # the topic comes to be
        endpoint = f"http://127.0.0.1:{drover.api}"
        feeder = Feeder(brokers, options.seed, options.rate)
        feeder.start()
        writers = [Writer(number, endpoint, options.seed + number) for number in range(2)]
        for writer in writers:
            writer.start()
        reached = {name: 0 for name in TABLE_POINTS + CRASH_POINTS}
        for kill in range(options.kills):
            name = None
            if kill < len(TABLE_POINTS):
                name = TABLE_POINTS[kill]
            elif kill % 2 == 0:
                name = CRASH_POINTS[kill // 2 % len(CRASH_POINTS)]
            visits = chance.randrange(1, 6) if name and name.startswith(("cut.", "log.")) else 1
            if kill_once(drover, chance, name and f"{name}:{visits}") and name:
                reached[name] += 1
            for thread in [feeder, *writers]:
                if thread.error:
                    raise thread.error
            if (kill + 1) % 50 == 0:
                print(f"  {kill + 1} of {options.kills} kills, {feeder.records:,} records, "
                      f"{sum(writer.acknowledged for writer in writers):,} writes acknowledged", flush=True)
        feeder.stopping.set()
        feeder.join()
        drover.start()
        if not drover.wait_until_ready(CATCH_UP_SECONDS_MAX):
            raise Violation("it did not get ready again")
        for writer in writers:
            writer.stopping.set()
            writer.join()
        time.sleep(0.5)  # what was consumed last is applied
        items = check(feeder, writers, dynamodb(endpoint))
        drover.process.terminate()
        if drover.process.wait(30) != 0:
            raise Violation("it did not stop in order")
        print(f"{items:,} items; kills at crash points: " + ", ".join(f"{name} {count}" for name, count in
                                                                      reached.items()))
        print(f"{options.kills} kills, 0 lost, 0 doubled", flush=True)
    finally:
        for writer in writers:
            writer.stopping.set()
        drover.kill()
        subprocess.run([broker, "kill", str(folder / "kafka")], check=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--kills", type=int, default=50, help="how often (default: 50)")
    parser.add_argument("--seed", type=int, default=None, help="of all chances (default: another each time)")
    parser.add_argument("--rate", type=int, default=2000, help="records per second (default: 2000)")
    parser.add_argument("--program", default=os.environ.get("DROVER_BIN", str(ROOT / "build/release/drover")))
    options = parser.parse_args()
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(1 << 31)
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="drover-crash-") as folder:
        try:
            run(options, pathlib.Path(folder))
        except Violation as violation:
            print((pathlib.Path(folder) / "drover.log").read_text(encoding="utf-8")[-4000:], file=sys.stderr)
            sys.exit(f"{violation} (seed {options.seed})")


if __name__ == "__main__":
    main()
