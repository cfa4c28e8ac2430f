"""Calls that outlive an invocation: one record a call, the only moves between its states, and what is made of it.

The record is the truth. An invocation that accepted a call, one that works on it and one that answers for it share
nothing else, and any of them may be cut at any moment.
"""
