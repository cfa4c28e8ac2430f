"""Long calls on what `sam build` makes, under the runtime interface emulator, with all that can go wrong on Lambda.

`python -m tests.soak` takes minutes in real time; `test_soak.py` is a short one for every run of the tests.
"""
