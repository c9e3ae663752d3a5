"""Calls that a hostile or unlucky user makes: nothing that pgdyno did not make may be touched."""
