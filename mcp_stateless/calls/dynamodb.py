"""Call records in DynamoDB. The only module that knows boto3; it is imported only by servers that let calls be polled.

Each decision is one conditional write, which returns the record after it, or the one that refused it. Parts of long
texts are written before the head that points to them, so that a head never points to nothing.
"""

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, Protocol, TypeAlias

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError
from botocore.exceptions import ConnectionError as ConnectingFailed

from mcp_stateless.calls import expressions, items
from mcp_stateless.calls.items import Attribute, Item, Placed
from mcp_stateless.calls.record import CallRecord, Cancel, Claim, Fail, Finish, Move, MoveRefused
from mcp_stateless.calls.store import (
    RecordTooLarge,
    Snapshot,
    StoreMisconfigured,
    StoreUnavailable,
    entry_number,
)
from mcp_stateless.protocol.revisions import Wire

Response: TypeAlias = Mapping[str, Any]

CONNECT_SECONDS: Final = 1
READ_SECONDS: Final = 2
ATTEMPTS: Final = 3
"""With the pauses between them about 10 seconds at worst: a poll may need two requests, and a gateway gives it 29."""
CONNECTIONS: Final = 32
"""At least the threads of an event loop's executor."""
BATCH_ROUNDS: Final = 8
BATCH_PAUSE_SECONDS: Final = 0.1
"""Doubled each round: a partition takes about 1 MB a second, so the longest outcome may take several."""

ADMISSION_ROUNDS: Final = 4
"""One is enough, unless the places of a caller change between its two writes."""

NEW_ID: Final = "attribute_not_exists(#pk)"
THROTTLED: Final = frozenset(
    {
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "ThrottlingException",
    }
)
FIXES: Final[Mapping[str, str]] = {
    "ResourceNotFoundException": "there is no such table in this account and Region: deploy it, or name the right one",
    "AccessDeniedException": (
        "this function may not use it: its role needs dynamodb:PutItem, UpdateItem, BatchWriteItem and Query on it"
    ),
    "ValidationException": "the keys of the table must be pk (string) and sk (number)",
}


class Client(Protocol):
    """The part of boto3's DynamoDB client that a store uses."""

    def put_item(self, **request: object) -> Response: ...
    def update_item(self, **request: object) -> Response: ...
    def batch_write_item(self, **request: object) -> Response: ...
    def query(self, **request: object) -> Response: ...


def make_client() -> Client:
    """A client from the environment (Region, credentials, `AWS_ENDPOINT_URL_DYNAMODB`): slow, so make one, at start.

    Raises:
        StoreMisconfigured: the environment does not say enough.
    """
    config = Config(
        retries={"mode": "adaptive", "total_max_attempts": ATTEMPTS},
        connect_timeout=CONNECT_SECONDS,
        read_timeout=READ_SECONDS,
        max_pool_connections=CONNECTIONS,
        tcp_keepalive=True,
    )
    try:
        client: Client = boto3.client("dynamodb", config=config)
    except (BotoCoreError, ValueError) as error:
        raise StoreMisconfigured(
            "No client for DynamoDB: set AWS_DEFAULT_REGION and check AWS_ENDPOINT_URL*"
        ) from error
    return client


