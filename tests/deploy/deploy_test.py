"""Goal: a dashboard, an alert or a deployment file that no longer fits the program is found before a user imports it.

Method: the files are read as their consumers read them (promtool, YAML, JSON), and every metric that a query names must be
in a scrape of a Drover that has just been fed: the quickstart's.
"""

import importlib.machinery
import importlib.util
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import urllib.request

import yaml

ROOT, PROMTOOL, DROVER, QUICKSTART = (pathlib.Path(argument) for argument in sys.argv[1:5])
del sys.argv[1:]
DEPLOY = ROOT / "deploy"
RULES = DEPLOY / "prometheus/drover.rules.yml"
METRIC = re.compile(r"\b(?:drover|process)_\w+")


def rules():
    return [rule for group in yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"] for rule in group["rules"]]


def dashboard():
    return json.loads((DEPLOY / "grafana/dashboards/drover.json").read_text(encoding="utf-8"))


def queries():
    """Every PromQL expression that is shipped, with where it stands."""
    for rule in rules():
        yield f"rule {rule.get('alert', rule.get('record'))}", rule["expr"]
    for panel in dashboard()["panels"]:
        for target in panel.get("targets", []):
            yield f"panel {panel['title']}", target["expr"]
    for variable in dashboard()["templating"]["list"]:
        if variable["type"] == "query":
            yield f"variable {variable['name']}", variable["query"]["query"]


class Files(unittest.TestCase):
    def promtool(self, *arguments, **options):
        done = subprocess.run([PROMTOOL, *arguments], capture_output=True, text=True, check=False, **options)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_prometheus_configuration_is_accepted(self):
        self.promtool("check", "config", DEPLOY / "prometheus/prometheus.yml")

    def test_every_dashboard_query_is_promql(self):
        # promtool checks rule files, so the dashboard's queries become one; its variables become what Grafana puts there.
        checked = []
        for place, query in queries():
            if place.startswith("panel"):
                checked.append({"record": "checked:" + str(len(checked)), "expr": re.sub(r"\$\w+", ".*", query)})
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
            yaml.safe_dump({"groups": [{"name": "dashboard", "rules": checked}]}, file)
            file.flush()
            self.promtool("check", "rules", file.name)

    def test_dashboard_is_what_its_code_writes(self):
        loader = importlib.machinery.SourceFileLoader("make_dashboard", str(DEPLOY / "grafana/make_dashboard"))
        code = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
        sys.dont_write_bytecode = True
        loader.exec_module(code)
        written = (DEPLOY / "grafana/dashboards/drover.json").read_text(encoding="utf-8")
        self.assertEqual(written, code.text(), "run deploy/grafana/make_dashboard")

    def test_compose_mounts_what_exists(self):
        services = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))["services"]
        self.assertLessEqual({"kafka", "drover", "prometheus", "grafana"}, set(services))
        mounts = [mount for service in services.values() for mount in service.get("volumes", []) if mount.startswith(".")]
        self.assertTrue(mounts)
        for mount in mounts:
            self.assertTrue((DEPLOY / mount.split(":")[0]).is_dir(), mount)
        self.assertTrue((ROOT / services["drover"]["build"]["dockerfile"]).is_file())

    def test_shipped_configuration_is_accepted(self):
        done = subprocess.run([DROVER, "check", "--config", DEPLOY / "drover.yaml"], capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class Metrics(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """Scrapes a Drover that reads Kafka, has stored records and has answered queries."""
        with subprocess.Popen([QUICKSTART, "--port", "0", "--admin-port", "0", "--seconds", "60"], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True) as process:
            printed = []
            address = None
            for line in process.stdout:
                printed.append(line)
                found = re.match(r"Metrics +(\S+)", line)
                address = found.group(1) if found else address
                if address and re.match(r"[\d,]+ records/s", line):
                    break
            else:
                raise AssertionError("the quickstart told no address:\n" + "".join(printed))
            with urllib.request.urlopen(address, timeout=10) as answer:
                cls.scrape = answer.read().decode()
            process.terminate()
            process.stdout.read()
        cls.names = {re.match(r"\w+", line).group() for line in cls.scrape.splitlines() if line and line[0] != "#"}

    def test_every_metric_of_rules_and_dashboard_is_exported(self):
        recorded = {rule["record"] for rule in rules() if "record" in rule}
        count = 0
        for place, query in queries():
            for record in recorded:
                query = query.replace(record, "")
            for name in METRIC.findall(query):
                count += 1
                self.assertIn(name, self.names, place)
        self.assertGreater(count, 40)

    def test_every_recorded_series_of_the_dashboard_has_a_rule(self):
        recorded = {rule["record"] for rule in rules() if "record" in rule}
        for place, query in queries():
            for name in re.findall(r"\b\w+:\w+:\w+", query):
                self.assertIn(name, recorded, place)

    def test_scrape_follows_prometheus_conventions(self):
        done = subprocess.run([PROMTOOL, "check", "metrics"], input=self.scrape, capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
