"""Storage probes: fio and pg_test_fsync."""
