"""PostgreSQL servers, private and others: started, configured, stopped; remedies by SQLSTATE."""
