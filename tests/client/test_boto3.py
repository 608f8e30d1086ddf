"""boto3, which also checks checksums, types and shapes of what it gets, against the API."""

import concurrent.futures
import decimal
import time

import pytest
from boto3.dynamodb.conditions import Attr, Key
from boto3.dynamodb.types import Binary
from botocore.exceptions import ClientError

from conftest import attribute, key


def error_of(call, *args, **kwargs):
    with pytest.raises(ClientError) as caught:
        call(*args, **kwargs)
    return caught.value.response["Error"]


def all_pages(operation, **kwargs):
    items = []
    while True:
        page = operation(**kwargs)
        items += page["Items"]
        if "LastEvaluatedKey" not in page:
            return items
        kwargs["ExclusiveStartKey"] = page["LastEvaluatedKey"]


EVERY_TYPE = {
    "string": "text \u00e9 \U0001f69a \"\\\n\u0001",
    "empty": "",
    "number": decimal.Decimal("-12345678901234567890.123456789"),
    "binary": Binary(bytes(range(256))),
    "true": True,
    "false": False,
    "null": None,
    "strings": {"a", "b"},
    "numbers": {decimal.Decimal(1), decimal.Decimal("2.5")},
    "binaries": {Binary(b"\x00"), Binary(b"\xff")},
    "list": ["a", decimal.Decimal(1), [], {}, None],
    "map": {"nested": {"deep": ["x"]}, "": "empty name"},
}


def test_every_type_comes_back_as_it_was(table):
    item = {"p": "a", "s": 1, **EVERY_TYPE}
    table.put_item(Item=item)
    assert table.get_item(Key={"p": "a", "s": 1})["Item"] == item
    assert table.query(KeyConditionExpression=Key("p").eq("a"))["Items"] == [item]


def test_numbers_are_exact_and_canonical(client, table):
    for given, kept in [("1.0", "1"), ("+3", "3"), ("007", "7"), ("1e3", "1000"), (".5", "0.5"), ("-0", "0")]:
        client.put_item(TableName=table.name, Item={"p": {"S": "n"}, "s": {"N": "1"}, "x": {"N": given}})
        item = client.get_item(TableName=table.name, Key={"p": {"S": "n"}, "s": {"N": "1.00"}})["Item"]
        assert item["x"] == {"N": kept}
        assert item["s"] == {"N": "1"}
    for given in ["1e126", "1e-131", "1" * 39, "1.0e100000000", "NaN", "0x1", " 1", ""]:
        error = error_of(
            client.put_item, TableName=table.name, Item={"p": {"S": "n"}, "s": {"N": "1"}, "x": {"N": given}}
        )
        assert error["Code"] == "ValidationException", given


def test_conditional_puts_have_one_winner_among_threads(table):
    def claim(number):
        try:
            table.put_item(Item={"p": "claim", "s": 1, "by": number}, ConditionExpression=Attr("p").not_exists())
            return number
        except table.meta.client.exceptions.ConditionalCheckFailedException:
            return None

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        winners = [number for number in pool.map(claim, range(64)) if number is not None]
    assert len(winners) == 1
    assert table.get_item(Key={"p": "claim", "s": 1}, ConsistentRead=True)["Item"]["by"] == winners[0]


def test_counters_lose_no_increment_among_threads(table):
    def add(_):
        table.update_item(
            Key={"p": "counter", "s": 1},
            UpdateExpression="SET n = if_not_exists(n, :zero) + :one",
            ExpressionAttributeValues={":zero": 0, ":one": 1},
        )

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        list(pool.map(add, range(200)))
    assert table.get_item(Key={"p": "counter", "s": 1}, ConsistentRead=True)["Item"]["n"] == 200


