"""Tools that MCP servers of other people serve: their addresses, sessions with them, and bindings to our tools.

A server is reached by the SDK ``mcp`` (the extra of that name), which is imported when the first session opens.
"""
