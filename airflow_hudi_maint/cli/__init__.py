"""The command line ``airflow hudi …``: the core's use cases from a terminal.

``definition`` names the commands; every ``airflow`` command imports it, so it imports nothing heavy. Each command is a
module in ``commands``; ``command`` turns errors into exit codes, ``output`` prints.
"""
