"""What a typed function says: its arguments as JSON Schema and back, its result as content, for tools, resources,
prompts and completions.

Everything is built once, at registration, and is immutable after it. Nothing here knows of revisions, HTTP or a
running call: `to_wire` gives the newest revision's dict, and the functions are called by someone else.
"""
