"""pgbench's command line on pgdyno's engine: options, output, log files and exit codes."""
