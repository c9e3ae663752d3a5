"""Description of the machine and the server, one file per source."""
