"""Draws the two pictures of the README as SVG: `python -m docs.pictures` writes them anew.

Plain shapes and one font family, on a background of their own, so that they look the same on a dark page.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

FOLDER: Final = Path(__file__).parent

FONT: Final = "Helvetica, Arial, 'DejaVu Sans', sans-serif"
INK, FAINT, BLUE, GREEN = "#1f2933", "#7b8794", "#1d5fa8", "#2f7d4f"
LEFT: Final = 90
STEP: Final = 50
TOP: Final = 96


@dataclass(frozen=True, slots=True)
class Message:
    """An arrow from one column to another; a note when both are the same."""

    start: int
    end: int
    text: str
    below: str = ""
    colour: str = INK


@dataclass(frozen=True, slots=True)
class Picture:
    """A sequence diagram."""

    name: str
    title: str
    described: str
    columns: Sequence[str]
    messages: Sequence[Message]
    spread: int = 210

    def svg(self) -> str:
        width = LEFT * 2 + self.spread * (len(self.columns) - 1)
        height = TOP + STEP * len(self.messages)
        parts = [*self._columns(height), *self._rows()]
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" role="img" aria-labelledby="title desc" font-family="{FONT}">\n'
            f'<title id="title">{escape(self.title)}</title>\n<desc id="desc">{escape(self.described)}</desc>\n'
            f'<rect width="{width}" height="{height}" rx="8" fill="#ffffff"/>\n' + "\n".join(parts) + "\n</svg>\n"
        )

    def _columns(self, height: int) -> list[str]:
        parts = []
        for index, name in enumerate(self.columns):
            x = self._x(index)
            parts.append(
                f'<line x1="{x}" y1="58" x2="{x}" y2="{height - 14}" stroke="{FAINT}" stroke-dasharray="4 4"/>'
                f'<rect x="{x - 78}" y="18" width="156" height="40" rx="6" fill="#eef2f6" stroke="{FAINT}"/>'
                f'<text x="{x}" y="43" font-size="14" font-weight="bold" text-anchor="middle" fill="{INK}">'
                f"{escape(name)}</text>"
            )
        return parts

    def _rows(self) -> list[str]:
        return [
            (self._note if message.start == message.end else self._arrow)(message, TOP + STEP * row)
            for row, message in enumerate(self.messages)
        ]

    def _x(self, column: int) -> int:
        return LEFT + self.spread * column

    def _arrow(self, message: Message, y: int) -> str:
        x1, x2 = self._x(message.start), self._x(message.end)
        way = 1 if x2 > x1 else -1
        middle = x1 + way * self.spread // 2  # a label of a long arrow stands in its first column
        head = f"{x2},{y} {x2 - 9 * way},{y - 5} {x2 - 9 * way},{y + 5}"
        return (
            f'<line x1="{x1}" y1="{y}" x2="{x2 - 8 * way}" y2="{y}" stroke="{message.colour}" stroke-width="1.6"/>'
            f'<polygon points="{head}" fill="{message.colour}"/>'
            + _label(middle, y - 7, message.text, message.colour)
            + (_label(middle, y + 16, message.below, FAINT) if message.below else "")
        )

    def _note(self, message: Message, y: int) -> str:
        x = self._x(message.start)
        width = max(len(message.text), len(message.below)) * 6.6 + 20
        height = 38 if message.below else 26
        top = y - height // 2
        return (
            f'<rect x="{x - width / 2:.0f}" y="{top}" width="{width:.0f}" height="{height}" rx="4" fill="#fdf6e3" '
            f'stroke="{message.colour}"/>'
            + _label(x, top + 17, message.text, message.colour)
            + (_label(x, top + 32, message.below, message.colour) if message.below else "")
        )


def _label(x: int, y: int, text: str, colour: str) -> str:
    return f'<text x="{x}" y="{y}" font-size="12" text-anchor="middle" fill="{colour}">{escape(text)}</text>'


REQUEST: Final = Picture(
    name="request-flow.svg",
    title="How a short call flows",
    described=(
        "The client posts a JSON-RPC call. The gateway makes a Lambda event of it. The handler turns the event into "
        "an ASGI request, checks origin, caller, body, revision and headers, runs the tool, and returns one JSON body."
    ),
    columns=("MCP client", "API Gateway", "lambda_handler", "endpoint", "your tool"),
    messages=(
        Message(0, 1, "POST /mcp", "one JSON-RPC call", BLUE),
        Message(1, 2, "event", "v1, v2, Function URL, ALB", BLUE),
        Message(2, 3, "ASGI request", "Mangum, FastAPI or neither", BLUE),
        Message(3, 3, "origin, caller, size, JSON,", "revision; then the method"),
        Message(3, 4, "checked arguments", colour=BLUE),
        Message(4, 4, "async, or in a thread"),
        Message(4, 3, "value, ToolError, question", colour=GREEN),
        Message(3, 2, "one JSON body", "or one finished SSE body", GREEN),
        Message(2, 2, "fits the size limit?"),
        Message(2, 1, "result", colour=GREEN),
        Message(1, 0, "200 application/json", colour=GREEN),
    ),
)

LONG_CALL: Final = Picture(
    name="long-call-flow.svg",
    title="How a long call flows",
    described=(
        "The client posts a call of a long-running tool. The function stores a call record, starts a work invocation "
        "and answers with a priming event: an id and a time to wait. The worker claims the record, runs the tool and "
        "writes progress and the result. The client comes back with GET and Last-Event-ID until the result is there."
    ),
    columns=("MCP client", "HTTP function", "DynamoDB", "worker function"),
    messages=(
        Message(0, 1, "POST tools/call", "2025-11-25, accepts SSE", BLUE),
        Message(1, 2, "put the call record", colour=BLUE),
        Message(1, 3, "start a work invocation", "its event is the call's id", BLUE),
        Message(1, 0, "priming event: id, retry 1 s", "the stream ends here", GREEN),
        Message(3, 2, "claim", colour=BLUE),
        Message(3, 3, "runs the tool,", "for minutes"),
        Message(3, 2, "progress, log messages", colour=BLUE),
        Message(0, 1, "GET, Last-Event-ID", colour=BLUE),
        Message(1, 2, "one query", colour=BLUE),
        Message(1, 0, "fresh id, longer retry, progress", "any environment answers", GREEN),
        Message(3, 2, "result", colour=BLUE),
        Message(0, 1, "GET, Last-Event-ID", colour=BLUE),
        Message(1, 2, "one query", colour=BLUE),
        Message(1, 0, "the result, with a final id", colour=GREEN),
    ),
)

PICTURES: Final = (REQUEST, LONG_CALL)


def main() -> None:
    """Write both pictures."""
    for picture in PICTURES:
        (FOLDER / picture.name).write_text(picture.svg(), encoding="utf-8")


if __name__ == "__main__":
    main()
