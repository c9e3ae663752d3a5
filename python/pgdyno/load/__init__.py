"""Datasets: how large they will be, whether they are there, and three ways of making them."""