class DynamoDBCallStore:
    """See `CallStore`. The table has the keys `pk` (string) and `sk` (number), and `ttl` as its TTL attribute."""

    def __init__(
        self,
        table_name: str,
        client: Client | None = None,
        *,
        lifetime_s: int = 86_400,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`lifetime_s` is at least that of any record: how long what lies beside a record is kept."""
        self._table = table_name
        self._client = client or make_client()
        self._lifetime_s = lifetime_s
        self._clock = clock

    async def create(self, record: CallRecord) -> None:
        first = -100 * (1 + secrets.randbelow(10**12))
        arguments = items.place(record.arguments, items.INLINE_ARGUMENT_BYTES, first)
        move_id = _move_id()
        head = items.head(record, arguments.attribute, move_id)
        _check_size(head)
        await self._put_parts(record.call_id, arguments)
        try:
            await self._decide(
                self._client.put_item,
                move_id,
                record.created_ms,
                Item=head,
                ConditionExpression=NEW_ID,
                ExpressionAttributeNames={"#pk": "pk"},
            )
        except MoveRefused:
            await self._delete_parts(record.call_id, arguments)
            raise

    async def apply(self, call_id: str, move: Move, now_ms: int) -> CallRecord:
        match move:
            case Finish(outcome=outcome) | Cancel(outcome=outcome) | Fail(outcome=outcome):
                record, _ = await self._end(call_id, move, outcome, now_ms)
                return replace(record, outcome=outcome)
            case Claim():
                record, head = await self._update(call_id, move, now_ms)
                place = items.place_of_parts(head["arguments"])
                return record if place is None else replace(record, arguments=await self._text(call_id, place))
            case _:
                record, _ = await self._update(call_id, move, now_ms)
                return record

    async def append(self, call_id: str, attempt: int, number: int, messages: Sequence[Wire]) -> None:
        item = items.batch(call_id, entry_number(attempt, number), messages, self._until_ms())
        _check_size(item)
        await self._send(self._client.put_item, TableName=self._table, Item=item)

    async def read(self, call_id: str, after: int, now_ms: int) -> Snapshot | None:
        # A query is no snapshot: the head, which comes last, may point to parts written after their place was passed.
        for _ in range(2):
            found = await self._query(call_id, after + 1, items.HEAD)
            if not found or found[-1]["sk"] != items.number(items.HEAD):
                return None
            record = _alive(found[-1], now_ms)
            if record is None:
                return None
            place = items.place_of_parts(found[-1].get("outcome"))
            outcome = record.outcome if place is None else items.joined(place, found)
            if place is None or outcome is not None:
                return Snapshot(replace(record, outcome=outcome), items.entries(found))
        raise StoreUnavailable(f"Parts of the outcome of call {call_id} are missing in table {self._table!r}")

    async def admit(self, caller: str, call_id: str, until_ms: int, most: int, now_ms: int) -> bool:
        ttl = items.ttl(self._until_ms())
        for _ in range(ADMISSION_ROUNDS):
            seen = await self._refusing_places(caller, expressions.take_place(call_id, until_ms, most, ttl))
            if seen is None:
                return True
            # All are taken, some of them perhaps by calls past their time; or this is the caller's first call.
            taken = {id: until for id, until in items.places(seen).items() if until > now_ms}
            if len(taken) >= most:
                return False
            places = {**taken, call_id: until_ms}
            if await self._refusing_places(caller, expressions.replace_places(seen, places, ttl)) is None:
                return True
        raise StoreUnavailable(f"The places of a caller in table {self._table!r} change too fast")

    async def leave(self, caller: str, call_id: str) -> None:
        await self._refusing_places(caller, expressions.leave_place(call_id))

    async def _refusing_places(self, caller: str, update: Mapping[str, object]) -> Item | None:
        """The item of a caller that refused an update, empty if there is none; None: the update is carried out."""
        request = {"TableName": self._table, "Key": items.places_key(caller), **update}
        try:
            await self._send(self._client.update_item, ReturnValuesOnConditionCheckFailure="ALL_OLD", **request)
        except _ConditionFailed as failed:
            return failed.head
        return None

    async def _end(self, call_id: str, move: Move, outcome: str, now_ms: int) -> tuple[CallRecord, Item]:
        first = items.OUTCOME_PARTS + 100 * secrets.randbelow(10**12)
        placed = items.place(outcome, items.INLINE_OUTCOME_BYTES, first)
        if not placed.parts:
            try:
                return await self._update(call_id, move, now_ms, placed.attribute)
            except RecordTooLarge:  # with the steps and answers that lie there already
                placed = items.place(outcome, 0, first)
        await self._put_parts(call_id, placed)
        try:
            return await self._update(call_id, move, now_ms, placed.attribute)
        except MoveRefused:
            await self._delete_parts(call_id, placed)  # or every poll would read them
            raise

    async def _update(
        self, call_id: str, move: Move, now_ms: int, outcome: Attribute | None = None
    ) -> tuple[CallRecord, Item]:
        move_id = _move_id()
        update = expressions.update(move, now_ms, move_id, outcome)
        _check_size(update["ExpressionAttributeValues"])
        key = items.key(call_id, items.HEAD)
        head = await self._decide(self._client.update_item, move_id, now_ms, Key=key, ReturnValues="ALL_NEW", **update)
        record = items.record(head)
        assert record is not None, "the condition of every move names the schema"
        return record, head

    async def _decide(self, operation: Callable[..., Response], move_id: str, now_ms: int, **request: object) -> Item:
        """Carry out a conditional write, and return the head after it, if the request asks for that."""
        try:
            response = await self._send(
                operation, TableName=self._table, ReturnValuesOnConditionCheckFailure="ALL_OLD", **request
            )
        except _ConditionFailed as failed:
            # A write whose answer was lost is sent again by botocore, and finds itself carried out.
            if failed.head.get("move") == items.string(move_id):
                return failed.head
            raise MoveRefused(await self._standing(failed.head, now_ms)) from None
        head: Item = response.get("Attributes", {})
        return head

    async def _standing(self, head: Item, now_ms: int) -> CallRecord | None:
        """The record that refused a move; an outcome in parts is the one thing that takes a read."""
        record, place = _alive(head, now_ms), items.place_of_parts(head.get("outcome"))
        if record is None or place is None:
            return record
        return replace(record, outcome=await self._text(record.call_id, place))

    async def _text(self, call_id: str, place: range) -> str:
        text = items.joined(place, await self._query(call_id, place[0], place[-1]))
        if text is None:
            raise StoreUnavailable(f"Parts of a text of call {call_id} are missing in table {self._table!r}")
        return text

    async def _query(self, call_id: str, low: int, high: int) -> list[Item]:
        """The items of a call with sort keys from `low` to `high`."""
        request: dict[str, object] = {
            "TableName": self._table,
            "ConsistentRead": True,
            "KeyConditionExpression": "#pk = :pk AND #sk BETWEEN :low AND :high",
            "ExpressionAttributeNames": {"#pk": "pk", "#sk": "sk"},
            "ExpressionAttributeValues": {
                ":pk": items.key(call_id, low)["pk"],
                ":low": items.number(low),
                ":high": items.number(high),
            },
        }
        found: list[Item] = []
        while True:
            page = await self._send(self._client.query, **request)
            found += page["Items"]
            if "LastEvaluatedKey" not in page:
                return found
            request["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    async def _put_parts(self, call_id: str, text: Placed) -> None:
        until_ms = self._until_ms()
        parts = [items.part(call_id, sort, data, until_ms) for sort, data in text.parts.items()]
        await self._write_batch([{"PutRequest": {"Item": item}} for item in parts])

    async def _delete_parts(self, call_id: str, text: Placed) -> None:
        with suppress(StoreUnavailable):  # they expire
            await self._write_batch([{"DeleteRequest": {"Key": items.key(call_id, sort)}} for sort in text.parts])

    async def _write_batch(self, requests: Sequence[object]) -> None:
        """Write at most 25 items; DynamoDB may take some of them at a time."""
        left: Mapping[str, Sequence[object]] = {self._table: requests} if requests else {}
        for round_ in range(BATCH_ROUNDS):
            if not left:
                return
            if round_:
                await asyncio.sleep(BATCH_PAUSE_SECONDS * 2 ** (round_ - 1))
            with suppress(_Throttled):  # it takes none
                response = await self._send(self._client.batch_write_item, RequestItems=left)
                left = response.get("UnprocessedItems", {})
        if left:
            raise StoreUnavailable(f"DynamoDB table {self._table!r} does not take all parts of a text: it throttles")

    async def _send(self, operation: Callable[..., Response], **request: object) -> Response:
        """Send one request, in a thread: boto3 would block the event loop."""
        try:
            response: Response = await asyncio.to_thread(operation, **request)
            return response
        except ClientError as error:
            raise self._translated(error) from error
        except (HTTPClientError, ConnectingFailed) as error:
            raise StoreUnavailable(f"DynamoDB table {self._table!r} does not answer") from error
        except BotoCoreError as error:
            fix = "check the credentials and the Region of this process"
            raise StoreMisconfigured(f"No request to DynamoDB table {self._table!r} can be made: {fix}") from error

    def _translated(self, error: ClientError) -> Exception:
        code = error.response.get("Error", {}).get("Code", "")
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 500)
        if code == "ConditionalCheckFailedException":
            return _ConditionFailed(error.response.get("Item", {}))
        if code in THROTTLED or status >= 500:
            kind = _Throttled if code in THROTTLED else StoreUnavailable
            return kind(f"DynamoDB table {self._table!r} does not take the request now: {code}")
        if code == "ValidationException" and "size" in str(error):
            return RecordTooLarge(f"The call has grown beyond an item of DynamoDB, {items.MAX_ITEM_BYTES} bytes")
        fix = FIXES.get(code, "check the credentials and the Region of this process")
        return StoreMisconfigured(f"DynamoDB table {self._table!r}, {code}: {fix}")

    def _until_ms(self) -> int:
        return int((self._clock() + self._lifetime_s) * 1000)


class TableClient(Protocol):
    """The part of boto3's DynamoDB client that makes a table."""

    def create_table(self, **request: object) -> Response: ...
    def update_time_to_live(self, **request: object) -> Response: ...
    def get_waiter(self, waiter_name: str) -> Any: ...


def create_table(client: TableClient, table_name: str) -> None:
    """Make a table as a store needs it, for local use and tests; a deployed one is in the template."""
    client.create_table(
        TableName=table_name,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "sk", "AttributeType": "N"},
        ],
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
    )
    client.get_waiter("table_exists").wait(TableName=table_name, WaiterConfig={"Delay": 1, "MaxAttempts": 30})
    client.update_time_to_live(TableName=table_name, TimeToLiveSpecification={"Enabled": True, "AttributeName": "ttl"})


class _Throttled(StoreUnavailable):
    """There are more requests than the table takes."""


class _ConditionFailed(Exception):
    def __init__(self, head: Item) -> None:
        super().__init__()
        self.head = head


def _alive(head: Item, now_ms: int) -> CallRecord | None:
    record = items.record(head) if head else None
    return record if record is not None and record.until_ms > now_ms else None


def _move_id() -> str:
    return secrets.token_urlsafe(8)


def _check_size(attributes: Mapping[str, Attribute]) -> None:
    size = items.size(attributes)
    if size > items.MAX_ITEM_BYTES:
        raise RecordTooLarge(f"{size} bytes in one item; DynamoDB takes {items.MAX_ITEM_BYTES}")
