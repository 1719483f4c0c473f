"""The demo behind `make demo`: a real Hudi table, maintained by the DAG, and what that did to it."""
