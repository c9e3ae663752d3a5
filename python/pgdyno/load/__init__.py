"""Datasets: their sizes, marks in the database, and three ways to load them."""
