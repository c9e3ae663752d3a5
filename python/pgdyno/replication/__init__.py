"""A primary and its standbys on this machine: made, joined, watched, moved, and taken apart."""
