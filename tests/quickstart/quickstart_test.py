"""Goal: what the quickstart shows a newcomer is true, and it starts and ends as it says.

Method: it runs for 20 seconds with --record, which writes down every record that is fed. A naive model of the records
up to the first empty line (where live feeding begins) says what the four queries must have found; the printed tables and
numbers are compared with it. Others end with Ctrl-C, and go through a real Kafka.
"""

import collections
import datetime
import decimal
import json
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.request

QUICKSTART = sys.argv.pop(1) if len(sys.argv) > 1 else "deploy/quickstart"
FREE_PORTS = ["--no-install", "--port", "0", "--admin-port", "0"]
VEHICLE, DEPOT = "V-7741", "DEP-LON-3"
READING_FIELDS = ["speedKph", "coolantC", "fuelPct"]
META_FIELDS = ["plate", "model", "depotCode"]
# A build from nothing is part of the first run.
RUN_SECONDS_MAX = 1700


def number_text(number):
    """As DynamoDB writes it: 88.0 is 88."""
    return format(decimal.Decimal(number).normalize(), "f")


class Model:
    """The items that a list of records must have become."""

    def __init__(self, lines):
        self.collections = collections.defaultdict(dict)
        for line in lines:
            record = json.loads(line, parse_float=str, parse_int=str)
            items = self.collections[record["vehicleId"]]
            if record.get("kind") == "meta":
                items["META"] = {name: record[name] for name in META_FIELDS}
                continue
            item = {name: number_text(record[name]) for name in READING_FIELDS}
            item["depotCode"] = items["META"]["depotCode"]
            items["TS#" + record["recordedAt"][:19] + "Z"] = item

    def items(self):
        return sum(len(items) for items in self.collections.values())

    def rows(self, vehicle):
        """A collection's items in the order of their sort keys, as the quickstart prints them."""
        key = "VEH#" + vehicle
        return [{"vehicleId": key, "recordedAt": sort_key, **item}
                for sort_key, item in sorted(self.collections[vehicle].items())]

    def depot_readings(self, depot):
        """Newest first; readings of the same second in no promised order."""
        rows = [row for vehicle in self.collections for row in self.rows(vehicle)
                if row["depotCode"] == depot and row["recordedAt"] != "META"]
        return sorted(rows, key=lambda row: row["recordedAt"], reverse=True)


class Shown:
    """One printed answer: the rows of its table, and the two numbers below it."""

    def __init__(self, text):
        self.words, self.condition = (line.strip() for line in text.splitlines()[:2])
        body = text.split("\n\n")[1].splitlines()
        header = body[0]
        columns = [(match.group(), match.start()) for match in re.finditer(r"\S+", header)]
        ends = [start for _, start in columns[1:]] + [None]
        self.rows = []
        for line in body[1:]:
            if line.strip() == "…":
                continue
            cells = {name: line[start:end].strip() for (name, start), end in zip(columns, ends)}
            self.rows.append({name: cell for name, cell in cells.items() if cell})
        numbers = re.search(r"([\d,]+) items? read in .*; a Scan would have read ([\d,]+)\.", text)
        self.items_read, self.scan_items = (int(group.replace(",", "")) for group in numbers.groups())


