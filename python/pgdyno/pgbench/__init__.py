"""pgbench's command line on pgdyno's engine: the same options, output, log files and exit codes."""
