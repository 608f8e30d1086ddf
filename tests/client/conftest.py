"""Starts one `drover serve` without Kafka for all tests of the folder, and hands out clients and fresh tables."""

import os
import pathlib
import socket
import subprocess
import time
import urllib.error
import urllib.request
import uuid

import boto3
import botocore.config
import pytest

START_SECONDS_MAX = 60
STOP_SECONDS_MAX = 10

# The sanitizer builds are slow; nothing is sent twice, so that an error is seen as it came.
CLIENT_CONFIG = botocore.config.Config(
    retries={"max_attempts": 0}, connect_timeout=5, read_timeout=120, max_pool_connections=32
)

CONFIG = """
tables:
  - name: telemetry
    keys:
      partition_key: {{name: vehicleId, type: S}}
      sort_key: {{name: recordedAt, type: S}}
    time_sort_key: {{prefix: "TS#", precision: seconds}}
    inherit: [depotCode]
    indexes:
      - name: depot
        partition_key: {{name: depotCode, type: S}}
        sort_key: {{name: recordedAt, type: S}}
api: {{host: 127.0.0.1, port: {api}}}
admin: {{host: 127.0.0.1, port: {admin}}}
"""


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def wait_until_healthy(url, process, log):
    deadline = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < deadline:
        assert process.poll() is None, f"drover ended with {process.returncode}:\n{log.read_text()}"
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                if answer.read().startswith(b"healthy"):
                    return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.05)  # not up yet
    raise AssertionError(f"drover did not answer on {url}:\n{log.read_text()}")


@pytest.fixture(scope="session")
def endpoint(tmp_path_factory):
    folder = tmp_path_factory.mktemp("drover")
    api, admin = free_ports(2)
    config = folder / "drover.yaml"
    config.write_text(CONFIG.format(api=api, admin=admin))
    log = folder / "log"
    program = pathlib.Path(os.environ["DROVER_BIN"])
    with log.open("w") as output:
        process = subprocess.Popen([program, "serve", "--config", config], stdout=output, stderr=output)
    url = f"http://127.0.0.1:{api}"
    try:
        wait_until_healthy(url, process, log)
        yield url
        process.terminate()
        assert process.wait(timeout=STOP_SECONDS_MAX) == 0, log.read_text()
    finally:
        process.kill()
        process.wait()


def session():
    return boto3.session.Session(
        aws_access_key_id="any", aws_secret_access_key="any", region_name="us-east-1"
    )


@pytest.fixture(scope="session")
def client(endpoint):
    return session().client("dynamodb", endpoint_url=endpoint, config=CLIENT_CONFIG)


@pytest.fixture(scope="session")
def resource(endpoint):
    return session().resource("dynamodb", endpoint_url=endpoint, config=CLIENT_CONFIG)


def attribute(name, kind="S"):
    return {"AttributeName": name, "AttributeType": kind}


def key(partition, sort=None):
    schema = [{"AttributeName": partition, "KeyType": "HASH"}]
    if sort is not None:
        schema.append({"AttributeName": sort, "KeyType": "RANGE"})
    return schema


@pytest.fixture
def table(resource):
    """A fresh table with partition key p (S), sort key s (N), a global and a local index."""
    made = resource.create_table(
        TableName=f"test-{uuid.uuid4()}",
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[attribute("p"), attribute("s", "N"), attribute("g"), attribute("l")],
        KeySchema=key("p", "s"),
        GlobalSecondaryIndexes=[
            {"IndexName": "global", "KeySchema": key("g", "s"), "Projection": {"ProjectionType": "ALL"}}
        ],
        LocalSecondaryIndexes=[
            {"IndexName": "local", "KeySchema": key("p", "l"), "Projection": {"ProjectionType": "KEYS_ONLY"}}
        ],
    )
    made.wait_until_exists()
    yield made
    made.delete()
