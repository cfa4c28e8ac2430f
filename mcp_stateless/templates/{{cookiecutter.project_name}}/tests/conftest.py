"""What the tests run with: nothing of the developer's own settings."""

import os

for name in [name for name in os.environ if name.startswith("MCP_")]:
    del os.environ[name]
#% if cookiecutter.polling == "yes" %#

# Before handler.app is imported: a server reads its settings once. Calls lie in memory, and polls come at once.
os.environ["MCP_POLLING"] = "memory"
os.environ["MCP_HOLD_SECONDS"] = "1"
#% endif %#
