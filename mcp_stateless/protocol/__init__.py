"""The protocol core: decoded data in, data or a rejection out.

Nothing in here reads the clock, the environment or a socket, and nothing knows FastAPI, Mangum or boto3.
"""