def test_updates_return_what_was_asked_for(table):
    table.put_item(Item={"p": "a", "s": 1, "x": 1, "l": "old", "m": {"k": "v"}})
    updated = table.update_item(
        Key={"p": "a", "s": 1},
        UpdateExpression="SET x = x + :one, m.n = :one REMOVE l ADD tags :tags",
        ExpressionAttributeValues={":one": 1, ":tags": {"new"}},
        ReturnValues="UPDATED_NEW",
    )
    assert updated["Attributes"] == {"x": 2, "m": {"n": 1}, "tags": {"new"}}
    updated = table.update_item(
        Key={"p": "a", "s": 1},
        UpdateExpression="DELETE tags :tags",
        ExpressionAttributeValues={":tags": {"new"}},
        ReturnValues="ALL_NEW",
    )
    assert updated["Attributes"] == {"p": "a", "s": 1, "x": 2, "m": {"k": "v", "n": 1}}


def test_legacy_parameters(table):
    table.put_item(Item={"p": "a", "s": 1, "x": 1}, Expected={"p": {"Exists": False}})
    table.update_item(
        Key={"p": "a", "s": 1},
        AttributeUpdates={"x": {"Action": "ADD", "Value": 2}, "y": {"Action": "PUT", "Value": "new"}},
        Expected={"x": {"ComparisonOperator": "LT", "AttributeValueList": [2]}},
    )
    found = table.query(
        KeyConditions={"p": {"ComparisonOperator": "EQ", "AttributeValueList": ["a"]}},
        QueryFilter={"x": {"ComparisonOperator": "EQ", "AttributeValueList": [3]}},
    )
    assert found["Items"] == [{"p": "a", "s": 1, "x": 3, "y": "new"}]
    assert table.get_item(Key={"p": "a", "s": 1}, AttributesToGet=["y"])["Item"] == {"y": "new"}


@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("limit", [1, 3, 7, 100])
def test_query_pages_in_order_without_loss(table, forward, limit):
    with table.batch_writer() as batch:
        for number in range(20):
            batch.put_item(Item={"p": "q", "s": number - 5})
    numbers = [
        item["s"]
        for item in all_pages(
            table.query, KeyConditionExpression=Key("p").eq("q"), ScanIndexForward=forward, Limit=limit
        )
    ]
    assert numbers == sorted(range(-5, 15), reverse=not forward)


@pytest.mark.parametrize(
    "condition, expected",
    [
        (Key("s").eq(3), [3]),
        (Key("s").lt(3), [0, 1, 2]),
        (Key("s").lte(3), [0, 1, 2, 3]),
        (Key("s").gt(3), [4, 5]),
        (Key("s").gte(3), [3, 4, 5]),
        (Key("s").between(2, 4), [2, 3, 4]),
    ],
)
def test_query_conditions_on_the_sort_key(table, condition, expected):
    with table.batch_writer() as batch:
        for number in range(6):
            batch.put_item(Item={"p": "q", "s": number})
    items = table.query(KeyConditionExpression=Key("p").eq("q") & condition)["Items"]
    assert [item["s"] for item in items] == expected


@pytest.mark.parametrize(
    "condition, expected",
    [
        (Attr("n").gt(1) & Attr("tag").eq("even"), [2, 4]),
        (Attr("n").lt(2) | Attr("n").gte(4), [0, 1, 4, 5]),
        (~Attr("tag").exists(), [1, 3, 5]),
        (Attr("tag").attribute_type("S"), [0, 2, 4]),
        (Attr("n").is_in([1, 5, 9]), [1, 5]),
        (Attr("n").between(2, 3), [2, 3]),
        (Attr("doc.list[0]").eq(3), [3]),
        (Attr("doc.list").contains(4), [4]),
        (Attr("name").begins_with("item-1"), [1]),
        (Attr("name").size().gt(100), []),
        (Attr("tag").ne("even"), [1, 3, 5]),
    ],
)
def test_filters(table, condition, expected):
    with table.batch_writer() as batch:
        for n in range(6):
            item = {"p": "f", "s": n, "n": n, "name": f"item-{n}", "doc": {"list": [n]}}
            batch.put_item(Item={**item, "tag": "even"} if n % 2 == 0 else item)
    page = table.query(KeyConditionExpression=Key("p").eq("f"), FilterExpression=condition)
    assert [item["s"] for item in page["Items"]] == expected
    assert (page["Count"], page["ScannedCount"]) == (len(expected), 6)
    scanned = table.scan(FilterExpression=condition)
    assert sorted(item["s"] for item in scanned["Items"]) == expected


