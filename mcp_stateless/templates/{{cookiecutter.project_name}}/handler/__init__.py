"""The Lambda function: an MCP server and its tools."""
