"""MySQL and MariaDB: addresses, sessions of administration, what their servers tell of themselves."""
