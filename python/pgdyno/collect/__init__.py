"""What the machine and the server are: one file per source."""