class Run:
    """A quickstart whose output is read line by line while it runs."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen([QUICKSTART, *FREE_PORTS, *arguments], stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True)
        self.lines = []
        self.timer = threading.Timer(RUN_SECONDS_MAX, self.process.kill)
        self.timer.start()

    def read_until(self, pattern):
        """The match of the first line that fits; fails with all that was printed if there is none."""
        for line in self.process.stdout:
            self.lines.append(line)
            match = re.search(pattern, line)
            if match:
                return match
        raise AssertionError(f"no line with {pattern!r} in:\n{self.text()}")

    def finish(self):
        with self.process.stdout as rest:
            self.lines.extend(rest)
        code = self.process.wait()
        self.timer.cancel()
        return code

    def text(self):
        return "".join(self.lines)


def fetch(address):
    with urllib.request.urlopen(address, timeout=10) as answer:
        return answer.read().decode()


class Kafka:
    """A real broker in a folder of its own."""

    SCRIPT = str(pathlib.Path(__file__).parent.parent / "support" / "kafka-broker")

    def __init__(self, folder):
        self.folder = folder
        with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as two:
            ports = [str(each.getsockname()[1]) for each in (one, two)]
        subprocess.run([self.SCRIPT, "start", folder, *ports], check=True)
        self.address = "127.0.0.1:" + ports[0]

    def stop(self):
        subprocess.run([self.SCRIPT, "stop", self.folder], check=True)


class Quickstart(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.record_file = self.folder.name + "/records"

    def test_shown_answers_are_what_was_fed(self):
        run = Run("--seconds", "20", "--record", self.record_file)
        metrics = run.read_until(r"^Metrics +(\S+)").group(1)
        self.assertIn("drover_records_consumed_total", fetch(metrics))
        heat = run.read_until(r"^Heat +(\S+)").group(1)
        self.assertIn("VEH#" + VEHICLE, fetch(heat))
        live = run.read_until(r"^[\d,]+ records/s, lag [\d,]+, \d+ shards, ").string
        self.assertIn("VEH#" + VEHICLE, live)
        self.assert_ended_cleanly(run)
        self.check_answers(run)

    def test_feeds_and_reads_a_real_kafka(self):
        kafka = Kafka(self.folder.name + "/kafka")
        self.addCleanup(kafka.stop)
        arguments = ["--kafka", kafka.address, "--topic", "fleet"]
        first = Run(*arguments, "--feed", "--record", self.record_file)
        first.read_until("^DynamoDB API")
        first.process.send_signal(signal.SIGINT)
        self.assert_ended_cleanly(first)
        whole = self.check_answers(first)[0]
        second = Run(*arguments)
        second.read_until("^DynamoDB API")
        second.process.send_signal(signal.SIGINT)
        self.assert_ended_cleanly(second)
        again = self.answers(second)[0]
        self.assertEqual(again.rows, whole.rows)
        self.assertGreaterEqual(again.scan_items, whole.scan_items)

    def assert_ended_cleanly(self, run):
        self.assertEqual(run.finish(), 0, run.text())
        self.assertEqual(run.lines[-1], "Stopped.\n")

    def answers(self, run):
        text = run.text()
        parts = re.split(r"^(\d)  ", text[:text.index("From the start to here")], flags=re.MULTILINE)
        self.assertEqual(parts[1::2], ["1", "2", "3", "4"], text)
        return [Shown(part) for part in parts[2::2]]

    def check_answers(self, run):
        with open(self.record_file, encoding="utf-8") as records:
            model = Model(records.read().split("\n\n")[0].splitlines())
        whole, slice_, meta, depot = answers = self.answers(run)

        rows = model.rows(VEHICLE)
        self.check(whole, rows, model)
        self.assertEqual(whole.rows[0]["recordedAt"], "META")
        newest = rows[-1]["recordedAt"]
        ten_minutes_before = "TS#" + (datetime.datetime.fromisoformat(newest[3:-1]) -
                                      datetime.timedelta(minutes=10)).isoformat() + "Z"
        self.assertIn(f'BETWEEN "{ten_minutes_before}" AND "{newest}"', slice_.condition)
        self.check(slice_, [row for row in reversed(rows) if ten_minutes_before <= row["recordedAt"] <= newest], model)
        self.check(meta, rows[:1], model)

        readings = model.depot_readings(DEPOT)
        self.assertEqual(depot.items_read, len(readings))
        self.assertEqual(depot.scan_items, model.items())
        self.assertEqual([row["recordedAt"] for row in depot.rows],
                         [row["recordedAt"] for row in readings[:len(depot.rows)]])
        for row in depot.rows:
            self.assertIn(row, readings[:1000])
        return answers

    def check(self, shown, expected, model):
        self.assertEqual(shown.items_read, len(expected), shown.words)
        self.assertEqual(shown.scan_items, model.items(), shown.words)
        self.assertGreater(len(shown.rows), 0, shown.words)
        for row, expected_row in zip(shown.rows, expected):
            self.assertEqual(row, expected_row, shown.words)

    def test_ends_cleanly_with_ctrl_c(self):
        run = Run()
        run.read_until(r"^[\d,]+ records/s, lag ")
        run.process.send_signal(signal.SIGINT)
        self.assert_ended_cleanly(run)

    def test_taken_port_is_named_in_one_line(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            done = subprocess.run([QUICKSTART, "--no-install", "--port", str(port), "--admin-port", "0"],
                                  capture_output=True, text=True, timeout=RUN_SECONDS_MAX, check=False)
        self.assertEqual(done.returncode, 69)
        self.assertEqual(done.stderr, f"drover-quickstart: port {port} is in use: choose another one with --port N\n")


if __name__ == "__main__":
    unittest.main(verbosity=2)
