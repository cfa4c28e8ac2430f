"""A toolbox for CSV data as an MCP server on Lambda: the tools and the wiring, nothing else.

The work is done in the modules beside this one, which know nothing of MCP beyond `ToolError`.
"""

import asyncio
from typing import Annotated

from pydantic import BaseModel, Field

from handler.bootstrap import Bootstrap, Estimate, Statistic, batches, numbers
from handler.library import library
from handler.profiles import Profile, profile_column
from handler.queries import Condition, Rows, matching_rows, sorted_rows
from handler.tables import read_table
from mcp_stateless import Context, MCPServer, ResourceNotFound, ToolAnnotations
from mcp_stateless.content import CompletionArgument, CompletionContext, PromptReference, ResourceTemplateReference

server = MCPServer(
    "csv-toolbox",
    version="1.0.0",
    title="CSV toolbox",
    description="Profile and query CSV text, with documents on how to read what comes out.",
    instructions=(
        "Call profile_csv first on data you have not seen: it names the columns, their kinds and what looks wrong. "
        "Then ask query_csv for rows, and estimate_uncertainty how far a mean or median can be trusted. "
        "search_documents explains statistics and the usual traps in CSV data."
    ),
)

READ_ONLY = ToolAnnotations(read_only_hint=True, open_world_hint=False)

CsvText = Annotated[str, Field(description="CSV text; its first line names the columns. , ; | or tab between cells")]


class DocumentEntry(BaseModel):
    name: str
    title: str
    uri: str


class Passage(BaseModel):
    document: str = Field(description="Name of the document; read it whole at docs://{name}")
    heading: str
    text: str
    score: float = Field(description="Relevance; comparable within one search only")


@server.tool(title="List documents", annotations=READ_ONLY)
def list_documents() -> list[DocumentEntry]:
    """List the bundled documents on reading data, each with the URI it can be read at."""
    return [
        DocumentEntry(name=document.name, title=document.title, uri=f"docs://{document.name}")
        for document in library().documents.values()
    ]


@server.tool(title="Search documents", annotations=READ_ONLY)
def search_documents(
    query: Annotated[str, Field(description="Words to look for, such as 'median outlier'")],
    limit: Annotated[int, Field(ge=1, le=10, description="Most passages to return")] = 3,
) -> list[Passage]:
    """Find the passages of the bundled documents that say most about a question, the best first."""
    return [
        Passage(document=section.document, heading=section.heading, text=section.text, score=round(score, 3))
        for score, section in library().search(query)[:limit]
    ]


# region profile_csv
@server.tool(title="Profile a CSV", annotations=READ_ONLY)
async def profile_csv(csv: CsvText, ctx: Context) -> Profile:
    """Describe every column of a CSV: its kind, gaps, distinct values, range, quartiles, top values and problems."""
    table = read_table(csv)
    columns = []
    for done, name in enumerate(table.header):
        await ctx.report_progress(done, len(table.header), f"Column {name}")
        columns.append(profile_column(name, table.column(name)))
    return Profile(rows=len(table.rows), delimiter=table.delimiter, columns=columns)


# endregion


@server.tool(title="Query a CSV", annotations=READ_ONLY)
def query_csv(
    csv: CsvText,
    where: Annotated[tuple[Condition, ...], Field(description="Rows must pass all of these; none: every row")] = (),
    sort_by: Annotated[str, Field(description="A column; empty: keep the order of the CSV")] = "",
    descending: bool = False,
    limit: Annotated[int, Field(ge=1, le=200, description="Most rows to return")] = 20,
) -> Rows:
    """Pick rows of a CSV by conditions, sorted and cut to a limit. Numbers and dates compare by value, not as text."""
    table = read_table(csv)
    rows = matching_rows(table, where)
    if sort_by:
        rows = sorted_rows(table, rows, sort_by, descending=descending)
    return Rows(header=list(table.header), rows=[list(row) for row in rows[:limit]], matched=len(rows))


# region estimate_uncertainty
@server.tool(title="Estimate uncertainty", annotations=READ_ONLY, long_running=True, timeout_seconds=300)
async def estimate_uncertainty(
    csv: CsvText,
    column: Annotated[str, Field(description="A column of numbers")],
    ctx: Context,
    statistic: Statistic = "mean",
    resamples: Annotated[int, Field(ge=100, le=50_000, description="More take longer and steady the interval")] = 2000,
    confidence: Annotated[float, Field(ge=0.5, le=0.99)] = 0.95,
) -> Estimate:
    """Tell how far a statistic of a column can be trusted: its bootstrap interval. Minutes for large tables."""
    bootstrap = Bootstrap(numbers(read_table(csv), column), statistic)
    for size in batches(resamples, bootstrap.batch):
        # In a thread, so that a cancelled call ends between two batches, and the progress gets out meanwhile.
        await asyncio.to_thread(bootstrap.draw, size)
        low, high = bootstrap.interval(confidence)
        await ctx.report_progress(len(bootstrap.estimates), resamples, f"So far {low:.6g} to {high:.6g}")
    return bootstrap.estimate(confidence)


# endregion


@server.resource("docs://index", title="Index of the documents", mime_type="text/markdown")
def index() -> str:
    """The bundled documents, one line each."""
    return "".join(f"- [{entry.title}]({entry.uri})\n" for entry in list_documents())


@server.resource("docs://{name}", title="Document", mime_type="text/markdown")
def document(name: str) -> str:
    """One bundled document. The index at docs://index lists the names."""
    found = library().documents.get(name)
    if found is None:
        raise ResourceNotFound(f"docs://{name}")
    return found.text


@server.prompt(title="Review a data set")
def review_dataset(csv: str, question: str) -> str:
    """Ask for a careful answer to a question about a CSV."""
    return (
        f"Answer this question about the data below: {question}\n\n"
        "First call profile_csv and say what it shows about gaps, odd values and columns that do not fit the question. "
        "Use query_csv to look at the rows behind any number you rely on. "
        "Where a conclusion depends on a choice, such as dropping empty cells, name the choice.\n\n"
        f"{csv}"
    )


@server.completion()
def complete_document_name(
    ref: PromptReference | ResourceTemplateReference, argument: CompletionArgument, context: CompletionContext | None
) -> list[str] | None:
    """Complete the name in docs://{name}."""
    if not isinstance(ref, ResourceTemplateReference):
        return None
    return [name for name in library().documents if name.startswith(argument.value.lower())]


app = server.app()
lambda_handler = server.lambda_handler(app)