def test_a_global_index_pages_through_ties(table):
    with table.batch_writer() as batch:
        for number in range(12):
            batch.put_item(Item={"p": f"p{number}", "s": number % 3, "g": "one"})
    items = all_pages(table.query, IndexName="global", KeyConditionExpression=Key("g").eq("one"), Limit=5)
    assert len({item["p"] for item in items}) == len(items) == 12
    assert [item["s"] for item in items] == sorted(number % 3 for number in range(12))
    error = error_of(
        table.query, IndexName="global", KeyConditionExpression=Key("g").eq("one"), ConsistentRead=True
    )
    assert error["Message"] == "Consistent reads are not supported on global secondary indexes"


def test_a_local_index_has_its_own_order_and_projection(table):
    for number, word in enumerate(["c", "a", "b"]):
        table.put_item(Item={"p": "l", "s": number, "l": word, "x": "unprojected"})
    table.put_item(Item={"p": "l", "s": 9})
    query = {"IndexName": "local", "KeyConditionExpression": Key("p").eq("l"), "ConsistentRead": True}
    assert [item["l"] for item in all_pages(table.query, Limit=1, **query)] == ["a", "b", "c"]
    assert table.query(**query)["Items"][0] == {"p": "l", "s": 1, "l": "a"}
    assert table.query(Select="ALL_ATTRIBUTES", **query)["Items"][0]["x"] == "unprojected"


def test_parallel_scan_segments_return_every_item_once(table):
    with table.batch_writer() as batch:
        for number in range(100):
            batch.put_item(Item={"p": f"p{number}", "s": number})
    seen = []
    for segment in range(7):
        seen += [item["s"] for item in all_pages(table.scan, TotalSegments=7, Segment=segment, Limit=9)]
    assert sorted(seen) == list(range(100))


