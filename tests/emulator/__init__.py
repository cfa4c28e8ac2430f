"""Lambda without Docker: AWS's runtime interface emulator and runtime client around a code directory."""