def test_batches(client, resource, table):
    with table.batch_writer(overwrite_by_pkeys=["p", "s"]) as batch:
        for number in range(60):
            batch.put_item(Item={"p": "b", "s": number % 50, "round": number // 50})
        batch.delete_item(Key={"p": "b", "s": 0})
    got = resource.batch_get_item(
        RequestItems={table.name: {"Keys": [{"p": "b", "s": number} for number in range(50)], "ConsistentRead": True}}
    )
    assert {item["s"]: item["round"] for item in got["Responses"][table.name]} == {
        number: 1 if number < 10 else 0 for number in range(1, 50)
    }
    assert got["UnprocessedKeys"] == {}
    request = {"PutRequest": {"Item": {"p": {"S": "b"}, "s": {"N": "1.0"}}}}
    again = {"DeleteRequest": {"Key": {"p": {"S": "b"}, "s": {"N": "1"}}}}
    error = error_of(client.batch_write_item, RequestItems={table.name: [request, again]})
    assert error == {"Code": "ValidationException", "Message": "Provided list of item keys contains duplicates"}


def test_consumed_capacity(table):
    put = table.put_item(Item={"p": "c", "s": 1, "x": "x" * 5000}, ReturnConsumedCapacity="TOTAL")
    assert put["ConsumedCapacity"] == {"TableName": table.name, "CapacityUnits": 5.0}
    got = table.get_item(Key={"p": "c", "s": 1}, ReturnConsumedCapacity="INDEXES")
    assert got["ConsumedCapacity"]["Table"] == {"CapacityUnits": 1.0}


def test_tables(client, table):
    described = client.describe_table(TableName=table.name)["Table"]
    assert described["TableStatus"] == "ACTIVE"
    assert described["KeySchema"] == key("p", "s")
    assert described["GlobalSecondaryIndexes"][0]["IndexStatus"] == "ACTIVE"
    assert table.name in [name for page in client.get_paginator("list_tables").paginate() for name in page["TableNames"]]
    error = error_of(
        client.create_table,
        TableName=table.name,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[attribute("p")],
        KeySchema=key("p"),
    )
    assert error["Code"] == "ResourceInUseException"
    assert error_of(client.describe_table, TableName="no-such-table") == {
        "Code": "ResourceNotFoundException",
        "Message": "Requested resource not found: Table: no-such-table not found",
    }


def test_time_to_live(client, table):
    assert client.describe_time_to_live(TableName=table.name)["TimeToLiveDescription"] == {"TimeToLiveStatus": "DISABLED"}
    specification = {"Enabled": True, "AttributeName": "until"}
    assert client.update_time_to_live(TableName=table.name, TimeToLiveSpecification=specification)[
        "TimeToLiveSpecification"] == specification
    assert client.describe_time_to_live(TableName=table.name)["TimeToLiveDescription"] == {
        "TimeToLiveStatus": "ENABLED", "AttributeName": "until"}
    now = int(time.time())
    for number, until in enumerate([now - 1, now + 3600, now - 6 * 366 * 86400]):
        table.put_item(Item={"p": "ttl", "s": number, "until": until})
    deadline = time.monotonic() + 60
    while len(left := table.query(KeyConditionExpression=Key("p").eq("ttl"))["Items"]) == 3:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert [item["s"] for item in left] == [1, 2]
    error = error_of(client.update_time_to_live, TableName=table.name, TimeToLiveSpecification=specification)
    assert (error["Code"], error["Message"]) == ("ValidationException", "TimeToLive is already enabled")


def test_errors_have_dynamodbs_words(table):
    cases = [
        (
            {"KeyConditionExpression": "p = :p AND s BETWEEN :b AND :a"},
            "Invalid KeyConditionExpression: The BETWEEN operator requires upper bound to be greater than or equal to "
            "lower bound; lower bound operand: AttributeValue: {N:2}, upper bound operand: AttributeValue: {N:1}",
        ),
        (
            {"KeyConditionExpression": "p = :p", "FilterExpression": "Status = :a AND x < :b"},
            "Invalid FilterExpression: Attribute name is a reserved keyword; reserved keyword: Status",
        ),
        (
            {"KeyConditionExpression": "p = :p"},
            "Value provided in ExpressionAttributeValues unused in expressions: keys: {:a, :b}",
        ),
    ]
    for parameters, message in cases:
        error = error_of(table.query, ExpressionAttributeValues={":p": "p", ":a": 1, ":b": 2}, **parameters)
        assert error == {"Code": "ValidationException", "Message": message}


def test_time_sort_keys_and_inherited_depots(resource):
    table = resource.Table("telemetry")
    vehicle = "VEH#V-7741"
    table.put_item(Item={"vehicleId": vehicle, "recordedAt": "META", "depotCode": "DEP-LON-3", "plate": "LK23 ABC"})
    for minute in range(20):
        table.put_item(
            Item={"vehicleId": vehicle, "recordedAt": f"TS#2026-06-23T09:{minute:02}:00.250Z", "speedKph": minute}
        )
    whole = table.query(KeyConditionExpression=Key("vehicleId").eq(vehicle))["Items"]
    assert whole[0]["recordedAt"] == "META" and len(whole) == 21
    assert whole[1]["recordedAt"] == "TS#2026-06-23T09:00:00Z"
    slice_of_ten = table.query(
        KeyConditionExpression=Key("vehicleId").eq(vehicle)
        & Key("recordedAt").between("TS#2026-06-23T11:05:00+02:00", "TS#2026-06-23T11:14:00+02:00"),
        ScanIndexForward=False,
    )["Items"]
    assert [item["speedKph"] for item in slice_of_ten] == list(range(14, 4, -1))
    newest = table.query(
        IndexName="depot",
        KeyConditionExpression=Key("depotCode").eq("DEP-LON-3") & Key("recordedAt").begins_with("TS#"),
        ScanIndexForward=False,
        Limit=3,
    )["Items"]
    assert [item["speedKph"] for item in newest] == [19, 18, 17]
